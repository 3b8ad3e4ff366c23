// The parts of `faro-lab bench`, each in a file of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "faro/config.h"
#include "lab/bench/cluster.h"
#include "lab/bench/contest.h"
#include "lab/command/progress_line.h"

namespace CLI {
class App;
}

namespace faro::command::lab {

/// What the benchmark is run with.
struct BenchInputs {
  Config config;                ///< of all nodes
  std::string java_class_path;  ///< of java/lab/bench; empty: nothing runs in Java
  bool json = false;
};

/// `faro-lab bench`: the table a newcomer gets. Returns the exit code.
int run_standard_bench(const BenchInputs& inputs);

/// `faro-lab bench --full`: every figure that has a goal, or those of some parts. Returns the exit code.
int run_full_bench(const BenchInputs& inputs, const std::vector<std::string>& parts);

/// The flag --java.
void add_java_flag(CLI::App& command, std::string& class_path);

/// The flag --repetitions.
void add_repetitions_flag(CLI::App& command, uint32_t& repetitions);

/// The flag --transport. `help`: what it says beside "One or several, separated by commas, of ".
void add_transports_flag(CLI::App& command, std::vector<std::string>& transports,
                         const std::string& help);

/// The names of the parts, for a help text: "pinned, unpinned, …".
std::string full_bench_parts();

/// `faro-lab bench kernels`.
void add_kernels_command(CLI::App& bench, int& exit_code);

/// `faro-lab bench link`.
void add_channel_command(CLI::App& bench, int& exit_code);
void add_link_command(CLI::App& bench, int& exit_code);

/// `faro-lab bench receive`.
void add_receive_command(CLI::App& bench, int& exit_code);

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

/// Shows a contest's progress: "lap 3 of 7: shm".
std::function<void(const bench::ContestProgress&)> contest_progress(
    ProgressLine& line, const std::vector<bench::Contestant>& contestants, uint32_t laps);

/// A note on the paper's form of the baseline, which runs fewer rows because it makes a system call for each.
inline constexpr char kPaperNote[] =
    "* the sockets middleware as the paper describes it: a system call per row. Run with fewer "
    "rows,\n"
    "  seconds scaled to those of the others. plain-loop: a loop over shared rings, written by "
    "hand for\n"
    "  this job alone; copies: making, hashing and copying the rows alone, in one thread.\n";

}  // namespace faro::command::lab
