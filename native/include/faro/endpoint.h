// Endpoint: channels of frames between two peers, for engines with a flow control, a failure model
// and a scheduler of their own. There is no cluster, there are no queries and no workers: peers
// come and go, and the ring of a channel is its flow control.
//
//   // It listens, and takes no memory per peer.
//   auto endpoint = faro::Endpoint::open(config, {.name = "tm-1"});
//   faro::Poller& poller = (*endpoint)->poller(0);  // one thread's
//   faro::ChannelId channel = poller.connect("10.0.0.2:7000", {}).value();
//   faro::ChannelEvent events[64];
//   while (poller.wait() == faro::Outcome::done)
//     for (const faro::ChannelEvent& event : poller.poll(events))
//       …  // opened, frame, room, closed
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faro/channel_id.h"
#include "faro/config.h"
#include "faro/endpoint_metrics.h"
#include "faro/outcome.h"
#include "faro/status.h"
#include "faro/wait.h"

#pragma GCC visibility push(default)

namespace faro {

namespace endpoint {
class EndpointCore;
class PollerCore;
}  // namespace endpoint

/// What the dialling side asks for. Rings are powers of two, 4 KiB … 256 MiB; the accepting side
/// may make them smaller. 0: the endpoint chooses 256 KiB, or less if with these channel.expected
/// channels did not fit memory.limit_bytes.
struct ChannelSpec {
  uint32_t send_bytes = 0;     ///< of the ring towards the peer
  uint32_t receive_bytes = 0;  ///< of the ring from the peer
  /// What the accepting side sees before it accepts; at most 4096 bytes.
  std::vector<std::byte> greeting{};
  /// If its connection breaks while both processes live, the channel gets another one within
  /// link.mend_ms, and notices nothing but time. True: it ends at once, with peer_lost, as it does
  /// if either side says so here.
  bool ends_when_broken = false;
};

/// A peer that asks for a channel. It is valid during the call.
struct ChannelRequest {
  std::string_view peer;     ///< EndpointSpec::name of the peer
  std::string_view address;  ///< where it connects from
  std::span<const std::byte> greeting;
  uint32_t send_bytes = 0;     ///< of the ring towards the peer, as it asks
  uint32_t receive_bytes = 0;  ///< of the ring from the peer, as it asks
};

/// The answer to a ChannelRequest.
struct ChannelAcceptance {
  uint32_t poller = 0;  ///< that serves the channel
  /// The bytes of the ring towards the peer, rounded down to a power of two; never more than the
  /// peer asks for. 0: as many as it asks for, or less if with these channel.expected channels did
  /// not fit memory.limit_bytes.
  uint32_t send_bytes = 0;
  uint32_t receive_bytes = 0;  ///< of the ring from the peer; chosen as send_bytes is
  /// Not empty: there is no channel, for this reason, which the peer is told.
  std::string refusal{};
  bool ends_when_broken = false;  ///< see ChannelSpec::ends_when_broken
};

/// How a channel ends.
enum class Closing : uint8_t {
  /// What both sides have committed arrives first. Both get ChannelEvent::closed behind the last
  /// frame.
  drain,
  now,  ///< it ends at once; frames that were not taken are lost
};

/// Whether the peer's poller is woken for a frame, if it sleeps.
enum class Notice : uint8_t {
  loud,   ///< yes
  quiet,  ///< no: the peer can do without it for now. See Poller::commit
};

/// What ends a wait of a poller, beside a channel that opens or has ended, and wake().
enum class WakeFor : uint8_t {
  nothing = 0,
  /// Frames, and the end of a channel that either side drains, which comes behind the last frame:
  /// wait for these until it has closed.
  frames = 1,
  room = 2,
  frames_and_room = 3,
};

struct ChannelEvent {
  enum class Kind : uint8_t {
    opened,  ///< there are rings: claim and frames from now on
    frame,   ///< the peer has sent `data`, which stays in place until release()
    room,    ///< a claim that found none may find it now
    /// The last event of a channel. status(channel) says why: ok if both sides have drained it.
    closed,
  };
  ChannelId channel;
  Kind kind = Kind::opened;
  uint32_t token = 0;               ///< of a frame, for release()
  std::span<const std::byte> data;  ///< of a frame; may be empty
};

/// What is known of a channel that is open.
struct ChannelInfo {
  std::string peer;       ///< its name
  std::string address;    ///< where it listens, or connects from
  std::string transport;  ///< "shm", "tcp", "verbs"
  bool dialled = false;   ///< by this side
  std::vector<std::byte> greeting;
  uint32_t send_bytes = 0;     ///< of the ring towards the peer
  uint32_t receive_bytes = 0;  ///< of the ring from the peer
  /// A claim of so much always finds room once the peer has released enough.
  uint32_t least_frame_bytes = 0;
  bool ends_when_broken = false;  ///< a side wants it so, or the transport cannot mend it
};

/// Where the frames of a channel lie: for bindings that reach memory only through an object that
/// stands for it, and want to make one for each ring, not for each frame.
struct ChannelRings {
  std::span<std::byte> outgoing;        ///< every claim is a part of it
  std::span<const std::byte> incoming;  ///< the data of every frame is a part of it
  /// Keeps both rings mapped, when the channel has long closed, too, until the last copy is gone.
  /// It is to be dropped before the Endpoint is destroyed, by any thread. Memory that is kept
  /// counts against memory.limit_bytes.
  std::shared_ptr<const void> memory;
  /// Keeps only the addresses of both rings, until the last copy is gone. Where `memory` was
  /// dropped, the memory is given back as soon as the channel has ended and no frame of it is held;
  /// an access at these addresses then raises SIGBUS, and a system call answers EFAULT: what lies
  /// there is never somebody else's. May outlive the Endpoint.
  std::shared_ptr<const void> addresses;
};

/// Serves channels on one thread: polls their frames, writes into their rings, and waits for all of
/// them at once.
///
/// Threads: one at a time, except where said; while it waits in wait() another one may send by way
/// of try_enter().
/// Blocks: wait() only. A reference stays valid as long as its Endpoint.
class Poller {
 public:
  /// Asks the endpoint at `address` (host:port) for a channel, which this poller serves. `opened`
  /// or `closed` tells how that ended, within connect.timeout_ms; at once if either side refuses
  /// the other for good. Errors: invalid_argument (address, ring sizes, greeting), limit_exceeded
  /// (EndpointSpec::channel_limit), closed.
  Result<ChannelId> connect(std::string_view address, const ChannelSpec& spec);

  /// The next events, as many as there are and `events` has room for: the first part of `events`.
  /// For each channel they come in order: opened, frames and room, closed. Only wait() reads
  /// sockets and tells peers what was released, so a loop that never waits calls wait(Wait::none())
  /// in between. Frames stay in place until they are released.
  std::span<ChannelEvent> poll(std::span<ChannelEvent> events) noexcept;

  /// Gives the space of a frame back, in any order; what `data` referred to is invalid from now on.
  /// Does nothing for a frame that was released before, or a channel that is gone.
  void release(ChannelId channel, uint32_t token) noexcept;

  /// Gives space for a frame of at least `least` and up to `most` bytes, in the memory that it is
  /// sent from. Without a commit the next claim of the channel gives the same space again. `space`
  /// is empty unless the answer is done.
  ///
  /// Answers
  /// - done: the frame is to be written into `space`, and then commit() to follow.
  /// - would_wait: there is none, and a `room` event will come; or, of a channel that has not
  ///   opened yet, `opened`.
  /// - failed: status(channel) says why. `least` is above ChannelInfo::least_frame_bytes
  ///   (invalid_argument), or the channel is not open; it was drained if that status is ok.
  Outcome claim(ChannelId channel, size_t least, size_t most, std::span<std::byte>& space) noexcept;
  /// The claimed space now holds a frame of that many bytes, 0 … the claim's. It travels with the
  /// next post(). Answers done, or failed, see status(channel): invalid_argument (more than was
  /// claimed), wrong_state (nothing was claimed), or why the channel is not open.
  ///
  /// A quiet frame is for what the peer need not know yet, such as credits while it has others
  /// left. On one host the peer sees it when it looks next, for whatever reason; over a network it
  /// is not sent before a loud one of the same channel. Both see it at the latest when a loud frame
  /// follows, a claim of this side finds no room, or the channel is drained. So what a quiet frame
  /// says must not be counted as known. When the peer comes to need it, a loud frame has to follow,
  /// which may be empty.
  Outcome commit(ChannelId channel, size_t bytes, Notice notice = Notice::loud) noexcept;
  /// Starts the transfer of all frames committed. wait() and arm() do so, too. Over tcp that is a
  /// system call: a poller that has much to send calls it when there is no more room rather than
  /// after each frame.
  void post() noexcept;

  /// Waits until poll() has something to tell of what `reasons` names, or wake(). Yields
  /// wait.yields times, of which four count as one where they let nobody else run, then sleeps.
  /// What is not waited for is not lost: poll() tells it, and the next wait for it ends at once.
  /// Answers done, deadline, would_wait (Wait::none()), or failed: closed, invalid_argument (a
  /// negative limit).
  Outcome wait(Wait limit = Wait::forever(), WakeFor reasons = WakeFor::frames_and_room) noexcept;
  /// Ends a wait, or else the next one; makes an armed poller's descriptor readable. Threads: any.
  void wake() noexcept;

  /// For engines with an event loop, which wait for this poller together with whatever else they
  /// wait for: a descriptor for epoll or poll that is readable when the poller should look again.
  /// The engine's loop:
  ///
  ///   const int descriptor = poller.descriptor().value();  // once, into epoll for EPOLLIN
  ///   for (;;) {
  ///     Outcome outcome;
  ///     while ((outcome = poller.arm()) == Outcome::done) …  // poll(), and what there is to do
  ///     if (outcome == Outcome::failed) break;
  ///     epoll_wait(…);
  ///   }
  ///
  /// The descriptor is an eventfd, made by the first call of this. It is the endpoint's: nobody
  /// else closes it, and nobody needs to read it, since arm() resets it. In a forked child it is of
  /// no use. One thread of the endpoint, which starts with the first call of this, sleeps in place
  /// of all pollers that are armed: so an event takes one wake-up more than a wait(). (On a kernel
  /// older than 5.16 it wakes up each millisecond.) Errors: system_error, closed.
  Result<int> descriptor();
  /// Looks for what wait() waits for, and arms the poller if there is nothing to tell. It makes no
  /// system call as long as there is something. Blocks: never.
  ///
  /// Answers
  /// - done: poll() has something to tell. The poller is not armed.
  /// - would_wait: it is armed. The descriptor becomes readable once: when there is something to
  ///   tell of what `reasons` names, after wake(), when the endpoint is closed, and after
  ///   wait.sleep_ms in any case. Then call arm() again. An earlier call of arm() or wait() takes
  ///   the event back. Any other call may be made in between. No other thread can enter.
  /// - failed: closed, or descriptor() was not called.
  Outcome arm(WakeFor reasons = WakeFor::frames_and_room) noexcept;

  /// For other threads: takes the place of the poller's own thread while that waits in wait(), to
  /// claim, commit and post. It answers false if that thread does not wait now, is looking between
  /// two pauses, or another thread is inside: then hand the work over and wake() the poller. Soon
  /// after true, leave() has to follow: the poller's thread cannot go on before. That thread goes
  /// on waiting for the reasons that it has named: if there are others now, as for room after a
  /// claim that found none, wake() it. Threads: any. Blocks: never.
  bool try_enter() noexcept;
  /// Ends what a try_enter() that answered true began. Threads: the one that has entered.
  void leave() noexcept;

  /// Ends a channel. `closed` follows, of a drained one within close.timeout_ms, also if its
  /// connection is broken. Until then frames still come.
  void close(ChannelId channel, Closing closing) noexcept;

  /// Whether a claim finds room, now or later: the channel is being opened, or open, and this side
  /// has not begun to end it.
  bool is_open(ChannelId channel) const noexcept;
  /// What is known of a channel, from `opened` on, until the first poll() or wait() after the batch
  /// that had `closed`. Errors: closed.
  Result<ChannelInfo> info(ChannelId channel) const;
  /// Where the frames of a channel lie. Blocks: never. Errors: closed (the channel has not opened,
  /// or has closed and no frame of it is held).
  Result<ChannelRings> rings(ChannelId channel) const;
  /// Why the last claim or commit of a channel was refused, or why it is not open: ok while it is,
  /// or when both sides have drained it; else one of these, as after ChannelEvent::closed.
  ///   closed                  the peer, or this side, has closed it at once, it was idle for
  ///                           channel.idle_ms and this side has drained it (the peer sees a
  ///                           drained channel), or this endpoint was closed
  ///   peer_lost               the peer died or hangs, or was cut off for longer than link.mend_ms
  ///   connect_failed          nobody answers at the address
  ///   cancelled               the peer's EndpointSpec::accept refused it: the text has its reason
  ///   configuration_mismatch, authentication_failed, transport_unavailable, resource_limit,
  ///   limit_exceeded
  ///                           it was refused: the text has the reason, and the figures
  ///   protocol_error          the peer broke the protocol
  ///   deadline_exceeded       it was not drained within close.timeout_ms
  ///   invalid_argument, wrong_state  of a claim or commit
  /// It is kept until the `closed` event was polled and 1024 other channels were closed after it.
  Status status(ChannelId channel) const;

 private:
  friend class Endpoint;
  explicit Poller(endpoint::PollerCore& core) : core_(&core) {}
  endpoint::PollerCore* core_;
};

struct EndpointSpec {
  /// The name that peers are told, of at most 255 bytes.
  std::string name{};
  uint32_t poller_count = 1;      ///< 1 … 64
  uint32_t channel_limit = 1024;  ///< that exist at a time, 1 … 65536
  /// It is asked for every channel that a peer wants; empty: all are accepted, by poller 0. It must
  /// neither block nor throw. Threads: the network thread.
  std::function<ChannelAcceptance(const ChannelRequest&)> accept{};
  /// What a connection gets that does not begin as Faro's do, before it is closed: for an engine
  /// whose own protocol may be spoken to this port by mistake, and can carry an error. At most 4096
  /// bytes; empty: it is closed.
  std::vector<std::byte> answer_to_others{};
};

/// Listens for peers, and carries the channels to them. Settings (Config): cluster.listen
/// (127.0.0.1:0 unless set), cluster.id, security.*, transport, shm.folder, verbs.*,
/// memory.limit_bytes, connect.timeout_ms, close.timeout_ms, liveness.timeout_ms, link.mend_ms,
/// channel.*, wait.*, counters.folder, metrics.*.
///
/// Threads: any. Fork: an endpoint stays its parent's, as Session says.
class Endpoint {
 public:
  /// Listens. Blocks: never for long. Errors: config_invalid, invalid_argument (`spec`),
  /// address_in_use, transport_unavailable, resource_limit, system_error.
  static Result<std::unique_ptr<Endpoint>> open(const Config& config, EndpointSpec spec);
  /// What each of these channels would take of memory.limit_bytes on this side: its rings, what
  /// this process has for it beside them (some KiB, with TLS some 25 KiB per connection), and its
  /// greeting. Of the transports that `config` allows and that work here the one counts that takes
  /// most. It is for an engine that makes its rings so small that as many channels fit as it
  /// expects. Sizes have to be given. It listens nowhere. Blocks: for opening RDMA devices.
  /// Errors: config_invalid, invalid_argument, transport_unavailable, resource_limit, system_error.
  static Result<std::vector<uint64_t>> channel_memory(const Config& config,
                                                      std::span<const ChannelSpec> channels);
  /// Calls close().
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Where peers connect: host:port, with the port that the system chose.
  const std::string& address() const noexcept;
  uint32_t poller_count() const noexcept;
  /// The i-th poller, i < poller_count().
  Poller& poller(uint32_t index) noexcept;

  /// What the endpoint has counted, also after close(). Other processes see it, too (faro stat),
  /// unless counters.folder has no room. Blocks: never for long, longer the more channels there
  /// are.
  /// Errors: resource_limit (memory).
  Result<EndpointMetrics> metrics() const;

  /// Closes all channels at once, tells the peers, and stops the network thread. Every wait() ends.
  /// Drain channels first to lose nothing. Idempotent. Blocks: at most close.timeout_ms. Frames
  /// that were not released stay readable until destruction.
  void close() noexcept;

 private:
  explicit Endpoint(std::unique_ptr<endpoint::EndpointCore> core);
  std::unique_ptr<endpoint::EndpointCore> core_;
  std::vector<std::unique_ptr<Poller>> pollers_;
};

}  // namespace faro

#pragma GCC visibility pop
