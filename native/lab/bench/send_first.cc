#include "lab/bench/send_first.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/return_if_error.h"
#include "faro/shuffle.h"
#include "lab/bench/node_life.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {
namespace {

using workload::EndsCodec;

constexpr uint32_t kOneWordBytes = 8;  // a row of a number alone
constexpr uint32_t kMostBytesOfRow = 1 << 20;
constexpr uint64_t kRowsOfATurn = 512;
constexpr uint64_t kBytesOfATurn = 64 * 1024;

// The program that sends first is the one that anyone writes first: each row is sent by a call that waits for room.
class SendFirstWorker final : public RoundWorker {
 public:
  SendFirstWorker(const SendFirstJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : job_(job),
        worker_(worker),
        progress_(progress),
        rows_of_a_turn_(std::clamp<uint64_t>(kBytesOfATurn / job.row_bytes, 1, kRowsOfATurn)),
        row_(job.row_bytes) {}

  Status run(const QueryId& query) override {
    FARO_ASSIGN_OR_RETURN(Shuffle shuffle,
                          worker_.open_shuffle({query, 0, job_.row_bytes, {}, {}}));
    sum_ = {};
    FARO_ASSIGN_OR_RETURN(const ShuffleSender sender, shuffle.sender());
    next_ = 0;
    if (round_++ % 2 == 0) {
      const Outcome outcome = worker_.exchange(
          shuffle, [this](const ShuffleSender& by) { return send_some(by); },
          [this](Batch& batch) { take(batch); });
      if (outcome != Outcome::end_of_stream) return worker_.status();
    } else {
      if (send_all(sender) != Outcome::done) return shuffle.status();
      if (receive(shuffle) != Outcome::end_of_stream) return shuffle.status();
    }
    shuffle.close();
    return end_query(worker_, query);
  }

  Totals totals() const override { return sum_.totals(); }

 private:
  /// The next row, which stays the next one until it is sent.
  Outcome send_next(const ShuffleSender& sender, Wait wait) {
    const uint64_t n = worker_.number() * job_.rows_per_worker() + next_;
    write(n);
    const uint32_t to = workload::destination_of<FinalizerHash>(n, sender.receiver_count());
    const Outcome outcome = sender.send(to, row_, wait);
    if (outcome == Outcome::done) ++next_;
    return outcome;
  }

  Outcome send_some(const ShuffleSender& sender) {
    for (uint64_t i = 0; i < rows_of_a_turn_; ++i) {
      if (next_ == job_.rows_per_worker()) return Outcome::end_of_stream;
      const Outcome outcome = send_next(sender, Wait::none());
      if (outcome != Outcome::done) return outcome;
    }
    return Outcome::done;
  }

  Outcome send_all(const ShuffleSender& sender) {
    while (next_ < job_.rows_per_worker()) {
      const Outcome outcome = send_next(sender, Wait::forever());
      if (outcome != Outcome::done) return outcome;
    }
    return sender.finish();
  }

  /// All there is. Answers why there is no more.
  Outcome receive(Shuffle& shuffle) {
    const Result<ShuffleReceiver> receiver = shuffle.receiver();
    if (!receiver) return Outcome::failed;
    Outcome outcome;
    while ((outcome = receiver->receive(batch_)) == Outcome::done) take(batch_);
    return outcome;
  }

  void take(Batch& batch) {
    for (const std::span<const std::byte> row : batch.each_row()) sum_.add(read(row));
    batch.release();
    progress_.store(sum_.count, std::memory_order_relaxed);
  }

  void write(uint64_t n) noexcept {
    if (row_.size() == kOneWordBytes) {
      RowCodec<kOneWordBytes>::write(row_.data(), n);
    } else {
      EndsCodec::write(row_, n);
    }
  }
  uint64_t read(std::span<const std::byte> row) noexcept {
    return row.size() == kOneWordBytes ? RowCodec<kOneWordBytes>::read(row.data(), sum_.damage)
                                       : EndsCodec::read(row, sum_.damage);
  }

  const SendFirstJob job_;
  Worker& worker_;
  std::atomic<uint64_t>& progress_;
  const uint64_t rows_of_a_turn_;
  std::vector<std::byte> row_;
  Batch batch_;
  RowSum sum_;
  uint64_t next_ = 0;  // of this worker's rows, from 0 on
  uint32_t round_ = 0;
};

}  // namespace

Status SendFirstJob::validate() const {
  FARO_RETURN_IF_ERROR((TwoStageJob{process_count, workers_per_process, 0}.validate()));
  const bool is_known = row_bytes == kOneWordBytes || row_bytes >= 2 * kOneWordBytes;
  if (!is_known || row_bytes > kMostBytesOfRow) {
    return Status(Code::invalid_argument,
                  fmt::format("row bytes = {}: must be {}, or {} … {}", row_bytes, kOneWordBytes,
                              2 * kOneWordBytes, kMostBytesOfRow));
  }
  return Status::Ok();
}

Result<SendFirstRun> run_send_first(const SendFirstJob& job, const FaroOptions& faro) {
  FARO_RETURN_IF_ERROR(job.validate());
  RunOptions options;
  options.warmup_rounds = 2;
  options.timed_rounds = 2 * job.rounds;
  FARO_ASSIGN_OR_RETURN(
      FaroRun all,
      run_cluster({job.process_count,
                   job.workers_per_process,
                   {job.row_count(), job.row_count(), workload::totals_of(job.row_count())},
                   [&job](Session&, Worker& worker, std::atomic<uint64_t>& progress) {
                     return std::make_unique<SendFirstWorker>(job, worker, progress);
                   }},
                  faro, options));
  SendFirstRun run;
  for (size_t round = 0; round < all.rounds.size(); ++round)
    (round % 2 == 0 ? run.rounds_together : run.rounds_afterwards).push_back(all.rounds[round]);
  run.together = median_of(run.rounds_together);
  run.afterwards = median_of(run.rounds_afterwards);
  run.nodes = std::move(all.nodes);
  return run;
}

}  // namespace faro::bench
