// What is going on, on stderr: one line that changes on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace faro::command {

/// Threads: one at a time. Errors: none; a lost line does no harm.
class ProgressLine {
 public:
  /// `quiet`: says nothing at all.
  explicit ProgressLine(bool quiet = false);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Begins a part of the work; the only thing shown where stderr is no terminal.
  void begin(std::string_view part);

  /// How far the part is (0 … 1), and what it does just now. On a terminal only.
  void update(double fraction, std::string_view doing);

  /// Takes the line away, before something else is printed.
  void clear();

 private:
  const bool quiet_;
  const bool terminal_;
  uint64_t start_ns_;
  std::string part_;
  size_t shown_columns_ = 0;
};

}  // namespace faro::command
