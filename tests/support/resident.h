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

/// Bytes of this process that are resident; a page that several processes share counts as its part for each, so that all
/// together count it once. What the allocator could give back is given back first.
inline uint64_t resident_bytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string key; file >> key;) {
    uint64_t kibibytes = 0;
    if (key == "Pss:" && file >> kibibytes) return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace faro::test
