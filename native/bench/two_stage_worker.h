// One worker of the two-stage job on Faro: the paper's polling process (§2.1, Fig. 2), written by
// hand over the public API.
//
//   stage 2 ──> sink                                      1. rows that have arrived, the later
//   stage stage 1 ──> n*3/2 ──> stage 2                            first: it makes room everywhere
//   generator ──> stage 1                                 2. rows of the child only if none came
//
// No step waits. A step that finds no room keeps its rows and is tried again; the worker waits (in
// one place, for anything at all) only if no step could move a row.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/round_worker.h"
#include "bench/row_loops.h"
#include "bench/two_stage_job.h"
#include "faro/shuffle.h"

namespace faro::bench {

template <class Hash, uint32_t kRowBytes>
class TwoStageWorker final : public RoundWorker {
 public:
  TwoStageWorker(const TwoStageJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : job_(job),
        worker_(worker),
        progress_(progress),
        generated_(kBlockRows),
        forwarded_(kBlockRows) {}

  Status run(const QueryId& query) override {
    FARO_RETURN_IF_ERROR(open(query));
    while (!over_) {
      // The condition is a turn of the loop: whatever a turn could do ends the wait.
      if (!turn() && worker_.wait_until([this] { return turn(); }) != Outcome::done) {
        return Status(Code::internal_error, "the worker could not wait");
      }
    }
    stage1_.close();
    stage2_.close();
    if (!status_.ok()) return status_;
    Status cause;
    const Outcome outcome = worker_.end_query(query, &cause);
    if (outcome == Outcome::done || !cause.ok()) return cause;
    return Status(Code::internal_error,
                  std::string("the end of the query answered ") + outcome_name(outcome));
  }

  WorkTotals totals() const override { return {sink_.count(), sink_.checksum()}; }

 private:
  using Loops = RowLoops<kRowBytes>;

  struct Row {
    char bytes[kRowBytes];
  };

  /// Rows handled between two looks at what has arrived: of 8 bytes, 16 KiB.
  static constexpr uint32_t kBlockRows = 2048;

  Status open(const QueryId& query) {
    ShuffleSpec spec;
    spec.query = query;
    spec.row_bytes = kRowBytes;
    for (uint32_t stage : {1, 2}) {
      spec.stage = stage;
      Result<Shuffle> shuffle = worker_.open_shuffle(spec);
      if (!shuffle) return shuffle.status();
      (stage == 1 ? stage1_ : stage2_) = std::move(shuffle).value();
    }
    Result<RowSender<Row>> sender1 = stage1_.sender<Row>();
    if (!sender1) return sender1.status();
    Result<RowSender<Row>> sender2 = stage2_.sender<Row>();
    if (!sender2) return sender2.status();
    sender1_ = sender1.value();
    sender2_ = sender2.value();
    sink_.reset();
    rest_ = job_.range_of(worker_.number());
    forward_begin_ = forward_end_ = 0;
    generated_begin_ = generated_end_ = 0;
    finished1_ = finished2_ = ended1_ = ended2_ = over_ = false;
    status_ = Status::Ok();
    return Status::Ok();
  }

  /// One turn of the loop; false if nothing could be done.
  bool turn() {
    bool moved = consume();
    moved |= forward();
    if (!moved) moved = generate();
    moved |= finish();
    progress_.store(sink_.count(), std::memory_order_relaxed);
    return moved || over_;
  }

  /// Rows of stage 2 into the sink, as many as are there.
  bool consume() {
    bool moved = false;
    while (!ended2_) {
      const Outcome outcome = stage2_.try_poll(batch_);
      if (outcome != Outcome::done) {
        ended2_ = outcome == Outcome::end_of_stream;
        if (outcome == Outcome::failed) fail(stage2_);
        return moved || ended2_;
      }
      uint64_t damage = 0;
      const std::span<const Row> rows = batch_.rows<Row>();
      sink_.consume_batch(rows.size(), Loops::sum_of_mix(rows.data(), rows.size(), damage));
      sink_.add_damage(damage);
      batch_.release();
      moved = true;
    }
    return moved;
  }

  /// A batch of stage 1 to stage 2. The batch is given back before its rows are sent: so the worker
  /// never holds one while there is no room, and nothing has to be set aside.
  bool forward() {
    bool moved = false;
    if (forward_begin_ == forward_end_) {
      if (ended1_) return false;
      const Outcome outcome = stage1_.try_poll(batch_);
      if (outcome != Outcome::done) {
        ended1_ = outcome == Outcome::end_of_stream;
        if (outcome == Outcome::failed) fail(stage1_);
        return ended1_;
      }
      uint64_t damage = 0;
      const std::span<const Row> rows = batch_.rows<Row>();
      if (rows.size() > forwarded_.size()) forwarded_.resize(rows.size());
      Loops::transform(rows.data(), rows.size(), forwarded_.data(), damage);
      sink_.add_damage(damage);
      forward_begin_ = 0;
      forward_end_ = rows.size();
      batch_.release();
      moved = true;
    }
    Outcome outcome;
    const size_t taken = sender2_.try_send_all(
        std::span<const Row>(forwarded_.data() + forward_begin_, forward_end_ - forward_begin_),
        Hash{}, key_of, outcome);
    forward_begin_ += taken;
    if (outcome == Outcome::failed) fail(stage2_);
    return moved || taken > 0;
  }

  /// A block of rows of the child to stage 1.
  bool generate() {
    if (generated_begin_ == generated_end_) {
      const uint64_t count = std::min<uint64_t>(kBlockRows, rest_.end - rest_.begin);
      if (count == 0) return false;
      Loops::generate(rest_.begin, count, generated_.data());
      rest_.begin += count;
      generated_begin_ = 0;
      generated_end_ = count;
    }
    Outcome outcome;
    const size_t taken =
        sender1_.try_send_all(std::span<const Row>(generated_.data() + generated_begin_,
                                                   generated_end_ - generated_begin_),
                              Hash{}, key_of, outcome);
    generated_begin_ += taken;
    if (outcome == Outcome::failed) fail(stage1_);
    return taken > 0;
  }

  bool finish() {
    bool moved = false;
    if (!finished1_ && rest_.begin == rest_.end && generated_begin_ == generated_end_)
      moved |= finish(stage1_, finished1_);
    if (!finished2_ && ended1_ && forward_begin_ == forward_end_) {
      moved |= finish(stage2_, finished2_);
    }
    if (finished2_ && ended2_) over_ = true;
    return moved;
  }
  bool finish(Shuffle& shuffle, bool& finished) {
    const Outcome outcome = shuffle.try_finish();
    if (outcome == Outcome::failed) fail(shuffle);
    return finished = outcome == Outcome::done;
  }

  void fail(const Shuffle& shuffle) {
    if (status_.ok()) status_ = shuffle.status();
    over_ = true;
  }

  static constexpr auto key_of = [](const Row& row) noexcept {
    uint64_t n;
    std::memcpy(&n, row.bytes, 8);
    return n;
  };

  const TwoStageJob job_;
  Worker& worker_;
  std::atomic<uint64_t>& progress_;

  Shuffle stage1_;
  Shuffle stage2_;
  RowSender<Row> sender1_;
  RowSender<Row> sender2_;
  Batch batch_;
  Sink sink_;
  IntegerRange rest_;           // still to be generated
  std::vector<Row> generated_;  // not yet sent: [generated_begin_, generated_end_)
  size_t generated_begin_ = 0;
  size_t generated_end_ = 0;
  std::vector<Row> forwarded_;  // transformed, not yet sent: [forward_begin_, forward_end_)
  size_t forward_begin_ = 0;
  size_t forward_end_ = 0;
  bool finished1_ = false;  // this worker has said that it sends no more
  bool finished2_ = false;
  bool ended1_ = false;  // nobody sends it any more
  bool ended2_ = false;
  bool over_ = false;
  Status status_;
};

}  // namespace faro::bench
