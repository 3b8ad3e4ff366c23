// SimPort: one end of a simulated link, with what an RDMA adapter and the network thread behind it
// would do.
//
// A transfer of the bytes [from, to) of one ring is a chain of events, each at a time drawn from
// the seed:
//
//   sender                                   receiver
//   start ──┬── piece ─────────────────────> bytes lie in the incoming ring   pieces in any order,
//           ├── piece ─────────────────────> bytes lie in the incoming ring   between rings too
//           │          after all pieces
//           ├── notification ──────────────> written position, ready mark, doorbell
//           └── completion   (before or after the notification)
//                                            frames are released
//   the peer's read position <────────────── read notification
//
// Within a ring transfers, notifications, completions and read notifications keep their order. The
// producer is shown the smaller of completion and read notification: space is free when both have
// passed it (native/DESIGN.md#one-rows-way, 8). What a real network would only do now and then is checked
// always:
//   - the bytes of a transfer do not change between its start and its completion
//   - no piece lands on bytes that the receiver has not given back
//   - nothing lands after stop
// unless a fault (sim_faults.h) has made what one end says to the other untrue.
//
// With turns (transport/schedule) a transfer of rows starts when the node may send to the peer. Turns are told by messages of
// their own, which keep their order.
//
// A delivery may cut the connection, or it goes dark (not if the rings stand). What was under way then never arrives. When both
// ends have another connection, each goes on from where the other is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "lab/simulation/transport/sim_faults.h"
#include "lab/simulation/transport/sim_turns.h"
#include "lab/simulation/transport/sim_world.h"
#include "ring/layout.h"
#include "transport/mending_tally.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace faro::sim {

using wire::Position;

/// Threads: its world's. Owned by its LinkSetup, then by its DataLink; events under way hold it
/// weakly, so that they come to nothing when it is gone.
class SimPort : public std::enable_shared_from_this<SimPort> {
 public:
  /// The port's part in the turns of its node: which rows go now, and what is told and heard of turns. False: rows are sent
  /// without.
  class InTurns final : private transport::schedule::Turns::Path {
   public:
    InTurns(SimPort& port, std::shared_ptr<SimTurns> node);
    explicit operator bool() const noexcept { return node_ != nullptr; }

    void enter();
    void leave() noexcept;
    void remove() noexcept;
    /// Those of the rows that may go now.
    void send_rows();
    /// A message has come; somebody reads it.
    void arrive(const transport::schedule::TurnMessage& message);
    void read();
    /// Has others send whose turn it is now.
    void send_what_is_due() noexcept;
    /// What this port has to say, and its rows.
    void send_due() noexcept override;

   private:
    static transport::schedule::TurnMessage hostile_turn(Random& random,
                                                         transport::schedule::TurnMessage message);
    void tell();
    uint64_t pending_rows() const noexcept;
    uint32_t peer() const noexcept;

    SimPort& port_;
    const std::shared_ptr<SimTurns> node_;
    std::deque<transport::schedule::TurnMessage> unread_;
    bool has_entered_ = false;
    uint32_t first_ring_ = 0;  // whose rows go first
    Nanoseconds last_message_ = 0;
  };

  /// Allocates the rings. turns: those of its node; null: it has none.
  SimPort(World& world, SimFaults& faults, uint32_t node, transport::LinkContext& context,
          std::shared_ptr<SimTurns> turns = nullptr);
  /// Gives the rings back. Whoever looks at a frame there from now on finds other bytes.
  ~SimPort();
  SimPort(const SimPort&) = delete;
  SimPort& operator=(const SimPort&) = delete;

  std::byte* outgoing_base(uint32_t ring) {
    return outgoing_memory_.get() + outgoing_.base_offset(ring);
  }
  std::byte* incoming_base(uint32_t ring) {
    return incoming_memory_.get() + incoming_.base_offset(ring);
  }
  const std::atomic<Position>* peer_read(uint32_t ring) { return &sending_[ring].peer_read; }
  const std::atomic<Position>* written(uint32_t ring) { return &receiving_[ring].written; }
  const ring::Layout& outgoing() const { return outgoing_; }
  const ring::Layout& incoming() const { return incoming_; }
  World& world() { return world_; }
  InTurns& turns() { return turns_; }

  /// The other end is this one.
  void attach(const std::shared_ptr<SimPort>& peer) {
    peer_ = peer;
    peer_node_ = peer->node_;
  }

  /// Where started transfers of a ring are counted; outlives the port's use.
  void count_transfers(uint32_t ring, std::atomic<uint64_t>* counter) {
    sending_[ring].transfers = counter;
  }
  /// Everything before `to` may be transferred. What exceeds Knobs::transfers_in_flight follows
  /// when one has completed.
  void transfer(uint32_t ring, Position to);
  /// Everything before `read` may be overwritten.
  void tell_read(uint32_t ring, Position read);
  /// Nothing is sent or received any more.
  void stop() noexcept {
    turns_.leave();
    stopped_ = true;
  }
  /// The link can carry nothing any more; the first cause is told.
  void fail(const Status& cause);

  /// What the connection has shown; sends the peer a sign of life, which is a delivery like any other.
  transport::Pulse take_pulse();

  // --- mending

  /// Nothing arrives over the connection any more, whichever end has sent it.
  void give_up_connection();
  /// There is another one. When the other end has it, too, both go on. Errors: peer_lost.
  Status take_connection();

 private:
  struct Sending {
    std::atomic<Position> peer_read{0};  // what the producer sees
    Position wanted = 0;                 // posted up to here
    Position started = 0;                // of which transfers have started up to here
    Position completed = 0;
    Position told_read = 0;  // by the peer
    uint32_t in_flight = 0;
    std::atomic<uint64_t>* transfers = nullptr;
    Nanoseconds last_notification = 0;  // of those under way: later ones come later
    Nanoseconds last_completion = 0;

    /// There is something to transfer, and fewer transfers than the network takes of a ring are under way.
    bool may_start(uint32_t most_in_flight) const {
      return started != wanted && in_flight < most_in_flight;
    }
  };
  struct Receiving {
    std::atomic<Position> written{0};  // what the consumer sees
    Position released = 0;             // told to the peer, at the moment of telling
    Nanoseconds last_read_notification = 0;
  };
  struct FreeMemory {
    void operator()(std::byte* memory) const noexcept;
  };
  using Memory = std::unique_ptr<std::byte[], FreeMemory>;
  static Memory allocate(uint64_t bytes);

  /// What is done when something arrives that was sent over the connection of now.
  std::function<void()> over_connection(std::function<void(SimPort&)> arrives);
  /// The peer's port, which hears from this one, if the delivery that is due comes through.
  std::shared_ptr<SimPort> deliver();
  /// A delivery has done that to the connection. Whether that was anything.
  bool break_off(SimPort& peer, SimFaults::Break how);
  void cut();
  void go_on(SimPort& peer);
  void resend_last_frame(uint32_t ring, SimPort& peer);
  void start_transfer(uint32_t ring);
  uint64_t digest(uint32_t ring, Position from, Position to) const;
  void place(uint32_t ring, Position from, Position to, uint64_t expected);
  void notify(uint32_t ring, Position to);
  void complete(uint32_t ring, Position from, Position to, uint64_t expected);
  void on_read_notification(uint32_t ring, Position read);
  void show_free_space(uint32_t ring);
  void check_unchanged(uint32_t ring, Position from, Position to, uint64_t expected,
                       const char* when);
  /// The peer's port if this one may still touch it; fails the link if the peer has stopped.
  std::shared_ptr<SimPort> reach_peer();
  bool gone() const { return stopped_ || life_ != faults_.life(node_); }
  /// When something sent now, which takes `delay`, arrives.
  Nanoseconds arrival(Nanoseconds delay) const;
  bool delivers_hostile() { return faults_.take_hostile(node_, peer_node_); }

  World& world_;
  SimFaults& faults_;
  const uint32_t node_;
  uint32_t peer_node_ = UINT32_MAX;
  transport::LinkContext& context_;
  const ring::Layout outgoing_;
  const ring::Layout incoming_;
  Memory outgoing_memory_;
  Memory incoming_memory_;
  std::vector<Sending> sending_;      // one per outgoing ring
  std::vector<Receiving> receiving_;  // one per incoming ring
  uint32_t turn_ = 0;                 // which worker of a node is woken for frames
  std::weak_ptr<SimPort> peer_;
  InTurns turns_;
  const uint32_t life_;  // of the local node
  bool stopped_ = false;
  bool failed_ = false;
  // The connections of the link, one after the other.
  enum class Connection : uint8_t { stands, broken, waits_for_peer };
  struct Path {
    Connection connection = Connection::stands;
    uint32_t given_up = 0;
    bool has_gone_on = true;  // over that of now, or it is the first
    bool is_dark = false;     // what this end sends over it does not arrive
    bool is_heard = false;    // something has come over it since the last pulse
    transport::MendingTally tally;
  };
  Path path_;
};

}  // namespace faro::sim
