// The pieces of the verbs transport that need no device: places of the send queue, what has to be
// signalled, and immediates.
#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "contract/frames.h"
#include "transport/verbs/immediate_code.h"
#include "transport/verbs/send_queue.h"
#include "transport/verbs/verbs_transport.h"

namespace faro::transport::verbs {
namespace {

using Covered = std::vector<std::pair<uint32_t, wire::Position>>;

Covered complete(SendQueue& queue, uint64_t number) {
  Covered covered;
  EXPECT_TRUE(queue.complete(
      number, [&](uint32_t ring, wire::Position end) { covered.emplace_back(ring, end); }));
  return covered;
}

// Whether there is a device or not: a plan asks, too.
TEST(VerbsTransportTest, counts_the_messages_of_a_link_beside_its_rings) {
  const ring::Layout data{
      .sender_workers = 1, .receiver_ends = 1, .rings_per_lane = 1, .ring_bytes = 65536};
  ring::Layout requests = data;
  requests.ring_bytes = 8192;
  const struct { uint64_t receives, sends, bytes; } cases[] = {{64, 256, 163840}, {4, 16, 12288}};
  for (const auto& each : cases) {
    base::Settings settings;
    settings.verbs_receives = each.receives;
    settings.verbs_send_queue = each.sends;
    const VerbsTransport transport(
        {settings, "127.0.0.1:0", [](LogLevel, std::string_view) noexcept {}});
    EXPECT_EQ(transport.memory_bytes(data, requests), 69632u + 12288 + each.bytes);
    EXPECT_EQ(transport.memory_bytes(requests, data), 69632u + 12288 + each.bytes);
  }
}

TEST(SendQueueTest, a_completion_covers_everything_before_it) {
  SendQueue queue(16);
  queue.add(3, SendQueue::kNothing);  // the first part of a transfer
  queue.add(3, 100);
  queue.add(SendQueue::kNoRing, SendQueue::kNothing);  // a message
  queue.announce(false);
  queue.add(4, 200);
  queue.announce(true);
  EXPECT_EQ(queue.ring_of(0), 3u);
  EXPECT_EQ(queue.ring_of(2), SendQueue::kNoRing);
  EXPECT_EQ(complete(queue, 3), (Covered{{3, 100}, {4, 200}}));
}

TEST(SendQueueTest, a_completion_of_nothing_under_way_is_refused) {
  SendQueue queue(16);
  const auto ignore = [](uint32_t, wire::Position) {};
  EXPECT_FALSE(queue.complete(0, ignore));
  queue.add(0, 64);
  EXPECT_FALSE(queue.complete(0, ignore)) << "not announced";
  queue.announce(true);
  EXPECT_FALSE(queue.complete(1, ignore));
  EXPECT_TRUE(queue.complete(0, ignore));
  EXPECT_FALSE(queue.complete(0, ignore)) << "twice";
}

TEST(SendQueueTest, places_are_used_again_in_turn) {
  SendQueue queue(16);
  for (uint64_t number = 0; number < 100; ++number) {
    EXPECT_EQ(queue.next_place(), number % 16);
    EXPECT_EQ(queue.add(7, number + 1), number);
    queue.announce(true);
    EXPECT_EQ(complete(queue, number), (Covered{{7, number + 1}}));
  }
}

// Chains of every length, completed late or never: whoever waits for places has something to wait for.
TEST(SendQueueTest, without_room_there_is_always_a_signalled_request_under_way) {
  for (const uint32_t depth : {16u, 17u, 64u, 256u}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      SCOPED_TRACE("depth " + std::to_string(depth) + ", seed " + std::to_string(seed));
      SendQueue queue(depth);
      uint64_t chance = seed;
      uint64_t under_way = 0;
      std::vector<uint64_t> signalled;
      for (int step = 0; step < 2000; ++step) {
        chance = test::mix(chance);
        if (queue.has_room() && chance % 3 != 0) {
          const uint64_t length = 1 + (chance >> 8) % queue.chain_limit();
          uint64_t last = 0;
          for (uint64_t i = 0; i < length; ++i) last = queue.add(0, 64);
          under_way += length;
          ASSERT_LE(under_way, depth);
          const bool signal = queue.signal_due();
          queue.announce(signal);
          if (signal) signalled.push_back(last);
        } else if (!signalled.empty() && (!queue.has_room() || chance & 1)) {
          under_way -= complete(queue, signalled.front()).size();
          signalled.erase(signalled.begin());
        }
        ASSERT_TRUE(queue.has_room() || !signalled.empty());
      }
    }
  }
}

struct Shape {
  uint32_t rings;
  uint32_t ring_bytes;
  bool fits;
};
constexpr Shape kShapes[] = {
    {1, 4096, true},
    {72, 32768, true},
    {1 << 23, 32768, true},
    {(1 << 23) + 1, 32768, false},
    {1 << 26, 4096, true},
    {(1 << 26) + 1, 4096, false},
    {1 << 10, 256 << 20, true},
    {(1 << 10) + 1, 256 << 20, false},
};

TEST(ImmediateCodeTest, every_transfer_of_every_ring_has_a_code_or_none_has) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(std::to_string(shape.rings) + " rings of " + std::to_string(shape.ring_bytes));
    const ImmediateCode code(ring::Layout{shape.rings, 1, 1, shape.ring_bytes});
    EXPECT_EQ(code.fits(), shape.fits);
    if (!shape.fits) continue;
    for (const uint32_t ring : {0u, shape.rings / 2, shape.rings - 1}) {
      for (const uint32_t bytes : {64u, 128u, shape.ring_bytes / 2, shape.ring_bytes}) {
        const ImmediateCode::Written written = code.decode(code.encode(ring, bytes));
        EXPECT_EQ(written.ring, ring);
        EXPECT_EQ(written.bytes, bytes);
      }
    }
  }
}

TEST(ImmediateCodeTest, any_bits_decode_to_a_whole_number_of_units) {
  const ImmediateCode code(ring::Layout{2, 2, 2, 32768});
  for (const uint32_t bits : {0u, 1u, 511u, 512u, 0x80000000u, 0xffffffffu}) {
    const ImmediateCode::Written written = code.decode(bits);
    EXPECT_EQ(written.bytes % 64, 0u);
    EXPECT_GE(written.bytes, 64u);
    EXPECT_LE(written.bytes, 32768u);
  }
}

}  // namespace
}  // namespace faro::transport::verbs
