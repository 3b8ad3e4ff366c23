#include "shuffle/operation/ownership.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/error.h"

namespace faro::shuffle {
namespace {

// One address per thread: its identity as an owner.
const void* this_thread() noexcept {
  thread_local const char token = 0;
  return &token;
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
  const void* const me = this_thread();
  if (owner_.load(std::memory_order_relaxed) != me) {
    const void* nobody = nullptr;
    // Acquire: sees everything the thread did that gave the worker up (its release in give_up).
    if (!owner_.compare_exchange_strong(nobody, me, std::memory_order_acquire)) {
      return base::error(
          Code::wrong_state,
          "worker {} belongs to another thread; that thread has to call release_ownership() first",
          worker_.number);
    }
    thread_.store(thread_number(), std::memory_order_relaxed);
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

void Ownership::adopt() noexcept {
  if (owner_.load(std::memory_order_relaxed) != this_thread()) own();
}

void Ownership::own() noexcept {
  owner_.store(this_thread(), std::memory_order_relaxed);
  thread_.store(thread_number(), std::memory_order_relaxed);
}

Ownership::Loan::Loan(Ownership& ownership) noexcept
    : ownership_(ownership),
      owner_(ownership.owner_.load(std::memory_order_relaxed)),
      thread_(ownership.thread_.load(std::memory_order_relaxed)) {
  ownership_.adopt();
}

Ownership::Loan::~Loan() {
  // A thread may have the address of one that has ended.
  if (owner_ == this_thread() && thread_ == thread_number()) return;
  const bool goes_back = owner_ != nullptr && lives(thread_);
  ownership_.thread_.store(thread_, std::memory_order_relaxed);
  ownership_.owner_.store(goes_back ? owner_ : nullptr, std::memory_order_release);
}

void Ownership::alert() noexcept {
  alerts_.fetch_add(1, std::memory_order_seq_cst);  // R1
  ring::ring_doorbell(doorbell_);
}

void Ownership::wake() noexcept {
  wakes_.fetch_add(1, std::memory_order_seq_cst);  // R1
  ring::ring_doorbell(doorbell_);
}

Outcome Ownership::look_at(const std::function<bool()>& condition) {
  const Inside inside(in_condition_);
  const BlockedOn::InCondition collecting(operation_.blocked_on());
  return condition() ? Outcome::done : operation_.blocked_on().condition();
}

Status Ownership::check_may_wait(Wait wait) const {
  if (wait.limit() < std::chrono::nanoseconds::zero()) {
    return base::error(Code::invalid_argument, "worker {}: a time limit of {} ns is negative",
                       worker_.number, wait.limit().count());
  }
  const bool is_mine = owner_.load(std::memory_order_relaxed) == this_thread();
  if (!is_mine || !in_condition_) return Status::Ok();  // another thread's call fails by enter()
  return base::error(Code::wrong_state,
                     "worker {} is called from a condition that it waits for, in which nothing may "
                     "wait: use Wait::none()",
                     worker_.number);
}

}  // namespace faro::shuffle
