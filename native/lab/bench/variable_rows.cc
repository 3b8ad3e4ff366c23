#include "lab/bench/variable_rows.h"

#include <algorithm>
#include <memory>

#include "base/vectorised.h"
#include "lab/bench/one_stage_worker.h"

namespace faro::bench {
namespace {

using Codec = RowCodec<VariableRowsJob::kRowBytes>;

/// Sends the rows of [begin, stop), or as many as there is room for. Returns the first not sent.
struct ProduceLoop {
  [[gnu::always_inline]] static inline uint64_t run(const ShuffleSender* to, uint64_t begin,
                                                    uint64_t stop, Outcome* outcome) {
    const ShuffleSender sender = *to;
    const uint32_t receiver_count = sender.receiver_count();
    *outcome = Outcome::done;
    for (uint64_t n = begin; n < stop; ++n) {
      *outcome = sender.write(
          destination_of<FinalizerHash>(n, receiver_count), Codec::kBytes,
          [n](std::byte* row) { Codec::write(row, n); }, Wait::none());
      if (*outcome != Outcome::done) return n;
    }
    return stop;
  }
};

/// Reads every byte of a batch.
struct CheckLoop {
  [[gnu::always_inline]] static inline RowSum run(const Batch* batch) {
    RowSum sum;
    for (const std::span<const std::byte> row : batch->each_row()) {
      if (row.size() != Codec::kBytes) {
        sum.damage = UINT64_MAX;
        break;
      }
      sum.add(Codec::read(row.data(), sum.damage));
    }
    return sum;
  }
};

class VariableRowsWorker final : public OneStageWorker {
 public:
  VariableRowsWorker(const VariableRowsJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : OneStageWorker(job.rows_per_worker, worker, progress) {}

 private:
  static constexpr uint32_t kBlockRows = 256;

  uint32_t row_bytes() const override { return 0; }

  RowSum check(const Batch& batch) override { return check_(&batch); }

  bool produce(Outcome& outcome) override {
    const uint64_t begin = rest().begin;
    const uint64_t stop = std::min<uint64_t>(rest().end, begin + kBlockRows);
    rest().begin = produce_(&sender(), begin, stop, &outcome);
    return rest().begin != begin;
  }

  const decltype(base::widest<ProduceLoop>()) produce_ = base::widest<ProduceLoop>();
  const decltype(base::widest<CheckLoop>()) check_ = base::widest<CheckLoop>();
};

}  // namespace

Result<FaroRun> run_variable_rows(const VariableRowsJob& job, const FaroOptions& faro,
                                  const RunOptions& options) {
  return run_cluster({job.process_count,
                      job.workers_per_process,
                      {job.row_count(), job.row_count(), workload::totals_of(job.row_count())},
                      [&job](Session&, Worker& worker, std::atomic<uint64_t>& progress) {
                        return std::make_unique<VariableRowsWorker>(job, worker, progress);
                      }},
                     faro, options);
}

}  // namespace faro::bench
