// A disk that is nearly full, for a test's own process.
#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace faro::test {

namespace detail {
inline bool write_file(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  return file.good();
}
}  // namespace detail

/// A small file system of this process alone. False if the system does not permit it. Before it has threads.
inline bool mount_small_disk(const std::string& at, const char* size) {
  const uid_t uid = getuid();
  const gid_t gid = getgid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!detail::write_file("/proc/self/setgroups", "deny") ||
        !detail::write_file("/proc/self/uid_map", fmt::format("0 {} 1", uid)) ||
        !detail::write_file("/proc/self/gid_map", fmt::format("0 {} 1", gid)))
      return false;
  }
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", at.c_str(), "tmpfs", 0, fmt::format("size={}", size).c_str()) == 0;
}

}  // namespace faro::test
