// Phases: a schedule by which one node at a time sends rows to each node. It is that of HyPer (Rödiger, Mühlbauer, Kemper,
// Neumann 2015, 3.2.3) without the barrier.
//
// The turns of a node have numbers. With m nodes turn n belongs to round n / m and to phase p = n mod m, in which node i sends to
// node (i + p) mod m. Phase 0 would be to itself, and nothing is sent in it. The turns for one target go from each node to the
// one before it by number:
//
//                turn 1     turn 2     turn 3
//     node 3     3 ─► 0     3 ─► 1     3 ─► 2
//                      ╲          ╲
//     node 2     2 ─► 3     2 ─► 0     2 ─► 1
//                      ╲          ╲
//     node 1     1 ─► 2     1 ─► 3     1 ─► 0
//
// Turn n of node i begins when its own turn n - 1 has passed, and turn n - 1 of node i + 1, which was for the same target. So
// each node waits for one other node, the one that it follows. A turn passes when its bytes are sent, when nothing can be sent to
// its target, or when nothing of it has moved for `turn_ns`.
//
// Rounds. A round begins when a node could send `from_bytes` or more, to all its peers together, with what it has just sent without
// a turn (note_without_turn). Less than that passes without a turn, so rows that are held always have a round to wait for. The node tells all its peers, which join when they hear of it.
// Each message also says for how many nodes in a row, from its sender on, the round before was empty. A node that has passed the
// last turn of a round rests if the round before was empty on all nodes. At rest there are no messages and no deadlines.
//
// Nodes that are lost, or stopped. A node follows the next node by number to which it has a link and which is not silent. A node
// that is not at rest repeats its last message, so a slow one is heard of, and one that is not heard of is silent. Who finds all
// others silent follows nobody, and waits for nobody: they are stopped, or have lost the links that turns take. A silent one is passed
// over, and learns of that by any message: if node k, d numbers before node j, has begun turn n, all turns of j up to n - d are
// over, for the turns of k for the same targets come after them. Then j goes on from there. So a target has two senders only while
// such a message is under way, or until a process that was stopped asks allowance(): for one message of rows.
//
// A node that comes takes no turn in the round in which it comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "transport/schedule/turn_message.h"

namespace faro::transport::schedule {

/// With fewer all send at once.
inline constexpr uint32_t kLeastNodes = 3;

struct PhaseSettings {
  uint64_t turn_bytes = uint64_t{4} << 20;
  uint64_t from_bytes = uint64_t{1} << 20;
  base::Nanoseconds turn_ns = 10 * base::kMillisecond;

  /// Errors: config_invalid, by name.
  Status check() const;
};

/// One node's part in the schedule. It does nothing by itself: it is told what came, what was sent and what time it is, and
/// answers who may be sent to and what to tell whom.
/// Threads: one at a time.
class Phases {
 public:
  static constexpr uint64_t kUnlimited = UINT64_MAX;
  /// No turn that a node can mean has such a number.
  static constexpr uint64_t kTurnLimit = uint64_t{1} << 62;
  /// From here on there is no schedule. Only what is not true leads there, and it must not lead on to numbers that are refused.
  static constexpr uint64_t kLastTurn = kTurnLimit / 2;

  /// `settings` are checked. `node_count` is the same on all nodes: the numbers that there can be.
  Phases(const PhaseSettings& settings, uint32_t self, uint32_t node_count);

  // What came.
  /// There is a link to `peer` now, over which it has turns.
  void add(uint32_t peer, base::Nanoseconds now);
  /// Its link has ended, and with it its turns.
  void remove(uint32_t peer, base::Nanoseconds now);
  /// Errors: protocol_error, for what no peer can mean. What is late, or told twice, is none.
  Status hear(uint32_t peer, const TurnMessage& message, base::Nanoseconds now);
  /// `bytes` could be sent to `peer` now: they are pending, and it has room for them.
  void set_sendable(uint32_t peer, uint64_t bytes, base::Nanoseconds now);
  /// `bytes` have been sent to `peer`, and `left` could be sent now.
  void sent(uint32_t peer, uint64_t bytes, uint64_t left, base::Nanoseconds now);
  /// `bytes` of rows go without a turn. Until nothing has been sent for `turn_ns` they count as what there is to send: who sends
  /// at once whatever there is never has much, and would never wait for a turn.
  void note_without_turn(uint64_t bytes, base::Nanoseconds now);
  /// What has to happen by now happens. To be called at deadline(), at the latest.
  void on_time(base::Nanoseconds now);

  // Who may send.
  /// How much may be sent to `peer` now. A message that begins within may end beyond it.
  uint64_t allowance(uint32_t peer, base::Nanoseconds now) const noexcept;
  /// The peer that has the turn; this node's own number: none has it.
  uint32_t target() const noexcept;
  /// Its number. Greater with each.
  uint64_t turn() const noexcept { return turn_.number; }
  bool is_at_rest() const noexcept { return !round_.is_on; }
  /// Rows may be sent in turns only.
  bool holds_rows() const noexcept { return is_scheduled() && has_much(); }

  // What to tell.
  /// False: nothing more. What is told to a peer is sent in this order.
  bool take(Telling& telling);
  /// kForever while it is at rest.
  base::Nanoseconds deadline() const noexcept;

 private:
  struct Peer {
    uint64_t sendable = 0;
    uint64_t turn = 0;  // the highest that it has told of
    base::Nanoseconds heard_ns = 0;
    uint32_t quiet_nodes = 0;
    bool is_there = false;
    bool is_silent = false;
    bool follows = false;
  };
  struct Turn {
    uint64_t number = 0;
    uint64_t sent = 0;
    bool has_begun = false;
    /// When the last one passed, this one began, or some of it was sent.
    base::Nanoseconds moved_ns = 0;
  };
  struct Round {
    bool is_on = false;
    bool is_mine = false;    // begun here, and still to be told
    bool was_quiet = false;  // this node had nothing in the one before
    bool has_sent = false;
  };
  struct Told {
    uint64_t turn = 0;
    base::Nanoseconds at_ns = 0;
  };

  uint32_t node_count() const noexcept { return static_cast<uint32_t>(peers_.size()); }
  uint32_t phase() const noexcept { return static_cast<uint32_t>(turn_.number % peers_.size()); }
  /// By how many numbers `to` comes after `from`.
  uint32_t distance(uint32_t from, uint32_t to) const noexcept;
  uint32_t target_of_phase() const noexcept { return (self_ + phase()) % node_count(); }
  bool is_scheduled() const noexcept {
    return there_ + 1 >= kLeastNodes && turn_.number < kLastTurn;
  }
  bool has_much() const noexcept {
    return sendable_ != 0 && sendable_ + without_turn_ >= settings_.from_bytes;
  }
  bool is_waiting() const noexcept { return round_.is_on && !turn_.has_begun; }
  /// The node that this one follows has passed its turn for the same target, or it follows nobody.
  bool is_due() const noexcept;
  /// What to tell of quiet nodes when the turn passes.
  uint32_t quiet_nodes() const noexcept;
  base::Nanoseconds silent_ns() const noexcept;

  void advance(base::Nanoseconds now);
  void pass_turns(base::Nanoseconds now);
  void wake(base::Nanoseconds now);
  void forget_what_was_sent(base::Nanoseconds now) noexcept;
  void enter_round();
  void begin(base::Nanoseconds now);
  void pass(base::Nanoseconds now);
  void skip_to(uint64_t turn, base::Nanoseconds now);
  void follow_next(base::Nanoseconds now);
  void tell(uint32_t peer, TurnMessage::Kind kind = TurnMessage::Kind::turn);
  void tell_listeners(base::Nanoseconds now);
  void tell_of_round();
  void update_listener(uint32_t peer);

  const PhaseSettings settings_;
  const uint32_t self_;
  std::vector<Peer> peers_;
  std::vector<uint32_t> listeners_;  // peers that follow this node, or are silent
  std::vector<Telling> tellings_;
  size_t taken_ = 0;  // of tellings_
  uint64_t sendable_ = 0;
  uint64_t without_turn_ = 0;      // note_without_turn
  base::Nanoseconds sent_ns_ = 0;  // when anything was
  uint32_t there_ = 0;
  uint32_t followed_;  // self_: nobody
  bool may_follow_another_ = false;
  uint32_t quiet_nodes_ = 0;  // as quiet_nodes() was when the last turn passed
  uint32_t rounds_ = 0;       // that it has begun, up to those of a newcomer
  Told told_;
  Turn turn_;
  Round round_;
};

}  // namespace faro::transport::schedule
