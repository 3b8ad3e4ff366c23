// Consumer: the receiving end of a mirrored ring.
//
//           released            taken           written
//              v                  v                v
//   -----------[..held..|..held..][................]------------  positions, only grow
//              frames given out    not yet read
//
// Frames are taken in order and released in any order; the read position passes the released prefix
// only (native/DESIGN.md#hc-1).
//
// Who writes what:
//   *written_       the peer (shm, with release) or whichever thread receives for the link (tcp, verbs: with seq_cst):
//                   the bytes before it are in the ring. Untrusted: checked to go forward and to stay within the ring.
//   everything else  the worker alone; the transport decides what the peer is told
//
// Everything in the ring may be changed by a hostile peer while it is read. Headers are copied once and
// checked before use; payloads are only handed out together with the checked length.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "wire/frame.h"

namespace faro::ring {

using wire::Position;

/// A frame in place. The header is a private, checked copy.
struct FrameView {
  wire::FrameHeader header;
  const std::byte* payload = nullptr;  // header.length - 16 bytes
  uint32_t token = 0;                  // for release

  uint32_t payload_bytes() const {
    return header.length - static_cast<uint32_t>(sizeof(wire::FrameHeader));
  }
};

/// What `next` found.
///   frame    the view is set; the frame stays in place until released
///   nothing  all that has arrived was taken
///   full     kTracked frames are unreleased: release some and look again
///   invalid  the peer broke the rules: why_invalid() says how; nothing more comes
enum class Next { frame, nothing, full, invalid };

class Consumer {
 public:
  /// Frames that can be unreleased at a time. A ring holds few full frames; small ones (flushes) are
  /// more. A power of two.
  static constexpr uint32_t kTracked = 64;

  Consumer(const std::byte* base, uint32_t ring_bytes, const std::atomic<Position>* written)
      : base_(base), ring_bytes_(ring_bytes), written_(written) {}

  /// Takes the next frame, skipping pads and what may be skipped. Threads: the worker.
  Next next(FrameView& view) noexcept;

  /// Gives a frame back. Each token once. Threads: the worker.
  void release(uint32_t token) noexcept {
    ends_[token & (kTracked - 1)] |= kReleased;
    advance();
  }

  /// The read position: everything before it may be overwritten.
  Position read() const noexcept { return read_; }
  /// End of the frames taken.
  Position taken() const noexcept { return taken_; }
  /// Whether all that is known to be written has been read.
  bool empty() const noexcept { return read_ == seen_; }
  /// Whether frames of unknown kinds were skipped since the last call. The read position may have passed them without
  /// a release.
  bool take_skipped() noexcept { return std::exchange(has_skipped_, false); }
  const char* why_invalid() const noexcept { return why_invalid_; }
  uint32_t ring_bytes() const noexcept { return ring_bytes_; }
  const std::byte* base() const noexcept { return base_; }

  /// Begins as if that many bytes had been written and read; before the first `next`. *written is
  /// the test's.
  void start_at_for_test(Position position) noexcept { seen_ = taken_ = read_ = position; }

 private:
  /// In the end of a frame, which is a multiple of wire::kFrameAlignment.
  static constexpr Position kReleased = 1;

  void advance() noexcept {
    while (first_ != last_ && (ends_[first_ & (kTracked - 1)] & kReleased) != 0) {
      read_ = ends_[first_ & (kTracked - 1)] - kReleased;
      ++first_;
    }
    if (first_ == last_) read_ = taken_;  // trailing pads, and what was skipped
  }
  void skip(uint32_t length) noexcept {
    taken_ += wire::padded(length);
    if (first_ == last_) read_ = taken_;
  }

  const std::byte* const base_;
  const uint32_t ring_bytes_;
  const std::atomic<Position>* const written_;

  Position seen_ = 0;  // last accepted *written_
  Position taken_ = 0;
  Position read_ = 0;
  uint32_t first_ = 0;  // oldest unreleased frame; a running number, also the token
  uint32_t last_ = 0;   // one behind the newest
  const char* why_invalid_ = nullptr;
  bool has_skipped_ = false;
  std::array<Position, kTracked> ends_;  // of frames that were taken
};

inline Next Consumer::next(FrameView& view) noexcept {
  if (why_invalid_ != nullptr) return Next::invalid;
  for (;;) {
    if (taken_ == seen_) {
      // Partner: the store of *written_; acquire would be enough for the bytes before it. seq_cst, so that this look
      // counts as S2 where that store is seq_cst; it costs nothing more (native/DESIGN.md#memory-orders).
      const Position written = written_->load(std::memory_order_seq_cst);
      if (written < seen_ || written - read_ > ring_bytes_ ||
          written % wire::kFrameAlignment != 0) {
        why_invalid_ = "impossible written position";
        return Next::invalid;
      }
      if (written == taken_) return Next::nothing;
      seen_ = written;
    }
    if (last_ - first_ == kTracked) return Next::full;
    const uint32_t offset = static_cast<uint32_t>(taken_ & (ring_bytes_ - 1));
    view.header = wire::load_header(base_ + offset);
    why_invalid_ =
        wire::why_invalid(view.header, seen_ - taken_, ring_bytes_ - offset, ring_bytes_);
    if (why_invalid_ != nullptr) [[unlikely]] {
      if (!wire::may_skip(view.header, seen_ - taken_, ring_bytes_ - offset, ring_bytes_))
        return Next::invalid;
      why_invalid_ = nullptr;
      has_skipped_ = true;
      skip(view.header.length);
      continue;
    }
    if (view.header.kind == wire::FrameKind::pad) {
      skip(view.header.length);
      continue;
    }
    taken_ += wire::padded(view.header.length);
    view.payload = base_ + offset + sizeof(wire::FrameHeader);
    view.token = last_;
    ends_[last_ & (kTracked - 1)] = taken_;
    ++last_;
    return Next::frame;
  }
}

}  // namespace faro::ring
