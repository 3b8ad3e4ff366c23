#include "base/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/unique_fd.h"

namespace faro::base {
namespace {

// Why users other than its owner, who is trusted, could read or replace the file; empty if they cannot.
std::string why_not_private(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return strerror(errno);
  if (!S_ISREG(file.st_mode)) return "it is no plain file";
  if (file.st_uid != geteuid() && file.st_uid != 0) {
    return fmt::format("it belongs to uid {}, not to this process (uid {}) or root", file.st_uid,
                       geteuid());
  }
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fmt::format("others than its owner may use it (mode {:04o}): chmod 600",
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
  if (!fd.valid()) return invalid(strerror(errno));
  if (const std::string why = why_not_private(fd.get()); !why.empty()) return invalid(why);
  std::vector<std::byte> bytes(limit + 1);
  const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
  if (got < 0) return invalid(strerror(errno));
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

void overwrite(std::span<std::byte> bytes) noexcept {
  if (!bytes.empty()) explicit_bzero(bytes.data(), bytes.size());
}

}  // namespace faro::base
