#include "lab/bench/sockets_mesh.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/return_if_error.h"

namespace faro::bench {
namespace {

constexpr int kConnectTimeoutMs = 10'000;

/// The first bytes on a connection: who calls.
struct Greeting {
  uint32_t magic = 0x6f726146;  // "Faro"
  uint32_t caller = 0;
};
static_assert(sizeof(Greeting) == 8);

std::string error_text() { return std::strerror(errno); }

Status connect_failed(uint32_t from, uint32_t to) {
  return Status(Code::connect_failed, "worker " + std::to_string(from) +
                                          " cannot connect to worker " + std::to_string(to) + ": " +
                                          error_text());
}

base::UniqueFd tcp_socket(const SocketAddress& address) {
  return base::UniqueFd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

const sockaddr* raw(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

/// Waits for one event; false if none came in time.
bool wait_for(int fd, short events) {
  pollfd polled{fd, events, 0};
  return poll(&polled, 1, kConnectTimeoutMs) == 1;
}

Status configure(int fd, const MeshOptions& options) {
  const int no_delay = options.no_delay ? 1 : 0;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof(no_delay)) != 0 ||
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
    return Status(Code::system_error, "configuring a socket: " + error_text());
  }
  if (options.kernel_buffer_bytes > 0) {
    const int bytes = static_cast<int>(options.kernel_buffer_bytes);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) != 0) {
      return Status(Code::system_error, "SO_SNDBUF: " + error_text());
    }
  }
  return Status::Ok();
}

/// An address with a port that the system chooses in place of its own.
SocketAddress without_port(SocketAddress address) {
  if (address.storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = 0;
  } else {
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = 0;
  }
  return address;
}

/// From the caller's own address: what two addresses exchange goes the same way in both directions.
Result<MeshSocket> call(uint32_t worker, uint32_t peer, const SocketAddress& own,
                        const SocketAddress& address) {
  MeshSocket made{tcp_socket(address), peer};
  const SocketAddress source = without_port(own);
  if (!made.fd.valid() || bind(made.fd.get(), raw(source), source.bytes) != 0) {
    return connect_failed(worker, peer);
  }
  // Bounds connect and the greeting, which are the only blocking calls on this socket.
  const timeval limit{kConnectTimeoutMs / 1000, 0};
  setsockopt(made.fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  Greeting greeting;
  greeting.caller = worker;
  if (connect(made.fd.get(), raw(address), address.bytes) != 0 ||
      send(made.fd.get(), &greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting)) {
    return connect_failed(worker, peer);
  }
  return made;
}

Result<MeshSocket> answer(const TwoStageJob& job, uint32_t worker, int listener) {
  if (!wait_for(listener, POLLIN)) {
    return Status(Code::connect_failed,
                  "worker " + std::to_string(worker) + ": nobody called within 10 s");
  }
  MeshSocket made{base::UniqueFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)), 0};
  if (!made.fd.valid()) return Status(Code::system_error, "accept: " + error_text());
  Greeting greeting;
  const Greeting expected;
  if (!wait_for(made.fd.get(), POLLIN) ||
      recv(made.fd.get(), &greeting, sizeof(greeting), 0) != sizeof(greeting) ||
      greeting.magic != expected.magic || greeting.caller <= worker ||
      greeting.caller >= job.worker_count() || job.same_process(worker, greeting.caller)) {
    return Status(Code::protocol_error,
                  "worker " + std::to_string(worker) + ": a caller did not greet as a worker");
  }
  made.peer = greeting.caller;
  return made;
}

}  // namespace

Result<SocketAddress> parse_socket_address(const std::string& ip, uint16_t port) {
  SocketAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, ip.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.bytes = sizeof(*v4);
    return address;
  }
  if (inet_pton(AF_INET6, ip.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.bytes = sizeof(*v6);
    return address;
  }
  return Status(Code::invalid_argument, "address = " + ip + ": must be a numeric IP address");
}

Result<ListeningSocket> listen_at(const SocketAddress& address, uint32_t backlog) {
  ListeningSocket made{tcp_socket(address), address};
  if (!made.fd.valid()) return Status(Code::system_error, "socket: " + error_text());
  if (bind(made.fd.get(), raw(address), address.bytes) != 0 ||
      listen(made.fd.get(), static_cast<int>(backlog)) != 0) {
    const Code code = errno == EADDRINUSE ? Code::address_in_use : Code::system_error;
    return Status(code, "cannot listen: " + error_text());
  }
  made.address.bytes = sizeof(made.address.storage);
  if (getsockname(made.fd.get(), reinterpret_cast<sockaddr*>(&made.address.storage),
                  &made.address.bytes) != 0) {
    return Status(Code::system_error, "getsockname: " + error_text());
  }
  return made;
}

Result<std::vector<MeshSocket>> connect_mesh(const TwoStageJob& job, uint32_t worker,
                                             const ListeningSocket& listener,
                                             const std::vector<SocketAddress>& addresses,
                                             const MeshOptions& options) {
  std::vector<MeshSocket> sockets;
  uint32_t callers = 0;
  for (uint32_t peer = 0; peer < job.worker_count(); ++peer) {
    if (job.same_process(worker, peer)) continue;
    if (peer > worker) {
      ++callers;
      continue;
    }
    FARO_ASSIGN_OR_RETURN(MeshSocket made, call(worker, peer, listener.address, addresses[peer]));
    sockets.push_back(std::move(made));
  }
  for (uint32_t i = 0; i < callers; ++i) {
    FARO_ASSIGN_OR_RETURN(MeshSocket made, answer(job, worker, listener.fd.get()));
    const uint32_t peer = made.peer;
    if (std::any_of(sockets.begin(), sockets.end(),
                    [&](const MeshSocket& known) { return known.peer == peer; })) {
      return Status(Code::protocol_error, "worker " + std::to_string(peer) + " called twice");
    }
    sockets.push_back(std::move(made));
  }
  for (const MeshSocket& made : sockets) {
    FARO_RETURN_IF_ERROR(configure(made.fd.get(), options));
  }
  return sockets;
}

}  // namespace faro::bench
