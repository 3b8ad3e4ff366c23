#include "lab/bench/receive.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <vector>

#include "base/return_if_error.h"
#include "lab/bench/one_stage_worker.h"

namespace faro::bench {
namespace {

constexpr uint32_t kLeastRowBytes = 8;
constexpr uint32_t kMostRowBytes = 4096;

template <uint32_t kRowBytes>
class ReceiveWorker final : public OneStageWorker {
 public:
  ReceiveWorker(const ReceiveJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : OneStageWorker(job.rows_per_worker, worker, progress),
        pattern_(job.pattern),
        block_(kBlockRows) {}

 private:
  using Codec = RowCodec<kRowBytes>;

  using Row = workload::IntegerRow<kRowBytes>;

  /// Rows that are made between two looks at what has arrived: 16 KiB.
  static constexpr uint32_t kBlockRows = std::max<uint32_t>(1, 16 * 1024 / kRowBytes);

  uint32_t row_bytes() const override { return kRowBytes; }

  Status begin() override {
    FARO_ASSIGN_OR_RETURN(sender_, shuffle().template sender<Row>());
    block_begin_ = block_end_ = 0;
    return Status::Ok();
  }

  RowSum check(const Batch& batch) override {
    const std::span<const Row> rows = batch.rows<Row>();
    return workload::sum_rows<kRowBytes>(rows.data(), rows.size());
  }

  bool produce(Outcome& outcome) override {
    if (block_begin_ == block_end_) make_block();
    const Sent sent = pattern_ == Pattern::broadcast ? sender_.broadcast_all(block(), Wait::none())
                                                     : repartition();
    block_begin_ += sent.rows;
    outcome = sent.outcome;
    return sent.rows > 0;
  }

  bool is_sent() const override { return block_begin_ == block_end_ && OneStageWorker::is_sent(); }

  void make_block() {
    const uint64_t count = std::min<uint64_t>(kBlockRows, rest().size());
    for (uint64_t i = 0; i < count; ++i) Codec::write(block_[i].bytes, rest().begin + i);
    rest().begin += count;
    block_begin_ = 0;
    block_end_ = count;
  }

  std::span<const Row> block() const {
    return {block_.data() + block_begin_, block_end_ - block_begin_};
  }

  Sent repartition() {
    return sender_.send_all(block(), FinalizerHash{}, Row::key_of, Wait::none());
  }

  const Pattern pattern_;
  RowSender<Row> sender_;
  std::vector<Row> block_;  // not yet sent: [block_begin_, block_end_)
  size_t block_begin_ = 0;
  size_t block_end_ = 0;
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
  const TwoStageJob shape{process_count, workers_per_process, 0};
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
  const uint64_t copies = job.copies();
  const Totals each = workload::totals_of(job.sent_count());
  return run_cluster(
      {job.process_count,
       job.workers_per_process,
       {job.sent_count(), job.received_count(), {each.count * copies, each.checksum * copies}},
       [&job](Session&, Worker& worker, std::atomic<uint64_t>& progress) {
         return make_worker(job, worker, progress);
       }},
      faro, options);
}

}  // namespace faro::bench
