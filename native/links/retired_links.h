// RetiredLinks: links that have left the table and are no longer in use, until the network thread destroys
// them.
//
// A lost link stays alive while a worker may be inside a call on it or hold a frame of it
// (native/DESIGN.md#hc-11). The table releases it at once, each worker when it binds to the next link. Any
// thread may release it last, but only the network thread may close its sockets and registrations.
//
// Its connections are closed before, by LinkTable: frames that are held are no reason to keep sockets or queue pairs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "links/link.h"

namespace faro::links {

class RetiredLinks : public std::enable_shared_from_this<RetiredLinks> {
 public:
  /// A link that comes here when its last user releases it. Threads: network thread.
  std::shared_ptr<Link> keep(std::unique_ptr<Link> link) {
    count_.fetch_add(1, std::memory_order_relaxed);
    return {link.release(), [retired = shared_from_this()](Link* last) { retired->add(last); }};
  }
  /// Destroys the links that have come here. Do not call it from inside a link. Threads: network thread.
  void destroy() {
    std::unique_ptr<Link> gone;
    {
      const std::lock_guard lock(mutex_);
      gone.swap(first_);
    }
    for (; gone != nullptr; gone = std::move(gone->next_retired))
      count_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// Number of links that were not destroyed yet, including those in use. Threads: any.
  uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  // Allocates nothing: the thread that releases a link may have no memory left.
  void add(Link* link) noexcept {
    const std::lock_guard lock(mutex_);
    link->next_retired = std::move(first_);
    first_.reset(link);
  }

  std::atomic<uint32_t> count_{0};
  std::mutex mutex_;
  std::unique_ptr<Link> first_;  // guarded by mutex_
};

}  // namespace faro::links
