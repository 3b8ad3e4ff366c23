// faro_sockets_baseline: runs the sockets baseline alone, for trying and tuning it. `faro bench`
// runs it beside the other contestants.
//
// Workload: the two-stage integer shuffle of two_stage_job.h; one line per timed round, then
// medians.
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lab/bench/sockets_baseline.h"

namespace {

using namespace faro::bench;

constexpr const char* kHelp =
    "faro_sockets_baseline: the two-stage shuffle over plain TCP sockets\n"
    "  -p N      processes                       (4)\n"
    "  -w N      workers per process             (1)\n"
    "  -n N      rows per process                (5000000)\n"
    "  -b N      bytes per row: 8, 16, 24, …     (8)\n"
    "  -H NAME   hash: finalizer, multiplicative (finalizer)\n"
    "  -f NAME   form: paper, tuned              (tuned)\n"
    "  -a IP     address to listen on            (127.0.0.1)\n"
    "  -r N      timed rounds                    (5)\n"
    "  -u N      warm-up rounds                  (1)\n"
    "  -o N      bytes of an outgoing buffer     (16384)\n"
    "  -i N      bytes of an incoming buffer     (65536)\n"
    "  -k N      SO_SNDBUF, 0: the kernel's      (default of the library)\n"
    "  -g N      rows generated per turn         (default of the library)\n"
    "  -y N      yields before sleeping          (default of the library)\n"
    "  -v        print every round\n";

uint32_t number(const char* text) { return static_cast<uint32_t>(std::strtoul(text, nullptr, 10)); }

int refuse(const faro::Status& status) {
  std::fprintf(stderr, "faro_sockets_baseline: %s\n", status.to_string().c_str());
  return 2;
}

void print(const char* name, const RunFigures& run) {
  std::printf("%-7s %8.4f s  %7.2f M rows/s  %6.2f wall ns/hop  %6.2f CPU ns/hop  %s\n", name,
              run.seconds, run.rows_per_second() * 1e-6, run.wall_ns_per_hop(),
              run.cpu_ns_per_hop(), run.verified() ? "verified" : "WRONG RESULT");
}

}  // namespace

int main(int argc, char** argv) {
  TwoStageJob job;
  SocketsOptions sockets;
  RunOptions options;
  options.timed_rounds = 5;
  bool verbose = false;
  for (int flag; (flag = getopt(argc, argv, "p:w:n:b:H:f:a:r:u:o:i:k:g:y:vh")) != -1;) {
    switch (flag) {
      case 'p':
        job.process_count = number(optarg);
        break;
      case 'w':
        job.workers_per_process = number(optarg);
        break;
      case 'n':
        job.rows_per_process = std::strtoull(optarg, nullptr, 10);
        break;
      case 'b':
        job.row_bytes = number(optarg);
        break;
      case 'H': {
        faro::Result<HashKind> hash = parse_hash(optarg);
        if (!hash) return refuse(hash.status());
        job.hash = hash.value();
        break;
      }
      case 'f': {
        faro::Result<SocketsForm> form = parse_form(optarg);
        if (!form) return refuse(form.status());
        sockets.form = form.value();
        break;
      }
      case 'a':
        sockets.addresses = {optarg};
        break;
      case 'r':
        options.timed_rounds = number(optarg);
        break;
      case 'u':
        options.warmup_rounds = number(optarg);
        break;
      case 'o':
        sockets.outgoing_buffer_bytes = number(optarg);
        break;
      case 'i':
        sockets.incoming_buffer_bytes = number(optarg);
        break;
      case 'k':
        sockets.kernel_buffer_bytes = number(optarg);
        break;
      case 'g':
        sockets.generate_batch_rows = number(optarg);
        break;
      case 'y':
        sockets.yields_before_sleep = number(optarg);
        break;
      case 'v':
        verbose = true;
        break;
      default:
        std::fputs(kHelp, flag == 'h' ? stdout : stderr);
        return flag == 'h' ? 0 : 2;
    }
  }
  if (options.timed_rounds == 0) options.timed_rounds = 1;
  if (verbose) {
    options.progress = [](const Progress& progress) {
      std::fprintf(stderr, "round %u of %u: %.1f M rows\n", progress.round + 1,
                   progress.round_count, static_cast<double>(progress.rows_done) * 1e-6);
    };
  }
  faro::Result<std::vector<RunFigures>> runs = run_sockets_baseline(job, sockets, options);
  if (!runs) {
    std::fprintf(stderr, "faro_sockets_baseline: %s\n", runs.status().to_string().c_str());
    return 1;
  }
  if (verbose) {
    for (const RunFigures& run : runs.value()) print("round", run);
  }
  const RunFigures median = median_of(runs.value());
  print("median", median);
  return median.verified() ? 0 : 1;
}
