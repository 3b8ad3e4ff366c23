// Progress on stderr: one line that changes on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace faro::command::lab {

/// Threads: one at a time. Errors: none; a lost line does no harm.
class ProgressLine {
 public:
  /// `quiet`: shows nothing at all.
  explicit ProgressLine(bool quiet = false);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Begins a part of the work. If stderr is not a terminal, only this is shown.
  void begin(std::string_view part);

  /// How much of the part is done (0 … 1), and what it is doing now. On a terminal only.
  void update(double fraction, std::string_view doing);

  /// Removes the line, before something else is printed.
  void clear();

 private:
  const bool quiet_;
  const bool terminal_;
  uint64_t start_ns_;
  std::string part_;
  size_t shown_columns_ = 0;
};

}  // namespace faro::command::lab
