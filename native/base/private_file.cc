#include "base/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/unique_fd.h"
#include "base/whole_file.h"

namespace faro::base {
namespace {

// Why users other than its owner and root, who are trusted, could read or replace the file; empty if they cannot. A group may
// read a file of root's, as PostgreSQL has it: nobody but root can have given it that right.
std::string why_not_private(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return strerror(errno);
  if (const std::string_view why = why_unreadable(file, FileKind::plain); !why.empty())
    return std::string(why);
  if (file.st_uid != geteuid() && file.st_uid != 0) {
    return fmt::format("it belongs to uid {}, not to this process (uid {}) or root", file.st_uid,
                       geteuid());
  }
  const mode_t allowed = file.st_uid == 0 ? S_IRWXU | S_IRGRP : S_IRWXU;
  if ((file.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO) & ~allowed) != 0) {
    return fmt::format(
        "others than its owner may use it (mode {:04o}): chmod 600, or have it belong to root with "
        "at most 0640, as the files of a Secret in a pod with fsGroup do",
        file.st_mode & 07777);
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> read_private_file(const std::string& path, std::string_view setting,
                                                 size_t limit) {
  const auto invalid = [&](std::string_view why) {
    return base::error(Code::config_invalid, "{} = {}: {}", setting, path, why);
  };
  // A pipe must not hold up open: it is refused.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return invalid(why_not_opened(errno));
  if (const std::string why = why_not_private(fd.get()); !why.empty()) return invalid(why);
  Result<std::vector<std::byte>> bytes = read_open_file(fd.get(), limit);
  if (!bytes.ok()) return invalid(bytes.status().message());
  return bytes;
}

void overwrite(std::span<std::byte> bytes) noexcept {
  if (!bytes.empty()) explicit_bzero(bytes.data(), bytes.size());
}

}  // namespace faro::base
