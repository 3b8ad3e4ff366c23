// Turns: the schedule of a node, as its links and threads use it (README.md of this folder).
//
//   a message came ──► hear ─┐                       ┌──► whose path has a message to send, or rows and a turn: due
//   rows are pending ► ask ──┤── Phases, by a mutex ─┤
//   rows were sent ──► sent ─┤                       └──► by when it wants to be asked again: the alarm
//   the alarm ────► on_alarm ┘
//
// Whoever calls then calls send_due, outside the path's own right to send: it has all paths that are due send, for workers that
// sleep or compute as well. One thread does so at a time. Another one that finds it at that leaves what is due to it (D1 to D4):
//
//   notes a path (mutex), any_due_ = true      D1
//   sending_: false → true, or leaves          D2
//   any_due_ = false, sends                    D3
//   sending_ = false, looks at any_due_ again  D4
//
// All are seq_cst: of two threads either the second finds sending_ false, or the first any_due_ true.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "transport/schedule/phases.h"
#include "transport/schedule/turn_message.h"

namespace faro::transport::schedule {

/// Threads: any, except where noted. Blocks: never, except where noted.
class Turns {
 public:
  /// A link over which its peer has turns.
  class Path {
   public:
    virtual ~Path() = default;
    /// Sends the message and the rows that wait, as far as it may now.
    virtual void send_due() noexcept = 0;
  };
  /// Has on_alarm called.
  class Alarm {
   public:
    virtual ~Alarm() = default;
    /// At `at`, or soon after; once. A later call replaces an earlier one.
    virtual void set(base::Nanoseconds at, base::Nanoseconds now) noexcept = 0;
  };
  /// Bytes of rows, and whether they go in a turn or without one.
  struct Allowance {
    uint64_t bytes = 0;
    bool is_turn = false;
  };
  /// The turns in which a path could send, and what it has.
  struct Counts {
    uint64_t turns = 0;
    uint64_t bytes = 0;
  };

  /// `alarm` outlives it. The others: see Phases.
  Turns(const PhaseSettings& settings, uint32_t self, uint32_t node_count, Alarm& alarm);

  // --- links

  /// The peer has turns over this path, until it leaves. A path that it had before has left.
  void enter(uint32_t peer, Path& path, base::Nanoseconds now);
  /// Its connection has ended. It is not called any more, if it does not enter again, when remove has returned.
  void leave(uint32_t peer, const Path& path, base::Nanoseconds now) noexcept;
  /// Leaves. Blocks: while another thread is in send_due. Not from inside that.
  void remove(uint32_t peer, const Path& path, base::Nanoseconds now) noexcept;

  // --- what came

  /// What comes over a path that has left is passed over. Errors: protocol_error.
  Status hear(uint32_t peer, const TurnMessage& message, base::Nanoseconds now);
  /// Threads: that of the alarm.
  void on_alarm(base::Nanoseconds now);

  // --- for the holder of a path's right to send

  /// The message that the peer is to get next. False: none.
  bool take_message(uint32_t peer, TurnMessage& message);
  /// `pending` bytes of rows could be sent. How many may be; a ring that begins within may end beyond.
  Allowance ask(uint32_t peer, uint64_t pending, base::Nanoseconds now);
  /// Rows have been sent for which it was asked, and `left` bytes could be.
  void sent(uint32_t peer, const Allowance& rows, uint64_t left, base::Nanoseconds now);

  /// Whoever has called any of these calls this, when it holds no path's right to send or to receive.
  void send_due() noexcept {
    if (any_due_.load(std::memory_order_seq_cst)) send_all_due();
  }

  /// No round is on.
  bool is_at_rest() const;
  /// The peer that has the turn; the own number: none.
  uint32_t target() const;
  /// What its path has counted.
  Counts counts(uint32_t peer) const;

 private:
  struct Peer {
    Path* path = nullptr;
    bool is_there = false;
    bool is_due = false;
    bool has_message = false;
    TurnMessage message;
    Counts counts;
  };

  void follow_up(base::Nanoseconds now);
  void note_message(const Telling& telling);
  void note_due(uint32_t peer);
  void note_what_may_go();
  void send_all_due() noexcept;
  bool take_due(std::vector<uint32_t>& due);

  Alarm& alarm_;
  const uint32_t self_;
  std::atomic<bool> any_due_{false};
  std::atomic<bool> sending_{false};

  mutable std::mutex mutex_;  // short: guards all that follows
  Phases phases_;
  std::vector<Peer> peers_;
  std::vector<uint32_t> due_;
  base::Nanoseconds alarm_at_ = base::kForever;
  uint64_t turn_ = 0;  // the last that was seen to have begun
  bool holds_rows_ = false;

  std::vector<uint32_t> taken_;  // of due_, for whoever is sending_
};

}  // namespace faro::transport::schedule
