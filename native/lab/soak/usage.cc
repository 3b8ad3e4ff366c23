#include "lab/soak/usage.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace faro::soak {
namespace {

uint32_t entries_of(const std::string& folder) {
  std::error_code gone;
  const std::filesystem::directory_iterator entries(folder, gone);
  return gone ? 0 : static_cast<uint32_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

Usage Usage::of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  Usage usage;
  uint64_t pages = 0;
  std::ifstream(folder + "/statm") >> pages >> pages;
  usage.resident_bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  usage.descriptors = entries_of(folder + "/fd");
  usage.threads = entries_of(folder + "/task");
  return usage;
}

}  // namespace faro::soak
