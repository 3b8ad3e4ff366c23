// ReadyWatch: one thread that sleeps in place of all workers of a session whose engine is driven by
// events.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "ring/doorbell.h"
#include "shuffle/local_worker.h"

namespace faro::jni {

/// Workers that would wait are added with their doorbell armed (LocalWorker::arm_unless); `wait`
/// answers which of them have something to look at: their doorbell was rung, or their longest sleep
/// is over.
///
/// Threads: `add` and `stop`: any; `wait`: one thread at a time. The workers must outlive it.
class ReadyWatch {
 public:
  ReadyWatch() = default;
  ReadyWatch(const ReadyWatch&) = delete;
  ReadyWatch& operator=(const ReadyWatch&) = delete;

  /// False if it was stopped. Blocks: never.
  bool add(shuffle::LocalWorker& worker, base::Nanoseconds sleep_ns);

  /// Sleeps until some workers that were added are ready, and forgets them: their local indices. None
  /// are left and none will come if it answers an empty list: then it was stopped.
  std::vector<uint32_t> wait();

  /// Makes all workers ready, and ends `wait`. Idempotent.
  void stop();
  bool stopped() const;

 private:
  struct Sleeper {
    shuffle::LocalWorker* worker;
    base::Nanoseconds until;
  };

  static base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }
  std::vector<uint32_t> take_ready();

  ring::DoorbellLine changed_{};  // rung when the list has changed
  mutable std::mutex mutex_;
  std::vector<Sleeper> sleepers_;  // guarded by mutex_
  bool stopped_ = false;           // guarded by mutex_
};

}  // namespace faro::jni
