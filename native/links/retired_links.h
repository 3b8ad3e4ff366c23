// RetiredLinks: links that are no longer in the table and that nobody uses any more, until the network
// thread comes by.
//
// A link that was lost is kept by those who may be inside a call on it, or hold a frame of it
// (native/DESIGN.md#hc-11): the table releases it at once, each worker when it binds to the next one. The
// last to let go may be any thread, but sockets and registrations are the network thread's to end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "links/link.h"

namespace faro::links {

class RetiredLinks : public std::enable_shared_from_this<RetiredLinks> {
 public:
  /// A link that comes here when the last one lets go of it. Threads: network thread.
  std::shared_ptr<Link> keep(std::unique_ptr<Link> link) {
    count_.fetch_add(1, std::memory_order_relaxed);
    return {link.release(), [retired = shared_from_this()](Link* last) { retired->add(last); }};
  }
  /// Destroys what has come. Not from inside a link. Threads: network thread.
  void destroy() {
    std::unique_ptr<Link> gone;
    {
      const std::lock_guard lock(mutex_);
      gone.swap(first_);
    }
    for (; gone != nullptr; gone = std::move(gone->next_retired))
      count_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// Links that were not destroyed yet, those in use included. Threads: any.
  uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  // Needs no memory: whoever lets go of a link may have none.
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
