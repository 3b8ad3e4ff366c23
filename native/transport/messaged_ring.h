// The mirrored ring whose positions travel as messages: what tcp and verbs share. Each end tells
// the other how far it got; telling costs something, so both tell no more than the other may wait
// for.
//
//   MessagedOutgoing                                      MessagedIncoming
//     committed ── bytes and WRITTEN, its transport's ──►   written_, ready bit, doorbell
//     free_     ◄── READ, when the sender may need it ───   told_
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/mirrored_ring.h"

namespace faro::transport {

/// The sending end. A transport derives from it, sends what is committed when `transfer` is called,
/// and calls `free_up_to`.
class MessagedOutgoing : public MirroredOutgoing {
 public:
  MessagedOutgoing(std::byte* base, uint32_t ring_bytes)
      : MirroredOutgoing(base, ring_bytes, &free_) {}

  Claim claim(uint32_t least_bytes, uint32_t most_bytes) override {
    Claim claimed = MirroredOutgoing::claim(least_bytes, most_bytes);
    if (claimed.bytes != 0) [[likely]] {
      if (starved_.load(std::memory_order_relaxed) != 0)
        starved_.store(0, std::memory_order_relaxed);
      return claimed;
    }
    // See starved_: say so, then look again.
    starved_.store(1, std::memory_order_seq_cst);
    claimed = MirroredOutgoing::claim(least_bytes, most_bytes);
    if (claimed.bytes != 0) starved_.store(0, std::memory_order_relaxed);
    return claimed;
  }

  void post() override {
    const wire::Position end = producer_.committed();
    if (end == posted_) return;
    mark_posted(end);
    count(counters_.transfers);
    transfer();
  }

 protected:
  /// Something more is committed: see that it is sent. Threads: the worker.
  virtual void transfer() = 0;

  /// Space before `position` may be written again. Returns whether the worker waits for that: then
  /// its doorbell is due. Threads: one at a time.
  bool free_up_to(wire::Position position) noexcept {
    free_.store(position, std::memory_order_seq_cst);
    return starved_.load(std::memory_order_seq_cst) != 0;
  }
  /// Threads: as free_up_to.
  wire::Position free() const noexcept { return free_.load(std::memory_order_relaxed); }

 private:
  // 1 since a claim found no space; then a new free_ wakes the worker. Written by the worker: with
  // seq_cst before it looks at free_ again. Read by free_up_to with seq_cst after it stored free_:
  // if that finds 0, the worker's second look finds the new position. (Without it every READ would
  // wake a worker that waits for rows.)
  std::atomic<uint32_t> starved_{0};

  // Written by free_up_to; seq_cst, partner: Producer's look (ring/producer.h).
  alignas(64) std::atomic<wire::Position> free_{0};
};

/// The receiving end. A transport derives from it, stores written_ when bytes have arrived, and
/// sends told_ when `send_read` is called, or before that if something goes to the peer anyway.
class MessagedIncoming : public MirroredIncoming {
 public:
  MessagedIncoming(const std::byte* base, uint32_t ring_bytes)
      : MirroredIncoming(base, ring_bytes, &written_) {}

  // A read position by itself costs as much as a transfer: it waits for something that goes to the
  // same peer anyway, as long as the peer cannot be waiting for it. A sender that finds no space
  // (at most half a ring is ever needed, ring/producer.h) has used more than half the ring since
  // the last position that it knows. So it is urgent
  //   - when more than half a ring was released since then. A worker that goes on polling comes to
  //     this, or
  //   - before the worker sleeps (flush_releases): when more than half a ring has arrived since
  //     then. What has not arrived yet wakes the worker, which flushes again before it sleeps.
  void flush_releases() override {
    MirroredIncoming::flush_releases();
    const wire::Position sent = told_sent_.load(std::memory_order_relaxed);
    if (told_.load(std::memory_order_relaxed) == sent) return;
    const wire::Position arrived = written_.load(std::memory_order_seq_cst);
    if (arrived - sent > consumer_.ring_bytes() / 2) send_read();
  }

 protected:
  /// told_ has moved: it may go along with something. Threads: the worker.
  virtual void mark_read() = 0;
  /// What is marked cannot wait. Threads: the worker.
  virtual void send_read() = 0;

  /// The position to tell the peer now, if it does not know it. Threads: whoever sends, one at a
  /// time.
  bool take_told(wire::Position& read) noexcept {
    read = told_.load(std::memory_order_acquire);
    if (read == told_sent_.load(std::memory_order_relaxed)) return false;
    told_sent_.store(read, std::memory_order_relaxed);
    return true;
  }

  /// How far an honest peer can have written at most. Acquire: the worker has done with the bytes
  /// that are overwritten up to there. Threads: whoever receives, one at a time.
  wire::Position write_limit() const noexcept {
    return told_.load(std::memory_order_acquire) + consumer_.ring_bytes();
  }

  // Written by whoever receives; seq_cst, partner: Consumer's look (ring/consumer.h).
  alignas(64) std::atomic<wire::Position> written_{0};

 private:
  void tell_read(wire::Position read) final {
    told_.store(read, std::memory_order_release);
    mark_read();
    if (read - told_sent_.load(std::memory_order_relaxed) > consumer_.ring_bytes() / 2) send_read();
  }

  // How far the peer may be told that we have read. Written by the worker, release: its reads of
  // the frames are done (partners: the acquires of take_told and write_limit).
  std::atomic<wire::Position> told_{0};
  // The last read position sent, or about to be; whoever sends writes it. The worker reads it,
  // relaxed: if it sees an old one, it sends once more than needed.
  alignas(64) std::atomic<wire::Position> told_sent_{0};
};

}  // namespace faro::transport
