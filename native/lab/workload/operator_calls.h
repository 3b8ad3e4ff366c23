// How the parts of a plan call their operators: in all the ways in which engines wait.
#pragma once

#include <chrono>
#include <cstdint>

#include "faro/outcome.h"
#include "faro/session.h"
#include "faro/status.h"
#include "faro/wait.h"
#include "lab/workload/chance.h"

namespace faro::workload {

/// How many rows a part gives with a call: none, one, and more than are looked at between two looks at the clock.
inline constexpr uint64_t kRowsOfACall[] = {0, 1, 17, 500, 1024, 5000};

/// Where a part of a plan of operators runs, and where it may end.
class OperatorHost {
 public:
  virtual ~OperatorHost() = default;
  /// Between two calls: false: leave the query as it is, with all that is open.
  virtual bool between() { return true; }
};

/// Threads: the worker's.
class OperatorCalls {
 public:
  OperatorCalls(Worker& worker, OperatorHost& host, Chance& chance)
      : worker_(worker), host_(host), chance_(chance) {}

  /// Repeats once(wait), a call of `on`, until it is not for a time limit that it ends. stopped: the host has said that it ends here.
  template <typename Operator, typename Once>
  Outcome call(Operator& on, Once once) {
    for (;;) {
      if (!host_.between()) return Outcome::stopped;
      Outcome outcome = Outcome::would_wait;
      switch (chance_.below(4)) {
        case 0:
          outcome = once(Wait::at_most(std::chrono::nanoseconds(chance_.below(200'000))));
          break;
        case 1: {
          const Outcome waited = worker_.wait_until(
              [&] { return (outcome = once(Wait::none())) != Outcome::would_wait; });
          if (waited != Outcome::done) {
            why_ = worker_.status();
            return waited;
          }
          break;
        }
        default:
          outcome = once(Wait::forever());
      }
      if (outcome == Outcome::deadline) continue;
      if (outcome == Outcome::failed) why_ = on.status();
      return outcome;
    }
  }
  bool between() { return host_.between(); }
  /// Notes why. Answers failed.
  Outcome fail(const Status& why) {
    why_ = why;
    return Outcome::failed;
  }
  const Status& why() const noexcept { return why_; }

 private:
  Worker& worker_;
  OperatorHost& host_;
  Chance& chance_;
  Status why_;
};

}  // namespace faro::workload
