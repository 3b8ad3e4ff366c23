#include "lab/bench/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "base/return_if_error.h"
#include "faro/shuffle.h"
#include "lab/bench/node_life.h"
#include "lab/bench/two_stage_job.h"
#include "wire/frame.h"

namespace faro::bench {
namespace {

using workload::EndsCodec;

constexpr uint32_t kSender = 0;  // worker numbers
constexpr uint32_t kReceiver = 1;
constexpr uint64_t kFramesInRing = 16;
constexpr uint64_t kFramesInLeastRing = 4;  // a frame takes a quarter of a ring at most

Status ended(Outcome outcome, const Shuffle& shuffle) {
  if (outcome == Outcome::failed) return shuffle.status();
  return {Code::internal_error, fmt::format("the lane answered {}", outcome_name(outcome))};
}

/// Numbers the rows 0, 1, 2 … at one end and checks them at the other.
class LinkWorker final : public RoundWorker {
 public:
  LinkWorker(const LinkJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : job_(job), worker_(worker), progress_(progress) {}

  Status run(const QueryId& query) override {
    FARO_ASSIGN_OR_RETURN(
        Shuffle shuffle,
        worker_.open_shuffle({query, 0, job_.row_bytes(), {kSender}, {kReceiver}}));
    sum_ = {};
    FARO_RETURN_IF_ERROR(worker_.number() == kSender ? send(shuffle) : receive(shuffle));
    shuffle.close();
    return end_query(worker_, query);
  }

  Totals totals() const override { return sum_.totals(); }

 private:
  Status send(Shuffle& shuffle) {
    FARO_ASSIGN_OR_RETURN(const ShuffleSender sender, shuffle.sender());
    for (uint64_t number = 0; number < job_.frame_count; ++number) {
      RowClaim claim;
      const Outcome outcome = sender.claim(0, job_.row_bytes(), claim);
      if (outcome != Outcome::done) return ended(outcome, shuffle);
      EndsCodec::write(claim.data(), number);
      FARO_RETURN_IF_ERROR(claim.commit());
    }
    const Outcome outcome = sender.finish();
    return outcome == Outcome::done ? Status() : ended(outcome, shuffle);
  }

  Status receive(Shuffle& shuffle) {
    FARO_ASSIGN_OR_RETURN(const ShuffleReceiver receiver, shuffle.receiver());
    Batch batch;
    Outcome outcome;
    while ((outcome = receiver.receive(batch)) == Outcome::done) {
      for (const std::span<const std::byte> row : batch.each_row()) {
        const uint64_t number = EndsCodec::read(row, sum_.damage);
        sum_.damage |= number ^ sum_.count;  // in order
        sum_.add(number);
      }
      progress_.store(sum_.count, std::memory_order_relaxed);
    }
    return outcome == Outcome::end_of_stream ? Status() : ended(outcome, shuffle);
  }

  const LinkJob job_;
  Worker& worker_;
  std::atomic<uint64_t>& progress_;
  RowSum sum_;
};

}  // namespace

Status LinkJob::validate() const {
  constexpr uint32_t kLeast = 64;
  constexpr uint32_t kMost = 64 << 20;  // a quarter of the largest ring
  if (frame_bytes < kLeast || frame_bytes > kMost || frame_bytes % wire::kFrameAlignment != 0) {
    return {Code::invalid_argument,
            fmt::format("frames of {} bytes: a multiple of {} from {} to {} is needed", frame_bytes,
                        wire::kFrameAlignment, kLeast, kMost)};
  }
  if (frame_count == 0) return {Code::invalid_argument, "no frames"};
  return {};
}

uint32_t LinkJob::row_bytes() const noexcept {
  return frame_bytes - static_cast<uint32_t>(sizeof(wire::FrameHeader));
}

Result<Config> link_config(const LinkJob& job, const Config& config) {
  Config tuned = config;
  if (tuned.source("ring.bytes") == "default") {
    const uint64_t wanted = std::bit_ceil(kFramesInRing * job.frame_bytes);
    FARO_RETURN_IF_ERROR(tuned.set(
        "ring.bytes", std::clamp<uint64_t>(wanted, tuned.get_number("ring.bytes"), 256 << 20)));
  }
  if (tuned.get_number("ring.bytes") < kFramesInLeastRing * job.frame_bytes) {
    return Status(Code::config_invalid,
                  fmt::format("frames of {} bytes need a ring.bytes of at least {}, but it is {}",
                              job.frame_bytes, kFramesInLeastRing * job.frame_bytes,
                              tuned.get_number("ring.bytes")));
  }
  if (tuned.source("transfer.threshold_bytes").starts_with("default"))
    FARO_RETURN_IF_ERROR(tuned.set("transfer.threshold_bytes", uint64_t{job.frame_bytes}));
  return tuned;
}

ClusterJob link_job(const LinkJob& job) {
  // Rows are frames.
  return {LinkJob::kProcesses,
          1,
          {job.frame_count, job.frame_count, workload::totals_of(job.frame_count)},
          [job](Session&, Worker& worker, std::atomic<uint64_t>& progress) {
            return std::make_unique<LinkWorker>(job, worker, progress);
          }};
}

Result<FaroRun> run_link(const LinkJob& job, const FaroOptions& faro, const RunOptions& options) {
  FARO_RETURN_IF_ERROR(job.validate());
  FaroOptions tuned = faro;
  FARO_ASSIGN_OR_RETURN(tuned.config, link_config(job, faro.config));
  return run_cluster(link_job(job), tuned, options);
}

}  // namespace faro::bench
