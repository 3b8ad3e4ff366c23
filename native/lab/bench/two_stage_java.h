// The two-stage job carried by nodes in Java (java/lab/bench), on this host: over Faro, or over the
// sockets middleware in Java NIO.
#pragma once

#include <string>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/figures.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

struct JavaOptions {
  std::string class_path;      ///< with io.faro.bench and io.faro
  std::string transport;       ///< "shm", "tcp", "verbs", "nio" or "nio-paper"
  std::string level = "many";  ///< of Faro's API: "many", "one" or "codec" (RowsLevel.java)
  std::vector<std::string> hosts = {"127.0.0.1"};  ///< see FaroOptions
  Config config;  ///< settings of every node; handed on as environment
};

struct JavaRun {
  std::vector<RunFigures> rounds;  ///< the timed ones
  double connect_seconds = 0;
};

/// Starts a JVM per process (`java` of JAVA_HOME, else of the PATH), each with
/// options.warmup_rounds + options.timed_rounds rounds of the job. The first of them is what a fresh
/// JVM needs, compiling included.
///
/// Threads, Blocks: as run_program.
/// Errors: of run_program; invalid_argument (rows other than integers); system_error with what the
/// JVMs printed. A wrong result is no error: see RunFigures::verified.
Result<JavaRun> run_java(const TwoStageJob& job, const JavaOptions& java,
                         const RunOptions& options);

}  // namespace faro::bench
