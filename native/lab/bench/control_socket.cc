#include "lab/bench/control_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/return_if_error.h"
#include "lab/bench/now.h"

namespace faro::bench {
namespace {

/// Far above any report; bytes of another program must not make us allocate more.
constexpr uint64_t kWordLimit = uint64_t{1} << 24;
constexpr uint64_t kRetryNs = 100'000'000;

struct HostPort {
  std::string host;
  std::string port;
};

Result<HostPort> split(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    return Status(Code::invalid_argument, fmt::format("'{}' is not host:port", address));
  }
  HostPort parts{address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']') {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> resolve(const std::string& address, bool passive) {
  FARO_ASSIGN_OR_RETURN(HostPort parts, split(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found);
  if (error != 0) {
    return Status(Code::invalid_argument, fmt::format("{}: {}", address, gai_strerror(error)));
  }
  return AddressList(found, &freeaddrinfo);
}

/// Waits until the descriptor has an event; false when the deadline has passed.
bool wait_for(int fd, short events, uint64_t deadline_ns) {
  for (;;) {
    const uint64_t now = now_ns();
    if (now >= deadline_ns) return false;
    pollfd polled{fd, events, 0};
    const uint64_t left_ms = std::min<uint64_t>((deadline_ns - now) / 1'000'000 + 1, 60'000);
    if (poll(&polled, 1, static_cast<int>(left_ms)) > 0) return true;
  }
}

void set_no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Result<std::string> next_port(const std::string& address) {
  FARO_ASSIGN_OR_RETURN(const HostPort parts, split(address));
  const std::string& port = parts.port;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number == 0 || number >= 65535) {
    return Status(Code::invalid_argument,
                  fmt::format("{}: the port must be in 1 … 65534", address));
  }
  return address.substr(0, address.rfind(':') + 1) + std::to_string(number + 1);
}

Result<ControlSocket> ControlSocket::dial(const std::string& address, uint64_t deadline_ns) {
  std::string cause = "nobody answered";
  for (;;) {
    Result<AddressList> found = resolve(address, false);
    if (!found) {
      cause = std::string(found.status().message());
    } else {
      for (const addrinfo* one = found.value().get(); one != nullptr; one = one->ai_next) {
        base::UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (fd.valid() && connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) {
          set_no_delay(fd.get());
          return ControlSocket(std::move(fd));
        }
        cause = std::strerror(errno);
      }
    }
    const uint64_t now = now_ns();
    if (now >= deadline_ns) break;
    poll(nullptr, 0, static_cast<int>(std::min(kRetryNs, deadline_ns - now) / 1'000'000 + 1));
  }
  return Status(Code::connect_failed,
                fmt::format("node 0's benchmark port {} cannot be reached: {}", address, cause));
}

Status ControlSocket::send(const std::vector<uint64_t>& words) {
  std::vector<uint64_t> message;
  message.reserve(words.size() + 1);
  message.push_back(words.size());
  message.insert(message.end(), words.begin(), words.end());
  const char* at = reinterpret_cast<const char*>(message.data());
  size_t left = message.size() * sizeof(uint64_t);
  while (left > 0) {
    const ssize_t sent = ::send(fd_.get(), at, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Status(Code::peer_lost, std::strerror(errno));
    at += sent;
    left -= static_cast<size_t>(sent);
  }
  return Status::Ok();
}

Status ControlSocket::receive_bytes(void* to, size_t bytes, uint64_t deadline_ns) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (!wait_for(fd_.get(), POLLIN, deadline_ns)) {
      return Status(Code::deadline_exceeded, "no answer within the time limit");
    }
    const ssize_t got = recv(fd_.get(), at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Status(Code::peer_lost,
                    got == 0 ? "closed the benchmark's connection" : std::strerror(errno));
    }
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return Status::Ok();
}

Result<std::vector<uint64_t>> ControlSocket::receive(uint64_t deadline_ns) {
  uint64_t count = 0;
  FARO_RETURN_IF_ERROR(receive_bytes(&count, sizeof count, deadline_ns));
  if (count == 0 || count > kWordLimit) {
    return Status(Code::protocol_error, fmt::format("a message of {} words", count));
  }
  std::vector<uint64_t> words(count);
  FARO_RETURN_IF_ERROR(receive_bytes(words.data(), count * sizeof(uint64_t), deadline_ns));
  return words;
}

Result<ControlListener> ControlListener::listen(const std::string& address) {
  FARO_ASSIGN_OR_RETURN(AddressList found, resolve(address, true));
  int error = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    base::UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd.get(), one->ai_addr, one->ai_addrlen) == 0 && ::listen(fd.get(), 128) == 0) {
      return ControlListener(std::move(fd));
    }
    error = errno;
  }
  return Status(
      error == EADDRINUSE ? Code::address_in_use : Code::system_error,
      fmt::format("the benchmark's port {} on node 0: {}", address, std::strerror(error)));
}

Result<ControlSocket> ControlListener::accept(uint64_t deadline_ns) {
  if (!wait_for(fd_.get(), POLLIN, deadline_ns)) {
    return Status(Code::deadline_exceeded, "nobody came within the time limit");
  }
  base::UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid())
    return Status(Code::system_error, std::string("accept: ") + std::strerror(errno));
  set_no_delay(fd.get());
  return ControlSocket(std::move(fd));
}

}  // namespace faro::bench
