#include "transport/shm/rendezvous.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "transport/shm/fd_passing.h"
#include "transport/shm/unix_address.h"

namespace faro::transport::shm {
namespace {

constexpr std::string_view kSocketEnding = ".socket";
// Names of the file with the number. The folder may be one where everybody writes: a name that another user has taken is left
// to them. The first that is this user's counts.
constexpr uint32_t kNames = 16;

Status not_usable(const std::string& folder, std::string_view why) {
  return base::error(Code::config_invalid, "shm.folder = {}: {}", folder, why);
}

/// Nobody but this user, or root, may put something else in its place.
Status check_folder(const std::string& folder) {
  if (folder.size() > Rendezvous::kFolderLimit) {
    return not_usable(folder, fmt::format("it is {} bytes long, and may have {}", folder.size(),
                                          Rendezvous::kFolderLimit));
  }
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0) return not_usable(folder, std::strerror(errno));
  if (!S_ISDIR(found.st_mode)) return not_usable(folder, "it is no folder");
  if (found.st_uid != geteuid() && found.st_uid != 0)
    return not_usable(folder, fmt::format("it belongs to uid {}", found.st_uid));
  const bool others_write = (found.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (others_write && (found.st_mode & S_ISVTX) == 0)
    return not_usable(folder, "others may replace what is in it (chmod 700, or +t)");
  return {};
}

constexpr size_t kNumberDigits = 32;

Result<std::string> draw_number() {
  std::array<uint8_t, kNumberDigits / 2> random;
  FARO_RETURN_IF_ERROR(draw_random(random.data(), random.size()));
  std::string digits;
  for (const uint8_t byte : random) digits += fmt::format("{:02x}", byte);
  return digits;
}

std::string path_of_number(const std::string& folder, uint32_t name) {
  return name == 0 ? fmt::format("{}/faro-{}.host", folder, geteuid())
                   : fmt::format("{}/faro-{}.{}.host", folder, geteuid(), name);
}

/// Whether a name of a number ends so, behind the uid.
bool is_ending(std::string_view ending) {
  if (ending.starts_with('.')) {
    const size_t next = ending.find('.', 1);
    if (next != ending.npos && next > 1 && ending.find_first_not_of("0123456789", 1) == next)
      ending.remove_prefix(next);
  }
  return ending == ".host";
}

enum class Owner : uint8_t { nobody, this_user, another };

/// Whose a path is; of a link the link.
Result<Owner> owner_of(const std::string& folder, const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) == 0)
    return found.st_uid == geteuid() ? Owner::this_user : Owner::another;
  if (errno == ENOENT) return Owner::nobody;
  return not_usable(folder, fmt::format("{}: {}", path, std::strerror(errno)));
}

/// The name that counts: the first of this user's, else the first that nobody has. Null: others have all.
Result<std::optional<std::string>> find_name(const std::string& folder) {
  std::optional<std::string> unused;
  for (uint32_t name = 0; name < kNames; ++name) {
    std::string path = path_of_number(folder, name);
    FARO_ASSIGN_OR_RETURN(const Owner owner, owner_of(folder, path));
    if (owner == Owner::this_user) return std::optional(std::move(path));
    if (owner == Owner::nobody && !unused) unused = std::move(path);
  }
  return unused;
}

/// Reads the number in a file of this user's. Empty: there is no such file.
Result<std::string> read_number(const std::string& folder, const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return std::string();
  struct stat found {};
  if (!fd.valid() || fstat(fd.get(), &found) != 0)
    return not_usable(folder, fmt::format("{}: {}", path, std::strerror(errno)));
  if (!S_ISREG(found.st_mode) || found.st_uid != geteuid())
    return not_usable(folder, path + " is no file of this user");
  std::string digits(kNumberDigits, '\0');
  if (read(fd.get(), digits.data(), digits.size()) != static_cast<ssize_t>(digits.size()))
    return not_usable(folder, path + " has no number; remove it");
  return digits;
}

/// Draws a number; one that is there first stays.
Status write_number(const std::string& path) {
  FARO_ASSIGN_OR_RETURN(const std::string digits, draw_number());
  const std::string draft = fmt::format("{}.{}", path, digits);
  {
    const base::UniqueFd fd(
        ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid() ||
        write(fd.get(), digits.data(), digits.size()) != static_cast<ssize_t>(digits.size())) {
      const int error = errno;
      (void)unlink(draft.c_str());
      return base::error(Code::system_error, "shm.folder: {}: {}", draft, std::strerror(error));
    }
  }
  // It appears whole, and once.
  const bool is_there = link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const int error = errno;
  (void)unlink(draft.c_str());
  if (is_there) return {};
  return base::error(Code::system_error, "shm.folder: {}: {}", path, std::strerror(error));
}

/// Draws one if there is none. Empty: others have taken all names.
Result<std::string> find_number(const std::string& folder) {
  std::string number;
  // Again if another user takes the name meanwhile.
  for (uint32_t attempt = 0; attempt < kNames && number.empty(); ++attempt) {
    FARO_ASSIGN_OR_RETURN(const std::optional<std::string> path, find_name(folder));
    if (!path) break;
    FARO_ASSIGN_OR_RETURN(Owner owner, owner_of(folder, *path));
    if (owner == Owner::nobody) {
      FARO_RETURN_IF_ERROR(write_number(*path));
      FARO_ASSIGN_OR_RETURN(owner, owner_of(folder, *path));
    }
    if (owner == Owner::this_user) {
      FARO_ASSIGN_OR_RETURN(number, read_number(folder, *path));
    }
  }
  return number;
}

/// Sockets of this user at which nobody listens.
void remove_stale(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator at(folder, error); !error && at != end;
       at.increment(error)) {
    const std::filesystem::directory_entry& entry = *at;
    const std::string& path = entry.path().native();
    const std::string name = entry.path().filename().native();
    struct stat found {};
    if (!name.starts_with("faro-") || !name.ends_with(kSocketEnding) ||
        lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode) || found.st_uid != geteuid())
      continue;
    const base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const UnixAddress address = UnixAddress::in_file_system(path);
    if (fd.valid() && connect(fd.get(), address.get(), address.bytes) != 0 && errno == ECONNREFUSED)
      (void)unlink(path.c_str());
  }
}

}  // namespace

Result<std::shared_ptr<const Rendezvous>> Rendezvous::open(const std::string& folder) {
  FARO_RETURN_IF_ERROR(check_folder(folder));
  struct stat users {};
  if (stat("/proc/self/ns/user", &users) != 0)
    return base::error(Code::system_error, "/proc/self/ns/user: {}", std::strerror(errno));
  FARO_ASSIGN_OR_RETURN(const std::string number, find_number(folder));
  if (number.empty()) {
    base::log(LogLevel::warning,
              "shm.folder = {} is not used: other users have taken all names of its number, as {}",
              folder, path_of_number(folder, 0));
    return std::shared_ptr<const Rendezvous>();
  }
  remove_stale(folder);
  return std::shared_ptr<const Rendezvous>(new Rendezvous(
      folder, fmt::format("users {} uid {} folder {}", users.st_ino, geteuid(), number)));
}

std::vector<uint32_t> Rendezvous::other_users() const {
  std::vector<uint32_t> uids;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator at(folder_, error); !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().native();
    uint32_t uid = 0;
    int at_ending = 0;
    if (std::sscanf(name.c_str(), "faro-%10u%n", &uid, &at_ending) == 1 && uid != geteuid() &&
        is_ending(std::string_view(name).substr(static_cast<size_t>(at_ending))))
      uids.push_back(uid);
  }
  std::sort(uids.begin(), uids.end());
  uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
  return uids;
}

}  // namespace faro::transport::shm
