#include "lab/bench/two_stage.h"

#include <utility>

#include "base/return_if_error.h"
#include "lab/bench/two_stage_worker.h"

namespace faro::bench {

MakeRoundWorker two_stage_worker(const TwoStageJob& job) {
  return [job](Worker& worker, std::atomic<uint64_t>& progress) {
    return with_job_types(
        job, [&]<class Hash, uint32_t kRowBytes>() -> std::unique_ptr<RoundWorker> {
          return std::make_unique<TwoStageWorker<Hash, kRowBytes>>(job, worker, progress);
        });
  };
}

Result<FaroRun> run_faro(const TwoStageJob& job, const FaroOptions& faro,
                         const RunOptions& options) {
  FARO_RETURN_IF_ERROR(job.validate());
  ClusterOptions cluster;
  cluster.group = group_options(job, options);
  cluster.config = faro.config;
  cluster.hosts = faro.hosts;
  cluster.idle_ns = faro.idle_ns;
  Result<ClusterRun> ran = run_cluster(cluster, two_stage_worker(job), options.progress);
  if (!ran) return ran.status();
  FaroRun run;
  run.rounds = timed_figures(job, options, ran.value().rounds);
  run.nodes = std::move(ran.value().nodes);
  run.connect_seconds = ran.value().connect_seconds;
  return run;
}

}  // namespace faro::bench
