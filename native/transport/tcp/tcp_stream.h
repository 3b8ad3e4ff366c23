// TcpStream: the socket of a link, encrypted or not.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "tls/stream.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#include <sys/syscall.h>
#endif

namespace faro::transport::tcp {

/// Threads: one sends while another one receives; shutdown: any. Blocks: never. Owns: the socket.
class TcpStream {
 public:
  /// Takes over a connected non-blocking socket, encrypted by `tls` or by nothing (null).
  TcpStream(int fd, std::shared_ptr<tls::Stream> tls) : fd_(fd), tls_(std::move(tls)) {}
  ~TcpStream() { close(fd_); }
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  int fd() const noexcept { return fd_; }

  /// Sends as sendmsg(2) does, without SIGPIPE.
  ssize_t send(std::span<iovec> pieces) {
    return tls_ != nullptr ? tls_->send(pieces) : send_plain(message_of(pieces));
  }
  /// Receives as recvmsg(2) does.
  ssize_t receive(std::span<iovec> pieces) {
    if (tls_ != nullptr) return tls_->receive(pieces);
    msghdr message = message_of(pieces);
    const ssize_t received = recvmsg(fd_, &message, MSG_DONTWAIT);
    if (received > 0) note_received();
    return received;
  }
  /// Bytes that have left the socket and wait to be received: the socket does not become readable for them.
  size_t pending() const noexcept { return tls_ != nullptr ? tls_->pending() : 0; }
  /// Why a call has failed with this errno.
  std::string failure(int error) const {
    return tls_ != nullptr && error == EPROTO ? std::string(tls_->failure().message())
                                              : std::strerror(error);
  }
  /// A thread inside a system call on the socket gets an error or the end of the stream. What was sent before still
  /// arrives.
  void shutdown() noexcept { ::shutdown(fd_, SHUT_RDWR); }

 private:
  static msghdr message_of(std::span<iovec> pieces) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    return message;
  }

  // A worker writes to a ring's space again after the peer has said that it has read it. Another worker's sendmsg has
  // read the same space before. No atomic of this process orders the two, only the way through the peer. That is
  // enough: the kernel copies the bytes before it sends them. But the sanitizer records the reads when sendmsg returns,
  // which may be after the peer's answer, and does not know about that way. So under the sanitizer the reads are
  // recorded before, and the ordering is announced to it.
  ssize_t send_plain(const msghdr& message) {
    constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
#if defined(__SANITIZE_THREAD__)
    for (size_t i = 0; i < message.msg_iovlen; ++i) {
      const iovec& piece = message.msg_iov[i];
      for (size_t at = 0; at + 8 <= piece.iov_len; at += 8) {
        (void)*static_cast<const volatile uint64_t*>(
            static_cast<const volatile void*>(static_cast<const std::byte*>(piece.iov_base) + at));
      }
    }
    __tsan_release(&way_);
    return syscall(SYS_sendmsg, fd_, &message, kFlags);  // not intercepted
#else
    return sendmsg(fd_, &message, kFlags);
#endif
  }

  // Something came from the peer: after all that was sent before it.
  void note_received() {
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(&way_);
#endif
  }

  const int fd_;
  const std::shared_ptr<tls::Stream> tls_;
  [[maybe_unused]] char way_ = 0;  // stands for the way through the peer
};

}  // namespace faro::transport::tcp
