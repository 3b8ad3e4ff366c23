// Files that only their owner may read: secrets and keys.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faro/status.h"

namespace faro::base {

/// Reads a file that belongs to this process's user and that no one else may use (mode 0600 or less), or one of root's that a
/// group may read (0640 or less). Returns at most `limit` bytes, and one more if the file is larger, so that the caller notices. The caller has to overwrite
/// them. `setting` names the file in messages. Threads: any. Blocks: for the file.
/// Errors: config_invalid, with setting, path and reason.
Result<std::vector<std::byte>> read_private_file(const std::string& path, std::string_view setting,
                                                 size_t limit);

/// Leaves nothing of it in memory.
void overwrite(std::span<std::byte> bytes) noexcept;

}  // namespace faro::base
