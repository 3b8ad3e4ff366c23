// Socket: a connected, non-blocking socket, with TLS or without.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/unique_fd.h"
#include "tls/stream.h"

namespace faro::tls {

/// Owns: the descriptor. Threads: a value, one at a time. Blocks: never.
class Socket {
 public:
  explicit Socket(base::UniqueFd fd, std::shared_ptr<Stream> tls = nullptr)
      : fd_(std::move(fd)), tls_(std::move(tls)) {}

  int get() const noexcept { return fd_.get(); }
  bool valid() const noexcept { return fd_.valid(); }
  const std::shared_ptr<Stream>& tls() const noexcept { return tls_; }
  base::UniqueFd take_fd() noexcept { return std::move(fd_); }
  void close() noexcept {
    tls_.reset();
    fd_.reset();
  }

  /// They work as send(2) and recv(2) do, without SIGPIPE; with TLS errno may be EPROTO, of which
  /// tls() has the cause.
  ssize_t send(std::span<const std::byte> bytes) noexcept {
    if (tls_ == nullptr) return ::send(get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return tls_->send({&piece, 1});
  }
  ssize_t receive(std::span<std::byte> bytes) noexcept {
    if (tls_ == nullptr) return ::recv(get(), bytes.data(), bytes.size(), 0);
    const iovec piece{bytes.data(), bytes.size()};
    return tls_->receive({&piece, 1});
  }
  /// Bytes that can be received although no event reports them.
  size_t pending() const noexcept { return tls_ == nullptr ? 0 : tls_->pending(); }
  /// A send that was refused with EAGAIN can continue once something has been received, not once there is
  /// space.
  bool send_waits_for_input() const noexcept {
    return tls_ != nullptr && tls_->send_waits_for_input();
  }

 private:
  base::UniqueFd fd_;
  std::shared_ptr<Stream> tls_;
};

}  // namespace faro::tls
