// WorkerCore: everything that belongs to one worker of this node: its rings in both directions, the
// frames it has not handed out, its shuffles, and how it waits.
//
// Every operation is an attempt that answers done or would_wait; `run` and `wait` are what all
// attempts go through. An attempt that would wait has looked at all rings. What the worker has
// pending is flushed, and all read positions are told, after a short while without progress, after
// the first few yields of a wait, and always before it sleeps (DESIGN.md HC-2); after a longer
// patience frames that nobody polls are spilled (HC-3).
//
// Threads: the worker's thread, except where said. Ownership is checked (enter) on everything that
// is not inlined.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "counters/counter_file.h"
#include "faro/metrics.h"
#include "faro/outcome.h"
#include "faro/session.h"
#include "faro/waiter.h"
#include "ring/doorbell.h"
#include "ring/ready_set.h"
#include "shuffle/inbox.h"
#include "shuffle/outbox.h"
#include "shuffle/query/query.h"

namespace faro::detail {

class NodeCore;
class ShuffleCore;

using shuffle::Binding;
using shuffle::FrameNode;
using shuffle::Inbox;
using shuffle::InLane;
using shuffle::Outbox;
using shuffle::OutLane;
using shuffle::QueuedFrame;

class WorkerCore {
 public:
  WorkerCore(NodeCore& node, uint32_t local_index, std::unique_ptr<Waiter> waiter);
  ~WorkerCore();
  WorkerCore(const WorkerCore&) = delete;
  WorkerCore& operator=(const WorkerCore&) = delete;

  NodeCore& node() noexcept { return node_; }
  uint32_t number() const noexcept { return number_; }
  uint32_t local_index() const noexcept { return local_index_; }
  counters::WorkerCounters& counters() noexcept { return counters_; }

  // --- ownership and alerts

  /// Called first by every operation. Checks that the calling thread owns the worker (or takes it)
  /// and handles alerts (failed queries, stops). Errors: wrong_state, session_closed.
  Status enter();
  /// Takes ownership whoever has it; for closing.
  void adopt() noexcept;
  void hand_over() noexcept { owner_.store(nullptr, std::memory_order_release); }
  /// Threads: any. Makes the worker handle alerts at its next operation, and wakes it.
  void alert() noexcept;
  /// Threads: any. Makes a wait of the worker look again.
  void wake() noexcept;

  // --- operations

  /// What an attempt is for. That a condition of the engine's own holds does not bring its rows
  /// forward: a worker that waits for such a condition again and again still loses patience.
  enum class For : uint8_t { rows, condition };

  /// Tries once; what would wait is answered after what DESIGN.md HC-2 demands.
  /// Where memory cannot be had a query fails (lack_memory), and not the process.
  template <For what = For::rows, typename Attempt>
  Outcome run(Attempt&& attempt) {
    Outcome outcome;
    try {
      outcome = attempt();
      if (outcome == Outcome::would_wait && before_would_wait()) outcome = attempt();
    } catch (const std::bad_alloc&) {
      outcome = lack_memory();
    }
    if (outcome == Outcome::would_wait) return held() > 0 ? Outcome::holding : Outcome::would_wait;
    if constexpr (what == For::rows) progressed();
    return outcome;
  }

  /// Tries until the attempt answers something else than would_wait, or the time limit passes.
  template <For what = For::rows, typename Attempt>
  Outcome wait(Attempt&& attempt, Timeout timeout) {
    may_wait_ = true;
    Outcome outcome = run<what>(attempt);
    if (outcome != Outcome::would_wait) return may_wait_ = false, outcome;
    const base::Nanoseconds begin = begin_wait(timeout);
    while (outcome == Outcome::would_wait) {
      const WaitStep step = next_wait_step();
      if (step == WaitStep::expired) {
        outcome = Outcome::deadline;
        break;
      }
      outcome = run<what>(attempt);
      if (outcome == Outcome::would_wait && step == WaitStep::sleep) sleep();
      if (step == WaitStep::sleep) woken();
    }
    end_wait(begin);
    may_wait_ = false;
    return outcome;
  }

  /// Waits do not nest. Errors: wrong_state in a condition of wait_until or try_until.
  Status check_may_wait() const;

  Result<Shuffle> open_shuffle(const ShuffleSpec& spec);
  Outcome try_until(const std::function<bool()>& condition, Status* cause);
  Outcome wait_until(const std::function<bool()>& condition, Timeout timeout, Status* cause);
  /// For event loops: as wait_until, but it does not sleep. Answers would_wait if nothing can be done
  /// now: then the doorbell is armed, and nothing that came before was missed. Whoever sleeps on it in
  /// place of the worker, at most `sleep_ns`, calls `woken` afterwards. `for_call`: the condition is an
  /// attempt of a call that waits until it is done, and may do what only such a call may.
  Outcome arm_unless(const std::function<bool()>& condition, base::Nanoseconds& sleep_ns,
                     bool for_call = false, Status* cause = nullptr);
  ring::DoorbellLine& doorbell_line() noexcept { return doorbell_.line(); }
  /// After each sleep. Threads: any.
  void woken() noexcept;
  /// `wait`: until the outcome is known, or the time limit passes; else it is one try.
  Outcome end_query(const QueryId& id, const Status& failure, Status* cause, bool wait,
                    Timeout timeout);

  // --- for ShuffleCore: receiving

  /// Looks at all rings that may have something and sorts what arrived. Returns whether anything
  /// did.
  bool gather();
  /// The next frame of a stream (nullptr: of any) that can be handed out; nullptr if there is none
  /// now. `failed` is set if the query failed on the way.
  FrameNode* next_frame(Inbox& inbox, Inbox::Stream* only);
  /// Counts streams that are finished now.
  void settle(Inbox& inbox, Inbox::Stream& stream);
  /// Gives a frame that was handed out, or is dropped, back.
  void release(FrameNode* node, bool handed_out) noexcept;
  /// Copies a handed-out frame to overflow and releases its place.
  Status detach(shuffle::Query& query, FrameNode* node);
  void handed_out(FrameNode* node) noexcept {
    if (node->lane != nullptr) set_held(held() + 1);
  }
  /// Batches in place that the engine holds.
  uint32_t held() const noexcept { return held_.load(std::memory_order_relaxed); }
  /// A call of the worker waits, or the engine holds batches in place. Threads: any.
  bool busy() const noexcept {
    return held_.load(std::memory_order_relaxed) > 0 || waiting_.load(std::memory_order_acquire);
  }

  // --- for attempts: answer would_wait, and note for what, for whoever looks from outside (counters/)

  /// `sender`: the only one that is polled, or counters::kAnyPeer.
  Outcome wants_rows(const ShuffleCore& core, uint64_t sender) noexcept;
  /// `receiver`: its index at `core`.
  Outcome wants_room(const ShuffleCore& core, uint32_t receiver) noexcept;
  /// Room for what the query has in the queues of this worker's rings.
  Outcome wants_queues_sent(const shuffle::Query& query) noexcept;

  /// Drops everything of an inbox and whatever still comes for it.
  void discard(Inbox& inbox) noexcept;
  void discard(Inbox& inbox, Inbox::Stream& stream) noexcept;
  void forget(Inbox& inbox, uint32_t sender) noexcept;
  Status check_early_senders(Inbox& inbox, const ShuffleSpec& spec,
                             const shuffle::StageLists& lists, const shuffle::RowFormat& format);
  /// Fails the query if a sender has said that its rows are something else than the inbox's format. Threads: while it
  /// is open.
  Status check_formats(Inbox& inbox);

  // --- for ShuffleCore: sending

  OutLane& lane_to(uint32_t receiver_worker, uint32_t stage) noexcept;
  /// Starts the transfer of a lane's frames if its threshold is reached.
  void frame_committed(OutLane& lane);
  void mark_dirty(OutLane& lane);
  /// Moves a lane's queue on as far as there is room. Returns whether it is empty.
  bool pump(OutLane& lane);
  /// Makes room in a ring that this worker itself has to read, by spilling its frames. Only in
  /// a call that waits: after a try_… the engine can poll.
  bool make_room_in_own_ring(OutLane& lane);
  void enqueue(OutLane& lane, std::unique_ptr<QueuedFrame> frame);
  /// Drops what `core` has in a lane's queue. `data_only`: OPEN and FINISH stay.
  void drop_queued(OutLane& lane, const ShuffleCore& core, bool data_only);
  bool has_queued() const noexcept { return queued_lanes_ > 0; }
  void pump_all();
  /// Closes open frames and starts all transfers.
  void flush();
  /// The same, but leaves it to flush_network that they really start.
  void post_dirty();

  /// Overflow is full: fails the query that uses most, or `query` if it is above its own limit. Answers
  /// failed if that is `query`, else would_wait.
  Outcome overflow_exhausted(const std::shared_ptr<shuffle::Query>& query, uint64_t bytes,
                             const Status& cause);

  /// What an operation is about, from its `enter` on: if there is no memory for it, `query` fails and
  /// `status` says so.
  void operates_on(shuffle::Query& query, Status* status) noexcept {
    operated_query_ = &query;
    operated_status_ = status;
  }
  /// There is no memory for something small: the query that this is about fails, or, if it is about none,
  /// the one that has most in overflow. Answers failed if `status` says so, else would_wait.
  Outcome lack_memory() noexcept;

  /// A worker has one open claim at a time.
  bool claim_open = false;

  Result<uint16_t> take_slot();
  void closed(ShuffleCore& core) noexcept;  // its handle is gone
  void
  sweep() noexcept;  // destroys closed ShuffleCores and inboxes that nothing refers to any more

  base::Nanoseconds now() const noexcept;

 private:
  enum class WaitStep { yield, sleep, expired };

  /// Calls a condition of the engine's, in which nothing may wait.
  Outcome look_at(const std::function<bool()>& condition, Status* cause);

  void progressed() noexcept {
    stalled_since_ = 0;
    if (wait_shown_) [[unlikely]]
      hide_wait();
  }
  Outcome wants(counters::WaitKind kind, const QueryId& query = {}) noexcept;
  void show_wait(bool in_call) noexcept;
  void hide_wait() noexcept;
  void set_held(uint32_t held) noexcept {
    held_.store(held, std::memory_order_relaxed);
    counters::set(counters_.held_frames, held);
  }
  bool before_would_wait();
  void start_transfers();
  void flush_all() noexcept;
  base::Nanoseconds begin_wait(Timeout timeout);
  WaitStep next_wait_step();
  void arm() noexcept;
  base::Nanoseconds prepare_sleep();
  base::Nanoseconds ask_due(base::Nanoseconds time) const noexcept;
  void ask_for_senders(base::Nanoseconds time);
  void sleep();
  void end_wait(base::Nanoseconds begin);

  Result<Shuffle> make_shuffle(const ShuffleSpec& spec);
  void make_lanes();
  void handle_alerts();
  bool take_up_links();
  bool take_up_link(uint32_t node);
  void abandon_lanes(uint32_t node);
  bool uses_lanes(uint32_t node) noexcept;
  Status check_links(const ShuffleSpec& spec);
  std::span<InLane> in_lanes_of(uint32_t node) noexcept;
  std::span<OutLane> out_lanes_of(uint32_t node) noexcept;
  bool visit(InLane& lane) noexcept;
  bool try_sort(InLane& lane, const transport::FrameView& view) noexcept;
  void look_again(InLane& lane) noexcept;
  void sort(InLane& lane, const transport::FrameView& view);
  Status lists_differ(const Inbox& inbox, uint32_t sender, const wire::OpenPayload& opened) const;
  Status formats_differ(const Inbox& inbox, uint32_t sender, const shuffle::RowFormat& written,
                        const shuffle::RowFormat& read) const;
  void on_open(InLane& lane, const transport::FrameView& view);
  void on_finish(InLane& lane, const transport::FrameView& view);
  void on_rows(InLane& lane, const transport::FrameView& view);
  void fail_link(InLane& lane, std::string why);
  void unbind(Inbox::Stream& stream, Binding::State state) noexcept;
  FrameNode* assemble(Inbox& inbox, Inbox::Stream& stream);
  bool make_readable(Inbox& inbox, FrameNode& node);
  bool move_aside(InLane& lane);
  Status set_aside(InLane& lane, FrameNode& node);
  static bool is_packable(const FrameNode& before, const FrameNode& node) noexcept;
  static uint64_t room_to_pack(const FrameNode* before, const FrameNode& node) noexcept;
  bool move_aside_where_needed();
  Inbox* find_inbox(const QueryId& query, uint32_t stage) noexcept;
  Inbox* add_inbox(std::shared_ptr<shuffle::Query> query, uint32_t stage, uint32_t made_by);
  void release_in_ring(InLane& lane, uint32_t token) noexcept;
  void note_unsent_release(InLane& lane) noexcept;
  void tell_releases();

  NodeCore& node_;
  const uint32_t number_;
  const uint32_t local_index_;
  ring::ReadySet& ready_;
  counters::CounterFile& counter_file_;
  ring::Doorbell doorbell_;
  std::unique_ptr<Waiter> waiter_;
  counters::WorkerCounters& counters_;  // written by this worker, read by anyone

  // Shared with other threads.
  std::atomic<const void*> owner_{nullptr};
  alignas(64) std::atomic<uint64_t> alerts_{0};
  std::atomic<uint64_t> wakes_{0};

  // The worker's own.
  alignas(64) uint64_t alerts_seen_ = 0;
  std::vector<std::shared_ptr<transport::DataLink>> links_;  // by node: whose rings the lanes have
  uint64_t link_changes_seen_ = 0;                           // of the membership's, all taken up
  std::vector<InLane> in_lanes_;                             // sender * rings_per_lane + k
  std::vector<InLane*> in_lane_by_ready_;                    // by ready number; null: none
  std::vector<InLane*> backlog_;                             // may have more than was taken
  bool lacked_memory_ = false;                               // for a frame that was looked at
  std::vector<InLane*> release_unsent_;
  std::vector<OutLane> out_lanes_;  // receiver * rings_per_lane + k
  std::vector<OutLane*> dirty_;
  shuffle::Query* operated_query_ = nullptr;
  Status* operated_status_ = nullptr;
  uint32_t queued_lanes_ = 0;  // lanes whose queue is not empty
  shuffle::FramePool pool_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  std::vector<std::unique_ptr<ShuffleCore>> shuffles_;
  std::vector<bool> slots_;  // in use
  std::vector<std::shared_ptr<shuffle::Query>>
      ending_;                     // this worker's part is over, the outcome was not taken yet
  std::atomic<uint32_t> held_{0};  // written by the worker, read by close
  std::atomic<bool> waiting_{false};

  // Waiting.
  bool in_condition_ = false;
  bool may_wait_ = false;  // inside wait(): nobody but this call can make room in the own rings
  base::Nanoseconds stalled_since_ = 0;  // 0: not stalled
  base::Nanoseconds aside_after_ = 0;    // when unpolled frames are spilled next
  base::Nanoseconds patience_ = 0;
  base::Nanoseconds network_polled_at_ = 0;
  counters::Wait wanted_;          // by the attempt that answered would_wait; none while it runs
  Inbox* wanted_inbox_ = nullptr;  // if rows
  bool wait_shown_ = false;
  bool network_had_data_ = false;
  base::Nanoseconds deadline_ = 0;
  uint32_t yields_left_ = 0;
};

}  // namespace faro::detail
