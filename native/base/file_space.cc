#include "base/file_space.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace faro::base {
namespace {

// RLIM_INFINITY is the greatest number.
rlim_t file_size_limit() noexcept {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(RLIMIT_FSIZE, &limit);
  return limit.rlim_cur;
}

}  // namespace

int reserve_file(int fd, uint64_t offset, uint64_t bytes) noexcept {
  const rlim_t limit = file_size_limit();
  if (offset > limit || bytes > limit - offset) return EFBIG;
  int error;
  do {
    error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

std::string reserve_error_text(int error) {
  const rlim_t limit = file_size_limit();
  if (error != EFBIG || limit == RLIM_INFINITY) return std::strerror(error);
  return fmt::format("the file size limit `ulimit -f` is {} bytes", limit);
}

}  // namespace faro::base
