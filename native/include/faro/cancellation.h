// Cancellation: ends a call that waits, from another thread.
#pragma once

#include "faro/detail/cxx20.h"

#include <memory>

#pragma GCC visibility push(default)

namespace faro {

namespace detail {
class OnCancel;
struct CancellationState;
}  // namespace detail

/// Given to a call that waits, it lets another thread end that call. Copies share one state; once
/// cancelled it stays so, and calls that are given it then do not wait at all. One may serve any
/// number of calls.
///
/// Threads: any.
class Cancellation {
 public:
  Cancellation();

  /// Ends every call that waits with this. Blocks: never for long.
  void cancel() const;
  bool cancelled() const noexcept;

 private:
  friend class detail::OnCancel;
  std::shared_ptr<detail::CancellationState> state_;
};

}  // namespace faro

#pragma GCC visibility pop
