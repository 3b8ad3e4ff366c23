// FiberTable: the worker threads of a simulated world: ordinary blocking code, which suspends where it
// would wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/simulation/transport/fiber.h"
#include "lab/simulation/transport/sim_conditions.h"

namespace faro::sim {

/// Threads: its world's.
class FiberTable {
 public:
  /// What a fiber waits for: until `word` is 0, or until `ready`, which is called often and must not
  /// change anything. One of them is null.
  struct Wait {
    const std::atomic<uint32_t>* word = nullptr;
    const std::function<bool()>* ready = nullptr;
    Nanoseconds deadline = base::kForever;
    const char* what = "";  // a literal, for reports
  };

  explicit FiberTable(const Conditions& conditions) : conditions_(conditions) {}

  /// `body` must not throw.
  uint32_t spawn(std::string name, std::function<void()> body, Group group);
  /// Those of this group are stopped now.
  void stall(Group group);

  bool all_finished() const noexcept { return live_.empty(); }
  const std::string& name(uint32_t fiber) const { return threads_[fiber]->name; }
  /// When the next one can run, or has to stop waiting.
  Nanoseconds next() const;
  /// Those whose reason to wait is over can run, after the time that waking up takes.
  void look_at_waiters();
  /// The sum of the weights of those that can run now.
  uint64_t due_weight() const;
  /// Picks one that can run now, as AgentTable::pick does.
  std::optional<uint32_t> pick(uint64_t& chosen) const;
  /// Until it suspends or finishes. Returns whether it has finished.
  bool run(uint32_t fiber);
  /// What each is doing, a line each.
  std::string describe() const;

  // --- of the fiber that runs, if there is one

  bool running() const noexcept { return current_ != nullptr; }
  Group running_group() const noexcept { return current_->group; }
  void suspend_until(Nanoseconds runnable_at);
  void wait(const Wait& wait);
  /// What it is doing in the program's words.
  void note(std::string text) { current_->note = std::move(text); }

 private:
  struct Thread {
    std::string name;
    uint32_t weight = 1;
    Group group = kNoGroup;
    std::unique_ptr<Fiber> fiber;
    Nanoseconds runnable_at = 0;
    std::optional<Wait> wait;  // while it waits
    Nanoseconds since = 0;     // when that began
    std::string note;
  };

  bool is_due(const Thread& thread) const {
    return !thread.wait && thread.runnable_at <= conditions_.now;
  }
  static bool is_over(const Wait& wait);
  static std::string describe(const Thread& thread);

  const Conditions conditions_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<uint32_t> live_;  // numbers of those not finished, in order
  Thread* current_ = nullptr;
};

}  // namespace faro::sim
