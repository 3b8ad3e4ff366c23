// The system calls of this program, one of which can be made to fail. The linker leads them here (--wrap), so that the
// library under test has no seam for it and is the same as everywhere.
#pragma once

#include <cstddef>
#include <span>

namespace faro::test {

/// A call, and with what it fails.
struct SystemCall {
  const char* name;
  int error;
};

/// All that can fail; the last two stand for what allocates memory, and for the start of a thread.
std::span<const SystemCall> system_calls();

/// As long as it exists, the n-th call of `call` fails, counted from 1 over all threads; 0: none.
///
/// Threads: one, and one at a time.
class FailingCall {
 public:
  FailingCall(const SystemCall& call, size_t n);
  ~FailingCall();
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;

  /// Calls so far.
  size_t count() const;
};

/// The calling thread's allocations never fail, and are not counted.
void always_has_memory();

}  // namespace faro::test
