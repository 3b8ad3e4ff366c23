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
constexpr uint64_t kRowsBetween = 512;
constexpr uint64_t kBytesBetween = 64 * 1024;

// The program that anyone writes first: each row is sent by a call that waits for room.
class SendFirstWorker final : public RoundWorker {
 public:
  SendFirstWorker(const SendFirstJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : job_(job),
        worker_(worker),
        progress_(progress),
        rows_between_(std::clamp<uint64_t>(kBytesBetween / job.row_bytes, 1, kRowsBetween)),
        row_(job.row_bytes) {}

  Status run(const QueryId& query) override {
    FARO_ASSIGN_OR_RETURN(Shuffle shuffle,
                          worker_.open_shuffle({query, 0, job_.row_bytes, {}, {}}));
    sum_ = {};
    const ReceiveWhen when = round_++ % 2 == 0 ? ReceiveWhen::between : ReceiveWhen::afterwards;
    if (send(shuffle, when) != Outcome::done) return shuffle.status();
    if (receive(shuffle, Wait::forever()) != Outcome::end_of_stream) return shuffle.status();
    shuffle.close();
    return end_query(worker_, query);
  }

  Totals totals() const override { return sum_.totals(); }

 private:
  Outcome send(Shuffle& shuffle, ReceiveWhen when) {
    const Result<ShuffleSender> sender = shuffle.sender();
    if (!sender) return Outcome::failed;
    const uint32_t receivers = sender->receiver_count();
    const uint64_t first = worker_.number() * job_.rows_per_worker();
    for (uint64_t i = 0; i < job_.rows_per_worker(); ++i) {
      write(first + i);
      const uint32_t to = workload::destination_of<FinalizerHash>(first + i, receivers);
      const Outcome outcome = sender->send(to, row_);
      if (outcome != Outcome::done) return outcome;
      if (when == ReceiveWhen::between && (i + 1) % rows_between_ == 0 &&
          receive(shuffle, Wait::none()) != Outcome::would_wait)
        return Outcome::failed;
    }
    return sender->finish();
  }

  /// All there is. Answers why there is no more.
  Outcome receive(Shuffle& shuffle, Wait wait) {
    const Result<ShuffleReceiver> receiver = shuffle.receiver();
    if (!receiver) return Outcome::failed;
    Outcome outcome;
    while ((outcome = receiver->receive(batch_, wait)) == Outcome::done) {
      for (const std::span<const std::byte> row : batch_.each_row()) sum_.add(read(row));
      batch_.release();
      progress_.store(sum_.count, std::memory_order_relaxed);
    }
    return outcome;
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
  const uint64_t rows_between_;
  std::vector<std::byte> row_;
  Batch batch_;
  RowSum sum_;
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
    (round % 2 == 0 ? run.rounds_between : run.rounds_afterwards).push_back(all.rounds[round]);
  run.between = median_of(run.rounds_between);
  run.afterwards = median_of(run.rounds_afterwards);
  run.nodes = std::move(all.nodes);
  return run;
}

}  // namespace faro::bench
