#include "links/host_identity.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace faro::links {

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
