// The sub-commands of `faro-lab bench`, each in a file of its own, and what they share.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "faro/config.h"
#include "lab/bench/cluster.h"

namespace CLI {
class App;
}

namespace faro::command::lab {

/// The flag --repetitions.
void add_repetitions_flag(CLI::App& command, uint32_t& repetitions);

/// The flag --row-bytes, for the widths that are compiled.
void add_row_bytes_flag(CLI::App& command, uint32_t& row_bytes, std::span<const uint32_t> widths);

/// The flag --transport. `help`: what it says beside "One or several, separated by commas, of ".
void add_transports_flag(CLI::App& command, std::vector<std::string>& transports,
                         const std::string& help);

/// `faro-lab bench delivery`, `faro-lab bench skew` and `faro-lab bench ring-memory`.
void add_delivery_commands(CLI::App& bench, int& exit_code);

/// `faro-lab bench groups`.
void add_groups_command(CLI::App& bench, int& exit_code);

/// `faro-lab bench kernels`.
void add_kernels_command(CLI::App& bench, int& exit_code);

/// `faro-lab bench link`.
void add_channel_command(CLI::App& bench, int& exit_code);
void add_link_command(CLI::App& bench, int& exit_code);

/// `faro-lab bench operators`.
void add_operators_command(CLI::App& bench, int& exit_code);

/// `faro-lab bench receive`.
void add_receive_command(CLI::App& bench, int& exit_code);

/// `faro-lab bench variable-rows` and `faro-lab bench run-time-width`.
void add_row_commands(CLI::App& bench, int& exit_code);

/// `faro-lab bench send-first` and `faro-lab bench pipeline`.
void add_draining_commands(CLI::App& bench, int& exit_code);

/// `faro-lab bench two-stage`.
void add_two_stage_command(CLI::App& bench, int& exit_code);

/// "faro-lab bench: …" on stderr; the exit code that belongs to the error.
int bench_error(const Status& status);

/// A job of Faro alone over one transport.
struct TransportRun {
  std::string transport;
  bench::FaroRun run;
  bench::RunFigures median;
};

/// Says on stderr if `auto`, should the names have it, cannot choose verbs here: nobody is to take
/// figures over tcp for those over RDMA.
void say_what_auto_leaves_out(const std::vector<std::string>& names, const Config& config);

/// Errors: invalid_argument if not all of them are transports of Faro.
Status check_transports(const std::vector<std::string>& names);

/// Runs a job over one transport after the other. Leaves those out that bring back no rounds: the results are
/// on another node. Errors: of the first that fails, with its name in front.
Result<std::vector<TransportRun>> run_over(
    const std::vector<std::string>& transports, Config config,
    const std::function<Result<bench::FaroRun>(const Config& config)>& run);

/// The exit code of these results: all have to be verified.
int exit_code_of(const std::vector<TransportRun>& runs);

}  // namespace faro::command::lab
