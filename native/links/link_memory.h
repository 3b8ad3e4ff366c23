// What a link takes on this side, as memory.limit_bytes counts it: its rings, and what this process has for it beside them.
// The figures are measured; tests/system/budgets_test.cc compares them with the resident set.
#pragma once

#include <cstdint>

#include "ring/layout.h"
#include "transport/transport.h"

namespace faro::links {

/// Beside its data link: its place in the table, its control connection, what waits for its descriptors.
inline constexpr uint64_t kLinkBytes = 2560;

/// All but the rings. `has_tls`: security.tls is not off.
uint64_t link_state_bytes(const transport::Transport& transport, const ring::Layout& outgoing,
                          const ring::Layout& incoming, bool has_tls);

/// All of it.
inline uint64_t link_bytes(const transport::Transport& transport, const ring::Layout& outgoing,
                           const ring::Layout& incoming, bool has_tls) {
  return transport.memory_bytes(outgoing, incoming) +
         link_state_bytes(transport, outgoing, incoming, has_tls);
}

}  // namespace faro::links
