// `faro-lab bench` without a flag: what `./run bench` builds, in a fraction of the time that the whole command takes to compile.
//
//   faro-standard-bench [class path of java/lab/bench]
#include "command/settings.h"
#include "lab/command/bench_parts.h"

int main(int argc, char** argv) {
  using namespace faro;
  using namespace faro::command;
  const Result<Config> config = load_settings("", {});
  Status status = config.status();
  if (status.ok()) status = validate_settings(config.value());
  if (!status.ok()) return lab::bench_error(status);
  return lab::run_standard_bench({config.value(), argc > 1 ? argv[1] : "", false});
}
