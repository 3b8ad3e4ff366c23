// Producer and consumer together, over every place where positions and offsets have an edge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "unit/ring_pair.h"

namespace faro::test {
namespace {

using ring::FrameView;
using ring::Next;
using wire::Position;

constexpr uint32_t kRing = 4096;

struct Edge {
  const char* name;
  Position start;
};

// Starts are multiples of 64, as all positions are. Some lie so that the edge falls into the first
// turns of the ring.
const Edge kEdges[] = {
    {"zero", 0},
    {"last_line_of_the_ring", kRing - 64},
    {"middle_of_the_ring", kRing / 2},
    {"before_2_to_the_31", (Position{1} << 31) - 2 * kRing - 64},
    {"at_2_to_the_31", Position{1} << 31},
    {"before_2_to_the_32", (Position{1} << 32) - kRing - 128},
    {"before_2_to_the_63", (Position{1} << 63) - 2 * kRing - 64},
    {"at_2_to_the_63", Position{1} << 63},
};

class RingEdges : public testing::TestWithParam<Edge> {};
INSTANTIATE_TEST_SUITE_P(All, RingEdges, testing::ValuesIn(kEdges),
                         [](const auto& edge) { return std::string(edge.param.name); });

TEST_P(RingEdges, an_empty_ring_has_nothing_and_room_for_a_full_frame) {
  RingPair pair(kRing, GetParam().start);
  FrameView view;
  EXPECT_EQ(pair.consumer.next(view), Next::nothing);
  EXPECT_TRUE(pair.consumer.empty());
  EXPECT_TRUE(pair.producer.drained());
  EXPECT_GE(pair.producer.claim(kRing / 4, kRing / 4).bytes, kRing / 4);
}

TEST_P(RingEdges, frames_of_every_length_come_out_as_they_went_in) {
  RingPair pair(kRing, GetParam().start);
  // 17 bytes is the shortest data frame; the longest is a quarter ring. Some ten turns of the ring.
  uint32_t count = 0;
  for (uint32_t length = 17; length <= kRing / 4; length += 13) {
    ++count;
    ASSERT_TRUE(pair.put(length, count)) << length;
    pair.publish();
    FrameView view;
    ASSERT_EQ(pair.consumer.next(view), Next::frame) << length;
    EXPECT_EQ(view.header.length, length);
    EXPECT_EQ(view.header.row_count, count);
    ASSERT_EQ(view.payload_bytes(), length - 16);
    EXPECT_TRUE(std::all_of(view.payload, view.payload + view.payload_bytes(),
                            [&](std::byte b) { return b == static_cast<std::byte>(count); }));
    EXPECT_EQ(pair.consumer.next(view), Next::nothing);
    pair.consumer.release(view.token);
    pair.give_back();
    EXPECT_EQ(pair.consumer.read(), pair.producer.committed());
  }
  EXPECT_TRUE(pair.producer.drained());
}

TEST_P(RingEdges, quarter_frames_fill_the_ring_exactly_if_it_starts_at_its_beginning) {
  const Position start = GetParam().start;
  RingPair pair(kRing, start);
  uint32_t frames = 0;
  while (pair.put(kRing / 4)) ++frames;
  if (start % (kRing / 4) == 0) {
    EXPECT_EQ(frames, 4u);
    EXPECT_EQ(pair.producer.committed() - start, kRing);
  } else {
    EXPECT_EQ(frames, 3u) << "a pad takes the place of the fourth";
  }
  EXPECT_EQ(pair.producer.claim(kRing / 4, kRing / 4).bytes, 0u);
  EXPECT_FALSE(pair.producer.broken());

  pair.publish();
  FrameView view;
  for (uint32_t i = 0; i < frames; ++i) {
    ASSERT_EQ(pair.consumer.next(view), Next::frame);
    pair.consumer.release(view.token);
  }
  EXPECT_EQ(pair.consumer.next(view), Next::nothing);
  EXPECT_EQ(pair.consumer.read(), pair.producer.committed());
  pair.give_back();
  EXPECT_TRUE(pair.put(kRing / 4)) << "space is free again";
}

TEST_P(RingEdges, claims_never_reach_over_the_end_and_never_exceed_what_is_free) {
  RingPair pair(kRing, GetParam().start);
  uint64_t random = 88172645463325252u;
  std::deque<uint32_t> held;
  for (int i = 0; i < 20000; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const uint32_t least = 17 + static_cast<uint32_t>(random % (kRing / 4 - 16));
    const ring::Claim claim = pair.producer.claim(least, kRing / 4);
    if (claim.bytes != 0) {
      ASSERT_GE(claim.bytes, least);
      ASSERT_LE(claim.bytes, kRing / 4);
      ASSERT_EQ(claim.bytes % 64, 0u);
      ASSERT_GE(claim.data, pair.memory());
      ASSERT_LE(claim.data + claim.bytes, pair.memory() + kRing);
      ASSERT_TRUE(pair.put(least));
      ASSERT_LE(pair.producer.committed() - pair.read.load(), kRing);
      pair.publish();
    } else {
      ASSERT_FALSE(pair.producer.broken());
      ASSERT_FALSE(pair.producer.drained()) << "an empty ring always has room";
    }
    if (claim.bytes == 0 || random % 3 == 0) {
      FrameView view;
      while (pair.consumer.next(view) == Next::frame) held.push_back(view.token);
      while (!held.empty()) {
        pair.consumer.release(held.front());
        held.pop_front();
      }
      pair.give_back();
    }
  }
}

TEST(RingProducer, returns_the_same_space_until_commit) {
  RingPair pair(kRing);
  const ring::Claim first = pair.producer.claim(64, 512);
  const ring::Claim second = pair.producer.claim(64, 512);
  EXPECT_EQ(first.data, second.data);
  EXPECT_EQ(first.bytes, second.bytes);
  EXPECT_EQ(pair.producer.committed(), 0u);
}

TEST(RingProducer, pads_the_rest_of_the_ring_that_is_too_short_for_a_useful_frame) {
  RingPair pair(kRing, kRing - 128);
  const ring::Claim claim = pair.producer.claim(256, 1024);
  EXPECT_EQ(claim.data, pair.memory());
  EXPECT_EQ(pair.producer.committed(), kRing) << "the pad is committed";
  const wire::FrameHeader pad = wire::load_header(pair.memory() + kRing - 128);
  EXPECT_EQ(pad.kind, wire::FrameKind::pad);
  EXPECT_EQ(pad.length, 128u);
}

TEST(RingProducer, uses_a_rest_of_the_ring_that_fits_exactly) {
  RingPair pair(kRing, kRing - 512);
  const ring::Claim claim = pair.producer.claim(512, 512);
  EXPECT_EQ(claim.data, pair.memory() + kRing - 512);
  EXPECT_EQ(claim.bytes, 512u);
}

TEST(RingProducer, writes_no_pad_before_there_is_room_behind_it) {
  RingPair full(kRing);
  ASSERT_TRUE(full.put(1024) && full.put(1024) && full.put(1024) && full.put(960));
  EXPECT_EQ(full.producer.claim(128, 128).bytes, 0u);
  EXPECT_EQ(full.producer.committed(), 4032u) << "no pad";
  EXPECT_FALSE(full.producer.broken());
}

TEST(RingProducer, takes_a_read_position_beyond_the_committed_one_for_a_broken_peer) {
  RingPair pair(kRing);
  while (pair.put(1024)) continue;
  pair.read.store(pair.producer.committed() + 64);
  EXPECT_EQ(pair.producer.claim(64, 64).bytes, 0u);
  EXPECT_TRUE(pair.producer.broken());
}

TEST(RingProducer, takes_a_read_position_that_goes_back_for_a_broken_peer) {
  RingPair pair(kRing);
  while (pair.put(1024)) continue;
  pair.read.store(2048);
  ASSERT_TRUE(pair.put(1024) && pair.put(1024));
  pair.read.store(1024);
  EXPECT_EQ(pair.producer.claim(1024, 1024).bytes, 0u);
  EXPECT_TRUE(pair.producer.broken());
}

TEST(RingProducer, takes_any_huge_read_position_for_a_broken_peer) {
  for (const Position hostile : {~Position{0}, ~Position{0} - 4095, Position{1} << 63}) {
    RingPair pair(kRing);
    while (pair.put(1024)) continue;
    pair.read.store(hostile);
    EXPECT_EQ(pair.producer.claim(64, 64).bytes, 0u) << hostile;
    EXPECT_TRUE(pair.producer.broken()) << hostile;
  }
}

TEST(RingProducer, stays_within_its_buffer_if_the_read_position_is_no_multiple_of_a_line) {
  RingPair pair(kRing);
  while (pair.put(1024)) continue;
  pair.read.store(1023);
  const ring::Claim claim = pair.producer.claim(64, 1024);
  EXPECT_EQ(claim.bytes % 64, 0u);
  EXPECT_LE(claim.bytes, 960u);
}

TEST(RingConsumer, moves_the_read_position_over_the_released_prefix_only) {
  RingPair pair(kRing);
  ASSERT_TRUE(pair.put(64) && pair.put(100) && pair.put(200));
  pair.publish();
  FrameView first, second, third;
  ASSERT_EQ(pair.consumer.next(first), Next::frame);
  ASSERT_EQ(pair.consumer.next(second), Next::frame);
  ASSERT_EQ(pair.consumer.next(third), Next::frame);
  pair.consumer.release(third.token);
  EXPECT_EQ(pair.consumer.read(), 0u);
  pair.consumer.release(first.token);
  EXPECT_EQ(pair.consumer.read(), 64u);
  EXPECT_FALSE(pair.consumer.empty());
  pair.consumer.release(second.token);
  EXPECT_EQ(pair.consumer.read(), 64u + 128 + 256);
  EXPECT_TRUE(pair.consumer.empty());
}

TEST(RingConsumer, is_full_at_the_number_of_frames_it_tracks_and_goes_on_after_a_release) {
  RingPair pair(2 * 64 * ring::Consumer::kTracked);
  for (uint32_t i = 0; i <= ring::Consumer::kTracked; ++i) ASSERT_TRUE(pair.put(64, i + 1));
  pair.publish();
  std::vector<FrameView> views(ring::Consumer::kTracked);
  for (FrameView& view : views) ASSERT_EQ(pair.consumer.next(view), Next::frame);
  FrameView more;
  EXPECT_EQ(pair.consumer.next(more), Next::full);
  pair.consumer.release(views[5].token);
  EXPECT_EQ(pair.consumer.next(more), Next::full) << "only the oldest frees a place";
  pair.consumer.release(views[0].token);
  ASSERT_EQ(pair.consumer.next(more), Next::frame);
  EXPECT_EQ(more.header.row_count, ring::Consumer::kTracked + 1);
  EXPECT_EQ(pair.consumer.next(more), Next::nothing);
}

TEST(RingConsumer, gives_back_a_pad_although_nothing_follows_it) {
  RingPair pair(kRing, kRing - 128);
  ASSERT_NE(pair.producer.claim(256, 256).bytes, 0u);  // pads, and commits nothing else
  pair.publish();
  FrameView view;
  EXPECT_EQ(pair.consumer.next(view), Next::nothing);
  EXPECT_EQ(pair.consumer.read(), kRing);
  EXPECT_TRUE(pair.consumer.empty());
}

TEST(RingConsumer, gives_back_a_pad_behind_a_held_frame_only_with_that_frame) {
  RingPair pair(kRing, kRing - 256);
  ASSERT_TRUE(pair.put(128));
  ASSERT_NE(pair.producer.claim(256, 256).bytes, 0u);
  pair.publish();
  FrameView view, none;
  ASSERT_EQ(pair.consumer.next(view), Next::frame);
  EXPECT_EQ(pair.consumer.next(none), Next::nothing);
  EXPECT_EQ(pair.consumer.read(), kRing - 256);
  pair.consumer.release(view.token);
  EXPECT_EQ(pair.consumer.read(), kRing);
}

struct HostilePosition {
  const char* name;
  Position written;
};

class RingHostilePositions : public testing::TestWithParam<HostilePosition> {};
INSTANTIATE_TEST_SUITE_P(All, RingHostilePositions,
                         testing::Values(HostilePosition{"goes_back", 0},
                                         HostilePosition{"more_than_a_ring_ahead", 64 + kRing + 64},
                                         HostilePosition{"not_on_a_line", 64 + 63},
                                         HostilePosition{"largest", ~Position{0}},
                                         HostilePosition{"wraps_the_number", ~Position{0} - 63},
                                         HostilePosition{"half_of_all", Position{1} << 63}),
                         [](const auto& edge) { return std::string(edge.param.name); });

TEST_P(RingHostilePositions, make_the_ring_invalid_for_good) {
  RingPair pair(kRing);
  ASSERT_TRUE(pair.put(64) && pair.put(64));
  pair.written.store(64);
  FrameView view;
  ASSERT_EQ(pair.consumer.next(view), Next::frame);
  pair.written.store(GetParam().written);
  EXPECT_EQ(pair.consumer.next(view), Next::invalid);
  EXPECT_STREQ(pair.consumer.why_invalid(), "impossible written position");
  pair.written.store(128);
  EXPECT_EQ(pair.consumer.next(view), Next::invalid) << "nothing more comes";
  pair.consumer.release(view.token);  // what is held can still be given back
  EXPECT_EQ(pair.consumer.read(), 64u);
}

struct HostileHeader {
  const char* name;
  wire::FrameHeader header;
  const char* why;
};

wire::FrameHeader frame(uint32_t length, wire::FrameKind kind, uint32_t rows = 0, uint8_t flags = 0,
                        uint32_t field_bytes = 0) {
  return {length, kind, flags, 0, rows, field_bytes};
}

constexpr wire::FrameKind kUnknownKind{200};

class RingHostileHeaders : public testing::TestWithParam<HostileHeader> {};
INSTANTIATE_TEST_SUITE_P(
    All, RingHostileHeaders,
    testing::Values(
        HostileHeader{"zeros", frame(0, wire::FrameKind{0}), "frame shorter than its header"},
        HostileHeader{"shorter_than_a_header", frame(15, wire::FrameKind::data, 1),
                      "frame shorter than its header"},
        HostileHeader{"longest", frame(~0u, wire::FrameKind::data, 1),
                      "frame reaches beyond the written position"},
        HostileHeader{"length_that_pads_to_zero_in_32_bits",
                      frame(~0u - 62, wire::FrameKind::data, 1),
                      "frame reaches beyond the written position"},
        HostileHeader{"beyond_written", frame(257, wire::FrameKind::data, 1),
                      "frame reaches beyond the written position"},
        HostileHeader{"over_the_end", frame(192, wire::FrameKind::data, 1),
                      "frame wraps around the end of the ring"},
        HostileHeader{"flags", frame(64, wire::FrameKind::data, 1, 1), "unknown flags in a frame"},
        HostileHeader{"rows_with_fields", frame(64, wire::FrameKind::data, 1, 0, 1),
                      "unknown flags in a frame"},
        HostileHeader{"known_kind_to_be_skipped", frame(64, wire::FrameKind::data, 1, 1),
                      "unknown flags in a frame"},
        HostileHeader{"open_with_flags", frame(64, wire::FrameKind::open, 0, 1),
                      "unknown flags in a frame"},
        HostileHeader{"open_with_more_fields_than_payload",
                      frame(64, wire::FrameKind::open, 0, 0, 49), "unknown flags in a frame"},
        HostileHeader{"open_with_less_than_it_needs_before_its_fields",
                      frame(64, wire::FrameKind::open, 0, 0, 1), "OPEN of wrong length"},
        HostileHeader{"finish_with_less_than_it_needs_before_its_fields",
                      frame(28, wire::FrameKind::finish, 0, 0, 8), "FINISH of wrong length"},
        HostileHeader{"unknown_kind", frame(64, kUnknownKind), "unknown kind of frame"},
        HostileHeader{"first_unknown_kind", frame(64, wire::FrameKind{8}), "unknown kind of frame"},
        HostileHeader{"unknown_kind_with_another_flag", frame(64, kUnknownKind, 0, 2),
                      "unknown flags in a frame"},
        HostileHeader{"skipped_and_another_flag", frame(64, kUnknownKind, 0, 3),
                      "unknown flags in a frame"},
        HostileHeader{"skipped_with_fields", frame(64, kUnknownKind, 0, 1, 1),
                      "unknown flags in a frame"},
        HostileHeader{"kind_0_is_not_skipped", frame(64, wire::FrameKind{0}, 0, 1),
                      "unknown flags in a frame"},
        HostileHeader{"skipped_beyond_written", frame(257, kUnknownKind, 0, 1),
                      "frame reaches beyond the written position"},
        HostileHeader{"skipped_over_the_end", frame(192, kUnknownKind, 0, 1),
                      "frame wraps around the end of the ring"},
        HostileHeader{"skipped_shorter_than_a_header", frame(15, kUnknownKind, 0, 1),
                      "frame shorter than its header"},
        HostileHeader{"message_with_rows", frame(64, wire::FrameKind::message, 1),
                      "message with a slot or rows"},
        HostileHeader{"message_with_a_slot",
                      {64, wire::FrameKind::message, 0, 1, 0, 0},
                      "message with a slot or rows"},
        HostileHeader{"end_with_a_payload", frame(17, wire::FrameKind::end), "END of wrong length"},
        HostileHeader{"end_with_rows", frame(16, wire::FrameKind::end, 1),
                      "END with a slot or rows"},
        HostileHeader{"pad_in_the_middle", frame(64, wire::FrameKind::pad),
                      "pad that does not end with the ring"},
        HostileHeader{"no_rows", frame(64, wire::FrameKind::data, 0), "data frame without rows"},
        HostileHeader{"rows_without_bytes", frame(16, wire::FrameKind::data, 1),
                      "data frame without rows"},
        HostileHeader{"short_open", frame(63, wire::FrameKind::open), "OPEN of wrong length"},
        HostileHeader{"open_with_half_a_format", frame(72, wire::FrameKind::open),
                      "OPEN of wrong length"},
        HostileHeader{"long_finish", frame(25, wire::FrameKind::finish), "FINISH of wrong length"},
        HostileHeader{"empty_fragment", frame(32, wire::FrameKind::fragment),
                      "fragment without bytes"}),
    [](const auto& edge) { return std::string(edge.param.name); });

// 128 bytes up to the end of the ring, 256 written.
TEST_P(RingHostileHeaders, make_the_ring_invalid_and_say_why) {
  const Position start = kRing - 128;
  RingPair pair(kRing, start);
  pair.forge(start, GetParam().header);
  pair.written.store(start + 256);
  FrameView view;
  EXPECT_EQ(pair.consumer.next(view), Next::invalid);
  EXPECT_STREQ(pair.consumer.why_invalid(), GetParam().why);
  EXPECT_EQ(pair.consumer.next(view), Next::invalid);
  EXPECT_EQ(pair.consumer.taken(), start);
}

TEST(RingHostileHeader, larger_than_half_a_ring_is_refused_and_a_fragment_than_a_quarter) {
  const auto why = [](uint32_t length, wire::FrameKind kind) -> std::string {
    RingPair pair(kRing);
    pair.forge(0, frame(length, kind, 1));
    pair.written.store(kRing);
    FrameView view;
    return pair.consumer.next(view) == Next::invalid ? pair.consumer.why_invalid() : "";
  };
  EXPECT_EQ(why(kRing / 2, wire::FrameKind::data), "");
  EXPECT_EQ(why(kRing / 2 + 1, wire::FrameKind::data), "frame larger than half a ring");
  EXPECT_EQ(why(kRing / 4, wire::FrameKind::fragment), "");
  EXPECT_EQ(why(kRing / 4 + 1, wire::FrameKind::fragment), "fragment larger than a quarter ring");
  const auto why_with = [](const wire::FrameHeader& header) -> std::string {
    RingPair pair(kRing);
    pair.forge(0, header);
    pair.written.store(wire::padded(header.length));
    FrameView view;
    return pair.consumer.next(view) == Next::invalid ? pair.consumer.why_invalid() : "";
  };
  EXPECT_EQ(why_with(frame(kRing / 2, kUnknownKind, 0, 1)), "") << "skipped";
  EXPECT_EQ(why_with(frame(kRing / 2 + 1, kUnknownKind, 0, 1)), "unknown flags in a frame");
  EXPECT_EQ(why_with(frame(kRing / 2 + 1, wire::FrameKind::open, 0, 0, kRing / 2 + 1 - 64)),
            "frame larger than half a ring");
}

TEST(RingFrames, of_channels_are_messages_perhaps_empty_up_to_half_a_ring_and_an_end) {
  const auto taken = [](const wire::FrameHeader& header) {
    RingPair pair(kRing);
    pair.forge(0, header);
    pair.written.store(kRing);
    FrameView view;
    return pair.consumer.next(view) == Next::frame ? view.payload_bytes() : ~0u;
  };
  EXPECT_EQ(taken(frame(16, wire::FrameKind::message)), 0u);
  EXPECT_EQ(taken(frame(17, wire::FrameKind::message)), 1u);
  EXPECT_EQ(taken(frame(kRing / 2, wire::FrameKind::message)), kRing / 2 - 16);
  EXPECT_EQ(taken(frame(kRing / 2 + 1, wire::FrameKind::message)), ~0u);
  EXPECT_EQ(taken(frame(16, wire::FrameKind::end)), 0u);
}

TEST(RingFrames, of_a_stage_may_have_fields_at_their_end) {
  for (const auto& [kind, least] :
       {std::pair{wire::FrameKind::open, 64u}, std::pair{wire::FrameKind::finish, 24u}}) {
    for (const uint32_t fields : {0u, 1u, 200u}) {
      RingPair pair(kRing);
      pair.forge(0, frame(least + fields, kind, 0, 0, fields));
      pair.written.store(512);
      FrameView view;
      ASSERT_EQ(pair.consumer.next(view), Next::frame) << pair.consumer.why_invalid();
      EXPECT_EQ(wire::bytes_before_fields(view.header), least - 16);
    }
  }
}

// Between frames that are held, at the end of what is written, over the end of the buffer.
TEST(RingFrames, of_an_unknown_kind_that_may_be_skipped_are_skipped_anywhere) {
  for (const Position start : {Position{0}, Position{kRing - 128}, ~Position{0} - kRing + 1}) {
    RingPair pair(kRing, start);
    const wire::FrameHeader unknown = frame(100, kUnknownKind, 7, wire::kMaySkipFrame);
    pair.forge(start, unknown);
    pair.forge(start + 128, test::data_header(64, 1));
    pair.forge(start + 192, unknown);
    pair.forge(start + 320, frame(16, wire::FrameKind{8}, 0, wire::kMaySkipFrame));
    pair.forge(start + 384, test::data_header(64, 2));
    pair.forge(start + 448, unknown);
    pair.written.store(start + 576);
    FrameView first;
    ASSERT_EQ(pair.consumer.next(first), Next::frame);
    EXPECT_EQ(first.header.row_count, 1u);
    EXPECT_EQ(pair.consumer.read(), start + 128) << "nothing was held before it";
    EXPECT_TRUE(pair.consumer.take_skipped());
    FrameView second;
    ASSERT_EQ(pair.consumer.next(second), Next::frame);
    EXPECT_EQ(second.header.row_count, 2u);
    EXPECT_EQ(pair.consumer.read(), start + 128) << "the first one is held";
    FrameView none;
    EXPECT_EQ(pair.consumer.next(none), Next::nothing);
    EXPECT_EQ(pair.consumer.taken(), start + 576);
    pair.consumer.release(second.token);
    EXPECT_EQ(pair.consumer.read(), start + 128);
    pair.consumer.release(first.token);
    EXPECT_EQ(pair.consumer.read(), start + 576);
    EXPECT_TRUE(pair.consumer.empty());
    EXPECT_TRUE(pair.consumer.take_skipped());
    EXPECT_FALSE(pair.consumer.take_skipped());
  }
}

TEST(RingHostileHeader, may_change_after_it_was_checked_without_changing_the_view) {
  RingPair pair(kRing);
  ASSERT_TRUE(pair.put(100, 7) && pair.put(64, 8));
  pair.publish();
  FrameView view;
  ASSERT_EQ(pair.consumer.next(view), Next::frame);
  pair.forge(0, frame(~0u, wire::FrameKind{200}, ~0u, 255, ~0u));
  EXPECT_EQ(view.payload_bytes(), 84u);
  EXPECT_EQ(view.header.row_count, 7u);
  pair.consumer.release(view.token);
  EXPECT_EQ(pair.consumer.read(), 128u) << "the read position does not come from the ring";
  EXPECT_EQ(pair.consumer.next(view), Next::frame);
}

// Whatever a ring contains, every view lies within it.
TEST(RingHostileHeader, random_bytes_never_lead_outside_the_ring) {
  uint64_t random = 0x9e3779b97f4a7c15u;
  const auto draw = [&] {
    return random ^= random << 13, random ^= random >> 7, random ^= random << 17;
  };
  uint64_t frames = 0;
  for (int round = 0; round < 20000; ++round) {
    RingPair pair(kRing, (draw() % 64) * 64);
    FrameView view;
    for (int i = 0; i < 200; ++i) {
      const Position taken = pair.consumer.taken();
      // Mostly headers that are nearly right: pure noise is refused at once.
      wire::FrameHeader header = frame(static_cast<uint32_t>(draw() % 1200),
                                       wire::FrameKind(draw() % 10), draw() % 4, draw() % 8 == 0);
      if (draw() % 16 == 0) header.length = static_cast<uint32_t>(draw());
      pair.forge(taken, header);
      pair.written.store(
          std::max<Position>(pair.written.load(), pair.consumer.read() + (draw() % 65) * 64));
      const Next next = pair.consumer.next(view);
      if (next == Next::invalid) break;
      if (next != Next::frame) continue;
      ++frames;
      ASSERT_GE(view.payload, pair.memory());
      ASSERT_LE(view.payload + view.payload_bytes(), pair.memory() + kRing);
      pair.consumer.release(view.token);
    }
  }
  EXPECT_GT(frames, 500u) << "the noise must also pass at times, or nothing is tested";
}

}  // namespace
}  // namespace faro::test
