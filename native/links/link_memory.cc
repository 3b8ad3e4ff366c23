#include "links/link_memory.h"

#include "tls/stream.h"

namespace faro::links {

uint64_t link_state_bytes(const transport::Transport& transport, const ring::Layout& outgoing,
                          const ring::Layout& incoming, bool has_tls) {
  const uint64_t connections = transport.capabilities().dials_data ? 2 : 1;
  return kLinkBytes + transport.state_bytes(outgoing, incoming) +
         (has_tls ? connections * tls::Stream::kIdleBytes : 0);
}

}  // namespace faro::links
