#include <span>
#include <string>
#include <vector>

#include "command/subcommand.h"
#include "lab/bench/two_stage_job.h"
#include "lab/command/bench_parts.h"

namespace faro::command::lab {

void add_repetitions_flag(CLI::App& command, uint32_t& repetitions) {
  add_number(command, "--repetitions", repetitions, "Number of runs; the median is reported", 1,
             1000);
}

void add_row_bytes_flag(CLI::App& command, uint32_t& row_bytes, std::span<const uint32_t> widths) {
  command.add_option("--row-bytes", row_bytes, bench::names_of(widths))
      ->check(CLI::IsMember(std::vector<uint32_t>(widths.begin(), widths.end())).description(""))
      ->type_name("N");
}

void add_transports_flag(CLI::App& command, std::vector<std::string>& transports,
                         const std::string& help) {
  command.add_option("--transport", transports, "One or several, separated by commas, of " + help)
      ->delimiter(',')
      ->type_name("NAMES");
}

}  // namespace faro::command::lab
