// LineSocket: how the controller of a soak and its nodes talk: lines over a socket pair.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace faro::soak {

/// Threads: one. Owns: the socket.
class LineSocket {
 public:
  explicit LineSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}

  /// Says a line, which is given without its end. A process that is gone does not hear it.
  void say(const std::string& line);
  /// The next line; none if the other is gone, or says nothing until the deadline (CLOCK_MONOTONIC).
  std::optional<std::string> hear(base::Nanoseconds deadline = base::kForever);

 private:
  base::UniqueFd fd_;
  std::string unread_;
};

}  // namespace faro::soak
