#include "peer_program.h"

#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "lab/bench/figures.h"

namespace faro::evaluate {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}

uint64_t number(int argc, char** argv, const std::string& name, uint64_t otherwise) {
  const std::string text = flag(argc, argv, name, std::to_string(otherwise));
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') refuse("--" + name + ": '" + text + "' is no number");
  return value;
}

}  // namespace

std::string flag(int argc, char** argv, const std::string& name, const std::string& otherwise) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (argv[i] == "--" + name) return argv[i + 1];
  }
  return otherwise;
}

PeerFlags read_flags(int argc, char** argv) {
  PeerFlags flags;
  bench::TwoStageJob& job = flags.job;
  job.process_count = static_cast<uint32_t>(number(argc, argv, "processes", job.process_count));
  job.workers_per_process =
      static_cast<uint32_t>(number(argc, argv, "workers", job.workers_per_process));
  job.rows_per_process = number(argc, argv, "rows", job.rows_per_process);
  flags.rounds = static_cast<uint32_t>(number(argc, argv, "rounds", flags.rounds));
  if (const Status status = job.validate(); !status.ok()) refuse(std::string(status.message()));
  return flags;
}

int print_rounds(const bench::TwoStageJob& job, const std::string& version,
                 const std::vector<bench::RoundTotals>& rounds) {
  bool all = true;
  std::printf("{\"version\": \"%s\", \"rounds\": [", version.c_str());
  for (size_t i = 0; i < rounds.size(); ++i) {
    const bench::RunFigures run = figures_of(job.expectation(), rounds[i]);
    all &= run.verified();
    std::printf(
        "%s{\"seconds\": %.9f, \"cpu_seconds\": %.9f, \"count\": %llu, \"checksum\": \"%016llx\", "
        "\"verified\": %s}",
        i == 0 ? "" : ", ", run.seconds, run.cpu_seconds,
        static_cast<unsigned long long>(run.totals.count),
        static_cast<unsigned long long>(run.totals.checksum), run.verified() ? "true" : "false");
  }
  std::printf("]}\n");
  return all ? 0 : 1;
}

uint64_t RoundClock::now_ns() { return base::SystemClock::instance().now_ns(); }

}  // namespace faro::evaluate
