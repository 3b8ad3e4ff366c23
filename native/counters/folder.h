// The files in counters.folder: how they are made, named, found, and told from stale ones.
//
// A file appears whole under its name (faro-<pid>-<n>.counters), has mode 0600, and is locked for as long as
// its process lives. The lock is an open file description lock, which the kernel drops with the process and
// which readers can query without taking it. So a file without a lock is stale, no matter which process has
// its pid by now, in any namespace.
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "faro/status.h"

namespace faro::counters {

/// The ending of every counter file's name.
inline constexpr char kFileEnding[] = ".counters";

// --- for those who count. Threads: any.

/// A locked file without a name. Stale files of this user in the folder are removed. Errors: config_invalid (no such folder,
/// or not for this user), system_error.
Result<base::UniqueFd> make_nameless(const std::string& folder);
/// Gives it a name, once it is whole, until take_name or exit(). Errors: system_error.
Result<std::string> name_file(int fd, const std::string& folder);
void take_name(const std::string& path) noexcept;
/// Removes the files of processes that are gone; one that is not this user's stays.
void remove_stale(const std::string& folder);

// --- for those who read

/// Whether the process that wrote the file is still alive. Threads: any. Blocks: never.
bool is_locked(int fd) noexcept;
/// The counter files in a folder, including stale ones and those of other users, sorted by name.
std::vector<std::string> counter_files_in(const std::string& folder);
/// Opens a counter file for reading if it is this user's, without following links. `named`: the user has named
/// this very file; then root may read it, no matter who owns it. Errors: system_error.
Result<base::UniqueFd> open_counter_file(const std::string& path, bool named = false);

}  // namespace faro::counters
