#include "base/log.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>

#include "base/over_fork.h"
#include "base/printable.h"
#include "base/standard_error.h"

namespace faro {
namespace {

LogLevel level_from_environment() {
  const char* text = std::getenv("FARO_LOG_LEVEL");
  if (text == nullptr) return LogLevel::warning;
  const std::string name(text);
  if (name == "debug") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "error") return LogLevel::error;
  if (name == "off") return LogLevel::off;
  return LogLevel::warning;
}

std::atomic<LogLevel>& level() {
  static std::atomic<LogLevel> value{level_from_environment()};
  return value;
}

const char* name_of(LogLevel value) {
  switch (value) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    default:
      return "error";
  }
}

// The default sink.
void write_with_time(LogLevel line_level, std::string_view line) {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%d %H:%M:%S", &local);
  base::write_to_standard_error(
      fmt::format("{}.{:03} faro {}: {}", time.data(), ms, name_of(line_level), line));
}

// Never destroyed: the network thread of a session that was not closed may still log while the process exits.
base::MutexOverFork& sink_mutex() {
  static auto* const mutex = new base::MutexOverFork;
  return *mutex;
}

// Guarded by sink_mutex; null: the default logger.
std::shared_ptr<const LogSink>& sink() {
  static auto* const value = new std::shared_ptr<const LogSink>;
  return *value;
}

}  // namespace

void set_log_sink(LogSink replacement) {
  const std::lock_guard lock(sink_mutex());
  sink() = replacement ? std::make_shared<const LogSink>(std::move(replacement)) : nullptr;
}

void set_log_level(LogLevel value) noexcept { level().store(value, std::memory_order_relaxed); }

namespace base {

bool log_enabled(LogLevel line_level) noexcept {
  return line_level >= level().load(std::memory_order_relaxed);
}

void log_line(LogLevel line_level, std::string_view said) noexcept {
  try {
    const std::string line = printable(std::string(said));
    std::shared_ptr<const LogSink> target;
    {
      const std::lock_guard lock(sink_mutex());
      target = sink();
    }
    if (target) {
      (*target)(line_level, line);
    } else {
      write_with_time(line_level, line);
    }
  } catch (...) {
    // A log line is never worth more than the thread that writes it.
  }
}

}  // namespace base
}  // namespace faro
