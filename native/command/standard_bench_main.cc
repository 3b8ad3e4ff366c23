// `faro bench` without a flag: what `./run bench` builds, in a fraction of the time that the whole command takes to compile.
//
//   faro-standard-bench [class path of java/lab/bench]
#include "command/bench_parts.h"
#include "command/settings.h"

int main(int argc, char** argv) {
  using namespace faro;
  const Result<Config> config = command::load_settings("", {});
  Status status = config.status();
  if (status.ok()) status = command::validate_settings(config.value());
  if (!status.ok()) return command::bench_error(status);
  return command::run_standard_bench({config.value(), argc > 1 ? argv[1] : "", false});
}
