// The parts of a link that has been set up.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/verbs/path_map.h"
#include "transport/verbs/queue_pair.h"
#include "transport/verbs/registered_memory.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

/// When the peer learns of bytes.
enum class Order {
  chained,  // in the post of their WRITE
  paper,    // when their WRITE has completed (paper §3.1)
};

/// A connected queue pair.
struct PathParts {
  std::unique_ptr<QueuePair> queue_pair;
  uint32_t inline_bytes = 0;        // the most that it inlines
  bool raises_sigpipe = false;      // posting may raise it, see SigpipeShield
  bool acknowledges_writes = true;  // a WRITE completes when the peer's device has it; not on iWARP
};

/// Everything is set up and connected. The queue pairs are destroyed first, so that the device has released the memory.
struct LinkParts {
  RegisteredMemory outgoing;  // local_read
  RegisteredMemory incoming;  // remote_write
  RegisteredMemory messages;  // local_write: message_bytes() for each path
  std::vector<PathParts> paths;
  Sharing sharing = Sharing::link;
  uint64_t peer_address = 0;  // of the peer's incoming region
  uint32_t peer_key = 0;
  uint32_t send_depth = 0;   // of each path
  uint32_t write_limit = 0;  // bytes of one WRITE
  uint32_t receives = 0;     // this side's, of each path; all are posted already
  uint32_t peer_receives = 0;
  bool immediates = false;  // notify by WRITE WITH IMMEDIATE where possible
  Order order = Order::chained;

  /// Requests that one transfer of a ring may need, because it wraps or exceeds the limit of one WRITE.
  static uint32_t requests_per_ring(uint32_t ring_bytes, uint32_t write_limit) {
    return (ring_bytes + write_limit - 1) / write_limit + 1;
  }
  /// Requests in one post.
  static uint32_t chain_limit(uint32_t send_depth) {
    return send_depth / 4 < kChainLimit ? send_depth / 4 : kChainLimit;
  }
  static constexpr uint32_t kChainLimit = 64;

  /// Messages of a path: one for each receive and each place of the send queue, receives first.
  static uint32_t message_count(uint32_t receives, uint32_t send_depth) {
    return receives + send_depth;
  }
  static uint64_t message_bytes(uint32_t receives, uint32_t send_depth) {
    return uint64_t{wire::kVerbsMessageBytes} * message_count(receives, send_depth);
  }
};

/// Posts the receive that fills message `index` of a link. Returns 0 or an errno. Threads: one at a
/// time.
int post_receive(ibv_qp* queue_pair, const RegisteredMemory& messages, uint32_t index);

/// Posts all receives of path `path`. Errors: as verbs_error. Threads: one at a time.
Status post_receives(ibv_qp* queue_pair, const RegisteredMemory& messages, uint32_t path,
                     uint32_t receives, uint32_t send_depth);

}  // namespace faro::transport::verbs
