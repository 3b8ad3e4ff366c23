// What a process has resident, for tests that compare it with what is counted.
#pragma once

#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace faro::test {

/// Keeps the allocator from deciding by chance what stays resident: one arena, and thresholds that do not move. Call it
/// before the process has another thread. No effect with a sanitizer's allocator.
inline void steady_allocator() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

/// Bytes of this process's own memory and of its shared memory that are resident. A page that several processes share
/// counts as its part for each, so that all together count it once. Pages of files, which are the program and its
/// libraries, do not count: their part depends on which other programs run. What the allocator could give back is given
/// back first.
inline uint64_t resident_bytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/smaps_rollup");
  uint64_t bytes = 0;
  for (std::string key; file >> key;) {
    uint64_t kibibytes = 0;
    if ((key == "Pss_Anon:" || key == "Pss_Shmem:") && file >> kibibytes) bytes += kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return bytes;
}

}  // namespace faro::test
