#include "base/whole_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/return_if_error.h"
#include "base/unique_fd.h"

namespace faro::base {
namespace {

constexpr size_t kPartBytes = 16 * 1024;

Status last_error() { return Status(Code::system_error, strerror(errno)); }

}  // namespace

std::string why_not_opened(int error) {
  constexpr std::string_view kInPod =
      ": in a pod, give its group the right to read (fsGroup, defaultMode 0440)";
  return std::string(strerror(error)).append(error == EACCES ? kInPod : "");
}

std::string_view why_unreadable(const struct stat& file, FileKind kind) noexcept {
  if (S_ISDIR(file.st_mode)) return "it is a folder, no plain file";
  if (kind == FileKind::plain && !S_ISREG(file.st_mode)) return "it is no plain file";
  return {};
}

Result<std::vector<std::byte>> read_open_file(int fd, size_t limit) {
  std::vector<std::byte> bytes;
  bytes.reserve(limit + 1);  // never moved: nothing of a secret stays behind
  while (bytes.size() <= limit) {
    const size_t before = bytes.size();
    bytes.resize(std::min(before + kPartBytes, limit + 1));
    const ssize_t got = ::read(fd, bytes.data() + before, bytes.size() - before);
    if (got < 0 && errno != EINTR) return last_error();
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) break;
  }
  return bytes;
}

Result<std::vector<std::byte>> read_whole_file(const std::string& path, FileKind kind,
                                               size_t limit) {
  // A pipe that must be none must not hold up open.
  const int flags = O_RDONLY | O_CLOEXEC | (kind == FileKind::plain ? O_NONBLOCK : 0);
  const UniqueFd fd(::open(path.c_str(), flags));
  if (!fd.valid()) return Status(Code::system_error, why_not_opened(errno));
  struct stat file {};
  if (fstat(fd.get(), &file) != 0) return last_error();
  if (const std::string_view why = why_unreadable(file, kind); !why.empty())
    return Status(Code::system_error, std::string(why));
  return read_open_file(fd.get(), limit);
}

}  // namespace faro::base
