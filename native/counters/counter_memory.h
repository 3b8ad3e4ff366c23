// CounterMemory: the memory in which counters lie: a file that other processes can read, or memory of this process alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "faro/status.h"

namespace faro::counters {

/// Threads: one at a time; what lies in it, as its records say. Owns: the mapping, the file and its name.
class CounterMemory {
 public:
  /// Zeros. `folder`: of the file, which has no name yet; empty: no file. Stale files of this user there are removed. None of it
  /// may be touched before it was reserved. Errors: as make_nameless; resource_limit (no memory).
  static Result<CounterMemory> make(const std::string& folder, uint64_t bytes);
  /// Removes stale files of this user again: those of peers that died meanwhile.
  ~CounterMemory();
  CounterMemory(CounterMemory&& other) noexcept;
  CounterMemory& operator=(CounterMemory&&) = delete;

  std::byte* data() const noexcept { return data_; }
  uint64_t bytes() const noexcept { return bytes_; }

  /// Allocates a part of it: a folder that is full must be an error here and not SIGBUS later. The file has bytes up to the
  /// last end. Errors: system_error.
  Status reserve(uint64_t begin, uint64_t end);
  /// Gives the file its name, now that it is whole. Errors: system_error.
  Status name();
  /// Empty if there is no file, or it has no name.
  const std::string& path() const noexcept { return path_; }
  /// The file is no longer found; what lies in it stays. Idempotent. exit() does it, too.
  void remove_name() noexcept;

 private:
  CounterMemory(std::byte* data, uint64_t bytes, base::UniqueFd fd, std::string folder)
      : data_(data), bytes_(bytes), fd_(std::move(fd)), folder_(std::move(folder)) {}

  std::byte* data_;
  uint64_t bytes_;
  base::UniqueFd fd_;  // holds the lock; invalid: no file
  std::string folder_;
  std::string path_;
};

}  // namespace faro::counters
