// What a fork means to objects of the library: a child has copies of all of them, but the kernel and the peers know one only.
#pragma once

#include <cstdint>
#include <mutex>

namespace faro::base {

/// A number of this process: another one in each child that was forked since, also in one that has the same process number in a
/// namespace of its own. Threads: any. Blocks: never.
uint64_t process_stamp() noexcept;

/// Where an object was made. What it shares with the kernel and with peers (an epoll, rings, names of files) is that process's: a
/// forked child that destroys its copy, at its exit for instance, must leave all of that alone.
class Birthplace {
 public:
  /// Whether this is a child that was forked since.
  bool forked() const noexcept { return process_stamp() != stamp_; }

 private:
  const uint64_t stamp_ = process_stamp();
};

/// A mutex of the whole process, never destroyed. No thread holds it while the process forks, so that a child never waits for a
/// thread that it does not have.
class MutexOverFork {
 public:
  MutexOverFork();
  MutexOverFork(const MutexOverFork&) = delete;
  MutexOverFork& operator=(const MutexOverFork&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct Forking;

  std::mutex mutex_;
  MutexOverFork* next_;  // of all that there are
};

}  // namespace faro::base
