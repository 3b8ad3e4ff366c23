// io.faro.NativeLog: log lines wait in a queue until a thread of Java takes them. No thread of Faro
// ever runs a logger of Java, which may block, or calls into the JVM at all.
#include <jni.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "faro/c.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"

namespace faro::jni {
namespace {

// Threads: any.
class LogQueue {
 public:
  // Far more than the levels allow (faro::LogLevel); if nobody takes them the newest are dropped, and counted.
  static constexpr size_t kLimit = 4096;

  void push(int32_t level, std::string_view line) {
    {
      std::lock_guard lock(mutex_);
      if (lines_.size() >= kLimit) {
        ++dropped_;
        return;
      }
      note_dropped();
      append(level, line);
    }
    not_empty_.notify_one();
  }

  /// Blocks until there is a line, or end_wait was called.
  void wait() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return !lines_.empty() || wait_has_ended_; });
    wait_has_ended_ = false;
  }

  void end_wait() {
    {
      std::lock_guard lock(mutex_);
      wait_has_ended_ = true;
    }
    not_empty_.notify_one();
  }

  /// False if there is none.
  bool take(std::string& line) {
    std::lock_guard lock(mutex_);
    if (lines_.empty()) note_dropped();
    if (lines_.empty()) return false;
    line = std::move(lines_.front());
    lines_.pop_front();
    return true;
  }

 private:
  void append(int32_t level, std::string_view line) {
    lines_.push_back(static_cast<char>('0' + level) + std::string(line));
  }

  // In their place.
  void note_dropped() {
    if (dropped_ == 0) return;
    append(FARO_LOG_WARNING, std::to_string(std::exchange(dropped_, 0)) +
                                 " lines were dropped here: the logger took no more");
  }

  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::deque<std::string> lines_;
  uint64_t dropped_ = 0;
  bool wait_has_ended_ = false;
};

LogQueue& queue() {
  // Never destroyed: a thread of Java waits in it while the process ends.
  static auto* const lines = new LogQueue;
  return *lines;
}

void push_line(void*, int32_t level, const char* line, size_t length) {
  try {
    queue().push(level, {line, length});
  } catch (...) {  // no memory: nobody can be told
  }
}

void redirect(JNIEnv*, jclass) { (void)faro_log_set_sink(push_line, nullptr); }

void await_line(JNIEnv*, jclass) { queue().wait(); }

void end_wait(JNIEnv*, jclass) { queue().end_wait(); }

// The digit of its level, then the line; null if there is none.
jbyteArray take(JNIEnv* env, jclass) {
  std::string line;
  return queue().take(line) ? bytes_of(env, line) : nullptr;
}

const std::array kMethods{method("redirect", "()V", redirect),
                          method("awaitLine", "()V", await_line),
                          method("endWait", "()V", end_wait), method("take", "()[B", take)};

}  // namespace

const Natives kNativeLogNatives{"io/faro/NativeLog", kMethods};

}  // namespace faro::jni
