// Lists of CPUs, as `taskset -c` and the kernel's files write them: "0-3,8".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "faro/status.h"

namespace faro::base {

/// Numbers of CPUs are below this.
inline constexpr uint32_t kCpuLimit = 1024;

/// Sorted, each once; empty text is an empty list. nullopt: it is no list.
std::optional<std::vector<uint32_t>> parse_cpu_list(std::string_view text);
/// "0-3,8"; `cpus` are sorted.
std::string cpu_list_text(std::span<const uint32_t> cpus);

/// From now on the thread runs on these CPUs alone, as far as the process may use them. Errors: system_error, if it may use none.
Status pin_thread(std::thread& thread, std::span<const uint32_t> cpus);

}  // namespace faro::base
