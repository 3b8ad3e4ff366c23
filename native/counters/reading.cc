#include "counters/reading.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

namespace faro::counters {

// The state follows the name, which may hold anything: "12 (a) T (b) T 1 …" (proc(5)).
bool is_stopped(uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  const char state = stat[name_end + 2];
  return state == 'T' || state == 't';
}

bool copy_file(int fd, std::span<std::byte> to, uint64_t offset) {
  while (!to.empty()) {
    const ssize_t got = pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

bool copy_sparse_file(int fd, std::span<std::byte> zeros, uint64_t offset) {
  while (!zeros.empty()) {
    // A folder that cannot tell holds only data.
    const off_t data = lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data > static_cast<off_t>(offset)) {
      const auto hole = std::min<uint64_t>(static_cast<uint64_t>(data) - offset, zeros.size());
      zeros = zeros.subspan(hole);
      offset += hole;
      continue;
    }
    const off_t end = lseek(fd, static_cast<off_t>(offset), SEEK_HOLE);
    const uint64_t here =
        end > static_cast<off_t>(offset)
            ? std::min<uint64_t>(static_cast<uint64_t>(end) - offset, zeros.size())
            : zeros.size();
    if (!copy_file(fd, zeros.first(here), offset)) return false;
    zeros = zeros.subspan(here);
    offset += here;
  }
  return true;
}

}  // namespace faro::counters
