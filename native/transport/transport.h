// The transport interface: how frames get from a worker of one node to a worker of another.
//
//   sender                                             receiver
//   claim → (write the frame in place) → commit        next → (read the frame in place) → release
//           post: start what is committed
//
// This is the endpoint interface of the data-shuffling-operator paper (§3). The mirrored ring of
// ring/producer.h and ring/consumer.h is one way to implement it. SEND/RECEIVE or RDMA READ, where the
// receiver chooses where bytes lie, would fit as well: no layer above uses positions or offsets.
//
// No call is made per row: one per frame (claim, commit, next, release) or per transfer (post).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "counters/records.h"
#include "faro/status.h"
#include "ring/consumer.h"
#include "ring/doorbell.h"
#include "ring/layout.h"
#include "ring/producer.h"
#include "ring/ready_set.h"
#include "wire/frame.h"

namespace faro::tls {
class Stream;
}

namespace faro::transport {

using counters::count;
using counters::IncomingCounters;
using counters::OutgoingCounters;
using ring::Claim;
using ring::FrameView;
using ring::Next;

/// The sending end of one ring.
/// Threads: one worker at a time. Blocks: never.
class Outgoing {
 public:
  virtual ~Outgoing() = default;

  /// Contiguous space for a frame of at least `least_bytes` (header included, at most
  /// frame_limit()), up to `most_bytes` (at most full_frame_limit()). Empty if there is no space now: the peer has to release
  /// some first. Until `commit` the same call returns the same space again, or more of it, so there is nothing to abort. An empty
  /// claim also asks for a wake-up: the worker's doorbell rings when there may be space. Without such a
  /// request the transport need not ring it.
  virtual Claim claim(uint32_t least_bytes, uint32_t most_bytes) = 0;

  /// The claimed space now holds a whole frame of `length` bytes (its header's length).
  virtual void commit(uint32_t length) = 0;

  /// Starts the transfer of everything committed. The bytes may move later, after an earlier transfer has
  /// completed, but the caller never has to call again for that.
  virtual void post() = 0;

  /// Starts the transfer of everything committed, but not urgently: the transport may wait for more
  /// to send along. It sends at the latest on Transport::flush, a `post` to the same node, a claim
  /// that finds no space, or after 300 µs while workers make calls and some milliseconds while
  /// they do not, so that a worker that computes for a long time does not keep its peers waiting.
  virtual void post_soon() { post(); }

  /// Starts the transfer of everything committed, but nobody is waiting for it: the receiving
  /// worker is not woken. It finds what is committed when it looks at a ring in its own memory;
  /// over a network nothing is sent before the next `post`.
  virtual void post_quietly() {}

  /// What an empty claim has asked for is not wanted any more: the doorbell need not ring. Until the next empty claim.
  virtual void forgo_room() {}

  /// Committed bytes that were not posted. What post_soon holds back counts as posted.
  virtual uint64_t pending_bytes() const = 0;

  /// The largest `least_bytes` of a claim: what a frame of a single row may need.
  virtual uint32_t frame_limit() const = 0;
  /// The largest `most_bytes` of a claim: a frame of several rows.
  virtual uint32_t full_frame_limit() const = 0;
  /// Where claims lie; empty if nothing can be sent.
  virtual std::span<std::byte> memory() const = 0;
  virtual const OutgoingCounters& counters() const = 0;
  /// Counts in `counters` from now on, which must outlive this; until then, in memory of its own. Threads: the
  /// one that opens the session, before any worker uses the ring.
  virtual void count_in(OutgoingCounters& counters) = 0;
};

/// The receiving end of one ring.
/// Threads: one worker at a time. Blocks: never.
class Incoming {
 public:
  virtual ~Incoming() = default;

  /// Takes the next frame in order. Pads are skipped.
  ///   frame    `view` is set; the frame stays in place until released
  ///   nothing  everything that has arrived was taken; the ready bit will be set when more arrives
  ///   full     too many frames are unreleased to track another one: release some and call again
  ///   invalid  the peer broke the rules; the link has been told to fail (LinkEvents), and no more
  ///            frames come
  virtual Next next(FrameView& view) = 0;

  /// Gives a frame's space back, in any order. The sender gets space back in order. It is told when a
  /// quarter of the ring has been released since it was last told, or nothing is left unreleased; a transport may delay that
  /// while the sender cannot be blocked.
  virtual void release(uint32_t token) = 0;

  /// Sends a read notification for everything released, however little; a transport may leave it out while
  /// the sender cannot be blocked on it; at the latest with Transport::flush. Whether the sender may be blocked depends on what
  /// has arrived. So call it before the worker sleeps, for every ring that it took from or released to
  /// since the last call.
  virtual void flush_releases() = 0;

  /// Bytes of the frames that were taken and are not released yet. counters().unreleased_bytes is the same for other threads: each
  /// `next` that takes a frame, and each `release`, sets it, relaxed, before it returns. So a thread that has synchronised
  /// with the worker since such a call reads what that call left, or what a later one did; of later ones it knows nothing.
  virtual uint64_t unreleased_bytes() const = 0;
  /// Whether the frames that are not released may leave the sender without room for a frame.
  virtual bool may_block_sender() const = 0;
  /// Where frames lie; empty if nothing can arrive.
  virtual std::span<const std::byte> memory() const = 0;

  virtual const IncomingCounters& counters() const = 0;
  /// Counts in `counters` from now on, as Outgoing::count_in says.
  virtual void count_in(IncomingCounters& counters) = 0;
};

/// What a kind of transport can do; read once when a link is opened.
struct Capabilities {
  std::string_view name;        // "shm", "tcp", …
  bool same_host_only = false;  // needs shared memory
  uint64_t mends =
      0;  // features by which both sides offer Transport::mend (wire/control.h); 0: it has none
  bool dials_data =
      false;  // a link has a TCP connection for its data, encrypted as the control connection is
};

/// Counts what the data path of a link, or of a part of it, has asked of its network device. Each counter is
/// written by one thread at a time, relaxed.
struct LinkCounters {
#define FARO_NETWORK_COUNTER(id, name, kind, help) counters::Counter name{0};
#include "counters/counters.def"

  /// Threads: any; `sum` belongs to the caller.
  void add_to(LinkCounters& sum) const noexcept {
#define FARO_NETWORK_COUNTER(id, name, kind, help) \
  counters::count(sum.name, name.load(std::memory_order_relaxed));
#include "counters/counters.def"
  }
};

/// What the data connection of a link has shown since somebody looked last.
enum class Pulse : uint8_t {
  unknown,  // nothing can be told: there is no connection, or the peer sends no signs of life
  none,     // nothing has come
  heard,    // anything at all has come
  stuck,    // it has broken again and again, and nothing has got further: do not mend it again
};

/// The data side of one link to one peer. Rings are numbered as in ring::Layout, separately per
/// direction.
class DataLink {
 public:
  virtual ~DataLink() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Whether it carries nothing, as there is no such link.
  virtual bool is_absent() const { return false; }
  virtual Outgoing& outgoing(uint32_t ring) = 0;
  virtual Incoming& incoming(uint32_t ring) = 0;
  /// If the link's memory has ready words, makes a receiving end use them: from `first_group` on they
  /// replace those of its ready set. Undo it by ReadySet::clear_external before the link is destroyed.
  /// Threads: whoever takes from the end's rings, or before anybody does.
  virtual void attach_ready(ring::ReadySet& ready, uint32_t first_group, uint32_t end) {
    (void)ready, (void)first_group, (void)end;
  }
  /// Adds what this link has counted; has no effect without such a device. Threads: any.
  virtual void add_counters(LinkCounters& sum) const { (void)sum; }

  /// Reads what has come, though no worker does, and sends the peer a sign of life. Call it with each heartbeat, and once
  /// more before the peer's silence counts. Threads: network thread, not from inside the link. Blocks: never for long.
  virtual Pulse take_pulse() noexcept { return Pulse::unknown; }

  /// Fences posting: afterwards nothing is sent or received and `post`/`release` do nothing. Memory
  /// stays valid until destruction. Idempotent. Threads: any. Blocks: never.
  virtual void stop() noexcept = 0;
  /// Stops, and gives back what it has of the network, so that a binding that keeps its memory
  /// keeps no more than that. False: another thread is inside; call it again. Threads: network
  /// thread, not from inside the link. Blocks: never.
  virtual bool close_connections() noexcept {
    stop();
    return true;
  }

  /// Whether senders find no room in its rings now: the layer above wants nothing to be sent, and sees to
  /// it itself. Threads: any; relaxed.
  const std::atomic<bool>& held() const noexcept { return held_; }
  void hold(bool held) noexcept { held_.store(held, std::memory_order_relaxed); }

 private:
  std::atomic<bool> held_{false};
};

/// Waits for descriptors to become ready, on behalf of the network thread (or of a test that calls do_work).
/// Threads: the network thread, and before it runs the thread that opens the session.
class Reactor {
 public:
  /// Called with EPOLL… bits. May add, change and remove any descriptor, including its own.
  using Handler = std::function<void(uint32_t events)>;

  virtual ~Reactor() = default;
  /// The bits may include EPOLLET (edge-triggered).
  virtual Status add(int fd, uint32_t epoll_events, Handler handler) = 0;
  /// May be called with unchanged bits: an edge-triggered descriptor that is ready is then reported
  /// again.
  virtual void change(int fd, uint32_t epoll_events) = 0;
  /// After this the handler is not called again.
  virtual void remove(int fd) noexcept = 0;
  /// Runs `task` on the network thread soon. Threads: any. Blocks: never. Wakes the thread only if
  /// it sleeps. `task` is dropped if the session has closed.
  virtual void defer(std::function<void()> task) = 0;
  virtual const base::Clock& clock() const = 0;
};

/// What a link reports to the layer above. Threads: any. Called at most once per link, and once more each time that it
/// was mended.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  /// The link can carry nothing any more; `cause` says what happened, without the peer's name. peer_lost: its connection
  /// has broken, and Transport::mend may give it another one. The caller is inside the link, so do not destroy the link
  /// from here.
  virtual void on_link_failed(const Status& cause) = 0;
};

/// What transports need to know about one local worker.
struct WorkerEnd {
  ring::ReadySet* ready = nullptr;
  ring::DoorbellLine* doorbell = nullptr;
};

/// Where rings end: what is marked when something has come by one, and who is woken for it: a worker, or one of all workers of
/// the node.
struct ReceivingEnd {
  ring::ReadySet* ready = nullptr;
  std::span<ring::DoorbellLine* const> doorbells;
};

/// A memfd with one DoorbellLine per local worker, shared with shm peers.
struct DoorbellMemory {
  int fd = -1;
  uint32_t worker_count = 0;
};

/// Ties a data connection to the control connection of its link: drawn at random for each link by
/// the side that accepted the control connection. A dialled data connection starts with it
/// (wire/README.md).
using StreamToken = std::array<std::byte, 16>;

/// How a link is mended (links/link.h).
struct MendPlan {
  base::Nanoseconds limit = 0;  // how long it may take; 0: not at all
  std::string address = {};     // where the peer can be dialled; empty: nowhere
  uint64_t number = 0;  // tells the link from all others between the same processes; 0: not mended
};

/// Everything needed to set up one link. Outlives the link.
struct LinkContext {
  uint32_t peer_node = 0;
  std::string peer_name;         // "node 2 (10.0.0.2:7000)", for messages
  bool initiator = false;        // this side opened the control connection
  std::string peer_address;      // where the peer listens, as dialled for the control connection
  std::string peer_host;         // its host in cluster.nodes, which its certificate must name
  StreamToken stream_token;      // the same on both sides
  ring::Layout outgoing;         // rings from local to peer
  ring::Layout incoming;         // rings from peer to local
  std::span<WorkerEnd> workers;  // local workers
  DoorbellMemory doorbells;      // of this node
  /// The last receiving end, if that is the node; null: all are its workers. As `workers`, it is filled before the link is set up.
  const ReceivingEnd* node_end = nullptr;
  /// First ready ring number of this link's rings at each receiving end is ready_group[e] * 64. The
  /// groups are there, and the same for each link to this peer.
  std::span<const uint32_t> ready_group;  // one per receiving end
  Reactor* reactor = nullptr;
  LinkEvents* events = nullptr;
  base::Nanoseconds liveness = 0;  // a peer that is silent for so long is lost; 0: nobody asks
  /// What both sides do on data connections, where the transport has it.
  struct Agreed {
    bool signs = false;  // they send signs of life
    bool turns = false;  // they send rows in turns
  };
  Agreed agreed;
  MendPlan mending;
  /// Sends a setup message (at most 4 KiB) to the peer's LinkSetup over the control connection.
  std::function<void(std::span<const std::byte>)> send;

  /// A receiving end, as ring::Layout counts them.
  ReceivingEnd end(uint32_t number) const noexcept {
    if (node_end != nullptr && number + 1 == incoming.receiver_ends) return *node_end;
    return {workers[number].ready, {&workers[number].doorbell, 1}};
  }
};

/// A connected, non-blocking, ordered byte stream that was dialled for this link's data (a TCP
/// connection whose preamble the session has read). Owns the descriptor.
struct DataStream {
  int fd = -1;
  std::shared_ptr<tls::Stream> tls = nullptr;  // the encryption; null: none
};

/// A non-blocking state machine that connects the two ends of a link, together with the peer's counterpart.
/// Threads: network thread (see Reactor). Destroying it unfinished releases everything.
class LinkExchange {
 public:
  virtual ~LinkExchange() = default;
  /// Starts; may call context.send. Errors end the exchange and reach the peer.
  virtual Status start() = 0;
  /// A setup message of the peer. Untrusted: every byte is checked.
  virtual Status on_message(std::span<const std::byte> message) = 0;
  /// A data connection for this link arrived at the session's listener.
  virtual Status on_stream(DataStream stream) = 0;
  /// Set when something went wrong outside a call (a failed dial).
  virtual Status status() const = 0;
  /// This side has everything it needs. The session then tells the peer and waits until it is ready, too.
  virtual bool ready() const = 0;
};

/// Makes a DataLink.
class LinkSetup : public LinkExchange {
 public:
  /// The link; once, after ready(). Null if the last step failed; status() then says why.
  virtual std::unique_ptr<DataLink> take() = 0;
};

/// Gives a DataLink whose connection has broken another one. From its construction on nothing arrives over the old
/// connection any more.
class LinkMending : public LinkExchange {
 public:
  /// The link is in order again: everything that was committed arrives, once. Once, after ready(). Errors: why it is
  /// not; peer_lost: the new connection has broken, too.
  virtual Status finish() = 0;
};

/// What workers do for the network when they have nothing else to do.
class IdleWork {
 public:
  virtual ~IdleWork() = default;

  /// Does the network thread's work for data that has arrived, in the calling thread. Returns whether
  /// there was any. Idle workers call it, so that a busy node need not wake its network thread. A
  /// transport whose data arrives without a thread of this node has nothing to do here. Threads: any.
  /// Blocks: never.
  virtual bool poll() noexcept { return false; }
  /// Starts what post_soon, release and flush_releases have left for later, on all links. Called by
  /// workers before they yield or sleep. Threads: any. Blocks: never.
  virtual void flush() noexcept {}
  /// Enclose each sleep of a worker: while one sleeps the network thread is responsible. Call
  /// worker_sleeps before the worker's last look at its rings. Threads: any. Blocks: never for long.
  virtual void worker_sleeps() noexcept {}
  virtual void worker_wakes() noexcept {}
};

/// One kind of transport, as a session, or a poller of an endpoint, uses it. Owned by that.
class Transport : public IdleWork {
 public:
  virtual const Capabilities& capabilities() const = 0;
  /// Ok, or why it cannot be used on this machine and what to do about it.
  virtual Status available() const = 0;
  /// Bytes of memory (or /dev/shm) that this node needs for a link of that shape, before it is opened.
  virtual uint64_t memory_bytes(const ring::Layout& outgoing,
                                const ring::Layout& incoming) const = 0;
  /// Bytes that this process has for such a link beside those: objects, positions, counters of its own.
  virtual uint64_t state_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const {
    (void)outgoing, (void)incoming;
    return 0;
  }
  /// Those of memory_bytes that count against the limit of locked memory.
  virtual uint64_t pinned_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const {
    (void)outgoing, (void)incoming;
    return 0;
  }
  virtual std::unique_ptr<LinkSetup> begin(LinkContext& context) = 0;
  /// Mends a link that has come of begin with this context; where capabilities().mends is not 0. context.stream_token is
  /// another one than before; set it before LinkMending::start. The link outlives the result.
  virtual std::unique_ptr<LinkMending> mend(LinkContext& context, DataLink& link) {
    (void)context, (void)link;
    return nullptr;
  }
};

}  // namespace faro::transport
