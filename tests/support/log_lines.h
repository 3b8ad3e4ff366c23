// LogLines: what the library logs.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "faro/log.h"

namespace faro::test {

/// Log lines of the test's life, instead of stderr.
class LogLines {
 public:
  LogLines() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
      warnings_ += level >= LogLevel::warning;
    });
  }
  ~LogLines() { set_log_sink({}); }
  size_t warnings() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  size_t count(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    size_t found = 0;
    for (const std::string& line : lines_) found += line.find(part) != std::string::npos;
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
  size_t warnings_ = 0;
};

}  // namespace faro::test
