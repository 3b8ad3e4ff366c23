// OnCancel: how a waiting call hears that it was cancelled.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "faro/cancellation.h"

namespace faro::detail {

/// While it exists, `wake` is called once when `cancellation` is cancelled: by the thread that cancels, or at once
/// if that has already happened. After the destructor `wake` is neither called nor still running.
///
/// Threads: one; `wake` may come from any, must not block for long, and must not create or destroy
/// an OnCancel of the same cancellation.
class OnCancel {
 public:
  OnCancel(const Cancellation& cancellation, std::function<void()> wake);
  ~OnCancel();
  OnCancel(const OnCancel&) = delete;
  OnCancel& operator=(const OnCancel&) = delete;

 private:
  const std::shared_ptr<CancellationState> state_;
  std::list<std::function<void()>>::iterator place_;
};

}  // namespace faro::detail
