#include "lab/bench/plain_loop.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/return_if_error.h"
#include "lab/bench/process_group.h"
#include "ring/doorbell.h"

namespace faro::bench {
namespace {

constexpr uint32_t kFrames = 4;  // of a ring
constexpr uint32_t kStages = 2;
constexpr uint32_t kYieldsBeforeSleep = 20;
constexpr uint64_t kGenerateRows = 2048;  // between two looks at what has arrived
constexpr uint64_t kLongestSleepNs = 1'000'000'000;

/// In front of its rows.
struct FrameHeader {
  uint32_t row_count;
  uint32_t is_last;  // its sender sends no more in this stage
  uint64_t unused;
};

/// Frames from one worker to another in one stage. Its size is no power of two, so that the places where
/// rows go next do not fight for the same cache sets.
///
/// Who writes what: `written` and the frames up to it belong to the sender until it stores `written`
/// (seq_cst, also release), then to the receiver until it stores `read`. seq_cst because both look for
/// a sleeper afterwards (ring/doorbell.h).
template <uint32_t kFrameBytes>
struct Ring {
  alignas(64) std::atomic<uint32_t> written;  // frames ever written
  alignas(64) std::atomic<uint32_t> read;     // frames ever read
  alignas(64) char frames[kFrames][kFrameBytes];
};

/// A frame has room for one row at least.
constexpr uint32_t frame_bytes(uint32_t row_bytes) {
  return std::max<uint32_t>(8 * 1024, row_bytes + sizeof(FrameHeader));
}

/// All that the workers share, in zeroed memory.
template <uint32_t kRowBytes>
class SharedRings {
 public:
  using Ring = bench::Ring<frame_bytes(kRowBytes)>;

  SharedRings(void* memory, uint32_t worker_count)
      : worker_count_(worker_count),
        bells_(static_cast<ring::DoorbellLine*>(memory)),
        rings_(reinterpret_cast<Ring*>(bells_ + worker_count)) {}

  static size_t bytes(uint32_t worker_count) {
    return worker_count * sizeof(ring::DoorbellLine) +
           size_t{kStages} * worker_count * worker_count * sizeof(Ring);
  }

  ring::DoorbellLine& bell(uint32_t worker) const { return bells_[worker]; }
  /// `stage`: 0 or 1. What a worker reads lies together.
  Ring& ring(uint32_t stage, uint32_t from, uint32_t to) const {
    return rings_[(size_t{to} * kStages + stage) * worker_count_ + from];
  }

 private:
  uint32_t worker_count_;
  ring::DoorbellLine* bells_;
  Ring* rings_;
};

/// Threads: one.
template <class Hash, uint32_t kRowBytes>
class PlainWorker {
 public:
  PlainWorker(const TwoStageJob& job, const SharedRings<kRowBytes>& shared, uint32_t worker,
              std::atomic<uint64_t>& progress)
      : job_(job),
        shared_(shared),
        self_(worker),
        count_(job.worker_count()),
        progress_(progress),
        bell_(&shared.bell(worker)) {
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      cursors_[stage].resize(count_);
      for (uint32_t other = 0; other < count_; ++other) {
        outgoing_[stage].push_back({&shared_.ring(stage, self_, other), &shared_.bell(other)});
        incoming_[stage].push_back({&shared_.ring(stage, other, self_), &shared_.bell(other)});
      }
    }
  }

  Status run_round() {
    sink_ = {};
    rest_ = job_.range_of(self_);
    for (uint32_t stage = 0; stage < kStages; ++stage) ended_[stage] = told_[stage] = 0;
    uint32_t idle_turns = 0;
    while (told_[1] < count_ || ended_[1] < count_) {
      if (turn()) {
        idle_turns = 0;
      } else if (idle_turns < kYieldsBeforeSleep) {
        ++idle_turns;
        sched_yield();
      } else {
        bell_.arm();
        if (turn()) {
          bell_.disarm();
        } else {
          bell_.sleep(kLongestSleepNs);
        }
      }
    }
    return Status::Ok();
  }

  Totals totals() const { return sink_.totals(); }

 private:
  using Ring = typename SharedRings<kRowBytes>::Ring;
  static constexpr uint32_t kFrameRows = (frame_bytes(kRowBytes) - sizeof(FrameHeader)) / kRowBytes;
  using Codec = RowCodec<kRowBytes>;

  /// Where the next row goes; at == end: no open frame, or it is full.
  struct Cursor {
    char* at = nullptr;
    char* end = nullptr;
  };
  struct Outgoing {
    Ring* ring = nullptr;
    ring::DoorbellLine* bell = nullptr;
    char* frame = nullptr;  // that is open
    uint32_t written = 0;
  };
  struct Incoming {
    Ring* ring = nullptr;
    ring::DoorbellLine* bell = nullptr;
    uint32_t read = 0;
    uint32_t row = 0;  // of the first frame, where it was left
  };

  bool turn() {
    bool moved = consume();
    moved |= forward();
    if (!moved) moved = generate();
    moved |= rest_.empty() && tell_end(0);
    moved |= ended_[0] == count_ && tell_end(1);
    progress_.store(sink_.count, std::memory_order_relaxed);
    return moved;
  }

  /// Makes and sends the rows of value(0), value(1), …, until one finds no room; returns how many.
  template <class Value>
  size_t scatter(uint32_t stage, size_t count, const Value& value) {
    Cursor* const cursors = cursors_[stage].data();
    const uint32_t receivers = count_;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t n = value(i);
      const uint32_t to = destination_of<Hash>(n, receivers);
      Cursor& cursor = cursors[to];
      if (cursor.at == cursor.end) [[unlikely]] {
        if (!next_frame(stage, to)) return i;
      }
      char* const at = cursor.at;
      cursor.at = at + kRowBytes;
      Codec::write(at, n);
    }
    return count;
  }

  /// Publishes the open frame, if any, and opens the next; false if there is no room.
  [[gnu::noinline]] bool next_frame(uint32_t stage, uint32_t to) {
    Outgoing& outgoing = outgoing_[stage][to];
    if (outgoing.frame != nullptr) publish(stage, to, false);
    if (outgoing.written - outgoing.ring->read.load(std::memory_order_acquire) == kFrames)
      return false;
    outgoing.frame = outgoing.ring->frames[outgoing.written % kFrames];
    char* const rows = outgoing.frame + sizeof(FrameHeader);
    cursors_[stage][to] = {rows, rows + kFrameRows * kRowBytes};
    return true;
  }

  void publish(uint32_t stage, uint32_t to, bool is_last) {
    Outgoing& outgoing = outgoing_[stage][to];
    Cursor& cursor = cursors_[stage][to];
    const auto bytes = static_cast<uint32_t>(cursor.at - outgoing.frame - sizeof(FrameHeader));
    const FrameHeader header{bytes / kRowBytes, is_last, 0};
    std::memcpy(outgoing.frame, &header, sizeof header);
    outgoing.frame = nullptr;
    cursor = {};
    outgoing.ring->written.store(++outgoing.written, std::memory_order_seq_cst);
    ring_doorbell(*outgoing.bell);
  }

  /// Calls handle(rows, count) for what has arrived; it returns how many it took. True if any.
  template <class Handle>
  bool receive(uint32_t stage, const Handle& handle) {
    bool moved = false;
    for (Incoming& incoming : incoming_[stage]) {
      // seq_cst for the look between arm and sleep.
      while (incoming.read != incoming.ring->written.load(std::memory_order_seq_cst)) {
        const char* const frame = incoming.ring->frames[incoming.read % kFrames];
        FrameHeader header;
        std::memcpy(&header, frame, sizeof header);
        const char* const rows = frame + sizeof header + size_t{incoming.row} * kRowBytes;
        const auto taken = static_cast<uint32_t>(handle(rows, header.row_count - incoming.row));
        moved |= taken > 0;
        incoming.row += taken;
        if (incoming.row < header.row_count) break;
        incoming.row = 0;
        moved = true;
        ended_[stage] += header.is_last;
        incoming.ring->read.store(++incoming.read, std::memory_order_seq_cst);
        ring_doorbell(*incoming.bell);
      }
    }
    return moved;
  }

  bool consume() {
    return receive(1, [this](const char* rows, size_t count) {
      sink_ += workload::sum_rows<kRowBytes>(rows, count);
      return count;
    });
  }

  bool forward() {
    return receive(0, [this](const char* rows, size_t count) {
      uint64_t damage = 0;
      const size_t taken = scatter(1, count, [rows, &damage](size_t i) {
        return transform(Codec::read(rows + i * kRowBytes, damage));
      });
      sink_.damage |= damage;
      return taken;
    });
  }

  bool generate() {
    const uint64_t first = rest_.begin;
    const size_t made = scatter(0, std::min<uint64_t>(kGenerateRows, rest_.size()),
                                [first](size_t i) { return first + i; });
    rest_.begin += made;
    return made > 0;
  }

  /// Says to each receiver that no more comes, with what is left; true if someone was told.
  bool tell_end(uint32_t stage) {
    const uint32_t before = told_[stage];
    for (uint32_t& to = told_[stage]; to < count_; ++to) {
      if (outgoing_[stage][to].frame == nullptr && !next_frame(stage, to)) break;
      publish(stage, to, true);
    }
    return told_[stage] > before;
  }

  const TwoStageJob job_;
  const SharedRings<kRowBytes> shared_;
  const uint32_t self_;
  const uint32_t count_;
  std::atomic<uint64_t>& progress_;
  ring::Doorbell bell_;
  std::vector<Cursor> cursors_[kStages];     // by receiver
  std::vector<Outgoing> outgoing_[kStages];  // by receiver
  std::vector<Incoming> incoming_[kStages];  // by sender
  RowSum sink_;
  IntegerRange rest_;             // still to be generated
  uint32_t ended_[kStages] = {};  // senders whose rows are all in
  uint32_t told_[kStages] = {};   // the next receiver to be told that no more comes
};

}  // namespace

Result<std::vector<RunFigures>> run_plain_loop(const TwoStageJob& job, const RunOptions& options) {
  FARO_RETURN_IF_ERROR(job.validate());
  ProcessGroupOptions group = group_options(job.process_count, job.workers_per_process, options);
  group.shared_bytes = with_job_types(job, [&]<class Hash, uint32_t kRowBytes>() {
    return SharedRings<kRowBytes>::bytes(job.worker_count());
  });
  auto body = [&](GroupMember& member) {
    member.run_workers([&](uint32_t local) {
      return with_job_types(job, [&]<class Hash, uint32_t kRowBytes>() {
        const SharedRings<kRowBytes> shared(member.shared_area(), job.worker_count());
        PlainWorker<Hash, kRowBytes> worker(job, shared, member.global_worker(local),
                                            member.progress(local));
        return member.run_rounds(local, worker);
      });
    });
    return Status::Ok();
  };
  return run_group(group, job.expectation(), options, body);
}

}  // namespace faro::bench
