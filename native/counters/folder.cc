#include "counters/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/error.h"
#include "base/over_fork.h"

namespace faro::counters {
namespace {

constexpr char kFileStart[] = "faro-";
constexpr int kNamesTried = 1000;

Status system_error(std::string_view what, const std::string& where) {
  return base::error(Code::system_error, "{} {}: {}", what, where, std::strerror(errno));
}

/// The names that this process has given, to be taken away when it ends: exit() and a JVM's
/// System.exit do not destroy sessions and endpoints.
class NamesUntilExit {
 public:
  static NamesUntilExit& instance() {
    // Never destroyed: sessions may end while the process does.
    static auto* const names = [] {
      std::atexit([] { instance().remove_all(); });
      return new NamesUntilExit;
    }();
    return *names;
  }
  void add(const std::string& path) {
    const std::lock_guard lock(mutex_);
    names_.emplace(path, base::Birthplace());
  }
  void remove(const std::string& path) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(path);
    if (found == names_.end()) return;
    // In a forked child it is the parent's.
    if (!found->second.forked()) unlink(path.c_str());
    names_.erase(found);
  }

 private:
  void remove_all() noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, named_in] : names_) {
      if (!named_in.forked()) unlink(path.c_str());
    }
    names_.clear();
  }

  base::MutexOverFork mutex_;
  std::map<std::string, base::Birthplace> names_;
};

}  // namespace

void remove_stale(const std::string& folder) {
  for (const std::string& path : counter_files_in(folder)) {
    const Result<base::UniqueFd> fd = open_counter_file(path);
    if (fd.ok() && !is_locked(fd->get())) unlink(path.c_str());
  }
}

Result<base::UniqueFd> make_nameless(const std::string& folder) {
  remove_stale(folder);
  base::UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    const bool no_place = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    return Status(no_place ? Code::config_invalid : Code::system_error,
                  fmt::format("counters.folder = {}: no counter file can be made there: {}", folder,
                              std::strerror(errno)));
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0)
    return system_error("the counter file cannot be locked in", folder);
  return fd;
}

Result<std::string> name_file(int fd, const std::string& folder) {
  const std::string nameless = fmt::format("/proc/self/fd/{}", fd);
  for (int n = 0; n < kNamesTried; ++n) {
    std::string path = fmt::format("{}/{}{}-{}{}", folder, kFileStart, getpid(), n, kFileEnding);
    if (linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      NamesUntilExit::instance().add(path);
      return path;
    }
    if (errno != EEXIST) break;
  }
  return system_error("no counter file can be named in", folder);
}

void take_name(const std::string& path) noexcept { NamesUntilExit::instance().remove(path); }

bool is_locked(int fd) noexcept {
  struct flock lock {};
  lock.l_type = F_RDLCK;
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::vector<std::string> counter_files_in(const std::string& folder) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, int (*)(DIR*)> open_folder(opendir(folder.c_str()), closedir);
  if (open_folder == nullptr) return paths;
  while (const dirent* const entry = readdir(open_folder.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(kFileStart) && name.ends_with(kFileEnding))
      paths.push_back(folder + "/" + std::string(name));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<base::UniqueFd> open_counter_file(const std::string& path, bool named) {
  base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return system_error("cannot read", path);
  struct stat state {};
  if (fstat(fd.get(), &state) != 0) return system_error("cannot read", path);
  const bool ours = state.st_uid == geteuid() || (named && geteuid() == 0);
  if (!S_ISREG(state.st_mode) || !ours) {
    return base::error(Code::system_error, "{} is not a file of this user", path);
  }
  return fd;
}

}  // namespace faro::counters
