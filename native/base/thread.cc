#include "base/thread.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <list>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/over_fork.h"
#include "faro/detail/unloading.h"

namespace faro::base {
namespace {

std::atomic<int> running{0};

/// Threads that nobody waits for. They are joined once they are at their end: std::thread::detach
/// would leave nobody who knows when their last instruction is over. Never destroyed: they may go
/// on while the process ends.
class Detached {
 public:
  struct Entry {
    std::thread thread;
    std::atomic<bool> is_at_end{false};
    Birthplace started_in;
  };

  static Detached& instance() {
    static auto* const detached = new Detached;
    return *detached;
  }

  // The entry of the calling thread, once it is one of these.
  static Entry*& own() {
    thread_local Entry* entry = nullptr;
    return entry;
  }

  Status start(const char* name, std::function<void()> body) {
    const std::lock_guard lock(mutex_);
    join_ended();
    std::list<Entry> started(1);
    auto thread = start_thread(name, [entry = &started.front(), body = std::move(body)]() mutable {
      own() = entry;
      body();
      body = nullptr;
    });
    if (!thread.ok()) return thread.status();
    started.front().thread = std::move(*thread);
    entries_.splice(entries_.end(), started);
    return Status::Ok();
  }

  void adopt_self(std::thread self) {
    const std::lock_guard lock(mutex_);
    join_ended();
    Entry& entry = entries_.emplace_back();
    entry.thread = std::move(self);
    own() = &entry;
  }

  void join_all_ended() {
    const std::lock_guard lock(mutex_);
    join_ended();
  }

 private:
  // A forked child does not have its parent's.
  void join_ended() {
    for (auto at = entries_.begin(); at != entries_.end();) {
      const auto entry = at++;
      if (!entry->is_at_end.load(std::memory_order_acquire) || entry->started_in.forked()) continue;
      entry->thread.join();
      entries_.erase(entry);
    }
  }

  MutexOverFork mutex_;
  std::list<Entry> entries_;
};

void run(const char* name, std::function<void()>& body) {
  pthread_setname_np(pthread_self(), name);
  body();
  body = nullptr;  // what it has caught is destroyed by this library
  running.fetch_sub(1, std::memory_order_release);
  if (auto* const entry = Detached::own()) entry->is_at_end.store(true, std::memory_order_release);
}

}  // namespace

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  Status status;
  running.fetch_add(1, std::memory_order_relaxed);
  try {
    thread = std::thread([name, body = std::move(body)]() mutable { run(name, body); });
  } catch (const std::bad_alloc&) {
    running.fetch_sub(1, std::memory_order_relaxed);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  } catch (const std::system_error& error) {
    running.fetch_sub(1, std::memory_order_relaxed);
    status =
        base::error(Code::system_error, "the system has no thread for {}: {}", name, error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return thread;
}

Status start_detached(const char* name, std::function<void()> body) {
  return Detached::instance().start(name, std::move(body));
}

void detach_self(std::thread self) { Detached::instance().adopt_self(std::move(self)); }

}  // namespace faro::base

bool faro::detail::all_threads_are_over() noexcept {
  base::Detached::instance().join_all_ended();
  return base::running.load(std::memory_order_acquire) == 0;
}
