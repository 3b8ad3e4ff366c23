// SigpipeShield: no SIGPIPE from the system calls of a scope.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace faro::transport::verbs {

/// Linux's siw sends on its TCP socket within the system call that posts, and without MSG_NOSIGNAL
/// (siw_post_send → siw_qp_sq_process): when the peer has gone, the thread that posts gets a SIGPIPE,
/// which by default ends its process. A library must not set the process's handlers, so a worker's
/// thread is shielded instead: the signal is blocked for the scope, and removed if it was raised.
///
/// Threads: any; the thread that makes it destroys it. Costs three system calls, or one if the thread blocks SIGPIPE
/// itself: then its signals are left alone.
class SigpipeShield {
 public:
  SigpipeShield() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeShield() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec no_wait{};
    sigtimedwait(&pipe_, nullptr, &no_wait);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeShield(const SigpipeShield&) = delete;
  SigpipeShield& operator=(const SigpipeShield&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

}  // namespace faro::transport::verbs
