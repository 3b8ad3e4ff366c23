#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "base/printable.h"

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

// The logger is never destroyed: the network thread of a session that was not closed may still log while the
// process exits.
spdlog::logger& default_logger() {
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("faro", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::trace);
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e faro %l: %v");
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum to_spdlog(LogLevel value) {
  switch (value) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

std::mutex sink_mutex;

// Guarded by sink_mutex; null: the default logger.
std::shared_ptr<const LogSink>& sink() {
  static auto* const value = new std::shared_ptr<const LogSink>;
  return *value;
}

}  // namespace

void set_log_sink(LogSink replacement) {
  std::lock_guard lock(sink_mutex);
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
      std::lock_guard lock(sink_mutex);
      target = sink();
    }
    if (target) {
      (*target)(line_level, line);
    } else {
      default_logger().log(to_spdlog(line_level), line);
    }
  } catch (...) {
    // A log line is never worth more than the thread that writes it.
  }
}

}  // namespace base
}  // namespace faro
