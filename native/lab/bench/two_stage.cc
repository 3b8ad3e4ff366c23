#include "lab/bench/two_stage.h"

#include "base/return_if_error.h"
#include "lab/bench/two_stage_worker.h"

namespace faro::bench {

ClusterJob two_stage_job(const TwoStageJob& job) {
  return {job.process_count, job.workers_per_process, job.expectation(),
          [job](Session&, Worker& worker, std::atomic<uint64_t>& progress) {
            return with_job_types(
                job, [&]<class Hash, uint32_t kRowBytes>() -> std::unique_ptr<RoundWorker> {
                  return std::make_unique<TwoStageWorker<Hash, kRowBytes>>(job, worker, progress);
                });
          }};
}

Result<FaroRun> run_faro(const TwoStageJob& job, const FaroOptions& faro,
                         const RunOptions& options) {
  FARO_RETURN_IF_ERROR(job.validate());
  return run_cluster(two_stage_job(job), faro, options);
}

}  // namespace faro::bench
