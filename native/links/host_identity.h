// Which processes can share memory.
#pragma once

#include <string>
#include <string_view>

namespace faro::links {

/// Equal for two processes that can pass each other memory: same running kernel, same network
/// namespace (they can reach each other's socket), same user (it may open the memory). Never empty: without
/// /proc it is unique to this process. Threads: any. Blocks: for reading two small files of /proc.
std::string host_identity();

/// What two processes say of where they run.
struct Whereabouts {
  std::string_view host_identity;
  std::string_view rendezvous;  // transport::shm::Rendezvous::identity; empty: no shm.folder
};

/// Why two processes cannot share memory; null: they can. Threads: any.
const char* why_apart(const Whereabouts& one, const Whereabouts& other);
/// Whether they run on the same kernel: then a user may expect that they do.
bool is_one_kernel(const Whereabouts& one, const Whereabouts& other);

}  // namespace faro::links
