#include "shuffle/operation/ownership.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/error.h"

namespace faro::shuffle {
namespace {

// One address per thread: its identity as an owner.
uintptr_t this_thread() noexcept {
  thread_local const uint32_t token = 0;
  return reinterpret_cast<uintptr_t>(&token);
}

pid_t thread_number() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

bool lives(pid_t thread) noexcept {
  return syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH;
}

/// Says in a flag that something is inside, while it is.
class Inside {
 public:
  explicit Inside(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
  ~Inside() { flag_ = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool& flag_;
  const bool before_;
};

}  // namespace

Status Ownership::enter() {
  const uintptr_t me = this_thread();
  if (owner_.load(std::memory_order_relaxed) != me && !take(me)) {
    return base::error(
        Code::wrong_state,
        "worker {} belongs to another thread; that thread has to call release_ownership() first",
        worker_.number);
  }
  counters::count(worker_.counters.operations);
  operation_.begin();
  // S2 of native/DESIGN.md#memory-orders. What an alert is about, closing included, was stored before it, so alerts are
  // looked at first.
  if (alerts_.load(std::memory_order_seq_cst) != alerts_seen_) {
    const uint64_t alerts = alerts_.load(std::memory_order_acquire);
    // If something is kept, or there was no memory for something, the next operation looks again.
    const bool is_all = alerted_();
    alerts_seen_ = is_all ? alerts : alerts - 1;
  }
  if (worker_.node.closed()) return worker_.node.closed_status();
  return Status::Ok();
}

// A worker that belongs to the thread itself, or to nobody, is not at rest any more.
bool Ownership::take(uintptr_t me) noexcept {
  uintptr_t owner = owner_.load(std::memory_order_relaxed);
  for (;;) {
    if ((owner & kLent) != 0) {
      sched_yield();
      owner = owner_.load(std::memory_order_relaxed);
      continue;
    }
    const uintptr_t thread = owner & ~kState;
    if (thread != kNobody && thread != me) return false;
    // Acquire: sees all that whoever gave the worker up, or has borrowed it, did with it.
    if (!owner_.compare_exchange_weak(owner, me, std::memory_order_acquire,
                                      std::memory_order_relaxed))
      continue;
    if (thread != me) thread_.store(thread_number(), std::memory_order_relaxed);
    return true;
  }
}

// It stays at rest if it was.
void Ownership::hand_to(uintptr_t thread) noexcept {
  uintptr_t owner = owner_.load(std::memory_order_relaxed);
  for (;;) {
    if ((owner & kLent) != 0) {
      sched_yield();
      owner = owner_.load(std::memory_order_relaxed);
    } else if (owner_.compare_exchange_weak(owner, thread | (owner & kAtRest),
                                            std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return;
    }
  }
}

// Together with rest(): whoever comes second sees the other's step (native/DESIGN.md#memory-orders, "rest").
bool Ownership::lend(uintptr_t& owner) noexcept {
  owner = owner_.load(std::memory_order_seq_cst);  // L2
  return (owner & kState) == kAtRest &&
         owner_.compare_exchange_strong(owner, owner | kLent, std::memory_order_seq_cst);
}

bool Ownership::rest(uint64_t alerts) noexcept {
  assert(is_in_use());
  uintptr_t resting = owner_.load(std::memory_order_relaxed) | kAtRest;
  owner_.store(resting, std::memory_order_seq_cst);                    // E1
  if (alerts_.load(std::memory_order_seq_cst) == alerts) return true;  // E2
  // If it is lent already, or was, the other thread has seen what the alert is about.
  return !owner_.compare_exchange_strong(resting, resting & ~kAtRest, std::memory_order_acquire);
}

bool Ownership::is_mine() const noexcept {
  return (owner_.load(std::memory_order_relaxed) & ~kState) == this_thread();
}

bool Ownership::is_in_use() const noexcept {
  return owner_.load(std::memory_order_relaxed) == this_thread();
}

void Ownership::adopt() noexcept {
  const uintptr_t me = this_thread();
  if ((owner_.load(std::memory_order_relaxed) & ~kState) == me) return;
  hand_to(me);
  thread_.store(thread_number(), std::memory_order_relaxed);
}

Ownership::Loan::Loan(Ownership& ownership) noexcept
    : ownership_(ownership),
      owner_(ownership.owner_.load(std::memory_order_relaxed) & ~kState),
      thread_(ownership.thread_.load(std::memory_order_relaxed)) {
  ownership_.adopt();
}

Ownership::Loan::~Loan() {
  // A thread may have the address of one that has ended.
  if (owner_ == this_thread() && thread_ == thread_number()) return;
  const bool goes_back = owner_ != kNobody && lives(thread_);
  ownership_.thread_.store(thread_, std::memory_order_relaxed);
  ownership_.hand_to(goes_back ? owner_ : kNobody);
}

void Ownership::alert() noexcept {
  alerts_.fetch_add(1, std::memory_order_seq_cst);  // R1, L1
  ring::ring_doorbell(doorbell_);
}

void Ownership::wake() noexcept {
  wakes_.fetch_add(1, std::memory_order_seq_cst);  // R1
  ring::ring_doorbell(doorbell_);
}

Outcome Ownership::look_at(const std::function<bool()>& condition) {
  const Inside inside(in_condition_);
  const BlockedOn::InCondition collecting(operation_.blocked_on());
  const bool holds = condition();
  operation_.condition_is_over();
  return holds ? Outcome::done : operation_.blocked_on().condition();
}

Status Ownership::check_may_wait(Wait wait) const {
  if (wait.limit() < std::chrono::nanoseconds::zero()) {
    return base::error(Code::invalid_argument, "worker {}: a time limit of {} ns is negative",
                       worker_.number, wait.limit().count());
  }
  if (!is_mine() || !in_condition_) return Status::Ok();  // another thread's call fails by enter()
  return base::error(Code::wrong_state,
                     "worker {} is called from a condition that it waits for, in which nothing may "
                     "wait: use Wait::none()",
                     worker_.number);
}

}  // namespace faro::shuffle
