// Files that only their owner may read: secrets and keys.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faro/status.h"

namespace faro::base {

/// The bytes of a file that belongs to this process's user or root, and that nobody else may use:
/// at most `limit` of them; of a larger file one more, so that it is seen to be too large. The
/// caller overwrites them. `setting` names the file in messages. Threads: any. Blocks: for the file.
/// Errors: config_invalid, with setting, path and reason.
Result<std::vector<std::byte>> read_private_file(const std::string& path, std::string_view setting,
                                                 size_t limit);

/// Leaves nothing of it in memory.
void overwrite(std::span<std::byte> bytes) noexcept;

}  // namespace faro::base
