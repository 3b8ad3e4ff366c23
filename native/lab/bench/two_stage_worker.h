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

#include "faro/shuffle.h"
#include "lab/bench/row_loops.h"
#include "lab/bench/turn_worker.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

template <class Hash, uint32_t kRowBytes>
class TwoStageWorker final : public TurnWorker {
 public:
  TwoStageWorker(const TwoStageJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : TurnWorker(worker, progress), job_(job), generated_(kBlockRows), forwarded_(kBlockRows) {}

  WorkTotals totals() const override { return {sink_.count(), sink_.checksum()}; }

 private:
  using Loops = RowLoops<kRowBytes>;
  using Codec = RowCodec<kRowBytes>;

  struct Row {
    char bytes[kRowBytes];
  };

  /// Rows that are made and then sent, 16 KiB, to stay in the first cache; and those between two
  /// looks at what has arrived.
  static constexpr uint32_t kBlockRows = 16 * 1024 / kRowBytes;
  static constexpr uint32_t kTurnRows = 2048;
  /// Wide rows are made where they are sent from; narrow ones in batches of their own, by loops that
  /// make, hash and scatter several at a time.
  static constexpr bool kInPlace = kRowBytes >= 16;

  Status open(const QueryId& query) override {
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

  bool over() const override { return over_; }

  Status close() override {
    stage1_.close();
    stage2_.close();
    return status_;
  }

  bool turn() override {
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

  /// Rows of stage 1 to stage 2, until there are none or one finds no room; true if some were taken. A
  /// batch is given back before the worker waits for room: so nothing has to be spilled.
  bool forward() {
    bool moved = false;
    for (;;) {
      if (forward_begin_ == forward_end_) {
        if (ended1_) return moved;
        const Outcome outcome = stage1_.try_poll(batch_);
        if (outcome != Outcome::done) {
          ended1_ = outcome == Outcome::end_of_stream;
          if (outcome == Outcome::failed) fail(stage1_);
          return moved || ended1_;
        }
        const std::span<const Row> rows = batch_.rows<Row>();
        keep(rows.subspan(kInPlace ? send_transformed(rows) : 0));
        batch_.release();
        moved = true;
        if (forward_begin_ == forward_end_) continue;
      }
      Outcome outcome;
      const size_t taken = sender2_.try_send_all(
          std::span<const Row>(forwarded_.data() + forward_begin_, forward_end_ - forward_begin_),
          Hash{}, key_of, outcome);
      forward_begin_ += taken;
      moved |= taken > 0;
      if (outcome == Outcome::failed) fail(stage2_);
      if (forward_begin_ != forward_end_) return moved;
    }
  }

  /// From the batch to where they are sent from, the first rows, until one finds no room; how many.
  size_t send_transformed(std::span<const Row> rows) {
    uint64_t damage = 0;
    uint64_t n = 0;
    Outcome outcome;
    const size_t sent = sender2_.try_write_all(
        rows.size(), Hash{},
        [&](size_t i) { return n = transform(Codec::read(rows[i].bytes, damage)); },
        [&](size_t, std::byte* to) { Codec::write(to, n); }, outcome);
    sink_.add_damage(damage);
    if (outcome == Outcome::failed) fail(stage2_);
    return sent;
  }

  /// Transforms rows and keeps them until they find room.
  void keep(std::span<const Row> rows) {
    uint64_t damage = 0;
    if (rows.size() > forwarded_.size()) forwarded_.resize(rows.size());
    Loops::transform(rows.data(), rows.size(), forwarded_.data(), damage);
    sink_.add_damage(damage);
    forward_begin_ = 0;
    forward_end_ = rows.size();
  }

  /// Rows of the child to stage 1, until one finds no room; true if some were taken.
  bool generate() { return kInPlace ? generate_in_place() : generate_in_blocks(); }

  bool generate_in_place() {
    const uint64_t count = std::min<uint64_t>(kTurnRows, rest_.end - rest_.begin);
    uint64_t n = 0;
    Outcome outcome;
    const size_t sent = sender1_.try_write_all(
        count, Hash{}, [&](size_t i) { return n = rest_.begin + i; },
        [&](size_t, std::byte* to) { Codec::write(to, n); }, outcome);
    rest_.begin += sent;
    if (outcome == Outcome::failed) fail(stage1_);
    return sent > 0;
  }

  bool generate_in_blocks() {
    bool moved = false;
    for (uint32_t made = 0; made < kTurnRows; made += kBlockRows) {
      if (generated_begin_ == generated_end_) {
        const uint64_t count = std::min<uint64_t>(kBlockRows, rest_.end - rest_.begin);
        if (count == 0) break;
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
      moved |= taken > 0;
      if (outcome == Outcome::failed) fail(stage1_);
      if (generated_begin_ != generated_end_) break;
    }
    return moved;
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
