// A path is a connection of a link over which positions travel as messages. It has its own right to
// send. This file has what tcp, with one path per link, and verbs share of paths and of the ends of
// rings. Each end notifies the other of its position. Notifications cost something, so both ends send only
// those that the other may be waiting for, along with other messages to the same peer.
//
//   MessagedOutgoing                                      MessagedIncoming
//     committed ── bytes and WRITTEN, its transport's ──►   written_, ready bit, doorbell
//     free_     ◄── READ, when the sender may need it ───   told_
//
// A ring with something to send is marked: outgoing rings in writes_, incoming ones in reads_. The thread
// that marks it then either makes everything marked due (send_now), or leaves it for later (defer;
// deferred_sends.h says for how long). The transport's send_pending sends what is due. The right to send is
// passed on by compare-and-swap (native/DESIGN.md#hc-6). native/DESIGN.md#memory-orders defines the steps of that, W1
// to W4, and says why nothing is lost. All are seq_cst.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/deferred_sends.h"
#include "transport/mirrored_ring.h"
#include "transport/pending_rings.h"
#include "transport/transport.h"

namespace faro::transport {

/// Threads: "sender" is the thread that has the right to send, "receiver" the one with the right to receive:
/// one at a time of each kind.
class MessagedPath : public DeferredSends::Path {
 public:
  MessagedPath(LinkContext& context, std::shared_ptr<DeferredSends> deferred);

  void send_deferred() final {
    if (deferred_bytes_.load(std::memory_order_seq_cst) != 0) send_now();
  }

 protected:
  friend class MessagedOutgoing;
  friend class MessagedIncoming;

  /// Sends what is due, unless another thread does. Threads: any. Blocks: never.
  virtual void send_pending() = 0;
  /// A read position is among what is going to be due. Threads: any.
  virtual void on_read_due() {}

  /// Everything that is marked. Threads: any.
  void send_now() {
    due_.store(true, std::memory_order_seq_cst);  // W1
    send_pending();
  }
  /// What was marked may wait. Threads: any.
  void defer(uint64_t bytes);

  // The sender takes what is marked: take_due, then the looks; note_due if it leaves something. What
  // is marked after the look sets due_ again.
  bool anything_due() const noexcept { return due_.load(std::memory_order_seq_cst); }
  void take_due() noexcept {
    due_.store(false, std::memory_order_seq_cst);
    deferred_bytes_.store(0, std::memory_order_seq_cst);
  }
  void note_due() noexcept { due_.store(true, std::memory_order_seq_cst); }

  // The receiver's: a doorbell is due, that of a receiving end for frames that have arrived, or that of a worker for room. All
  // of them are rung together, once per turn, not per message: a worker that is woken in between would find one frame at a time.
  void note_frames(uint32_t end) noexcept { to_ring_.for_frames.note(end); }
  void note_room(uint32_t worker) noexcept { to_ring_.for_room.note(worker); }
  void ring_doorbells() noexcept;

  LinkContext& context_;
  const std::shared_ptr<DeferredSends> deferred_;
  PendingRings writes_;  // outgoing rings with something to send
  PendingRings reads_;   // incoming rings with a read position to send

 private:
  /// A bit per local worker, or receiving end.
  class Numbers {
   public:
    explicit Numbers(size_t count) : bits_((count + 63) / 64) {}
    void note(uint32_t number) noexcept { bits_[number / 64] |= uint64_t{1} << (number % 64); }
    /// Takes all out, and calls visit(worker) for each.
    template <typename Visit>
    void take(Visit&& visit) noexcept {
      for (size_t w = 0; w < bits_.size(); ++w) {
        for (uint64_t bits = std::exchange(bits_[w], 0); bits != 0; bits &= bits - 1)
          visit(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
      }
    }

   private:
    std::vector<uint64_t> bits_;
  };
  struct ToRing {
    Numbers for_frames;
    Numbers for_room;
    uint32_t turn = 0;  // which worker of the node is woken for frames
  };

  std::atomic<bool> due_{false};  // send everything that is marked
  // Bytes that are marked and not sent yet. May include some that have been sent.
  std::atomic<uint64_t> deferred_bytes_{0};
  alignas(64) ToRing to_ring_;
};

/// The sending end of a ring.
class MessagedOutgoing : public MirroredOutgoing {
 public:
  MessagedOutgoing(MessagedPath& path, uint32_t ring, std::byte* base, uint32_t ring_bytes)
      : MirroredOutgoing(base, ring_bytes, &free_), number_(ring), path_(path) {}

  Claim claim(uint32_t least_bytes, uint32_t most_bytes) override;
  void post() override;
  void post_soon() override;
  void forgo_room() override {
    if (starved_.load(std::memory_order_relaxed) != 0) starved_.store(0, std::memory_order_relaxed);
  }

 protected:
  /// Frees the space before `position` for writing. Returns whether the worker waits for that: then ring
  /// its doorbell. Threads: receiver.
  bool free_up_to(wire::Position position) noexcept {
    free_.store(position, std::memory_order_seq_cst);      // B1
    return starved_.load(std::memory_order_seq_cst) != 0;  // B2
  }
  wire::Position free() const noexcept { return free_.load(std::memory_order_relaxed); }
  /// What is committed is not sent yet, or has to be sent again. Threads: any.
  void mark() noexcept { path_.writes_.mark(number_); }

  const uint32_t number_;

  // The sender's. Read by the receiver, relaxed: the peer can only have read what was sent, so an
  // honest READ comes after the store, through the network.
  alignas(64) std::atomic<wire::Position> sent_{0};

 private:
  MessagedPath& path_;

  // 1 after a claim has found no space: then a new free_ wakes the worker. The worker sets it (C2) before it reads
  // free_ again (C3); free_up_to stores free_ (B1) before it reads the flag (B2). native/DESIGN.md#memory-orders says
  // why no wake-up is lost.
  std::atomic<uint32_t> starved_{0};

  // The receiver's; seq_cst, partner: Producer's look (ring/producer.h).
  alignas(64) std::atomic<wire::Position> free_{0};
};

/// The receiving end of a ring.
class MessagedIncoming : public MirroredIncoming {
 public:
  MessagedIncoming(MessagedPath& path, uint32_t ring, const std::byte* base, uint32_t ring_bytes,
                   ring::ReadySet& ready, uint32_t ready_ring)
      : MirroredIncoming(base, ring_bytes, &written_),
        number_(ring),
        path_(path),
        ready_(ready),
        ready_ring_(ready_ring) {}

  void flush_releases() override;

 protected:
  /// The position to send to the peer now. False if the peer knows it already, because the position was sent
  /// with an earlier mark. Threads: sender.
  bool take_told(wire::Position& read) noexcept {
    read = told_.load(std::memory_order_acquire);
    if (read == told_sent_.load(std::memory_order_relaxed)) return false;
    told_sent_.store(read, std::memory_order_relaxed);
    return true;
  }

  /// The position to send to a peer that may not have got what was sent: it is always sent.
  /// Threads: sender.
  wire::Position take_told_again() noexcept {
    const wire::Position read = told_.load(std::memory_order_acquire);
    told_sent_.store(read, std::memory_order_relaxed);
    return read;
  }

  /// How far the peer has written, and how far it may have written. Acquire: the worker no longer reads the
  /// bytes that are overwritten up to there. Threads: receiver.
  wire::Position written() const noexcept { return written_.load(std::memory_order_relaxed); }
  wire::Position write_limit() const noexcept {
    return told_.load(std::memory_order_acquire) + consumer_.ring_bytes();
  }
  /// The bytes before `position` have arrived. The caller then rings a doorbell of the end. Threads: receiver.
  void arrived(wire::Position position) noexcept {
    written_.store(position, std::memory_order_seq_cst);
    ready_.mark(ready_ring_);
  }

  const uint32_t number_;

 private:
  void tell_read(wire::Position read) final;
  void defer_read();

  MessagedPath& path_;
  ring::ReadySet& ready_;      // of the ring's end
  const uint32_t ready_ring_;  // its number there

  // How far the peer may be told that we have read. Written by the worker, release: its reads of
  // the frames are done (partners: the acquires of take_told and write_limit).
  std::atomic<wire::Position> told_{0};
  // The last read position sent, or about to be; the sender writes it. The worker reads it, relaxed:
  // if it sees an old one, it sends once more than needed.
  alignas(64) std::atomic<wire::Position> told_sent_{0};

  // The receiver's; seq_cst, partner: Consumer's look (ring/consumer.h).
  alignas(64) std::atomic<wire::Position> written_{0};
};

/// The ready set of the end of an incoming ring, and the ring's number there.
inline ring::ReadySet& ready_set_of(const LinkContext& context, uint32_t ring) {
  return *context.end(context.incoming.receiver_of(ring)).ready;
}
inline uint32_t ready_ring_of(const LinkContext& context, uint32_t ring) {
  const uint32_t end = context.incoming.receiver_of(ring);
  return context.ready_group[end] * ring::ReadySet::kRingsPerGroup +
         context.incoming.index_at_receiver(ring);
}

}  // namespace faro::transport
