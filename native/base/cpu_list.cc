#include "base/cpu_list.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"

namespace faro::base {
namespace {

static_assert(kCpuLimit <= CPU_SETSIZE);

std::optional<uint32_t> parse_cpu(std::string_view digits) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number >= kCpuLimit)
    return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::vector<uint32_t>> parse_cpu_list(std::string_view text) {
  std::set<uint32_t> cpus;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-');
    const std::optional<uint32_t> first = parse_cpu(part.substr(0, dash));
    const std::optional<uint32_t> last =
        dash == std::string_view::npos ? first : parse_cpu(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.insert(cpu);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;
  }
  return std::vector<uint32_t>(cpus.begin(), cpus.end());
}

std::string cpu_list_text(std::span<const uint32_t> cpus) {
  std::string text;
  for (size_t first = 0; first < cpus.size();) {
    size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[first]);
    if (last > first) text += fmt::format("-{}", cpus[last]);
    first = last + 1;
  }
  return text;
}

Status pin_thread(std::thread& thread, std::span<const uint32_t> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const uint32_t cpu : cpus) CPU_SET(cpu, &set);
  if (pthread_setaffinity_np(thread.native_handle(), sizeof set, &set) == 0) return Status::Ok();
  return error(Code::system_error, "this process may not run on any of the CPUs {}",
               cpu_list_text(cpus));
}

}  // namespace faro::base
