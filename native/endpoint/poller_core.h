// PollerCore: the channels that one thread serves.
//
// The network thread makes and ends links and tells the poller by its mailbox; frames never pass through it. A channel has
// one ring each way. Its end, if it is drained:
//
//   side A                                                    side B
//   close(drain): END behind the last frame   ── ring ──►     takes END; its claims answer "closed" from now on
//                                             ◄── ring ──     END behind its own last frame
//   takes END: TAKEN                          ── control ──►
//                                             ◄── control ──  takes END: TAKEN
//   both have told and taken: BYE, and `closed` with ok, on either side
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "endpoint/channel_network.h"
#include "endpoint/held_frames.h"
#include "endpoint/mailbox.h"
#include "endpoint/poller_wait.h"
#include "faro/endpoint.h"
#include "links/transports.h"
#include "ring/ready_set.h"
#include "transport/transport.h"

namespace faro::endpoint {

/// A channel at its poller.
struct Channel {
  /// What this side still has to do before it has said all.
  enum class Sending : uint8_t { opening, open, ends, ended };

  ChannelId id;
  std::shared_ptr<transport::DataLink> link;  // null until it is open
  transport::Outgoing* out = nullptr;
  transport::Incoming* in = nullptr;
  counters::ChannelRecord* record = nullptr;  // as the three before
  ChannelInfo info;
  Sending sending = Sending::opening;
  bool told_opened = false;
  bool peer_ended = false;                // its END was taken, or a frame that ends the link
  bool owes_taken = false;                // the network thread does not know of its END yet
  std::optional<Closing> owes_closing{};  // nor that this side closes
  std::optional<Status> end{};            // why it ends; told behind what is left in the ring
  bool told_closed = false;
  bool is_full = false;       // as many frames are held as can be tracked
  HeldFrames held;            // frames that were not released
  uint32_t wanted_least = 0;  // of the claim that found no room; with the header
  uint32_t wanted_most = 0;
  ring::Claim claimed;  // the last one: of the ring, which rounds up
  size_t granted = 0;   // of it to the engine, without the header
  Status misuse{};      // why the last claim or commit was refused
  Status idle{};        // why this side drains it of its own accord
  bool is_loud =
      false;  // among what is committed and not posted is a frame that the peer is to be woken for
  // In the poller's lists.
  bool is_active = false, is_starving = false, is_unposted = false, is_touched = false;
};

/// Threads: the poller's, or whoever has entered in its place; except where said.
class PollerCore {
 public:
  /// References outlive it. `transports`: of its links. `channel_limit`: of the endpoint. Errors: resource_limit.
  static Result<std::unique_ptr<PollerCore>> make(
      ChannelNetwork& network, std::unique_ptr<links::Transports> transports,
      const base::Clock& clock, std::unique_ptr<ring::Waiter> waiter, ring::ReadyWatch& ready_watch,
      const PollerWait::Limits& limits, uint32_t channel_limit);

  // --- what faro::Poller offers

  Result<ChannelId> connect(std::string_view address, const ChannelSpec& spec);
  std::span<ChannelEvent> poll(std::span<ChannelEvent> events) noexcept;
  void release(ChannelId id, uint32_t token) noexcept;
  Outcome claim(ChannelId id, size_t least, size_t most, std::span<std::byte>& space) noexcept;
  Outcome commit(ChannelId id, size_t bytes, Notice notice = Notice::loud) noexcept;
  void post() noexcept;
  Outcome wait(Wait limit, WakeFor reasons = WakeFor::frames_and_room) noexcept;
  Outcome arm(WakeFor reasons) noexcept;
  void close(ChannelId id, Closing closing) noexcept;
  bool is_open(ChannelId id) const noexcept;
  Result<ChannelInfo> info(ChannelId id) const;
  Result<ChannelRings> rings(ChannelId id) const;
  Status status(ChannelId id) const;
  /// Waking it, its descriptor, and entering in its place.
  PollerWait& waiting() noexcept { return wait_; }

  // --- for the network thread

  /// Those of its links. Threads: network thread.
  links::Transports& transports() { return *transports_; }
  /// The local end of all its links. Threads: any.
  std::span<transport::WorkerEnd> end() { return {&end_, 1}; }
  /// Once for every channel that has opened, and once for every one that was told of or dialled here. Threads: network
  /// thread.
  void tell(ChannelNews news);
  /// The endpoint has closed: nothing more is told. Threads: network thread.
  void shut() noexcept;
  /// Lets all links go, so that they can be destroyed. Threads: the one that destroys the endpoint.
  void let_go() noexcept;

 private:
  class Room;
  enum class Visit : uint8_t { finished, unfinished };

  PollerCore(ChannelNetwork& network, std::unique_ptr<links::Transports> transports,
             const base::Clock& clock, PollerWait::Limits limits,
             std::unique_ptr<ring::Waiter> waiter, ring::ReadyWatch& ready_watch,
             transport::shm::NodeDoorbells doorbells, uint32_t channel_limit);

  Channel* find(ChannelId id) const noexcept;
  void take_news();
  void open(ChannelNews& news);
  void drain_idle(ChannelNews& news);
  void visit_active(Room& room);
  Visit visit(Channel& channel, Room& room);
  Visit take_frames(Channel& channel, Room& room);
  void visit_starving(Room& room);
  void begin_end(Channel& channel);
  bool try_end(Channel& channel) noexcept;
  void finish(Channel& channel);
  void forget(Channel& channel);
  // Without allocating: the lists have room for every channel.
  void activate(Channel& channel) noexcept;
  void sate(Channel& channel) noexcept;
  void starve(Channel& channel, uint32_t least, uint32_t most) noexcept;
  void touch(Channel& channel) noexcept;
  void before_wait(WakeFor reasons) noexcept;
  bool look(WakeFor reasons) noexcept;
  Outcome unless_shut(Outcome outcome, WakeFor reasons) noexcept;

  // Constant after construction.
  ChannelNetwork& network_;
  const std::unique_ptr<links::Transports> transports_;
  PollerWait wait_;
  ring::ReadySet ready_;  // group: the channel's index
  transport::WorkerEnd end_;

  std::vector<std::unique_ptr<Channel>> channels_;  // by index
  std::vector<Channel*> active_;                    // may have something to tell
  std::vector<Channel*> starving_;                  // a claim found no room
  std::vector<Channel*> unposted_;                  // committed frames were not posted
  std::vector<Channel*> touched_;  // frames were taken or released since the last wait
  // Closed in the last batch, which may still be looked at.
  std::vector<std::pair<ChannelId, ChannelInfo>> over_;
  std::deque<std::pair<ChannelId, Status>> closed_;  // the last ones

  Mailbox mailbox_;
  std::vector<ChannelNews> news_;  // taken out of it, in the opposite order
  std::atomic<bool> shut_{false};  // seq_cst, with the doorbell; and release: what was told before
};

}  // namespace faro::endpoint
