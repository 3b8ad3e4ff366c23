// Connects the sockets baseline: one TCP connection for each pair of workers of different
// processes.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// Where a worker listens.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

/// Errors: invalid_argument if `ip` is no numeric IPv4 or IPv6 address.
Result<SocketAddress> parse_socket_address(const std::string& ip, uint16_t port);

/// A bound and listening socket.
struct ListeningSocket {
  base::UniqueFd fd;
  SocketAddress address;  ///< with the port that was given for port 0
};

/// Errors: address_in_use, system_error.
Result<ListeningSocket> listen_at(const SocketAddress& address, uint32_t backlog);

/// A connection to another worker.
struct MeshSocket {
  base::UniqueFd fd;
  uint32_t peer = 0;  ///< number of the worker at the other end
};

/// How the sockets are set up.
struct MeshOptions {
  /// SO_SNDBUF; 0 leaves the kernel's own choice.
  uint32_t kernel_buffer_bytes = 0;
  /// TCP_NODELAY: every write is a packet. Without it (Nagle) the kernel joins small writes.
  bool no_delay = true;
};

/// Connects `worker` with every worker of other processes: it calls those with smaller numbers and
/// is called by the others. The sockets are non-blocking, in no given order. All listeners must
/// exist before the first call (their backlog takes the early callers).
///
/// Blocks: until all are connected or 10 s have passed.
/// Errors: connect_failed (names the worker), protocol_error (another program called), system_error.
Result<std::vector<MeshSocket>> connect_mesh(const TwoStageJob& job, uint32_t worker,
                                             const ListeningSocket& listener,
                                             const std::vector<SocketAddress>& addresses,
                                             const MeshOptions& options);

}  // namespace faro::bench
