#include "lab/bench/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/return_if_error.h"
#include "faro/shuffle.h"
#include "lab/bench/node_life.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {
namespace {

using Row = workload::IntegerRow<PipelineJob::kRowBytes>;
using Codec = workload::RowCodec<PipelineJob::kRowBytes>;

constexpr uint32_t kSource = 0;  // worker numbers
constexpr uint32_t kMiddle = 1;
constexpr uint32_t kSink = 2;

// Stages of the query. The first two share no ring, and the second query has stage 1: it shares none with the first stage.
constexpr uint32_t kFirst = 0;
constexpr uint32_t kSecond = 1;
constexpr uint32_t kPlan = 2;  // a row that names the second query

constexpr uint64_t kBlockRows = 4096;  // that are made at once

/// Takes the rows of each batch until there are no more.
template <typename Take>
Outcome receive_all(const ShuffleReceiver& receiver, const Take& take) {
  Batch batch;
  Outcome outcome;
  while ((outcome = receiver.receive(batch)) == Outcome::done) {
    const Outcome taken = take(batch);
    if (taken != Outcome::done) return taken;
  }
  return outcome == Outcome::end_of_stream ? Outcome::done : outcome;
}

class PipelineWorker final : public RoundWorker {
 public:
  PipelineWorker(const PipelineJob& job, Session& session, Worker& worker,
                 std::atomic<uint64_t>& progress)
      : job_(job), session_(session), worker_(worker), progress_(progress) {}

  Status run(const QueryId& query) override {
    sum_ = {};
    Shuffle second;
    if (!job_.unpolled) {
      FARO_RETURN_IF_ERROR(run_stages(query, second));
      return end_query(worker_, query);
    }
    QueryId unpolled;
    FARO_RETURN_IF_ERROR(name_unpolled(query, unpolled));
    FARO_ASSIGN_OR_RETURN(second,
                          worker_.open_shuffle({unpolled, 1, sizeof(Row), {kSource}, {kMiddle}}));
    FARO_RETURN_IF_ERROR(run_stages(query, second));
    FARO_RETURN_IF_ERROR(end_query(worker_, query));
    FARO_RETURN_IF_ERROR(run_unpolled(second));
    return end_query(worker_, unpolled);
  }

  Totals totals() const override { return sum_.totals(); }

 private:
  Status run_stages(const QueryId& query, Shuffle& second) {
    FARO_ASSIGN_OR_RETURN(Shuffle first,
                          worker_.open_shuffle({query, kFirst, sizeof(Row), {kSource}, {kMiddle}}));
    FARO_ASSIGN_OR_RETURN(Shuffle last,
                          worker_.open_shuffle({query, kSecond, sizeof(Row), {kMiddle}, {kSink}}));
    switch (worker_.number()) {
      case kSource:
        if (make_rows(first, second) != Outcome::done) return first.status();
        break;
      case kMiddle:
        if (send_on(first, last) != Outcome::done)
          return first.status().ok() ? last.status() : first.status();
        break;
      case kSink:
        if (consume(last) != Outcome::done) return last.status();
        break;
    }
    return Status::Ok();
  }

  Outcome make_rows(Shuffle& first, Shuffle& second) {
    const auto sender = first.sender<Row>();
    std::vector<Row> block;
    unpolled_sent_ = 0;
    for (uint64_t at = 0; at < job_.rows; at += block.size()) {
      block.resize(std::min(kBlockRows, job_.rows - at));
      for (size_t i = 0; i < block.size(); ++i) Codec::write(block[i].bytes, at + i);
      if (job_.unpolled && send_unpolled(second, Wait::none()) == Outcome::failed)
        return Outcome::failed;
      const Outcome outcome = send_block(*sender, block);
      if (outcome != Outcome::done) return outcome;
    }
    return sender->finish();
  }

  static Outcome send_block(const RowSender<Row>& sender, std::span<const Row> block) {
    return sender.send_all(block, FinalizerHash{}, Row::key_of).outcome;
  }

  /// What is received is copied first: whoever waits holds no batch.
  Outcome send_on(Shuffle& first, Shuffle& last) {
    const auto sender = last.sender<Row>();
    std::vector<Row> rows;
    const Outcome outcome = receive_all(*first.receiver(), [&](Batch& batch) {
      const std::span<const Row> received = batch.rows<Row>();
      rows.assign(received.begin(), received.end());
      batch.release();
      return send_block(*sender, rows);
    });
    return outcome == Outcome::done ? sender->finish() : outcome;
  }

  Outcome consume(Shuffle& last) {
    return receive_all(*last.receiver(), [&](Batch& batch) {
      take(batch);
      std::this_thread::sleep_for(std::chrono::nanoseconds(job_.ns_per_row * batch.row_count()));
      return Outcome::done;
    });
  }

  void take(const Batch& batch) {
    for (const Row& row : batch.rows<Row>()) sum_.add(Codec::read(row.bytes, sum_.damage));
    progress_.store(sum_.count, std::memory_order_relaxed);
  }

  // --- the second query

  /// Node 0 begins it, and tells the others.
  Status name_unpolled(const QueryId& query, QueryId& unpolled) {
    FARO_ASSIGN_OR_RETURN(
        Shuffle plan,
        worker_.open_shuffle({query, kPlan, sizeof unpolled, {kSource}, {kMiddle, kSink}}));
    Outcome outcome = Outcome::done;
    if (worker_.number() == kSource) {
      unpolled = session_.begin_query();
      outcome = plan.sender()->broadcast(std::as_bytes(std::span(&unpolled, 1)));
      if (outcome == Outcome::done) outcome = plan.sender()->finish();
    } else {
      outcome = receive_all(*plan.receiver(), [&](Batch& batch) {
        std::memcpy(&unpolled, batch.bytes().data(), sizeof unpolled);
        return Outcome::done;
      });
    }
    return outcome == Outcome::done ? Status::Ok() : plan.status();
  }

  Outcome send_unpolled(Shuffle& second, Wait wait) {
    const auto sender = second.sender<Row>();
    Outcome outcome = Outcome::done;
    while (unpolled_sent_ < PipelineJob::kUnpolledRows && outcome == Outcome::done) {
      Row row;
      Codec::write(row.bytes, unpolled_sent_);
      outcome = sender->send(0, row, wait);
      if (outcome == Outcome::done) ++unpolled_sent_;
    }
    return outcome;
  }

  Status run_unpolled(Shuffle& second) {
    Outcome outcome = Outcome::done;
    if (worker_.number() == kSource) {
      outcome = send_unpolled(second, Wait::forever());
      if (outcome == Outcome::done) outcome = second.sender()->finish();
    } else if (worker_.number() == kMiddle) {
      outcome = receive_all(*second.receiver(), [&](Batch& batch) {
        take(batch);
        return Outcome::done;
      });
    }
    const Status status = outcome == Outcome::done ? Status::Ok() : second.status();
    second.close();
    return status;
  }

  const PipelineJob job_;
  Session& session_;
  Worker& worker_;
  std::atomic<uint64_t>& progress_;
  uint64_t unpolled_sent_ = 0;
  RowSum sum_;
};

}  // namespace

uint64_t rows_spilled(const std::vector<NodeReport>& nodes) noexcept {
  uint64_t bytes = 0;
  for (const NodeReport& node : nodes) {
    for (const WorkerMetrics& worker : node.metrics.workers) bytes += worker.bytes_spilled;
  }
  return bytes / PipelineJob::kRowBytes;
}

Result<FaroRun> run_pipeline(const PipelineJob& job, const FaroOptions& faro, uint32_t rounds) {
  RunOptions options;
  options.warmup_rounds = 0;
  options.timed_rounds = rounds;
  options.time_limit_ns += rounds * job.rows * job.ns_per_row * 4;
  Totals expected = workload::totals_of(job.rows);
  if (job.unpolled) expected += workload::totals_of(PipelineJob::kUnpolledRows);
  return run_cluster({PipelineJob::kProcesses,
                      1,
                      {job.rows, job.hop_count(), expected},
                      [&job](Session& session, Worker& worker, std::atomic<uint64_t>& progress) {
                        return std::make_unique<PipelineWorker>(job, session, worker, progress);
                      }},
                     faro, options);
}

}  // namespace faro::bench
