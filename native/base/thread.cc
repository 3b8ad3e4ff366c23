#include "base/thread.h"

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace faro::base {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  Status status;
  try {
    thread = std::thread([name, body = std::move(body)] {
      pthread_setname_np(pthread_self(), name);
      body();
    });
  } catch (const std::system_error& error) {
    status =
        base::error(Code::system_error, "the system has no thread for {}: {}", name, error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return thread;
}

}  // namespace faro::base
