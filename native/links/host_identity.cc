#include "links/host_identity.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

namespace faro::links {

namespace {

/// What follows `name` in "name value name value …"; empty: nothing.
std::string_view part(std::string_view identity, std::string_view name) {
  for (size_t at = 0; at < identity.size();) {
    const size_t space = identity.find(' ', at);
    if (space == std::string_view::npos) break;
    const size_t end = std::min(identity.find(' ', space + 1), identity.size());
    if (identity.substr(at, space - at) == name) return identity.substr(space + 1, end - space - 1);
    at = end + 1;
  }
  return {};
}

}  // namespace

bool is_one_kernel(const Whereabouts& one, const Whereabouts& other) {
  const std::string_view boot = part(one.host_identity, "boot");
  return !boot.empty() && boot == part(other.host_identity, "boot");
}

const char* why_apart(const Whereabouts& one, const Whereabouts& other) {
  if (one.host_identity == other.host_identity) return nullptr;
  if (!is_one_kernel(one, other)) return "the nodes do not run on one host";
  if (part(one.host_identity, "uid") != part(other.host_identity, "uid"))
    return "the nodes run as different users";
  if (one.rendezvous.empty())
    return "the nodes are in different network namespaces, and this one has no shm.folder";
  if (other.rendezvous.empty())
    return "the nodes are in different network namespaces, and the other has no shm.folder";
  if (one.rendezvous == other.rendezvous) return nullptr;
  if (part(one.rendezvous, "users") != part(other.rendezvous, "users"))
    return "the nodes are in different user namespaces";
  return "the nodes are in different network namespaces, and their shm.folder is not the same "
         "folder";
}

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  const bool found = stat("/proc/self/ns/net", &network) == 0;
  if (boot.empty() || !found) {
    // Unique: equal identities would promise shared memory that does not work.
    uint64_t unique[2] = {static_cast<uint64_t>(getpid()), 0};
    [[maybe_unused]] const ssize_t drawn = getrandom(&unique[1], sizeof unique[1], 0);
    return fmt::format("process {} {:x}", unique[0], unique[1]);
  }
  return fmt::format("boot {} net {} uid {}", boot, network.st_ino, geteuid());
}

}  // namespace faro::links
