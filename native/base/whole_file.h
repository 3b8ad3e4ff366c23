// Files that settings name, read whole.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "faro/status.h"

namespace faro::base {

enum class FileKind { plain, any_but_folder };

/// Why a file could not be opened, from errno; in a pod it is the group that lacks a right to a Secret.
std::string why_not_opened(int error);

/// What is wrong with a file of this kind as one to read; empty: nothing.
std::string_view why_unreadable(const struct stat& file, FileKind kind) noexcept;

/// All that comes of it until its end, at most `limit` bytes, and one more if there are more, so that the caller notices. Threads:
/// any. Blocks: for the file. Errors: system_error, with the reason alone.
Result<std::vector<std::byte>> read_whole_file(const std::string& path, FileKind kind,
                                               size_t limit);
Result<std::vector<std::byte>> read_open_file(int fd, size_t limit);

}  // namespace faro::base
