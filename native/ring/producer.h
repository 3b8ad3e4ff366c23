// Producer: the sending end of a mirrored ring (paper §3.1: the sender's outgoing buffer, written to
// the same place of the receiver's incoming buffer).
//
//            read                committed        claim
//             v                      v              v
//   ----------[......................][.............]-----------------  positions, only grow
//             in the peer's ring      the open frame
//
// Who writes what:
//   committed_     the worker, release: the thread that transfers sees the bytes before it (partner: the
//                  transport's acquire in `committed()`)
//   *peer_read_    the peer (shm) or whichever thread receives for the link (tcp, verbs), with seq_cst: R1 and B1 of
//                  native/DESIGN.md#memory-orders. Read here with seq_cst (S2 and C3), and checked: a value that
//                  decreases or exceeds `committed` means a broken peer.
//   the rest       the worker alone
//
// Invariants: committed - read <= ring_bytes. Frames start at multiples of 64 and never wrap. A frame
// needs at most a quarter of the ring, so a pad costs less than a quarter, and an empty ring always has room.
// If there is more room a frame may take up to half the ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/frame.h"

namespace faro::ring {

using wire::Position;

/// Contiguous space for one frame; `bytes` is 0 if there is none at the moment.
struct Claim {
  std::byte* data = nullptr;
  uint32_t bytes = 0;  // a multiple of wire::kFrameAlignment
};

class Producer {
 public:
  /// `base`: ring_bytes of memory, aligned to 64. `peer_read`: where the peer's read position arrives,
  /// 0 at first. Both outlive the producer.
  Producer(std::byte* base, uint32_t ring_bytes, const std::atomic<Position>* peer_read)
      : base_(base), ring_bytes_(ring_bytes), peer_read_(peer_read), limit_(ring_bytes) {}

  /// Contiguous space for one frame: at least `least` bytes (up to frame_limit()), and as much more as there is room
  /// for, up to `most` (up to wire::full_frame_limit). Empty if the peer has to read first, or is broken(). If little
  /// is left before the end of the buffer, a PAD frame fills it and the space lies at the beginning, so that frames
  /// stay large. Until `commit`, the same call returns the same space, or more of it. Threads: the worker.
  Claim claim(uint32_t least, uint32_t most) noexcept;

  /// The claimed space holds a frame of `length` bytes. Threads: the worker.
  void commit(uint32_t length) noexcept {
    end_ += wire::padded(length);
    committed_.store(end_, std::memory_order_release);
  }

  /// The end of the last committed frame. Threads: any; acquire, so that the bytes before it can be read.
  Position committed() const noexcept { return committed_.load(std::memory_order_acquire); }

  /// The position of the latest PAD frame. Only the header of a pad has to be transferred. Load `committed()` first: if
  /// this pad lies between what was transferred before and that position, it is the only pad there; if it does not,
  /// there is none. Threads: any.
  Position last_pad() const noexcept { return last_pad_.load(std::memory_order_relaxed); }

  /// Whether the peer has read everything. Threads: the worker.
  bool drained() noexcept { return peer_read_->load(std::memory_order_seq_cst) == end_; }

  /// The peer's read position was impossible. Threads: the worker.
  bool broken() const noexcept { return broken_; }

  uint32_t ring_bytes() const noexcept { return ring_bytes_; }
  uint32_t frame_limit() const noexcept { return wire::frame_limit(ring_bytes_); }
  uint32_t full_frame_limit() const noexcept { return wire::full_frame_limit(ring_bytes_); }
  std::byte* at(Position position) const noexcept { return base_ + (position & (ring_bytes_ - 1)); }

  /// Begins as if that many bytes had been written and read; before the first claim. *peer_read is
  /// the test's.
  void start_at_for_test(Position position) noexcept {
    end_ = position;
    limit_ = position + ring_bytes_;
    committed_.store(position, std::memory_order_relaxed);
  }

 private:
  void refresh_limit() noexcept;

  // Constant after construction.
  std::byte* const base_;
  const uint32_t ring_bytes_;
  const std::atomic<Position>* const peer_read_;

  // The worker's.
  Position limit_;    // cached read + ring_bytes: bytes before it may be written
  Position end_ = 0;  // == committed_, without the atomic load
  bool broken_ = false;

  // Written by the worker, read by the thread that transfers: on a separate cache line.
  alignas(64) std::atomic<Position> committed_{0};
  std::atomic<Position> last_pad_{~Position{0}};
};

inline void Producer::refresh_limit() noexcept {
  const Position read = peer_read_->load(std::memory_order_seq_cst);
  // read is untrusted; limit_ - ring_bytes_ is the last value that was accepted.
  if (read > end_ || read + ring_bytes_ < limit_) {
    broken_ = true;
    return;
  }
  limit_ = read + ring_bytes_;
}

inline Claim Producer::claim(uint32_t least, uint32_t most) noexcept {
  const uint32_t least_padded = static_cast<uint32_t>(wire::padded(least));
  // Whole cache lines, and not a frame so small that its header and padding count.
  const uint32_t useful =
      most < frame_limit() / 2 ? static_cast<uint32_t>(wire::padded(most)) : frame_limit() / 2;
  const uint32_t wanted = least_padded > useful ? least_padded : useful;
  for (;;) {
    const uint32_t offset = static_cast<uint32_t>(end_ & (ring_bytes_ - 1));
    const uint32_t to_end = ring_bytes_ - offset;
    const bool pad = to_end < wanted;
    const uint64_t needed = pad ? uint64_t{to_end} + wanted : wanted;
    const uint64_t full = wire::padded(most) < to_end ? wire::padded(most) : to_end;
    if (limit_ - end_ < (pad ? needed : full)) {
      refresh_limit();
      if (broken_ || limit_ - end_ < needed) return {};
    }
    if (pad) {
      wire::store_header(base_ + offset, {to_end, wire::FrameKind::pad, 0, 0, 0, 0});
      last_pad_.store(end_, std::memory_order_relaxed);  // seen with committed_
      end_ += to_end;
      committed_.store(end_, std::memory_order_release);
      continue;
    }
    uint64_t bytes = limit_ - end_;
    if (bytes > to_end) bytes = to_end;
    if (bytes > wire::padded(most)) bytes = wire::padded(most);
    return {base_ + offset, static_cast<uint32_t>(bytes & ~uint64_t{wire::kFrameAlignment - 1})};
  }
}

}  // namespace faro::ring
