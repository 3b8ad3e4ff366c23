// Frames with self-checking contents: what the sender writes follows from (seed, number), so that the receiver can tell
// a lost, doubled, torn or foreign frame from the right one.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "support/data_header.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace faro::test {

/// Mixes a number so that neighbours differ everywhere (splitmix64).
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The frames of one ring, from one end. Both ends use the same seed.
class FrameSequence {
 public:
  /// Frames of random lengths up to `longest` bytes, or of one length if that is given.
  FrameSequence(uint64_t seed, uint32_t longest, uint32_t length = 0)
      : seed_(seed), longest_(longest), fixed_length_(length) {}

  uint64_t count() const { return number_; }
  void set_length(uint32_t length) { fixed_length_ = length; }

  /// Length of the next frame, header included.
  uint32_t length() const {
    if (fixed_length_ != 0) return fixed_length_;
    return kLeast + static_cast<uint32_t>(mix(seed_ ^ (number_ << 1)) % (longest_ - kLeast + 1));
  }

  /// Commits the next frame if there is space for it.
  bool try_send(transport::Outgoing& outgoing) {
    const uint32_t bytes = length();
    const transport::Claim claim = outgoing.claim(bytes, bytes);
    if (claim.bytes == 0) return false;
    wire::FrameHeader header = data_header(bytes);
    header.slot = static_cast<uint16_t>(number_);
    std::memcpy(claim.data, &header, sizeof header);
    for (uint32_t at = sizeof header; at < bytes; at += 8) {
      const uint64_t word = word_at(at);
      std::memcpy(claim.data + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
    outgoing.commit(bytes);
    ++number_;
    return true;
  }

  /// Compares a received frame with the next one; empty if it is the same.
  std::string check(const transport::FrameView& view) {
    const std::string where =
        "frame " + std::to_string(number_) + " of ring with seed " + std::to_string(seed_) + ": ";
    if (view.header.length != length()) {
      return where + "length " + std::to_string(view.header.length) + ", expected " +
             std::to_string(length());
    }
    if (view.header.kind != wire::FrameKind::data || view.header.row_count != 1 ||
        view.header.slot != static_cast<uint16_t>(number_)) {
      return where + "another header";
    }
    const std::byte* const frame = view.payload - sizeof(wire::FrameHeader);
    for (uint32_t at = sizeof(wire::FrameHeader); at < view.header.length; at += 8) {
      const uint64_t word = word_at(at);
      if (std::memcmp(frame + at, &word,
                      view.header.length - at < 8 ? view.header.length - at : 8) != 0) {
        return where + "another byte in the word at " + std::to_string(at);
      }
    }
    ++number_;
    return {};
  }

  /// The shortest data frame: a header and one byte.
  static constexpr uint32_t kLeast = sizeof(wire::FrameHeader) + 1;

 private:
  uint64_t word_at(uint32_t at) const { return mix(seed_ * 31 + number_ * 1000003 + at); }

  uint64_t seed_;
  uint32_t longest_;
  uint32_t fixed_length_;
  uint64_t number_ = 0;
};

/// One sequence of frames, from both ends.
struct FrameSequences {
  FrameSequence sent;
  FrameSequence received = sent;
};

}  // namespace faro::test
