// The transport interface: how frames get from a worker of one node to a worker of another.
//
//   sender                                             receiver
//   claim → (write the frame in place) → commit        next → (read the frame in place) → release
//           post: start what is committed
//
// This is the endpoint interface of the data-shuffling-operator paper (§3): the mirrored ring of
// ring/producer.h and ring/consumer.h is one way to implement it; SEND/RECEIVE or RDMA READ, where
// the receiver chooses where bytes lie, fit it too: nothing above looks at positions or offsets.
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
  /// frame_limit()), up to `most_bytes` (at most half the ring); empty when there is no space now: the peer has to release
  /// first. The same space is returned again until `commit`; there is nothing to abort. An empty
  /// claim also asks for a wake-up: the worker's doorbell is rung when there may be space. A
  /// transport need not ring it for space otherwise.
  virtual Claim claim(uint32_t least_bytes, uint32_t most_bytes) = 0;

  /// The claimed space now holds a whole frame of `length` bytes (its header's length).
  virtual void commit(uint32_t length) = 0;

  /// Starts the transfer of everything committed. The bytes may still move later, when an earlier
  /// transfer has completed; the transport sees to it, the caller never has to call again.
  virtual void post() = 0;

  /// The same, but not urgent: the transport may wait for more to go along, until Transport::flush, a
  /// `post` to the same node, a claim that finds no space, or some milliseconds have passed: a worker
  /// that computes for long without a call must not keep its peers waiting.
  virtual void post_soon() { post(); }

  /// Committed bytes of which no transfer was started.
  virtual uint64_t pending_bytes() const = 0;

  /// The most that a claim may need at least.
  virtual uint32_t frame_limit() const = 0;
  virtual const OutgoingCounters& counters() const = 0;
  /// Counts in `counters` from now on, which outlives this; before, in memory of its own. Threads: who
  /// opens the session, before any worker uses the ring.
  virtual void count_in(OutgoingCounters& counters) = 0;
};

/// The receiving end of one ring.
/// Threads: one worker at a time. Blocks: never.
class Incoming {
 public:
  virtual ~Incoming() = default;

  /// Takes the next frame in order. Pads are skipped.
  ///   frame    `view` is set; the frame stays in place until released
  ///   nothing  all that has arrived was taken; the ready bit will be set when more arrives
  ///   full     as many frames as are tracked at a time are unreleased: release some, look again
  ///   invalid  the peer broke the rules; the link was told to fail (LinkEvents); nothing more
  ///            comes
  virtual Next next(FrameView& view) = 0;

  /// Gives a frame's space back. In any order; space returns to the sender in order, after a
  /// quarter of the ring, or at once when nothing else is left in it.
  virtual void release(uint32_t token) = 0;

  /// Tells the sender everything released so far, however little, unless the sender cannot be
  /// waiting for it; at the latest with Transport::flush. Whether it can changes with what arrives:
  /// to be called before the worker sleeps for each ring from which it took or released anything
  /// since.
  virtual void flush_releases() = 0;

  /// Bytes taken by frames not yet released.
  virtual uint64_t unreleased_bytes() const = 0;

  virtual const IncomingCounters& counters() const = 0;
  /// As Outgoing::count_in.
  virtual void count_in(IncomingCounters& counters) = 0;
};

/// What a kind of transport can do; read once when a link is opened.
struct Capabilities {
  std::string_view name;        // "shm", "tcp", …
  bool same_host_only = false;  // needs shared memory
};

/// What the data path of a link has asked of its network device, or a part of the link. Each is written
/// by one thread at a time, relaxed.
struct LinkCounters {
  std::atomic<uint64_t> posts{0};          // calls that hand over work requests
  std::atomic<uint64_t> writes{0};         // work requests that carry rows
  std::atomic<uint64_t> notifications{0};  // messages that tell of rows, or of rows read
  std::atomic<uint64_t> returns{0};        // messages that only return credits
  std::atomic<uint64_t> signalled{0};      // posts that were to be reported when they completed
  std::atomic<uint64_t> completions{0};    // taken, of what was sent and received
  std::atomic<uint64_t> events{0};         // that woke the network thread to take some

  /// Threads: any; `sum` belongs to the caller.
  void add_to(LinkCounters& sum) const noexcept {
    const auto add = [](std::atomic<uint64_t>& to, const std::atomic<uint64_t>& more) {
      to.store(to.load(std::memory_order_relaxed) + more.load(std::memory_order_relaxed),
               std::memory_order_relaxed);
    };
    add(sum.posts, posts);
    add(sum.writes, writes);
    add(sum.notifications, notifications);
    add(sum.returns, returns);
    add(sum.signalled, signalled);
    add(sum.completions, completions);
    add(sum.events, events);
  }
};

/// The data side of one link to one peer. Rings are numbered as in ring::Layout, separately per
/// direction.
class DataLink {
 public:
  virtual ~DataLink() = default;
  virtual const Capabilities& capabilities() const = 0;
  virtual Outgoing& outgoing(uint32_t ring) = 0;
  virtual Incoming& incoming(uint32_t ring) = 0;
  /// Lets a local worker look at the ready words that lie in the link's memory, if there are such:
  /// from `first_group` on they take the place of those of its ready set. To be undone, by
  /// ReadySet::clear_external, before the link is destroyed. Threads: the worker, or before it runs.
  virtual void attach_ready(ring::ReadySet& ready, uint32_t first_group, uint32_t worker) {
    (void)ready, (void)first_group, (void)worker;
  }
  /// Adds what this link has counted; nothing where there is no such device. Threads: any.
  virtual void add_counters(LinkCounters& sum) const { (void)sum; }

  /// Fences posting: afterwards nothing is sent or received and `post`/`release` do nothing. Memory
  /// stays valid until destruction. Idempotent. Threads: any. Blocks: never.
  virtual void stop() noexcept = 0;
};

/// Readiness of file descriptors, as the network thread (or a test that calls do_work) waits for
/// it. Threads: the network thread, and the thread that opens the session before that one runs.
class Reactor {
 public:
  /// Called with EPOLL… bits. May add, change and remove any descriptor, also its own.
  using Handler = std::function<void(uint32_t events)>;

  virtual ~Reactor() = default;
  /// The bits may include EPOLLET (edge-triggered).
  virtual Status add(int fd, uint32_t epoll_events, Handler handler) = 0;
  /// Also with the same bits as before: an edge-triggered descriptor that is ready is then reported
  /// again.
  virtual void change(int fd, uint32_t epoll_events) = 0;
  /// After this the handler is not called again.
  virtual void remove(int fd) noexcept = 0;
  /// Runs `task` on the network thread soon. Threads: any. Blocks: never. Wakes the thread only if
  /// it sleeps. `task` is dropped if the session has closed.
  virtual void defer(std::function<void()> task) = 0;
  virtual const base::Clock& clock() const = 0;
};

/// What a link tells those above. Threads: any. Called at most once per link.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  /// The link can carry nothing any more; `cause` names what happened, without the peer's name. The
  /// caller is inside the link: it must not be destroyed from here.
  virtual void on_link_failed(const Status& cause) = 0;
};

/// One local worker, as far as transports need to know it.
struct WorkerEnd {
  ring::ReadySet* ready = nullptr;
  ring::DoorbellLine* doorbell = nullptr;
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

/// Everything needed to set up one link. Outlives the link.
struct LinkContext {
  uint32_t local_node = 0;
  uint32_t peer_node = 0;
  std::string peer_name;         // "node 2 (10.0.0.2:7000)", for messages
  bool initiator = false;        // this side opened the control connection
  std::string peer_address;      // where the peer listens, as dialled for the control connection
  std::string peer_host;         // its host in cluster.nodes, for which its certificate has to be
  StreamToken stream_token;      // the same on both sides
  ring::Layout outgoing;         // rings from local to peer
  ring::Layout incoming;         // rings from peer to local
  std::span<WorkerEnd> workers;  // local workers
  DoorbellMemory doorbells;      // of this node
  /// First ready ring number of this link's rings at each local worker is ready_group[w] * 64. The
  /// groups are there, and the same for each link to this peer.
  std::span<const uint32_t> ready_group;  // one per local worker
  Reactor* reactor = nullptr;
  LinkEvents* events = nullptr;
  /// Sends a setup message (at most 4 KiB) to the peer's LinkSetup over the control connection.
  std::function<void(std::span<const std::byte>)> send;
};

/// A connected, non-blocking, ordered byte stream that was dialled for this link's data (a TCP
/// connection whose preamble the session has read). Owns the descriptor.
struct DataStream {
  int fd = -1;
  std::shared_ptr<tls::Stream> tls = nullptr;  // what it is encrypted by; null: not
};

/// The non-blocking state machine that makes a DataLink with the peer's counterpart.
/// Threads: network thread (see Reactor). Destroying it unfinished releases everything.
class LinkSetup {
 public:
  virtual ~LinkSetup() = default;
  /// Starts; may call context.send. Errors end the link's setup and reach the peer.
  virtual Status start() = 0;
  /// A setup message of the peer. Untrusted: every byte is checked.
  virtual Status on_message(std::span<const std::byte> message) = 0;
  /// A data connection for this link arrived at the session's listener.
  virtual Status on_stream(DataStream stream) = 0;
  /// Set when something went wrong outside a call (a failed dial).
  virtual Status status() const = 0;
  /// This side has all it needs; the session then tells the peer, and waits for it to say the same.
  virtual bool ready() const = 0;
  /// The link; once, after ready(). Null if the last step failed; status() then says why.
  virtual std::unique_ptr<DataLink> take() = 0;
};

/// One kind of transport, as a session uses it. Owned by the session.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Ok, or why it cannot be used on this machine and what to do about it.
  virtual Status available() const = 0;
  /// Bytes this node takes (of memory, of /dev/shm) for a link of that shape, before it is opened.
  virtual uint64_t memory_bytes(const ring::Layout& outgoing,
                                const ring::Layout& incoming) const = 0;
  /// Of these, the bytes that count against the limit of locked memory.
  virtual uint64_t pinned_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const {
    (void)outgoing, (void)incoming;
    return 0;
  }
  virtual std::unique_ptr<LinkSetup> begin(LinkContext& context) = 0;

  /// Does in the calling thread what the network thread would do for data that has arrived; returns
  /// whether there was any. Called by workers that find nothing to do, so that a busy node need not
  /// wake its network thread. A transport whose data needs no thread of this node has nothing to do
  /// here. Threads: any. Blocks: never.
  virtual bool poll() noexcept { return false; }
  /// Starts what post_soon, release and flush_releases have left for later, on all links. Called by
  /// workers before they yield or sleep. Threads: any. Blocks: never.
  virtual void flush() noexcept {}
  /// Around each sleep of a worker: while one sleeps the network thread is responsible. Called
  /// before the worker looks at everything for the last time. Threads: any. Blocks: never for long.
  virtual void worker_sleeps() noexcept {}
  virtual void worker_wakes() noexcept {}
};

}  // namespace faro::transport
