// Space in files, reserved ahead.
#pragma once

#include <cstdint>
#include <string>

namespace faro::base {

/// Allocates a part of a file, which grows if it has to: 0, or the error. Never SIGXFSZ, which a
/// file that grows beyond the limit of the process (`ulimit -f`) would bring, and which ends it: that
/// is EFBIG here. Threads: any. Blocks: for the file.
int reserve_file(int fd, uint64_t offset, uint64_t bytes) noexcept;

/// What an error of reserve_file means, with the limit that was met.
std::string reserve_error_text(int error);

}  // namespace faro::base
