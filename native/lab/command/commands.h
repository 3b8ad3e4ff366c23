// The sub-commands of `faro-lab`, each in a file of its own.
#pragma once

namespace CLI {
class App;
}

namespace faro::command::lab {

// Each function adds its sub-command. When that is chosen, `exit_code` gets what main is to return.

/// `faro-lab bench`: the two-stage shuffle and other benchmarks, each a sub-command of it.
void add_bench_command(CLI::App& app, int& exit_code);
/// `faro-lab simulate`: simulated runs, by seed.
void add_simulate_command(CLI::App& app, int& exit_code);
/// `faro-lab soak`: clusters of real processes under faults, for any length of time.
void add_soak_command(CLI::App& app, int& exit_code);

}  // namespace faro::command::lab
