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
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/return_if_error.h"
#include "faro/shuffle.h"
#include "lab/bench/turn_worker.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// Where large rows are put together: memory that is used again. Threads: one.
template <uint32_t kRowBytes>
class RowMemory {
 public:
  std::byte* take() {
    if (free_.empty()) free_.push_back(all_.emplace_back(std::make_unique<Room>())->bytes);
    std::byte* const room = free_.back();
    free_.pop_back();
    return room;
  }
  /// `row`: also one that lies elsewhere.
  void give_back(const std::byte* row) {
    for (const std::unique_ptr<Room>& room : all_) {
      if (room->bytes == row) free_.push_back(room->bytes);
    }
  }

 private:
  struct Room {
    alignas(ShuffleReceiver::kRowAlignment) std::byte bytes[kRowBytes];
  };
  std::vector<std::unique_ptr<Room>> all_;
  std::vector<std::byte*> free_;
};

template <class Hash, uint32_t kRowBytes>
class TwoStageWorker final : public TurnWorker {
 public:
  TwoStageWorker(const TwoStageJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : TurnWorker(worker, progress), job_(job), generated_(kBlockRows), forwarded_(kBlockRows) {}

  Totals totals() const override { return sink_.totals(); }

 private:
  using Loops = workload::RowLoops<kRowBytes>;
  using Codec = RowCodec<kRowBytes>;

  using Row = workload::IntegerRow<kRowBytes>;

  /// One of the two shuffles, at this worker.
  struct Stage {
    Shuffle shuffle;
    RowSender<Row> sender;
    ShuffleReceiver receiver;
    bool finished = false;  // this worker has said that it sends no more
    bool ended = false;     // nobody sends it any more

    Status open(Worker& worker, const ShuffleSpec& spec) {
      FARO_ASSIGN_OR_RETURN(shuffle, worker.open_shuffle(spec));
      FARO_ASSIGN_OR_RETURN(sender, shuffle.template sender<Row>());
      FARO_ASSIGN_OR_RETURN(receiver, shuffle.receiver());
      finished = ended = false;
      return Status::Ok();
    }
  };

  /// Rows that are made and then sent, 16 KiB, to stay in the first cache; and those between two
  /// looks at what has arrived.
  static constexpr uint32_t kBlockRows = 16 * 1024 / kRowBytes;
  static constexpr uint32_t kTurnRows = 2048;
  /// Wide rows are made where they are sent from; narrow ones in batches of their own, by loops that
  /// make, hash and scatter several at a time.
  static constexpr bool kInPlace = kRowBytes >= 16;

  Status open(const QueryId& query) override {
    ShuffleSpec spec{query, 1, kRowBytes, {}, {}};
    spec.delivery = job_.delivery;
    FARO_RETURN_IF_ERROR(stage1_.open(worker_, spec));
    spec.stage = 2;
    FARO_RETURN_IF_ERROR(stage2_.open(worker_, spec));
    sink_ = {};
    rest_ = job_.range_of(worker_.number());
    forward_begin_ = forward_end_ = 0;
    generated_begin_ = generated_end_ = 0;
    over_ = false;
    status_ = Status::Ok();
    return Status::Ok();
  }

  bool over() const override { return over_; }

  Status close() override {
    stage1_.shuffle.close();
    stage2_.shuffle.close();
    return status_;
  }

  bool turn() override {
    bool moved = consume();
    moved |= forward();
    if (!moved) moved = generate();
    moved |= finish();
    progress_.store(sink_.count, std::memory_order_relaxed);
    return moved || over_;
  }

  /// Loops over several rows are compiled for each width of kRowWidths; of large ones a batch has one.
  static RowSum sum_of(std::span<const Row> rows) {
    if constexpr (is_large(kRowBytes)) {
      return workload::sum_rows<kRowBytes>(rows.data(), rows.size());
    } else {
      return Loops::sum(rows.data(), rows.size());
    }
  }

  /// Rows of stage 2 into the sink, as many as are there.
  bool consume() {
    bool moved = false;
    while (!stage2_.ended) {
      const Outcome outcome = receive(stage2_);
      if (outcome != Outcome::done) return moved || stage2_.ended;
      const std::span<const Row> rows = batch_.rows<Row>();
      sink_ += sum_of(rows);
      release();
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
        if (stage1_.ended) return moved;
        const Outcome outcome = receive(stage1_);
        if (outcome != Outcome::done) return moved || stage1_.ended;
        const std::span<const Row> rows = batch_.rows<Row>();
        keep(rows.subspan(kInPlace ? send_transformed(rows) : 0));
        release();
        moved = true;
        if (forward_begin_ == forward_end_) continue;
      }
      const size_t taken = told(
          stage2_, stage2_.sender.send_all(std::span<const Row>(forwarded_.data() + forward_begin_,
                                                                forward_end_ - forward_begin_),
                                           Hash{}, Row::key_of, Wait::none()));
      forward_begin_ += taken;
      moved |= taken > 0;
      if (forward_begin_ != forward_end_) return moved;
    }
  }

  /// From the batch to where they are sent from, the first rows, until one finds no room; how many.
  size_t send_transformed(std::span<const Row> rows) {
    uint64_t damage = 0;
    uint64_t n = 0;
    const Sent sent = stage2_.sender.write_all(
        rows.size(), Hash{},
        [&](size_t i) { return n = transform(Codec::read(rows[i].bytes, damage)); },
        [&](size_t, std::byte* to) { Codec::write(to, n); }, Wait::none());
    sink_.damage |= damage;
    return told(stage2_, sent);
  }

  /// Transforms rows and keeps them until they find room.
  void keep(std::span<const Row> rows) {
    uint64_t damage = 0;
    if (rows.size() > forwarded_.size()) forwarded_.resize(rows.size());
    if constexpr (is_large(kRowBytes)) {
      for (size_t i = 0; i < rows.size(); ++i)
        Codec::write(forwarded_[i].bytes, transform(Codec::read(rows[i].bytes, damage)));
    } else {
      Loops::transform(rows.data(), rows.size(), forwarded_.data(), damage);
    }
    sink_.damage |= damage;
    forward_begin_ = 0;
    forward_end_ = rows.size();
  }

  /// Rows of the child to stage 1, until one finds no room; true if some were taken.
  bool generate() {
    if constexpr (kInPlace) {
      return generate_in_place();
    } else {
      return generate_in_blocks();
    }
  }

  bool generate_in_place() {
    const uint64_t count = std::min<uint64_t>(kTurnRows, rest_.size());
    uint64_t n = 0;
    const size_t sent =
        told(stage1_, stage1_.sender.write_all(
                          count, Hash{}, [&](size_t i) { return n = rest_.begin + i; },
                          [&](size_t, std::byte* to) { Codec::write(to, n); }, Wait::none()));
    rest_.begin += sent;
    return sent > 0;
  }

  bool generate_in_blocks() {
    bool moved = false;
    for (uint32_t made = 0; made < kTurnRows; made += kBlockRows) {
      if (generated_begin_ == generated_end_) {
        const uint64_t count = std::min<uint64_t>(kBlockRows, rest_.size());
        if (count == 0) break;
        Loops::generate(rest_.begin, count, generated_.data());
        rest_.begin += count;
        generated_begin_ = 0;
        generated_end_ = count;
      }
      const size_t taken =
          told(stage1_,
               stage1_.sender.send_all(std::span<const Row>(generated_.data() + generated_begin_,
                                                            generated_end_ - generated_begin_),
                                       Hash{}, Row::key_of, Wait::none()));
      generated_begin_ += taken;
      moved |= taken > 0;
      if (generated_begin_ != generated_end_) break;
    }
    return moved;
  }

  bool finish() {
    bool moved = false;
    if (!stage1_.finished && rest_.empty() && generated_begin_ == generated_end_)
      moved |= finish(stage1_);
    if (!stage2_.finished && stage1_.ended && forward_begin_ == forward_end_) {
      moved |= finish(stage2_);
    }
    if (stage2_.finished && stage2_.ended) over_ = true;
    return moved;
  }
  bool finish(Stage& stage) {
    const Outcome outcome = stage.sender.finish(Wait::none());
    if (outcome == Outcome::failed) fail(stage);
    return stage.finished = outcome == Outcome::done;
  }

  Outcome receive(Stage& stage) {
    const Outcome outcome = is_large(kRowBytes)
                                ? stage.receiver.receive_into(batch_, take_memory_, Wait::none())
                                : stage.receiver.receive(batch_, Wait::none());
    stage.ended = outcome == Outcome::end_of_stream;
    if (outcome == Outcome::failed) fail(stage);
    return outcome;
  }

  void release() {
    const std::byte* const rows = batch_.bytes().data();
    batch_.release();
    if constexpr (is_large(kRowBytes)) memory_.give_back(rows);
  }

  /// How many rows were sent.
  size_t told(const Stage& stage, Sent sent) {
    if (sent.outcome == Outcome::failed) fail(stage);
    return sent.rows;
  }

  void fail(const Stage& stage) {
    if (status_.ok()) status_ = stage.shuffle.status();
    over_ = true;
  }

  const TwoStageJob job_;

  Stage stage1_;
  Stage stage2_;
  RowMemory<kRowBytes> memory_;
  const ShuffleReceiver::Allocate take_memory_ = [this](size_t, size_t& room) {
    room = kRowBytes;
    return memory_.take();
  };
  Batch batch_;
  RowSum sink_;
  IntegerRange rest_;           // still to be generated
  std::vector<Row> generated_;  // not yet sent: [generated_begin_, generated_end_)
  size_t generated_begin_ = 0;
  size_t generated_end_ = 0;
  std::vector<Row> forwarded_;  // transformed, not yet sent: [forward_begin_, forward_end_)
  size_t forward_begin_ = 0;
  size_t forward_end_ = 0;
  bool over_ = false;
  Status status_;
};

}  // namespace faro::bench
