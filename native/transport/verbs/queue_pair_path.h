// The path of a queue pair's packets through the network, as far as settings and not rdma_cm choose it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "faro/status.h"

namespace faro::transport::verbs {

struct PathOptions {
  uint32_t mtu_bytes = 0;                // 256, 512 … 4096; 0: that of the port
  std::optional<uint8_t> service_level;  // none: rdma_cm's choice
  uint8_t min_rnr_timer = 0;             // code of IB; see settings.def
};

/// Whether packets of that size fit the port, whose `active` MTU follows from its network.
/// Errors: transport_unavailable, with both sizes and what to do.
Status check_mtu(const PathOptions& options, ibv_mtu active, const std::string& device);

/// Puts the options into the attributes with which rdma_cm would make a queue pair ready to receive. Both ends of a
/// connection must have the same MTU: a device expects a write in packets of its own MTU.
void apply_path(const PathOptions& options, ibv_qp_attr& attributes) noexcept;

}  // namespace faro::transport::verbs
