// LogTail: the last lines of the log of a run, which is quiet otherwise.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "faro/log.h"

namespace faro::simulation {

/// Takes the log while it lives. Threads: one at a time in a process.
class LogTail {
 public:
  LogTail() {
    set_log_sink([this](LogLevel, std::string_view line) {
      if (lines_.size() == kLines) lines_.pop_front();
      lines_.emplace_back(line);
    });
  }
  ~LogTail() { set_log_sink({}); }
  LogTail(const LogTail&) = delete;
  LogTail& operator=(const LogTail&) = delete;

  std::string text() const {
    std::string text = "the last log lines:\n";
    for (const std::string& line : lines_) text += "  " + line + '\n';
    return text;
  }

 private:
  static constexpr size_t kLines = 40;
  std::deque<std::string> lines_;
};

}  // namespace faro::simulation
