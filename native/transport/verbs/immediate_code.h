// ImmediateCode: a WRITTEN notification in the 32 bits of immediate data.
//
//    31                  bits                 0
//   +-------------------+----------------------+
//   | ring              | units of 64 bytes - 1|     by how much the ring's written position moves
//   +-------------------+----------------------+
//
// A transfer has from 1 to ring_bytes / 64 units, so `bits` follows from the size of a ring; the
// number of rings of the direction has to fit into the rest.
#pragma once

#include <bit>
#include <cstdint>

#include "ring/layout.h"
#include "wire/frame.h"

namespace faro::transport::verbs {

/// Threads: constant after construction.
class ImmediateCode {
 public:
  struct Written {
    uint32_t ring;   // unchecked: any that fits into the bits
    uint32_t bytes;  // 64 … ring_bytes
  };

  explicit ImmediateCode(const ring::Layout& layout)
      : bits_(static_cast<uint32_t>(
            std::countr_zero(layout.ring_bytes / uint32_t{wire::kFrameAlignment}))),
        fits_(layout.ring_count() <= (uint64_t{1} << (32 - bits_))) {}

  /// Whether every ring of the layout has a code. If not, notifications are SENDs.
  bool fits() const noexcept { return fits_; }

  uint32_t encode(uint32_t ring, uint32_t bytes) const noexcept {
    return (ring << bits_) | (bytes / uint32_t{wire::kFrameAlignment} - 1);
  }
  Written decode(uint32_t code) const noexcept {
    const uint32_t units = (code & ((uint32_t{1} << bits_) - 1)) + 1;
    return {code >> bits_, units * uint32_t{wire::kFrameAlignment}};
  }

 private:
  uint32_t bits_;  // 6 … 22, for rings from 4 KiB to 256 MiB
  bool fits_;
};

}  // namespace faro::transport::verbs
