// Arrival: how far the message is that is being received over a data connection.
//
//   socket ──┬─► ring       the rest of the current payload, in place
//            └─► staging    what follows it: headers of the next messages
//
// A read asks for both, so that the same system call also reads the headers of the next messages.
// The parts of their payloads that come along are copied once more. If the current payload is
// large, staging is small, since large payloads mostly follow each other. Otherwise staging takes
// as much as it has room for, since many messages may be small.
//
// Staging is the receiver's, one for all links. Between two turns of reading a link keeps what has
// begun, less than a message; all that came of a payload is in its ring.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "wire/data_message.h"

namespace faro::transport::tcp {

/// Threads: the holder of the right to read.
class Arrival {
 public:
  /// The pieces of memory that a read is to fill.
  class Pieces {
   public:
    explicit Pieces(size_t most_bytes) noexcept : most_(most_bytes) {}
    void add(std::byte* at, size_t bytes) noexcept {
      pieces_[count_] = {at, std::min(bytes, most_ - bytes_)};
      bytes_ += pieces_[count_++].iov_len;
    }
    std::span<iovec> all() noexcept { return std::span(pieces_).first(count_); }
    size_t bytes() const noexcept { return bytes_; }

   private:
    std::array<iovec, 3> pieces_;
    size_t count_ = 0;
    const size_t most_;
    size_t bytes_ = 0;
  };

  explicit Arrival(uint32_t ring_bytes) noexcept : ring_bytes_(ring_bytes) {}

  /// A turn begins; it has ended.
  void restore(std::span<std::byte> staging) noexcept {
    std::memcpy(staging.data(), begun_.data(), staged_);
  }
  void keep(std::span<const std::byte> staging) noexcept {
    staged_ = std::min(staged_, begun_.size());  // more only of a link that has failed
    std::memcpy(begun_.data(), staging.data(), staged_);
  }
  /// The connection is given up: what has come of an unfinished message is forgotten.
  void forget() noexcept { staged_ = left_ = 0; }

  /// Where what comes next belongs.
  Pieces ask(std::span<std::byte> staging, size_t most_bytes) const noexcept {
    Pieces pieces(most_bytes);
    if (left_ != 0) {
      const size_t to_end = ring_bytes_ - offset();
      pieces.add(memory_ + offset(), std::min(left_, to_end));
      if (left_ > to_end) pieces.add(memory_, left_ - to_end);
    }
    const bool is_large = left_ >= kLargePayloadBytes;
    pieces.add(staging.data() + staged_, is_large ? kAheadBytes : staging.size() - staged_);
    return pieces;
  }
  /// That many bytes have come there. True: they end a payload.
  bool received(size_t bytes) noexcept {
    const size_t in_place = std::min(bytes, left_);
    advance(in_place);
    staged_ += bytes - in_place;
    return in_place != 0 && left_ == 0;
  }

  bool inside_payload() const noexcept { return left_ != 0; }
  bool inside_message() const noexcept { return left_ != 0 || staged_ != 0; }
  /// A whole message follows the first `taken` bytes of staging.
  bool has_message(size_t taken) const noexcept {
    return left_ == 0 && staged_ - taken >= sizeof(wire::DataMessage);
  }

  /// The bytes of a payload come next. They belong into that ring, at that position.
  void begin_payload(uint32_t ring, std::byte* memory, wire::Position position,
                     size_t bytes) noexcept {
    ring_ = ring;
    memory_ = memory;
    position_ = position;
    left_ = bytes;
  }
  /// Moves into the ring what has come of the payload behind the first `taken` bytes of staging.
  /// Returns how much that is.
  size_t fill(std::span<const std::byte> staging, size_t taken) noexcept {
    size_t filled = 0;
    while (left_ != 0 && taken + filled != staged_) {
      const size_t to_end = ring_bytes_ - offset();
      const size_t bytes = std::min({staged_ - taken - filled, left_, to_end});
      std::memcpy(memory_ + offset(), staging.data() + taken + filled, bytes);
      filled += bytes;
      advance(bytes);
    }
    return filled;
  }
  /// The first `taken` bytes of staging are out.
  void drop(std::span<std::byte> staging, size_t taken) noexcept {
    staged_ -= taken;
    std::memmove(staging.data(), staging.data() + taken, staged_);
  }

  /// The ring of the last payload, and how far it has arrived there.
  uint32_t ring() const noexcept { return ring_; }
  wire::Position position() const noexcept { return position_; }

 private:
  // Staging asked for behind a large payload, and what is large.
  static constexpr size_t kAheadBytes = 512;
  static constexpr size_t kLargePayloadBytes = 4096;

  size_t offset() const noexcept { return static_cast<size_t>(position_ & (ring_bytes_ - 1)); }
  void advance(size_t bytes) noexcept {
    position_ += bytes;
    left_ -= bytes;
  }

  const uint32_t ring_bytes_;  // of each ring
  // Received and not yet understood: between two turns the beginning of a message, within one all
  // of it, in staging.
  std::array<std::byte, sizeof(wire::DataMessage)> begun_;
  size_t staged_ = 0;            // bytes of it
  uint32_t ring_ = 0;            // whose payload is being received
  std::byte* memory_ = nullptr;  // its
  wire::Position position_ = 0;  // where the next byte of it goes
  size_t left_ = 0;              // bytes of it still to come; 0: between messages
};

}  // namespace faro::transport::tcp
