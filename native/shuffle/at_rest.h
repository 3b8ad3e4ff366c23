// AtRest: a worker between its calls, while it has nothing open. It may make none for hours, so the network thread lets go of
// lost links in its place (native/DESIGN.md#hc-11).
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "shuffle/link_lanes.h"
#include "shuffle/open_shuffle.h"
#include "shuffle/operation/ownership.h"

namespace faro::shuffle {

class AtRest {
 public:
  AtRest(Ownership& ownership, LinkLanes& link_lanes,
         const std::vector<std::unique_ptr<OpenShuffle>>& shuffles)
      : ownership_(ownership), link_lanes_(link_lanes), shuffles_(shuffles) {}

  /// A call of the engine has ended: if nothing is open, the worker is at rest until the next one. One within a condition ends
  /// with the call that waits for that. A worker that is at rest already stays so: the network thread may have borrowed it.
  /// Threads: any; those that do not own the worker change nothing.
  void call_ended() noexcept {
    if (!ownership_.is_in_use() || ownership_.is_in_condition() || !shuffles_.empty()) return;
    uint64_t alerts = 0;
    do {  // nobody else could see to what has become of links meanwhile
      alerts = ownership_.alerts();
      try {
        (void)link_lanes_.rebind(false);
      } catch (const std::bad_alloc&) {  // the next operation tries again
      }
    } while (!ownership_.rest(alerts));
  }

  /// Links have changed. Threads: the network thread.
  void let_go_of_lost_links() noexcept {
    try {
      ownership_.borrow([this] { link_lanes_.let_go_of_lost(); });
    } catch (const std::bad_alloc&) {  // the worker's next operation tries again
    }
  }

 private:
  Ownership& ownership_;
  LinkLanes& link_lanes_;
  const std::vector<std::unique_ptr<OpenShuffle>>& shuffles_;
};

}  // namespace faro::shuffle
