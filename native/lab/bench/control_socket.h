// The benchmark's own connection between its nodes on several hosts: what an engine's RPC is to an
// engine. It carries who takes part, the query ids, starts and results; no rows.
//
//   message   0            8
//             +------------+---------- … -----+
//             | words      | 64-bit words     |   little-endian; `words` counts those behind it
//             +------------+---------- … -----+
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "faro/status.h"

namespace faro::bench {

/// A connected stream of messages. Threads: one at a time. Owns: the socket.
class ControlSocket {
 public:
  /// Dials until someone answers or the deadline (CLOCK_MONOTONIC) has passed.
  /// Errors: connect_failed with the last cause, invalid_argument (not host:port).
  static Result<ControlSocket> dial(const std::string& address, uint64_t deadline_ns);

  /// Errors: peer_lost.
  Status send(const std::vector<uint64_t>& words);

  /// The next message. Errors: peer_lost, deadline_exceeded, protocol_error (too long).
  Result<std::vector<uint64_t>> receive(uint64_t deadline_ns);

 private:
  friend class ControlListener;
  explicit ControlSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}
  Status receive_bytes(void* to, size_t bytes, uint64_t deadline_ns);
  base::UniqueFd fd_;
};

/// A listening socket. Threads: one at a time.
class ControlListener {
 public:
  /// Errors: address_in_use, system_error, invalid_argument (not host:port, no such host).
  static Result<ControlListener> listen(const std::string& address);

  /// Errors: deadline_exceeded, system_error.
  Result<ControlSocket> accept(uint64_t deadline_ns);

 private:
  explicit ControlListener(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
};

/// host:port with the port one higher. Errors: invalid_argument.
Result<std::string> next_port(const std::string& address);

}  // namespace faro::bench
