// One worker of the sockets baseline (see sockets_baseline.h for what it is and the frame layout).
//
// The worker is a loop over steps that never wait: each takes rows from one source and appends them
// to the outgoing buffer of their destination. A row whose buffer has no room stays where it is (in
// the incoming buffer, or not yet generated), and its source is tried again in the next turn. So
// every row is moved once or not at all, no step calls another, and waiting is in one place.
//
//   local lanes ──┐                            ┌─> one buffer per remote worker ──> its socket
//   sockets ──────┼─> stage 2: sink            ├─> one block per local worker ────> its lane
//   own stage 1 ──┤   stage 1: n*3/2, route ───┼─> own stage 2 ───────────────────> sink
//   generator ────┘            route ──────────┴─> own stage 1
//
// Why it cannot deadlock when everyone sends first: a worker that makes no progress at all takes
// whatever its sockets and lanes hold into memory, growing its incoming queues as needed; so every
// peer's socket and lane gets free again.
#pragma once

#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "faro/status.h"
#include "lab/bench/sockets_baseline.h"
#include "lab/bench/sockets_connection.h"
#include "lab/bench/sockets_local_lane.h"
#include "lab/bench/sockets_mesh.h"
#include "lab/bench/sockets_output.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// Threads: one. Owns: its sockets and buffers.
template <class Hash, uint32_t kRowBytes, SocketsForm kForm>
class SocketsWorker {
 public:
  /// `worker`: its number over all processes. `process` and `progress` must outlive it.
  SocketsWorker(const TwoStageJob& job, const SocketsOptions& options, uint32_t worker,
                SocketsProcess& process, std::atomic<uint64_t>& progress)
      : job_(job),
        options_(options),
        self_(worker),
        worker_count_(job.worker_count()),
        process_(process),
        progress_(progress),
        failure_(worker),
        outputs_(worker_count_ + 1) {}

  /// Takes over the sockets and allocates every buffer. Errors: system_error.
  Status open(std::vector<MeshSocket> sockets) {
    // Own rows and whatever is sent pass through memory of the same size.
    const uint32_t output_bytes = std::max(options_.outgoing_buffer_bytes, 2 * kFrameBytes);
    for (uint32_t worker = 0; worker <= worker_count_; ++worker) {
      Output& output = outputs_[worker];
      if (worker < worker_count_ && worker != self_ && job_.same_process(worker, self_)) {
        output.target = Target::local;
        output.index = static_cast<uint32_t>(local_targets_.size());
        local_targets_.emplace_back(process_.lane(self_, worker), process_.bell(worker),
                                    output_bytes, kFrameBytes);
        local_targets_.back().open(output);
        local_sources_.emplace_back(process_.lane(worker, self_), process_.bell(worker));
        continue;
      }
      if (worker == worker_count_) output.target = Target::own_stage1;
      if (worker == self_) output.target = Target::own_stage2;
      output_memory_.push_back(std::make_unique<char[]>(output_bytes));
      output.set_memory(output_memory_.back().get(), output_bytes, kFrameBytes);
    }

    const size_t incoming_bytes = std::max(options_.incoming_buffer_bytes, 2 * kFrameBytes);
    for (MeshSocket& socket : sockets) {
      const uint32_t index = static_cast<uint32_t>(connections_.size());
      outputs_[socket.peer].index = index;
      connections_.emplace_back(std::move(socket), incoming_bytes, kFrameBytes, failure_);
      events_.watch(connections_.back().fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, index);
    }
    events_.watch(process_.bell(self_).fd(), EPOLLIN, static_cast<uint32_t>(connections_.size()));
    return events_.status();
  }

  /// Does the whole job once. All workers of all processes must be in the same round.
  ///
  /// Blocks: until every worker's rows for this one have been consumed, and its own are under way.
  /// Errors: peer_lost, protocol_error, system_error; the worker is of no use afterwards.
  Status run_round() {
    sink_ = {};
    rest_ = job_.range_of(self_);
    for (uint32_t stage : {1, 2}) ends_seen_[stage] = ends_sent_[stage] = 0;

    uint32_t idle_turns = 0;
    while (failure_.status().ok()) {
      look_at_events(0);
      bool moved = false;
      // The paper's polling order: own process, sockets, child.
      moved |= handle_own_stage1();
      for (LocalSource& source : local_sources_) moved |= handle_local(source);
      for (SocketsConnection& each : connections_) moved |= handle_socket(each);
      moved |= generate();
      moved |= advance_ends();
      progress_.store(sink_.count, std::memory_order_relaxed);
      if (moved) {
        idle_turns = 0;
        continue;
      }
      if (flush_all()) continue;
      if (ends_seen_[2] == worker_count_ - 1 && ends_sent_[2] == worker_count_ &&
          everything_is_out()) {
        break;
      }
      wait_for_something(idle_turns);
    }
    consume_own_stage2();
    return failure_.status();
  }

  /// What came out of the last round.
  Totals totals() const noexcept { return sink_.totals(); }

 private:
  using Codec = RowCodec<kRowBytes>;
  using Target = Output::Target;

  static constexpr uint32_t kHeaderBytes = 4;
  static constexpr uint32_t kFrameBytes = kHeaderBytes + kRowBytes;

  static constexpr uint32_t header(uint32_t stage, uint32_t kind) noexcept {
    static_assert(kRowBytes < 1 << 24);
    return kRowBytes | stage << 24 | kind << 28;
  }
  static constexpr uint32_t kRow1 = header(1, 0);
  static constexpr uint32_t kRow2 = header(2, 0);
  static constexpr uint32_t kEnd1 = header(1, 1);
  static constexpr uint32_t kEnd2 = header(2, 1);

  // Everything that routing a row reads, copied to the stack of each loop: stores through char*
  // would otherwise force the compiler to load the members again for every row.
  struct Router {
    Output* outputs;
    uint32_t worker_count;
    uint32_t self;
  };
  Router router() noexcept { return Router{outputs_.data(), worker_count_, self_}; }

  // --- sending

  /// Sends n to whom it belongs in that stage; false: no room, nothing has happened.
  template <uint32_t kStage>
  bool try_route(const Router& router, uint64_t n) {
    const uint32_t worker = destination_of<Hash>(n, router.worker_count);
    // A conditional move: as a branch it would be mispredicted for every row of one's own.
    const uint32_t index = kStage == 1 && worker == router.self ? router.worker_count : worker;
    return try_append < kStage == 1 ? kRow1 : kRow2 > (router.outputs[index], n);
  }

  template <uint32_t kHeader>
  bool try_append(Output& output, uint64_t n) {
    char* at = output.cursor;
    if (at > output.limit) [[unlikely]] {
      if (!make_room(output)) return false;
      at = output.cursor;
    }
    const uint32_t frame_header = kHeader;
    std::memcpy(at, &frame_header, kHeaderBytes);
    Codec::write(at + kHeaderBytes, n);
    output.cursor = at + kFrameBytes;
    if constexpr (kForm == SocketsForm::paper) {
      if (output.target == Target::remote) connections_[output.index].send(output);
    }
    return true;
  }

  /// Makes room for one frame at least; false if that has to wait.
  [[gnu::noinline]] bool make_room(Output& output) {
    switch (output.target) {
      case Target::own_stage1:
        return false;  // only the generator comes here; handle_own_stage1 makes room
      case Target::own_stage2:
        consume_own_stage2();
        return true;
      case Target::local:
        return local_targets_[output.index].flush(output);
      case Target::remote:
        connections_[output.index].send(output);
        if (!output.has_room() && output.begin - output.memory >= kFrameBytes)
          output.move_to_front();
        return output.has_room();
    }
    return false;
  }

  void consume_own_stage2() {
    Output& output = outputs_[self_];
    handle_frames(output.memory, output.cursor);
    output.clear();
  }

  // --- the sources of rows

  /// Handles whole frames up to `end`, or up to the first row that finds no room; returns where it
  /// stopped.
  const char* handle_frames(const char* at, const char* end) {
    const Router route = router();
    auto header_at = [](const char* frame) {
      uint32_t word;
      std::memcpy(&word, frame, kHeaderBytes);
      return word;
    };
    // Rows of a stage come in runs, as generators and parsers work in batches; a loop for each keeps
    // the branch on the stage predictable.
    while (end - at >= kFrameBytes) {
      const uint32_t kind = header_at(at);
      if (kind == kRow2) {
        RowSum sum;
        do {
          sum.add(Codec::read(at + kHeaderBytes, sum.damage));
          at += kFrameBytes;
        } while (end - at >= kFrameBytes && header_at(at) == kRow2);
        sink_ += sum;
      } else if (kind == kRow1) {
        uint64_t damage = 0;
        bool room = true;
        do {
          const uint64_t n = Codec::read(at + kHeaderBytes, damage);
          room = try_route<2>(route, transform(n));
          if (!room) break;
          at += kFrameBytes;
        } while (end - at >= kFrameBytes && header_at(at) == kRow1);
        sink_.damage |= damage;
        if (!room) return at;
      } else if (kind == kEnd1 || kind == kEnd2) {
        ++ends_seen_[kind == kEnd1 ? 1 : 2];
        at += kFrameBytes;
      } else {
        failure_.set(Code::protocol_error,
                     "a frame starts with the unknown header " + std::to_string(kind));
        return end;
      }
    }
    return at;
  }

  /// Rows of stage 1 that the worker generated for itself; true if some were handled.
  bool handle_own_stage1() {
    Output& output = outputs_[worker_count_];
    if (output.is_empty()) return false;
    const size_t handled =
        static_cast<size_t>(handle_frames(output.begin, output.cursor) - output.begin);
    output.take(handled);
    return handled > 0;
  }

  /// Rows from a worker of the same process; true if some were handled.
  bool handle_local(LocalSource& source) {
    bool moved = false;
    while (source.has_rows()) {
      const char* const before = source.begin();
      const char* const at = handle_frames(before, source.end());
      moved = moved || at != before;
      if (!source.handled(at)) break;
    }
    return moved;
  }

  /// Reads a socket once and handles the rows; true if some were read or handled.
  bool handle_socket(SocketsConnection& connection) {
    const bool came = connection.receive();
    if (!connection.has_frame()) return came;
    const char* const before = connection.begin();
    const char* const at = handle_frames(before, connection.end());
    connection.handled(at);
    return came || at != before;
  }

  /// A batch of rows of the worker's own; true if some found room.
  bool generate() {
    const Router route = router();
    uint64_t n = rest_.begin;
    const uint64_t stop = std::min<uint64_t>(rest_.end, n + options_.generate_batch_rows);
    while (n < stop && try_route<1>(route, n)) ++n;
    const bool moved = n != rest_.begin;
    rest_.begin = n;
    return moved;
  }

  /// Tells the others about the end of each stage, once there is one; true if someone was told.
  bool advance_ends() {
    bool moved = false;
    auto tell_all = [&]<uint32_t kEnd>(uint32_t& next) {
      for (; next < worker_count_; ++next) {
        if (next == self_) continue;
        if (!try_append<kEnd>(outputs_[next], 0)) return false;
        moved = true;
      }
      return true;
    };
    if (!rest_.empty() || !tell_all.template operator()<kEnd1>(ends_sent_[1])) return moved;
    const Output& own_stage1 = outputs_[worker_count_];
    if (ends_seen_[1] == worker_count_ - 1 && own_stage1.is_empty()) {
      tell_all.template operator()<kEnd2>(ends_sent_[2]);
    }
    return moved;
  }

  // --- the loop and its one wait

  /// Learns which sockets can be read or written again; true if any.
  bool look_at_events(int timeout_ms) {
    return events_.wait(timeout_ms, [this](uint32_t index, uint32_t events) {
      if (index < connections_.size()) connections_[index].note(events);
      // Else the bell: the lanes are looked at anyway.
    });
  }

  /// Sends what waits in partly filled buffers; true if anything went.
  bool flush_all() {
    bool moved = false;
    for (Output& output : outputs_) {
      if (output.target == Target::remote) {
        moved |= connections_[output.index].send(output);
      } else if (output.target == Target::local && !output.is_empty()) {
        moved |= local_targets_[output.index].flush(output);
      }
    }
    return moved;
  }

  bool everything_is_out() const noexcept {
    return std::all_of(outputs_.begin(), outputs_.end(), [](const Output& output) {
      return output.target == Target::own_stage2 || output.is_empty();
    });
  }

  /// Takes what sockets and lanes hold into growing memory, although the rows before it still wait;
  /// true if there was anything. See the top of the file for why.
  bool take_everything_in() {
    bool moved = false;
    for (LocalSource& source : local_sources_) moved |= source.take_all();
    for (SocketsConnection& each : connections_) moved |= each.receive_more();
    return moved;
  }

  /// Called after a turn without progress. Yields a few times first: on a shared processor the others
  /// then fill more than the one buffer that would have woken this worker.
  void wait_for_something(uint32_t& idle_turns) {
    if (idle_turns < options_.yields_before_sleep) {
      ++idle_turns;
      sched_yield();
      return;
    }
    if (take_everything_in()) return;
    if (local_sources_.empty()) {
      look_at_events(-1);
      return;
    }
    // Twice, so that nothing can slip in between: rings that come after arm() wake, blocks that came
    // before it are found here. Room in a lane is looked for by trying to flush.
    LocalBell& bell = process_.bell(self_);
    bell.arm();
    if (!take_everything_in() && !flush_all()) look_at_events(-1);
    bell.disarm();
  }

  const TwoStageJob job_;
  const SocketsOptions options_;
  const uint32_t self_;
  const uint32_t worker_count_;
  SocketsProcess& process_;
  std::atomic<uint64_t>& progress_;
  Failure failure_;

  // One for each worker; that of self_ takes its stage 2, one more behind them its stage 1.
  std::vector<Output> outputs_;
  std::vector<std::unique_ptr<char[]>> output_memory_;
  std::vector<LocalTarget> local_targets_;
  std::vector<LocalSource> local_sources_;
  std::vector<SocketsConnection> connections_;
  EventSet events_;

  RowSum sink_;
  IntegerRange rest_;           // still to be generated
  uint32_t ends_seen_[3] = {};  // by stage: senders, other than itself, whose rows are all in
  uint32_t ends_sent_[3] = {};  // by stage: the next worker to be told
};

}  // namespace faro::bench
