// Which processes can share memory.
#pragma once

#include <string>

namespace faro::links {

/// Equal for two processes that can pass each other memory: same running kernel, same network
/// namespace (they can reach each other's socket), same user (it may open the memory). Never empty: without
/// /proc it is unique to this process. Threads: any. Blocks: for reading two small files of /proc.
std::string host_identity();

}  // namespace faro::links
