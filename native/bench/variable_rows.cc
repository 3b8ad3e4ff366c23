#include "bench/variable_rows.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/vectorised.h"
#include "bench/turn_worker.h"
#include "faro/shuffle.h"

namespace faro::bench {
namespace {

using Codec = RowCodec<VariableRowsJob::kRowBytes>;

/// Sends the rows of [begin, stop), or as many as there is room for. Returns the first not sent.
struct ProduceLoop {
  [[gnu::always_inline]] static inline uint64_t run(const VariableRowSender* to, uint64_t begin,
                                                    uint64_t stop, Outcome* outcome) {
    const VariableRowSender sender = *to;
    const uint32_t receiver_count = sender.receiver_count();
    *outcome = Outcome::done;
    for (uint64_t n = begin; n < stop; ++n) {
      *outcome = sender.try_write(destination_of<FinalizerHash>(n, receiver_count), Codec::kBytes,
                                  [n](std::byte* row) { Codec::write(row, n); });
      if (*outcome != Outcome::done) return n;
    }
    return stop;
  }
};

struct Checked {
  uint64_t count = 0;
  uint64_t sum = 0;
  uint64_t damage = 0;
};

/// Reads every byte of a batch.
struct CheckLoop {
  [[gnu::always_inline]] static inline Checked run(const Batch* batch) {
    Checked checked;
    for (const std::span<const std::byte> row : batch->each_row()) {
      if (row.size() != Codec::kBytes) {
        checked.damage = UINT64_MAX;
        break;
      }
      checked.sum += mix(Codec::read(row.data(), checked.damage));
      ++checked.count;
    }
    return checked;
  }
};

class VariableRowsWorker final : public TurnWorker {
 public:
  VariableRowsWorker(const VariableRowsJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : TurnWorker(worker, progress), job_(job) {}

  WorkTotals totals() const override { return {sink_.count(), sink_.checksum()}; }

 private:
  static constexpr uint32_t kBlockRows = 256;

  Status open(const QueryId& query) override {
    ShuffleSpec spec;
    spec.query = query;
    spec.stage = 1;
    spec.row_bytes = 0;
    Result<Shuffle> shuffle = worker_.open_shuffle(spec);
    if (!shuffle) return shuffle.status();
    shuffle_ = std::move(shuffle).value();
    Result<VariableRowSender> sender = shuffle_.variable_sender();
    if (!sender) return sender.status();
    sender_ = sender.value();
    sink_.reset();
    rest_.begin = worker_.number() * job_.rows_per_worker;
    rest_.end = rest_.begin + job_.rows_per_worker;
    finished_ = ended_ = failed_ = false;
    return Status::Ok();
  }

  bool over() const override { return failed_ || (finished_ && ended_); }

  Status close() override {
    const Status status = failed_ ? shuffle_.status() : Status::Ok();
    shuffle_.close();
    return status;
  }

  bool turn() override {
    bool moved = consume();
    if (!moved) moved = produce();
    progress_.store(sink_.count(), std::memory_order_relaxed);
    return moved || over();
  }

  bool consume() {
    bool moved = false;
    while (!ended_) {
      const Outcome outcome = shuffle_.try_poll(batch_);
      if (outcome != Outcome::done) {
        ended_ = outcome == Outcome::end_of_stream;
        failed_ |= outcome == Outcome::failed;
        return moved || ended_;
      }
      const Checked checked = check_(&batch_);
      sink_.consume_batch(checked.count, checked.sum);
      sink_.add_damage(checked.damage);
      batch_.release();
      moved = true;
    }
    return moved;
  }

  bool produce() {
    if (finished_) return false;
    const uint64_t stop = std::min<uint64_t>(rest_.end, rest_.begin + kBlockRows);
    Outcome outcome;
    const uint64_t n = produce_(&sender_, rest_.begin, stop, &outcome);
    bool moved = n != rest_.begin;
    rest_.begin = n;
    if (n == rest_.end && outcome == Outcome::done) {
      outcome = shuffle_.try_finish();
      finished_ = outcome == Outcome::done;
      moved |= finished_;
    }
    failed_ |= outcome == Outcome::failed;
    return moved;
  }

  const VariableRowsJob job_;
  const decltype(base::vectorised<ProduceLoop>()) produce_ = base::vectorised<ProduceLoop>();
  const decltype(base::vectorised<CheckLoop>()) check_ = base::vectorised<CheckLoop>();
  Shuffle shuffle_;
  VariableRowSender sender_;
  Batch batch_;
  Sink sink_;
  IntegerRange rest_;
  bool finished_ = false;
  bool ended_ = false;
  bool failed_ = false;
};

}  // namespace

Result<std::vector<RunFigures>> run_variable_rows(const VariableRowsJob& job,
                                                  const FaroOptions& faro,
                                                  const RunOptions& options) {
  ClusterOptions cluster;
  TwoStageJob shape;  // for the shape of the process group only
  shape.process_count = job.process_count;
  shape.workers_per_process = job.workers_per_process;
  cluster.group = group_options(shape, options);
  cluster.config = faro.config;
  cluster.hosts = faro.hosts;
  Result<ClusterRun> run = run_cluster(
      cluster,
      [&job](Worker& worker, std::atomic<uint64_t>& progress) -> std::unique_ptr<RoundWorker> {
        return std::make_unique<VariableRowsWorker>(job, worker, progress);
      },
      options.progress);
  if (!run) return run.status();

  uint64_t expected_checksum = 0;
  for (uint64_t n = 0; n < job.row_count(); ++n) expected_checksum += mix(n);
  std::vector<RunFigures> all;
  const std::vector<RoundTotals>& rounds = run.value().rounds;
  for (size_t i = options.warmup_rounds; i < rounds.size(); ++i) {
    RunFigures figures;
    figures.seconds = rounds[i].seconds;
    figures.cpu_seconds = rounds[i].cpu_seconds;
    figures.rows = job.row_count();
    figures.hops = job.row_count();
    figures.count = rounds[i].count;
    figures.expected_count = job.row_count();
    figures.checksum = rounds[i].checksum;
    figures.expected_checksum = expected_checksum;
    figures.verified =
        figures.count == figures.expected_count && figures.checksum == expected_checksum;
    all.push_back(figures);
  }
  return all;
}

}  // namespace faro::bench
