#include "ring/layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "transport/shm/segment.h"

namespace faro::ring {
namespace {

constexpr Layout kShapes[] = {{1, 1, 1, 4096}, {1, 4, 2, 4096}, {3, 2, 2, 8192}, {40, 3, 2, 4096}};

TEST(RingLayout, numbers_every_ring_once_and_finds_its_ends_again) {
  for (const Layout& layout : kShapes) {
    std::set<uint32_t> seen;
    for (uint32_t sender = 0; sender < layout.sender_workers; ++sender) {
      for (uint32_t receiver = 0; receiver < layout.receiver_ends; ++receiver) {
        for (uint32_t k = 0; k < layout.rings_per_lane; ++k) {
          const uint32_t ring = layout.ring(sender, receiver, k);
          EXPECT_LT(ring, layout.ring_count());
          EXPECT_TRUE(seen.insert(ring).second);
          EXPECT_EQ(layout.sender_of(ring), sender);
          EXPECT_EQ(layout.receiver_of(ring), receiver);
        }
      }
    }
    EXPECT_EQ(seen.size(), layout.ring_count());
  }
}

TEST(RingLayout, gives_the_rings_of_a_receiver_distinct_places_in_its_ready_words) {
  for (const Layout& layout : kShapes) {
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (uint32_t ring = 0; ring < layout.ring_count(); ++ring) {
      EXPECT_LT(layout.index_at_receiver(ring), layout.rings_of_receiver());
      EXPECT_TRUE(seen.insert({layout.receiver_of(ring), layout.index_at_receiver(ring)}).second);
    }
  }
}

TEST(RingLayout, staggers_rings_by_a_line_and_keeps_them_apart) {
  const Layout layout{2, 2, 2, 32768};
  for (uint32_t ring = 0; ring < layout.ring_count(); ++ring) {
    EXPECT_EQ(layout.base_offset(ring) % 64, 0u);
    EXPECT_EQ(layout.base_offset(ring) / 64 % 64, ring) << "another cache set for each";
  }
  EXPECT_EQ(layout.region_bytes(), layout.base_offset(7) + 32768 + 64);
}

TEST(SegmentLayout, keeps_all_its_parts_apart_and_aligned) {
  for (const Layout& rings : kShapes) {
    const transport::shm::SegmentLayout segment(rings);
    const uint32_t last = rings.ring_count() - 1;
    EXPECT_EQ(segment.written_offset(0), 64u);
    EXPECT_EQ(segment.written_offset(last) + 64, segment.read_offset(0));
    EXPECT_EQ(segment.read_offset(last) + 64, segment.ready_offset(0));
    for (uint32_t worker = 0; worker + 1 < rings.receiver_ends; ++worker) {
      EXPECT_EQ(segment.ready_offset(worker) % 64, 0u);
      EXPECT_LE(segment.ready_offset(worker) + 8 * segment.ready_words(),
                segment.ready_offset(worker + 1));
    }
    EXPECT_LE(segment.ready_offset(rings.receiver_ends - 1) + 8 * segment.ready_words(),
              segment.ring_offset(0));
    EXPECT_EQ(segment.ring_offset(0) % transport::shm::kPageBytes, 0u);
    EXPECT_LE(segment.ring_offset(last) + rings.ring_bytes, segment.bytes());
    EXPECT_EQ(segment.bytes() % transport::shm::kPageBytes, 0u);
  }
}

TEST(SegmentLayout, counts_the_rings_of_each_ready_word) {
  const transport::shm::SegmentLayout segment(Layout{40, 3, 2, 4096});
  ASSERT_EQ(segment.ready_words(), 2u);
  EXPECT_EQ(segment.rings_in_ready_word(0), 64u);
  EXPECT_EQ(segment.rings_in_ready_word(1), 16u);
}

}  // namespace
}  // namespace faro::ring
