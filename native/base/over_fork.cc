#include "base/over_fork.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace faro::base {
namespace {

constexpr size_t kPageBytes = 4096;

// Inherited by a child, unlike what stands in the page below.
std::atomic<uint64_t> last_stamp{0};

using Stamp = std::atomic<uint64_t>;

// The kernel fills it with zeros in a child. Null: it cannot.
Stamp* make_page() noexcept {
  void* const page =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, kPageBytes, MADV_WIPEONFORK) == 0) return static_cast<Stamp*>(page);
  munmap(page, kPageBytes);
  return nullptr;
}

}  // namespace

uint64_t process_stamp() noexcept {
  static Stamp* const page = make_page();
  if (page == nullptr) return static_cast<uint64_t>(getpid());
  uint64_t stamp = page->load(std::memory_order_relaxed);
  if (stamp != 0) return stamp;
  const uint64_t next = last_stamp.fetch_add(1, std::memory_order_relaxed) + 1;
  return page->compare_exchange_strong(stamp, next, std::memory_order_relaxed) ? next : stamp;
}

struct Forking {
  static std::atomic<MutexOverFork*>& first() {
    static std::atomic<MutexOverFork*> first{nullptr};
    return first;
  }
  // Nobody who holds one of them waits for another, so their order does not matter.
  static void lock_all() {
    for (MutexOverFork* each = first(); each != nullptr; each = each->next_) each->lock();
  }
  static void unlock_all() {
    for (MutexOverFork* each = first(); each != nullptr; each = each->next_) each->unlock();
  }
};

MutexOverFork::MutexOverFork() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(Forking::lock_all, Forking::unlock_all, Forking::unlock_all);
  next_ = Forking::first().load();
  while (!Forking::first().compare_exchange_weak(next_, this)) {
  }
}

}  // namespace faro::base
