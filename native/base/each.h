// Each: runs independent parts of a thread's turn. A part that throws does not keep the others from running.
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

  /// Call it after the last part. Throws the first exception that a part has thrown.
  void rethrow() const {
    if (!met_) return;
    if (first_ != nullptr) std::rethrow_exception(first_);
    // From a library with its own C++ runtime.
    throw std::runtime_error("an exception of an unknown type");
  }

 private:
  bool met_ = false;
  std::exception_ptr first_;
};

}  // namespace faro::base
