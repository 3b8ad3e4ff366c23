#include "ring/ready_watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/thread.h"

namespace faro::ring {
namespace {

Status chosen_already(const char* what) {
  return base::error(Code::wrong_state, "the worker tells that it is ready by {} already", what);
}

}  // namespace

// --- the thread

ReadyWatch::~ReadyWatch() {
  join();
  if (thread_.joinable())
    base::detach_self(
        std::move(thread_));  // this is the thread: it was the last to use the node, and ends
}

void ReadyWatch::join() {
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

void ReadyWatch::add(Readiness& worker) {
  workers_.push_back(&worker);
  calls_.reserve(workers_.size());
  lines_.reserve(workers_.size() + 1);
}

Status ReadyWatch::watch(Readiness& worker, base::Nanoseconds sleep_ns) {
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    const Status status = stopped_ ? node_.closed_status() : start();
    if (!status.ok()) {
      worker.woken_();
      return status;
    }
    worker.armed_ = true;
    worker.until_ = base::deadline_after(now(), sleep_ns);
    is_news =
        !std::exchange(worker.watched_, true) || worker.until_ < sleeps_until_ || worker.is_rung();
    if (!is_news) look_again_before_sleep();
  }
  if (is_news) ring_doorbell(changed_);
  return Status::Ok();
}

// If the thread has read the worker's line and does not sleep on it yet, a ring would wake nobody,
// and the line would read as it did before. A worker that sleeps already goes on. Under the lock.
void ReadyWatch::look_again_before_sleep() noexcept {
  uint32_t armed = changed_.sleeping.load(std::memory_order_seq_cst);
  while (armed != 0 && !changed_.sleeping.compare_exchange_weak(armed, std::max(armed + 1, 1u),
                                                                std::memory_order_seq_cst)) {
  }
}

// Under the lock.
Status ReadyWatch::start() {
  if (thread_.joinable()) return Status::Ok();
  FARO_ASSIGN_OR_RETURN(
      auto thread, base::start_thread("faro-ready", [this, node = node_.keep_alive()] { run(); }));
  running_.store(true, std::memory_order_relaxed);
  thread_ = std::move(thread);
  return Status::Ok();
}

void ReadyWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  ring_doorbell(changed_);
}

bool ReadyWatch::is_busy() const noexcept {
  // Acquire: what the callbacks have done happened before (partner: the release in `run`).
  return running_.load(std::memory_order_acquire) && thread_.get_id() != std::this_thread::get_id();
}

void ReadyWatch::run() {
  Doorbell changed(&changed_);
  for (;;) {
    changed.arm();  // before the workers are looked at: whoever changes one later rings
    const bool goes_on = tell_ready();
    for (const Callback& call : calls_) (*call)();
    if (!goes_on) break;
    if (calls_.empty()) sleep();
  }
  running_.store(false, std::memory_order_release);
}

// Answers false when the session was closed: then no worker is armed, and none will be.
bool ReadyWatch::tell_ready() {
  calls_.clear();
  const base::Nanoseconds time = now();
  const std::lock_guard lock(mutex_);
  for (Readiness* const worker : workers_) {
    if (!worker->watched_) continue;
    const bool is_over = stopped_ || time >= worker->until_;
    // What was published before a ring is seen by whoever is told of it.
    if (worker->armed_ && (is_over || worker->is_rung())) {
      worker->tell();
      if (worker->callback_ != nullptr) calls_.push_back(worker->callback_);
    }
    if (is_over) worker->watched_ = false;
  }
  return !stopped_;
}

void ReadyWatch::sleep() {
  base::Nanoseconds until = base::kForever;
  {
    const std::lock_guard lock(mutex_);
    const uint32_t armed = changed_.sleeping.load(std::memory_order_seq_cst);
    if (armed == 0) return;
    lines_.assign(1, {&changed_, armed});
    for (Readiness* const worker : workers_) {
      if (!worker->watched_) continue;
      const uint32_t seen = worker->doorbell_.sleeping.load(std::memory_order_seq_cst);
      if (worker->armed_ && seen == 0) return;
      lines_.push_back({&worker->doorbell_, seen});
      until = std::min(until, worker->until_);
    }
    sleeps_until_ = until;
  }
  const base::Nanoseconds time = now();
  sleep_on_any(lines_, until == base::kForever ? until : until - std::min(time, until));
}

// --- a worker

Readiness::Readiness(ReadyWatch& watch, DoorbellLine& doorbell, std::function<void()> woken)
    : watch_(watch), doorbell_(doorbell), woken_(std::move(woken)) {
  watch_.add(*this);
}

Result<int> Readiness::descriptor() {
  const std::lock_guard lock(watch_.mutex_);
  if (callback_ != nullptr) return chosen_already("a callback");
  if (!descriptor_.valid()) {
    base::UniqueFd made(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!made.valid())
      return base::error(Code::system_error, "eventfd failed: {}", std::strerror(errno));
    descriptor_ = std::move(made);
  }
  return descriptor_.get();
}

Status Readiness::call(std::function<void()> callback) {
  if (!callback) return Status(Code::invalid_argument, "the callback of on_ready is empty");
  auto made = std::make_shared<const std::function<void()>>(std::move(callback));
  const std::lock_guard lock(watch_.mutex_);
  if (descriptor_.valid()) return chosen_already("a descriptor");
  callback_.swap(made);
  return Status::Ok();
}

Status Readiness::start() {
  const std::lock_guard lock(watch_.mutex_);
  return watch_.stopped_ ? watch_.node_.closed_status() : watch_.start();
}

Status Readiness::reset() {
  const std::lock_guard lock(watch_.mutex_);
  if (callback_ == nullptr && !descriptor_.valid()) {
    return Status(Code::wrong_state,
                  "nobody would learn that the worker is ready: call ready_descriptor() or "
                  "on_ready() before arm()");
  }
  if (armed_) disarm();
  if (std::exchange(readable_, false)) {
    uint64_t events = 0;
    (void)!read(descriptor_.get(), &events, sizeof events);  // its user may have read it
  }
  return Status::Ok();
}

void Readiness::disarm() noexcept {
  armed_ = false;
  woken_();
}

void Readiness::tell() noexcept {
  disarm();
  if (!descriptor_.valid()) return;
  const uint64_t event = 1;
  (void)!write(descriptor_.get(), &event, sizeof event);
  readable_ = true;
}

}  // namespace faro::ring
