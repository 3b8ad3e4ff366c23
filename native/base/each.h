// Each: parts of a thread's turn that do not depend on each other. One that throws keeps no other from running.
#pragma once

#include <exception>
#include <stdexcept>
#include <utility>

namespace faro::base {

/// Threads: one.
class Each {
 public:
  template <typename Part>
  void run(Part&& part) noexcept {
    try {
      std::forward<Part>(part)();
    } catch (...) {
      if (!met_) first_ = std::current_exception();
      met_ = true;
    }
  }

  /// After the last part: throws what the first one has thrown that did.
  void rethrow() const {
    if (!met_) return;
    if (first_ != nullptr) std::rethrow_exception(first_);
    // One of a library with a C++ runtime of its own.
    throw std::runtime_error("an exception of an unknown type");
  }

 private:
  bool met_ = false;
  std::exception_ptr first_;
};

}  // namespace faro::base
