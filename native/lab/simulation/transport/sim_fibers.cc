#include "lab/simulation/transport/sim_fibers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace faro::sim {

uint32_t FiberTable::spawn(std::string name, std::function<void()> body, Group group) {
  auto thread = std::make_unique<Thread>();
  const auto number = static_cast<uint32_t>(threads_.size());
  thread->name = std::move(name);
  thread->weight = conditions_.draw_weight();
  thread->group = group;
  thread->runnable_at = conditions_.draw_wake_up(group);
  thread->fiber = std::make_unique<Fiber>(std::move(body));
  threads_.push_back(std::move(thread));
  live_.push_back(number);
  return number;
}

void FiberTable::stall(Group group) {
  for (const uint32_t number : live_) {
    Thread& thread = *threads_[number];
    if (thread.group == group)
      thread.runnable_at = conditions_.stalls.not_before(group, thread.runnable_at);
  }
}

Nanoseconds FiberTable::next() const {
  Nanoseconds next = base::kForever;
  for (const uint32_t number : live_) {
    const Thread& thread = *threads_[number];
    next = std::min(next, thread.wait ? thread.wait->deadline : thread.runnable_at);
  }
  return next;
}

bool FiberTable::is_over(const Wait& wait) {
  // Relaxed: one thread runs everything.
  return wait.word != nullptr ? wait.word->load(std::memory_order_relaxed) == 0 : (*wait.ready)();
}

void FiberTable::look_at_waiters() {
  for (const uint32_t number : live_) {
    Thread& thread = *threads_[number];
    if (!thread.wait) continue;
    if (is_over(*thread.wait)) {
      thread.wait.reset();
      thread.runnable_at = conditions_.draw_wake_up(thread.group);
    } else if (thread.wait->deadline <= conditions_.now) {
      thread.wait.reset();
      thread.runnable_at = conditions_.stalls.not_before(thread.group, conditions_.now);
    }
  }
}

uint64_t FiberTable::due_weight() const {
  uint64_t total = 0;
  for (const uint32_t number : live_) {
    if (is_due(*threads_[number])) total += threads_[number]->weight;
  }
  return total;
}

std::optional<uint32_t> FiberTable::pick(uint64_t& chosen) const {
  for (const uint32_t number : live_) {
    const Thread& thread = *threads_[number];
    if (!is_due(thread)) continue;
    if (chosen < thread.weight) return number;
    chosen -= thread.weight;
  }
  return std::nullopt;
}

bool FiberTable::run(uint32_t number) {
  Thread& thread = *threads_[number];
  current_ = &thread;
  thread.fiber->resume();
  current_ = nullptr;
  if (!thread.fiber->finished()) return false;
  live_.erase(std::find(live_.begin(), live_.end(), number));
  return true;
}

void FiberTable::suspend_until(Nanoseconds runnable_at) {
  current_->runnable_at = runnable_at;
  current_->fiber->suspend();
}

void FiberTable::wait(const Wait& wait) {
  current_->wait = wait;
  current_->since = conditions_.now;
  suspend_until(base::kForever);
}

std::string FiberTable::describe(const Thread& thread) {
  std::string text = fmt::format("  {}: ", thread.name);
  if (thread.fiber->finished()) {
    text += "finished";
  } else if (thread.wait) {
    text += fmt::format("waits for {} since {:.3f} ms", thread.wait->what, at_ms(thread.since));
    if (thread.wait->deadline != base::kForever)
      text += fmt::format(" until {:.3f} ms", at_ms(thread.wait->deadline));
  } else {
    text += fmt::format("runs (from {:.3f} ms)", at_ms(thread.runnable_at));
  }
  if (!thread.note.empty()) text += fmt::format(" ({})", thread.note);
  return text + '\n';
}

std::string FiberTable::describe() const {
  std::string text;
  for (const auto& thread : threads_) text += describe(*thread);
  return text;
}

}  // namespace faro::sim
