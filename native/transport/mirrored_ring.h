// The mirrored ring behind the transport interface: what shm, tcp, verbs and sim share. A transport
// derives from these and adds how committed bytes get to the peer and how read positions get back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ring/consumer.h"
#include "ring/producer.h"
#include "transport/transport.h"

namespace faro::transport {

/// The sending end. `post` is the transport's: it moves bytes up to producer_.committed(), and calls
/// mark_posted with the position up to which it (or someone it handed over to) will.
class MirroredOutgoing : public Outgoing {
 public:
  MirroredOutgoing(std::byte* base, uint32_t ring_bytes,
                   const std::atomic<wire::Position>* peer_read)
      : producer_(base, ring_bytes, peer_read) {}

  Claim claim(uint32_t least_bytes, uint32_t most_bytes) override {
    const Claim claimed = producer_.claim(least_bytes, most_bytes);
    if (claimed.bytes == 0 && producer_.broken()) on_broken();
    return claimed;
  }
  void commit(uint32_t length) override {
    producer_.commit(length);
    count(counters_->frames_sent);
    count(counters_->bytes_sent, wire::padded(length));
  }
  uint64_t pending_bytes() const override { return producer_.committed() - posted_; }
  uint32_t frame_limit() const override { return producer_.frame_limit(); }
  uint32_t full_frame_limit() const override { return producer_.full_frame_limit(); }
  std::span<std::byte> memory() const override { return {producer_.at(0), producer_.ring_bytes()}; }
  const OutgoingCounters& counters() const override { return *counters_; }
  void count_in(OutgoingCounters& counters) override { counters_ = &counters; }

 protected:
  /// The peer's read position was impossible: fail the link. Called again on each claim.
  virtual void on_broken() = 0;
  void mark_posted(wire::Position position) noexcept { posted_ = position; }

  ring::Producer producer_;
  OutgoingCounters* counters_ = &own_counters_;
  wire::Position posted_ = 0;  // the worker's: up to here transfers were started

 private:
  OutgoingCounters own_counters_;  // until count_in
};

/// The receiving end. `tell_read` is the transport's: it sends the read position to the peer.
class MirroredIncoming : public Incoming {
 public:
  MirroredIncoming(const std::byte* base, uint32_t ring_bytes,
                   const std::atomic<wire::Position>* written)
      : consumer_(base, ring_bytes, written) {}

  Next next(FrameView& view) override {
    const wire::Position before = consumer_.taken();
    const Next result = consumer_.next(view);
    if (result == Next::frame) {
      count(counters_->frames_received);
      count(counters_->bytes_received, consumer_.taken() - before);
      counters::set(counters_->unreleased_bytes, unreleased_bytes());
    } else if (result == Next::nothing) {
      // Nobody releases what was skipped, and the sender may wait for its room.
      if (consumer_.take_skipped()) flush_releases();
    } else if (result == Next::invalid) {
      on_invalid(consumer_.why_invalid());
    }
    return result;
  }
  void release(uint32_t token) override {
    consumer_.release(token);
    counters::set(counters_->unreleased_bytes, unreleased_bytes());
    const wire::Position read = consumer_.read();
    // A quarter of the ring at a time (paper §3.2: read notifications after a configurable amount of
    // data); at once when nothing is left, for the sender may be waiting for just that.
    if (read - told_ >= consumer_.ring_bytes() / 4 || (read != told_ && consumer_.empty()))
      tell(read);
  }
  void flush_releases() override {
    if (consumer_.read() != told_) tell(consumer_.read());
  }
  uint64_t unreleased_bytes() const override { return consumer_.taken() - consumer_.read(); }
  // A ring at most half full has room for any frame, its pad included.
  bool may_block_sender() const override { return unreleased_bytes() > consumer_.ring_bytes() / 2; }
  std::span<const std::byte> memory() const override {
    return {consumer_.base(), consumer_.ring_bytes()};
  }
  const IncomingCounters& counters() const override { return *counters_; }
  void count_in(IncomingCounters& counters) override { counters_ = &counters; }

 protected:
  virtual void tell_read(wire::Position read) = 0;
  /// The peer broke the rules: fail the link. Called again on each `next`.
  virtual void on_invalid(const char* why) = 0;

  ring::Consumer consumer_;
  IncomingCounters* counters_ = &own_counters_;

 private:
  void tell(wire::Position read) {
    told_ = read;
    count(counters_->read_notifications);
    tell_read(read);
  }
  wire::Position told_ = 0;
  IncomingCounters own_counters_;  // until count_in
};

}  // namespace faro::transport
