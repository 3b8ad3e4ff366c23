// Rendezvous: a folder in which processes of one host find each other that do not share a network namespace, such as
// containers that mount it: unix sockets with a name in a file system are seen wherever the folder is.
//
//   faro-<uid>.host       a number drawn by whoever came first: all that read one number have one
//                         folder; faro-<uid>.1.host and so on if another user has taken that name
//   faro-<…>.socket       listens while links are being set up
//
// A process that is killed leaves its socket; the next that opens the folder removes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "faro/status.h"

namespace faro::transport::shm {

/// Threads: any; it does not change.
class Rendezvous {
 public:
  /// The longest name of a folder: a unix socket's address is short.
  static constexpr size_t kFolderLimit = 62;

  /// Opens the folder of `shm.folder`, and draws its number if nobody has. Null, with a warning in the log, if other users have
  /// taken all names that it could have: this must not keep a session from opening. Blocks: for files. Errors: config_invalid (no such
  /// folder, too long, others may replace what is in it), system_error.
  static Result<std::shared_ptr<const Rendezvous>> open(const std::string& folder);

  /// Equal for two processes that see the same folder, and that are the same user to each other: of one user namespace.
  const std::string& identity() const noexcept { return identity_; }
  /// Uids other than this process's that have a number in the folder: with processes of theirs, none of this user shares memory.
  /// Blocks: for reading the folder.
  std::vector<uint32_t> other_users() const;
  /// The path of a socket, by its name.
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }

 private:
  Rendezvous(std::string folder, std::string identity)
      : folder_(std::move(folder)), identity_(std::move(identity)) {}

  const std::string folder_;
  const std::string identity_;
};

}  // namespace faro::transport::shm
