// LastResorts: why a query fails if nobody gives a better cause. A worker that closes a shuffle before its end mostly
// does so because its part has failed, and says why a moment later (Worker::end_query).
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"

namespace faro::shuffle {

/// At most one of each local worker. Threads: under the table's lock.
class LastResorts {
 public:
  /// How long a better cause is waited for.
  static constexpr base::Nanoseconds kTellDelay = 100'000'000;

  /// The first of a worker counts: what it closes next is a consequence, too.
  void add(uint32_t worker, const Status& cause, base::Nanoseconds now) {
    const auto is_its = [worker](const Kept& kept) { return kept.worker == worker; };
    if (std::ranges::any_of(kept_, is_its)) return;
    kept_.push_back({worker, base::deadline_after(now, kTellDelay), cause});
  }

  /// That of a worker, which is kept no longer; nullopt: there is none.
  std::optional<Status> take(uint32_t worker) {
    const auto is_its = [worker](const Kept& kept) { return kept.worker == worker; };
    const auto found = std::ranges::find_if(kept_, is_its);
    if (found == kept_.end()) return std::nullopt;
    std::optional<Status> cause = std::move(found->cause);
    kept_.erase(found);
    return cause;
  }

  /// The one that was kept first.
  std::optional<Status> take_first() {
    return kept_.empty() ? std::nullopt : take(kept_.front().worker);
  }
  /// When that is to be told; kForever: there is none.
  base::Nanoseconds due() const { return kept_.empty() ? base::kForever : kept_.front().due; }

 private:
  struct Kept {
    uint32_t worker;
    base::Nanoseconds due;
    Status cause;
  };
  std::vector<Kept> kept_;  // in the order in which they were added
};

}  // namespace faro::shuffle
