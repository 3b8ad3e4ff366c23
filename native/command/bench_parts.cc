#include "command/bench_parts.h"

#include <fmt/format.h>

#include <cstdio>

#include "command/exit_code.h"

namespace faro::command {

int bench_error(const Status& status) {
  fmt::print(stderr, "faro bench: {}\n", status.message());
  return exit_code_of(status.code());
}

std::function<void(const bench::ContestProgress&)> contest_progress(
    ProgressLine& line, const std::vector<bench::Contestant>& contestants, uint32_t laps) {
  return [&line, contestants, laps](const bench::ContestProgress& progress) {
    line.update(progress.fraction,
                fmt::format("lap {} of {}, {}", progress.lap + 1, laps,
                            carrier_name(contestants[progress.contestant].carrier)));
  };
}

}  // namespace faro::command
