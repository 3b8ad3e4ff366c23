// Where the rings of a link and direction lie in its one contiguous region.
#pragma once

#include <cstdint>

#include "wire/frame.h"

namespace faro::ring {

/// The rings from the workers of one node to the ends at another, numbered
/// (sender * receiver_ends + receiver) * rings_per_lane + k, workers and ends counted within their node. An end is a
/// worker or the node itself (session::rings_between says which).
struct Layout {
  uint32_t sender_workers = 0;
  uint32_t receiver_ends = 0;
  uint32_t rings_per_lane = 0;
  uint32_t ring_bytes = 0;  // power of two

  /// Distance between ring bases: one cache line more than the ring. Bases a power of two apart make
  /// the write cursors of many rings compete for the same few L1 sets (6.6 ns a row instead of 0.8).
  uint64_t stride_bytes() const { return uint64_t{ring_bytes} + 64; }
  uint32_t ring_count() const { return sender_workers * receiver_ends * rings_per_lane; }
  uint64_t region_bytes() const { return stride_bytes() * ring_count(); }
  /// From the first ring to the end of the last one.
  uint64_t extent_bytes() const {
    return ring_count() == 0 ? 0 : stride_bytes() * (ring_count() - 1) + ring_bytes;
  }

  uint32_t ring(uint32_t sender, uint32_t receiver, uint32_t k) const {
    return (sender * receiver_ends + receiver) * rings_per_lane + k;
  }
  uint64_t base_offset(uint32_t ring) const { return stride_bytes() * ring; }
  uint32_t sender_of(uint32_t ring) const { return ring / rings_per_lane / receiver_ends; }
  uint32_t receiver_of(uint32_t ring) const { return ring / rings_per_lane % receiver_ends; }
  uint32_t rings_of_receiver() const { return sender_workers * rings_per_lane; }
  /// The place of a ring among all rings of its receiver: its bit in the receiver's ready words.
  uint32_t index_at_receiver(uint32_t ring) const {
    return sender_of(ring) * rings_per_lane + ring % rings_per_lane;
  }
};

}  // namespace faro::ring
