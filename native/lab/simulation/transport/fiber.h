// Fiber: a thread of control with a stack of its own that runs only when it is resumed. What lets
// ordinary blocking code run in a simulation, many "threads" in one.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace faro::sim {

/// Threads: resumed and destroyed on the thread that made it. Known to the address and the thread
/// sanitizer. Owns: its stack, with a guard page below it.
class Fiber {
 public:
  /// `body` must not throw. Errors: terminates the process if there is no memory for the stack.
  explicit Fiber(std::function<void()> body);
  /// A fiber that has not finished loses its stack: what lives there is not destroyed. Only after a
  /// run that failed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs it until it suspends or finishes. Not from inside a fiber.
  void resume();
  /// Back to whoever resumed it. Only from inside this fiber.
  void suspend();
  bool finished() const noexcept { return finished_; }

 private:
  static void enter(unsigned high, unsigned low);
  void run();
  void release_stack() noexcept;

  std::function<void()> body_;
  std::byte* stack_ = nullptr;  // the mapping, guard page included
  ucontext_t own_{};
  ucontext_t resumer_{};
  bool finished_ = false;

  // What the sanitizers want to be told about a change of stacks; unused without them.
  void* fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  size_t resumer_stack_bytes_ = 0;
  void* tsan_fiber_ = nullptr;
  void* tsan_resumer_ = nullptr;
};

}  // namespace faro::sim
