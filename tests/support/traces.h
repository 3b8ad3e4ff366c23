// Traces: what a process has of what a session takes, to be compared with what it had before.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>

namespace faro::test {

/// How many files a folder has; of descriptors of this process, that of looking at the folder counts.
inline uint64_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<uint64_t>(std::distance(begin(all), end(all)));
}

/// What this process has mapped.
inline uint64_t mapped_bytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Threads: any.
struct Traces {
  std::multiset<std::string> descriptors;  ///< what they refer to
  std::multiset<std::string> mappings;     ///< of shared memory, counters and overflow
  std::multiset<std::string> threads;      ///< their names

  static Traces look() {
    namespace fs = std::filesystem;
    Traces seen;
    std::error_code gone;
    for (const fs::directory_entry& each : fs::directory_iterator("/proc/self/fd")) {
      const std::string target = fs::read_symlink(each.path(), gone).string();
      if (!gone && !target.ends_with("/fd")) seen.descriptors.insert(target);  // not this loop's
    }
    for (const fs::directory_entry& each : fs::directory_iterator("/proc/self/task")) {
      std::ifstream comm(each.path() / "comm");
      std::string name;
      if (std::getline(comm, name)) seen.threads.insert(name);
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const size_t name = line.find("faro-");
      if (name != std::string::npos && line.find("rw-s") != std::string::npos)
        seen.mappings.insert(line.substr(name));
    }
    return seen;
  }

  /// What there is now and was not before, in words; empty if nothing is. Waits a moment: the kernel
  /// may still show a thread that has just been joined.
  static std::string left_since(const Traces& before) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (;;) {
      const Traces now = look();
      const std::string left = more("descriptor", before.descriptors, now.descriptors) +
                               more("mapping", before.mappings, now.mappings) +
                               more("thread", before.threads, now.threads);
      if (left.empty() || std::chrono::steady_clock::now() > deadline) return left;
      sched_yield();
    }
  }

 private:
  // librdmacm keeps a device that it has opened, with its event channel, until the process ends.
  static bool kept_by_rdma_cm(const std::string& descriptor) {
    return descriptor.starts_with("/dev/infiniband/uverbs") ||
           descriptor == "anon_inode:[infinibandevent]";
  }

  // ThreadSanitizer has a thread of its own, by the name of the process; in one that was forked, once it makes a thread.
  static bool made_by_sanitizer([[maybe_unused]] const std::string& thread) {
#ifdef FARO_SANITIZE_THREAD
    std::ifstream comm("/proc/self/comm");
    std::string name;
    return std::getline(comm, name) && name == thread;
#else
    return false;
#endif
  }

  static std::string more(const char* kind, const std::multiset<std::string>& before,
                          const std::multiset<std::string>& now) {
    std::string text;
    for (auto each = now.begin(); each != now.end(); each = now.upper_bound(*each)) {
      const size_t kept = kept_by_rdma_cm(*each) || made_by_sanitizer(*each) ? 1 : 0;
      if (now.count(*each) > before.count(*each) + kept)
        text += std::string(kind) + " " + *each + "; ";
    }
    return text;
  }
};

}  // namespace faro::test
