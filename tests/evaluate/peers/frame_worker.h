// One worker of the two-stage job over a carrier of frames: the same plan, order of polling, loops, hash
// and scatter as Faro's own (native/lab/bench/two_stage_worker.h), so that what is compared is the carrying.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "faro/hash.h"
#include "faro/shuffle.h"
#include "frame_carrier.h"
#include "frame_queue.h"
#include "lab/bench/two_stage_job.h"
#include "lab/workload/row_loops.h"
#include "shuffle/kernels/kernels.h"

namespace faro::evaluate {

/// Rows of 8 bytes, hash finalizer. What a worker sends to itself stays in its own memory, without
/// the carrier, as with Faro.
/// Threads: one.
class FrameWorker {
 public:
  /// `carrier` outlives it.
  FrameWorker(const bench::TwoStageJob& job, uint32_t worker, FrameCarrier& carrier)
      : job_(job),
        self_(worker),
        worker_count_(job.worker_count()),
        carrier_(carrier),
        kernels_(shuffle::send_kernels("auto", sizeof(uint64_t), worker_count_)) {
    for (Outgoing& out : outgoing_) out.resize(worker_count_);
  }

  /// Begins a round. All workers must be in the same one.
  void begin() {
    rest_ = job_.range_of(self_);
    sink_ = {};
    generated_.clear();
    forwarded_.clear();
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      ends_sent_[stage] = ends_seen_[stage] = 0;
    }
  }

  /// All its rows are sent and consumed.
  bool over() const noexcept { return ends_sent_[1] == worker_count_ && ended(1); }

  /// Does what can be done without waiting; false if that was nothing.
  bool turn() {
    bool moved = consume();
    moved |= forward();
    if (!moved) moved = generate();
    if (rest_.empty() && generated_.empty()) moved |= finish(0);
    if (ended(0) && forwarded_.empty()) moved |= finish(1);
    return moved;
  }

  workload::Totals totals() const noexcept { return sink_.totals(); }

 private:
  using Loops = workload::RowLoops<sizeof(uint64_t)>;

  static constexpr size_t kBlockRows = 2048;

  /// Open frames of one stage, by receiver.
  struct Outgoing {
    std::vector<detail::FrameCursor> cursors;
    std::vector<std::byte*> begins;

    void resize(size_t receivers) {
      cursors.resize(receivers);
      begins.resize(receivers);
    }
  };

  /// Rows that are not sent yet.
  struct Rows {
    std::vector<uint64_t> memory = std::vector<uint64_t>(kBlockRows);
    size_t begin = 0;
    size_t end = 0;

    bool empty() const noexcept { return begin == end; }
    void clear() noexcept { begin = end = 0; }
    uint64_t* fill(size_t count) noexcept {
      begin = 0;
      end = count;
      return memory.data();
    }
  };

  bool ended(uint32_t stage) const noexcept { return ends_seen_[stage] == worker_count_; }

  bool consume() {
    return take(1, [this](std::span<const std::byte> rows) {
      sink_ += Loops::sum(rows.data(), rows.size() / sizeof(uint64_t));
    });
  }

  bool forward() {
    bool moved = false;
    if (forwarded_.empty()) {
      moved = take(0, [this](std::span<const std::byte> rows) {
        uint64_t damage = 0;
        const size_t count = rows.size() / sizeof(uint64_t);
        Loops::transform(rows.data(), count, forwarded_.fill(count), damage);
      });
    }
    return send(1, forwarded_) || moved;
  }

  bool generate() {
    if (generated_.empty()) {
      const size_t count = std::min<uint64_t>(kBlockRows, rest_.size());
      Loops::generate(rest_.begin, count, generated_.fill(count));
      rest_.begin += count;
    }
    return send(0, generated_);
  }

  /// Hands the rows of the next frame to `use`; false if there is none.
  template <typename Use>
  bool take(uint32_t stage, const Use& use) {
    const FrameCarrier::Arrived own = own_[stage].front();
    const FrameCarrier::Arrived frame = own.any ? own : carrier_.try_receive(stage);
    if (!frame.any) return false;
    if (frame.rows.empty()) {
      ++ends_seen_[stage];
    } else {
      use(frame.rows);
    }
    own.any ? own_[stage].pop() : carrier_.release(stage);
    return true;
  }

  /// As many rows as there is room for; false if that is none.
  bool send(uint32_t stage, Rows& rows) {
    const size_t sent = detail::scatter_rows(
        kernels_.of(FinalizerHash{}),
        std::span<const uint64_t>(rows.memory.data() + rows.begin, rows.end - rows.begin),
        FinalizerHash{}, [](uint64_t n) noexcept { return n; }, worker_count_,
        outgoing_[stage].cursors.data(),
        [&](uint32_t to, uint64_t n) noexcept {
          return renew(stage, to) && detail::put_row(outgoing_[stage].cursors[to], n);
        });
    rows.begin += sent;
    return sent > 0;
  }

  /// Sends the full frame, if there is one, and opens the next; false while it cannot.
  bool renew(uint32_t stage, uint32_t to) {
    if (!send_open(stage, to)) return false;
    std::byte* const memory = open(stage, to);
    if (memory == nullptr) return false;
    outgoing_[stage].begins[to] = memory;
    outgoing_[stage].cursors[to] = {memory, memory + kFrameBytes};
    return true;
  }

  /// Nothing is left to be sent in the open frame; false while it cannot be sent.
  bool send_open(uint32_t stage, uint32_t to) {
    detail::FrameCursor& cursor = outgoing_[stage].cursors[to];
    const size_t bytes = static_cast<size_t>(cursor.at - outgoing_[stage].begins[to]);
    if (bytes > 0 && !push(stage, to, bytes)) return false;
    outgoing_[stage].begins[to] = nullptr;
    cursor = {};
    return true;
  }

  /// Tells one receiver after the other that there are no more rows.
  bool finish(uint32_t stage) {
    uint32_t& to = ends_sent_[stage];
    const uint32_t before = to;
    while (to < worker_count_ && send_open(stage, to) && open(stage, to) != nullptr &&
           push(stage, to, 0))
      ++to;
    return to > before;
  }

  std::byte* open(uint32_t stage, uint32_t to) {
    return to == self_ ? own_[stage].try_open() : carrier_.try_open(stage, to);
  }
  bool push(uint32_t stage, uint32_t to, size_t bytes) {
    if (to != self_) return carrier_.try_send(stage, to, bytes);
    own_[stage].push(bytes);
    return true;
  }

  const bench::TwoStageJob job_;
  const uint32_t self_;
  const uint32_t worker_count_;
  FrameCarrier& carrier_;
  const detail::SendKernels kernels_;

  Outgoing outgoing_[kStages];
  FrameQueue own_[kStages];
  Rows generated_;
  Rows forwarded_;
  workload::IntegerRange rest_;  // still to be generated
  workload::RowSum sink_;
  uint32_t ends_sent_[kStages] = {};  // the next worker to be told
  uint32_t ends_seen_[kStages] = {};
};

}  // namespace faro::evaluate
