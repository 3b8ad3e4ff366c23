// sendmsg, as the thread sanitizer has to understand it.
//
// A worker writes to a ring's space again after the peer has said that it has read it. Another worker's sendmsg has
// read the same space before. No atomic of this process orders the two, only the way through the peer. That is enough:
// the kernel copies the bytes before it sends them. But the sanitizer records the reads when sendmsg returns, which may
// be after the peer's answer, and does not know about that way. So under the sanitizer the reads are recorded before,
// and the ordering is announced to it.
#pragma once

#include <sys/socket.h>

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace faro::transport::tcp {

/// sendmsg without waiting and without SIGPIPE. `way` stands for the way through the peer.
inline ssize_t send_pieces(int fd, const msghdr& message, [[maybe_unused]] void* way) {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
#if defined(__SANITIZE_THREAD__)
  for (size_t i = 0; i < message.msg_iovlen; ++i) {
    const iovec& piece = message.msg_iov[i];
    for (size_t at = 0; at + 8 <= piece.iov_len; at += 8) {
      (void)*static_cast<const volatile uint64_t*>(
          static_cast<const volatile void*>(static_cast<const std::byte*>(piece.iov_base) + at));
    }
  }
  __tsan_release(way);
  return syscall(SYS_sendmsg, fd, &message, kFlags);  // not intercepted
#else
  return sendmsg(fd, &message, kFlags);
#endif
}

/// Something came from the peer: after all that was sent before it.
inline void note_received([[maybe_unused]] void* way) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(way);
#endif
}

}  // namespace faro::transport::tcp
