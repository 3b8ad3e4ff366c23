// One link's data connection over TCP: its two ends of rings, and the socket between them.
//
//   worker: commit → post ──► writes_ ─┐                      ┌─► READ:    peer_read, wake the
//   sending worker worker: release → tell ─► reads_  ─┤─ sendmsg ─► socket ──┤
//                                      │                      └─► WRITTEN: bytes into the ring,
//                                      written,
//               whoever holds the right to write        whoever holds the   ready bit, wake the
//               receiver
//                                                       right to read (tcp_receiver.h)
//
// The right to write (design, hard case 6) is one word:
//
//   free ──CAS──► held ──► free                everything pending is in the kernel
//                 held ──► blocked             the socket is full (or the turn is over): now the
//                 network
//                                              thread's, which takes it (blocked → held) when the
//                                              socket is writable
//                 held ──► held_writable       the network thread saw the socket writable while the
//                 right was
//                                              held: its holder must try again instead of blocking
//
// No post is lost:
//   who has something   W1 marks it in writes_ or reads_, then sets due_     W2 tries free → held
//   the holder          W3 stores free                                       W4 looks at due_; if
//   set, from W2
// All are seq_cst. If W2 finds `held`, it comes before W3 in the single total order, so W1 < W2 <
// W3 < W4 and the holder sees it. If W2 finds `blocked`, the network thread becomes the holder
// later, and the same holds.
//
// No writability is lost: the socket is registered with the reactor edge-triggered once, so that a
// full socket costs no system call beyond the one that found it full. The kernel reports an edge
// after a send that it refused. If that edge comes before the holder has stored `blocked`, the
// network thread finds `held` and leaves held_writable there, on which the holder's CAS held →
// blocked fails, and it sends again.
//
// While the right is held, or blocked, what it covers (batch_, sent_, the taking side of the
// pending rings) belongs to the holder; the CAS free → held or blocked → held (acquire) sees what
// the store of free or blocked (release) published.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "transport/mirrored_ring.h"
#include "transport/pending_rings.h"
#include "transport/tcp/deferred_sends.h"
#include "transport/tcp/ring_region.h"
#include "transport/tcp/tcp_receiver.h"
#include "transport/transport.h"
#include "wire/data_message.h"

namespace faro::transport::tcp {

class TcpLink;

extern const Capabilities kTcpCapabilities;

/// The sending end of one ring.
class TcpOutgoing final : public MirroredOutgoing {
 public:
  TcpOutgoing(TcpLink& link, uint32_t ring, std::byte* base, uint32_t ring_bytes)
      : MirroredOutgoing(base, ring_bytes, &peer_read_), link_(link), ring_(ring) {}

  Claim claim(uint32_t least_bytes, uint32_t most_bytes) override;
  void post() override;
  void post_soon() override;

 private:
  friend class TcpLink;
  void on_broken() override;

  TcpLink& link_;
  const uint32_t ring_;

  // 1 since a claim found no space; then a read position wakes the worker. Written by the worker:
  // with seq_cst before it looks at peer_read_ again. Read by the reading right's holder with
  // seq_cst after it stored peer_read_: if that finds 0, the worker's second look finds the new
  // position. (Without it every READ would wake a worker that waits for rows.)
  std::atomic<uint32_t> starved_{0};

  // The right's holder writes it before it sends, relaxed; the reading right's holder compares
  // READs with it. The peer can only have read what was sent, so an honest READ comes after the
  // store, through the socket.
  alignas(64) std::atomic<wire::Position> sent_{0};

  // The reading right's holder's; seq_cst, partner: Producer's look (ring/producer.h).
  alignas(64) std::atomic<wire::Position> peer_read_{0};
};

/// The receiving end of one ring.
class TcpIncoming final : public MirroredIncoming {
 public:
  TcpIncoming(TcpLink& link, uint32_t ring, std::byte* base, uint32_t ring_bytes, WorkerEnd worker,
              uint32_t ready_ring)
      : MirroredIncoming(base, ring_bytes, &written_),
        link_(link),
        ring_(ring),
        base_(base),
        worker_(worker),
        ready_ring_(ready_ring) {}

  void flush_releases() override;

 private:
  friend class TcpLink;
  void tell_read(wire::Position read) override;
  void on_invalid(const char* why) override;

  TcpLink& link_;
  const uint32_t ring_;
  std::byte* const base_;
  const WorkerEnd worker_;
  const uint32_t ready_ring_;  // its number in the worker's ready set

  // How far the peer may be told that we have read. Written by the worker, release: its reads of
  // the frames are done (partner: the reading right's holder's acquire before it writes to that
  // space again); read by the right's holder.
  std::atomic<wire::Position> told_{0};
  // The last read position sent, or about to be; the right's holder writes it. The worker reads it,
  // relaxed: if it sees an old one, it sends once more than needed.
  alignas(64) std::atomic<wire::Position> told_sent_{0};

  // The reading right's holder's; seq_cst, partner: Consumer's look (ring/consumer.h).
  alignas(64) std::atomic<wire::Position> written_{0};
};

/// Threads: outgoing and incoming ends as in transport.h; start and destruction: network thread, or
/// when that does not run. Owns: the socket and the memory of the rings.
class TcpLink final : public DataLink {
 public:
  /// Takes over a connected non-blocking socket. context.ready_group is set.
  TcpLink(LinkContext& context, std::shared_ptr<TcpReceiver> receiver,
          std::shared_ptr<DeferredSends> deferred, int fd, RingRegion outgoing,
          RingRegion incoming);
  ~TcpLink() override;
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  /// Registers the socket with the reactor. Errors: system_error.
  Status start();

  const Capabilities& capabilities() const override { return kTcpCapabilities; }
  Outgoing& outgoing(uint32_t ring) override { return outgoing_[ring]; }
  Incoming& incoming(uint32_t ring) override { return incoming_[ring]; }

  /// Sends what was deferred. Threads: any.
  void send_deferred() {
    if (deferred_bytes_.load(std::memory_order_seq_cst) != 0) send_now();
  }

  /// A call that is inside a system call on the socket may still finish it; the socket is shut
  /// down, so it moves nothing.
  void stop() noexcept override;

 private:
  friend class TcpOutgoing;
  friend class TcpIncoming;

  enum Right : uint32_t { kFree, kHeld, kHeldWritable, kBlocked };

  // What is on its way into the kernel: messages and the pieces of memory that make them up.
  struct Batch {
    // Reads take at most half of it, so that one batch can always hold a whole word of either kind
    // (PendingRings).
    static constexpr uint32_t kMessages = 128;
    static constexpr uint32_t kReads = 64;

    std::array<wire::DataMessage, kMessages> messages;
    std::array<iovec, 3 * kMessages> pieces;  // header and a ring's bytes, wrapped at worst
    uint32_t message_count = 0;
    uint32_t piece_count = 0;
    uint32_t first_piece = 0;  // not yet completely in the kernel

    bool empty() const { return first_piece == piece_count; }
    void clear() { message_count = piece_count = first_piece = 0; }
    void add(const wire::DataMessage& message);
    void add_piece(const void* data, size_t bytes);
    /// The kernel took so many bytes.
    void advance(size_t bytes);
  };

  // Sending (tcp_datapath.cc).
  void send_now();
  void defer(uint64_t bytes);
  void send_pending();
  bool send_while_held();
  bool give_to_network_thread();
  void on_writable();
  void send_later();
  bool anything_due() const { return due_.load(std::memory_order_seq_cst); }
  void gather();

  // Receiving (tcp_receive.cc). Whoever holds the right to read.
  friend class TcpReceiver;
  void on_readable(bool until_end);
  void on_events(uint32_t events);  // network thread
  void receive(bool until_end);
  bool take_received(size_t bytes);
  bool take_messages();
  Status accept_read(const wire::DataMessage& message);
  Status accept_written(const wire::DataMessage& message);
  void publish(TcpIncoming& ring);
  void ring_doorbells();

  // Ending. Any thread.
  void fail(Code code, std::string message);
  bool end() noexcept;
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

  // Constant after construction.
  LinkContext& context_;
  const std::shared_ptr<TcpReceiver> receiver_;
  const std::shared_ptr<DeferredSends> deferred_;
  const int fd_;
  RingRegion outgoing_region_;
  RingRegion incoming_region_;
  std::deque<TcpOutgoing> outgoing_;
  std::deque<TcpIncoming> incoming_;
  // Tasks handed to the reactor hold this weakly: they may outlive the link.
  std::shared_ptr<TcpLink*> self_;
  char way_ = 0;  // see send_pieces.h

  // Shared.
  std::atomic<bool> stopped_{false};
  PendingRings writes_;           // outgoing rings with something to post
  PendingRings reads_;            // incoming rings with a read position to tell
  std::atomic<bool> due_{false};  // some of these now, and then all of them
  std::atomic<uint64_t> deferred_bytes_{
      0};  // of these, that nobody has sent yet; may also count what has been sent
  alignas(64) std::atomic<uint32_t> right_{kFree};

  // The right's holder's.
  alignas(64) Batch batch_;

  // The reading right's holder's.
  static constexpr size_t kStagingBytes = 4096;
  alignas(64) std::array<std::byte, kStagingBytes> staging_;  // received, not yet understood
  size_t staged_ = 0;                                         // bytes in it
  TcpIncoming* filling_ = nullptr;    // the ring whose payload is being received
  wire::Position fill_position_ = 0;  // where the next byte of it goes
  size_t fill_left_ = 0;              // bytes of it still to come; 0: between messages
  std::vector<uint64_t> to_ring_;     // a bit per local worker whose doorbell is due
  bool registered_ = false;           // network thread
};

}  // namespace faro::transport::tcp
