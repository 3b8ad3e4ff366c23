// NodeRing: an incoming ring that ends at the node, not at one of its workers (lane.ends). RingShare: the ring as one of these sees it.
//
//   sender's ring ══► NodeRing ──sorted──┬─► NodeStream of a shuffle ──taken, a frame at a time──► Inbox of a worker
//                        ▲               └─► NodeStream of another                                      │
//                        └──────────────────────── released by RingShare ───────────────────────────────┘
//
// Threads: everything here belongs to whoever has the right of the node's end (node_end.h), except where said.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>

#include "counters/records.h"
#include "ring/consumer.h"
#include "shuffle/receive/node_stream.h"
#include "transport/transport.h"

namespace faro::shuffle {

class NodeEnd;
class NodeLink;
class NodeRing;

class NodeRing {
 public:
  /// Frames of a ring that are unreleased at a time, each with a place of its own.
  static constexpr uint32_t kPlaces = ring::Consumer::kTracked;
  static_assert(kPlaces == 64, "a bit of `released_` each");

  /// What each stream takes, with its places among the others, and each of its readers.
  static constexpr uint64_t kStreamBytes = sizeof(NodeStream) + sizeof(NodeReader) + 128;

  NodeRing(NodeLink& link, uint32_t number, transport::Incoming& carrier)
      : link_(link), carrier_(carrier), number_(number) {}

  NodeLink& link() const noexcept { return link_; }
  /// Among those of its link: that of its sender * rings_per_lane + k.
  uint32_t number() const noexcept { return number_; }
  /// The streams that have frames, or get some.
  std::list<NodeStream>& streams() noexcept { return streams_; }
  /// Those that get some, by their numbers in the ring; null: what comes is dropped.
  std::map<uint16_t, NodeStream*>& open() noexcept { return open_; }

  /// The next frame that has arrived; null: there is none now, or as many as can be are unreleased.
  NodeFrame* next();
  /// A frame that `next` gave lies there, and nobody has taken it; or that is over.
  void count_untaken(int more) noexcept;
  /// Its stream holds the frame no more. The space in the ring goes back when no reader does either.
  void give_back(const NodeFrame& frame) {
    if (let_go(frame.view.token)) carrier_.release(tokens_[frame.view.token]);
  }
  /// One more holds a frame, which its stream holds.
  void hold(const NodeFrame& frame) noexcept {
    holders_[frame.view.token].fetch_add(1, std::memory_order_relaxed);
  }
  /// Not, after all.
  void unhold(const NodeFrame& frame) noexcept { (void)let_go(frame.view.token); }
  /// Gives back what was released since, and tells the sender if somebody has asked for that.
  void settle();
  /// Tells the sender what was given back, however little.
  void tell() { carrier_.flush_releases(); }
  /// Streams with a row whose end has not come.
  uint32_t begun_rows() const noexcept { return begun_rows_; }
  void count_begun_rows(int more) noexcept { begun_rows_ += static_cast<uint32_t>(more); }
  /// Whether frames wait behind as many as can be unreleased.
  bool is_full() const noexcept { return is_full_.load(std::memory_order_relaxed); }

  // --- Threads: any

  const NodeFrame& frame(uint32_t place) const noexcept { return frames_[place]; }
  /// Who has taken a frame holds it no more; it is given back when nobody does.
  void release_later(uint32_t place) noexcept;
  /// Has the sender told.
  void tell_later() noexcept;
  /// Whether the sender may be waiting for room, as far as is known here.
  bool may_block_sender() const noexcept;
  bool has_untaken() const noexcept { return untaken_.load(std::memory_order_relaxed) != 0; }
  std::span<const std::byte> memory() const { return carrier_.memory(); }

 private:
  friend class NodeEnd;

  void ask() noexcept;
  bool let_go(uint32_t place) noexcept {
    return holders_[place].fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  NodeLink& link_;
  transport::Incoming& carrier_;
  const uint32_t number_;
  std::list<NodeStream> streams_;
  std::map<uint16_t, NodeStream*> open_;
  std::array<NodeFrame, kPlaces> frames_;
  std::array<uint32_t, kPlaces> tokens_{};
  NodeFrame* unsorted_ = nullptr;  // there was no memory for its stream
  uint32_t begun_rows_ = 0;

  // Shared with other threads.
  std::atomic<bool> is_full_{false};
  std::atomic<uint32_t> untaken_{0};
  std::array<std::atomic<uint32_t>, kPlaces> holders_{};  // of the frame at each place
  std::atomic<uint64_t> released_{0};                     // places
  std::atomic<bool> to_tell_{false};
  std::atomic<bool> is_asked_{false};  // it is among those that NodeEnd is to settle
  NodeRing* next_asked_ = nullptr;
  std::shared_ptr<NodeLink> keeps_;  // while it is
};

/// Nothing comes by it of itself: frames are taken from streams, and given back here. Threads: the worker's.
class RingShare final : public transport::Incoming {
 public:
  RingShare(NodeRing& ring, counters::IncomingCounters& counters)
      : ring_(ring), counters_(&counters) {}

  /// The worker takes a frame; it has to release one that lies in the ring. `stage`: its stage_word (counters/layout.h). `counts`: as a
  /// frame that has come.
  void took(const NodeFrame& frame, uint64_t stage, bool counts) noexcept;
  /// It has not, after all.
  void left(const NodeFrame& frame, bool counts) noexcept;

  transport::Next next(transport::FrameView&) override { return transport::Next::nothing; }
  void release(uint32_t token) override;
  void flush_releases() override { ring_.tell_later(); }
  uint64_t unreleased_bytes() const override { return unreleased_bytes_; }
  /// The frames of other workers count, too.
  bool may_block_sender() const override { return ring_.may_block_sender(); }
  bool has_untaken() const noexcept { return ring_.has_untaken(); }
  std::span<const std::byte> memory() const override { return ring_.memory(); }
  const counters::IncomingCounters& counters() const override { return *counters_; }
  void count_in(counters::IncomingCounters& counters) override { counters_ = &counters; }

 private:
  NodeRing& ring_;
  counters::IncomingCounters* counters_;
  uint64_t unreleased_bytes_ = 0;
};

}  // namespace faro::shuffle
