#include "bench/receive.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/turn_worker.h"
#include "faro/shuffle.h"

namespace faro::bench {
namespace {

constexpr uint32_t kLeastRowBytes = 8;
constexpr uint32_t kMostRowBytes = 4096;

template <uint32_t kRowBytes>
class ReceiveWorker final : public TurnWorker {
 public:
  ReceiveWorker(const ReceiveJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : TurnWorker(worker, progress), job_(job), block_(kBlockRows) {}

  WorkTotals totals() const override { return {sink_.count(), sink_.checksum()}; }

 private:
  using Codec = RowCodec<kRowBytes>;

  struct Row {
    char bytes[kRowBytes];
  };

  /// Rows that are made between two looks at what has arrived: 16 KiB.
  static constexpr uint32_t kBlockRows = std::max<uint32_t>(1, 16 * 1024 / kRowBytes);

  Status open(const QueryId& query) override {
    ShuffleSpec spec;
    spec.query = query;
    spec.row_bytes = kRowBytes;
    Result<Shuffle> shuffle = worker_.open_shuffle(spec);
    if (!shuffle) return shuffle.status();
    shuffle_ = std::move(shuffle).value();
    Result<RowSender<Row>> sender = shuffle_.sender<Row>();
    if (!sender) return sender.status();
    sender_ = sender.value();
    sink_.reset();
    rest_.begin = worker_.number() * job_.rows_per_worker;
    rest_.end = rest_.begin + job_.rows_per_worker;
    block_begin_ = block_end_ = 0;
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
      uint64_t sum = 0;
      uint64_t damage = 0;
      const std::span<const Row> rows = batch_.rows<Row>();
      for (const Row& row : rows) sum += mix(Codec::read(row.bytes, damage));
      sink_.consume_batch(rows.size(), sum);
      sink_.add_damage(damage);
      batch_.release();
      moved = true;
    }
    return moved;
  }

  bool produce() {
    if (finished_) return false;
    if (block_begin_ == block_end_) make_block();
    Outcome outcome = Outcome::done;
    const size_t taken =
        job_.pattern == Pattern::broadcast ? broadcast(outcome) : repartition(outcome);
    block_begin_ += taken;
    bool moved = taken > 0;
    if (block_begin_ == block_end_ && rest_.begin == rest_.end) {
      outcome = shuffle_.try_finish();
      finished_ = outcome == Outcome::done;
      moved |= finished_;
    }
    failed_ |= outcome == Outcome::failed;
    return moved;
  }

  void make_block() {
    const uint64_t count = std::min<uint64_t>(kBlockRows, rest_.end - rest_.begin);
    for (uint64_t i = 0; i < count; ++i) Codec::write(block_[i].bytes, rest_.begin + i);
    rest_.begin += count;
    block_begin_ = 0;
    block_end_ = count;
  }

  std::span<const Row> block() const {
    return {block_.data() + block_begin_, block_end_ - block_begin_};
  }

  size_t repartition(Outcome& outcome) {
    return sender_.try_send_all(
        block(), FinalizerHash{},
        [](const Row& row) noexcept {
          uint64_t n;
          std::memcpy(&n, row.bytes, sizeof n);
          return n;
        },
        outcome);
  }

  size_t broadcast(Outcome& outcome) {
    size_t taken = 0;
    for (const Row& row : block()) {
      outcome = shuffle_.try_broadcast(std::as_bytes(std::span(row.bytes)));
      if (outcome != Outcome::done) break;
      ++taken;
    }
    return taken;
  }

  const ReceiveJob job_;
  Shuffle shuffle_;
  RowSender<Row> sender_;
  Batch batch_;
  Sink sink_;
  IntegerRange rest_;       // still to be made
  std::vector<Row> block_;  // not yet sent: [block_begin_, block_end_)
  size_t block_begin_ = 0;
  size_t block_end_ = 0;
  bool finished_ = false;
  bool ended_ = false;
  bool failed_ = false;
};

template <uint32_t kRowBytes = kLeastRowBytes>
std::unique_ptr<RoundWorker> make_worker(const ReceiveJob& job, Worker& worker,
                                         std::atomic<uint64_t>& progress) {
  if constexpr (kRowBytes < kMostRowBytes) {
    if (job.row_bytes > kRowBytes) return make_worker<2 * kRowBytes>(job, worker, progress);
  }
  return std::make_unique<ReceiveWorker<kRowBytes>>(job, worker, progress);
}

}  // namespace

std::string_view pattern_name(Pattern pattern) noexcept {
  return pattern == Pattern::broadcast ? "broadcast" : "repartition";
}

Result<Pattern> parse_pattern(std::string_view name) {
  for (const Pattern pattern : {Pattern::repartition, Pattern::broadcast}) {
    if (name == pattern_name(pattern)) return pattern;
  }
  return Status(Code::invalid_argument,
                fmt::format("pattern = {}: must be repartition or broadcast", name));
}

Status ReceiveJob::validate() const {
  TwoStageJob shape;
  shape.process_count = process_count;
  shape.workers_per_process = workers_per_process;
  shape.rows_per_process = 0;
  FARO_RETURN_IF_ERROR(shape.validate());
  if (!std::has_single_bit(row_bytes) || row_bytes < kLeastRowBytes || row_bytes > kMostRowBytes) {
    return Status(Code::invalid_argument,
                  fmt::format("row bytes = {}: must be a power of two, {} … {}", row_bytes,
                              kLeastRowBytes, kMostRowBytes));
  }
  return Status::Ok();
}

Result<FaroRun> run_receive(const ReceiveJob& job, const FaroOptions& faro,
                            const RunOptions& options) {
  FARO_RETURN_IF_ERROR(job.validate());
  TwoStageJob shape;  // for the shape of the process group only
  shape.process_count = job.process_count;
  shape.workers_per_process = job.workers_per_process;
  ClusterOptions cluster;
  cluster.group = group_options(shape, options);
  cluster.config = faro.config;
  cluster.hosts = faro.hosts;
  Result<ClusterRun> ran = run_cluster(
      cluster,
      [&job](Worker& worker, std::atomic<uint64_t>& progress) {
        return make_worker(job, worker, progress);
      },
      options.progress);
  if (!ran) return ran.status();

  RunFigures expected;
  expected.rows = job.sent_count();
  expected.hops = expected.expected_count = job.received_count();
  for (uint64_t n = 0; n < job.sent_count(); ++n) expected.expected_checksum += mix(n);
  expected.expected_checksum *= job.received_count() / std::max<uint64_t>(1, job.sent_count());
  FaroRun run;
  for (size_t round = options.warmup_rounds; round < ran->rounds.size(); ++round) {
    const RoundTotals& totals = ran->rounds[round];
    RunFigures figures = expected;
    figures.seconds = totals.seconds;
    figures.cpu_seconds = totals.cpu_seconds;
    figures.count = totals.count;
    figures.checksum = totals.checksum;
    figures.verified =
        figures.count == figures.expected_count && figures.checksum == figures.expected_checksum;
    run.rounds.push_back(figures);
  }
  run.nodes = std::move(ran->nodes);
  run.connect_seconds = ran->connect_seconds;
  return run;
}

}  // namespace faro::bench
