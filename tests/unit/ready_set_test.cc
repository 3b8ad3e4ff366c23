#include "ring/ready_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace faro::ring {
namespace {

std::vector<uint32_t> take(ReadySet& set) {
  std::vector<uint32_t> rings;
  set.take([&](uint32_t ring) { rings.push_back(ring); });
  return rings;
}

using Rings = std::vector<uint32_t>;

TEST(ReadySet, is_empty_at_first) {
  ReadySet set(1);
  set.add_group();
  EXPECT_FALSE(set.any());
  EXPECT_EQ(take(set), Rings{});
}

TEST(ReadySet, gives_each_marked_ring_once_in_order) {
  ReadySet set(2);
  set.add_group();
  set.add_group();
  for (const uint32_t ring : {127u, 0u, 63u, 64u, 0u}) set.mark(ring);
  EXPECT_TRUE(set.any());
  EXPECT_EQ(take(set), (Rings{0, 63, 64, 127}));
  EXPECT_FALSE(set.any());
  EXPECT_EQ(take(set), Rings{});
}

TEST(ReadySet, finds_rings_behind_several_summary_words) {
  ReadySet set(200);
  for (int i = 0; i < 200; ++i) set.add_group();
  set.mark(199 * 64 + 63);
  set.mark(64 * 64);
  EXPECT_EQ(take(set), (Rings{64 * 64, 199 * 64 + 63}));
}

TEST(ReadySet, finds_rings_behind_several_root_words) {
  ReadySet set(65536);
  const Rings rings = {0, 63 * 64 * 64 + 1, 4095 * 64 + 63, 4096 * 64, 65535 * 64 + 63};
  Rings sorted = rings;
  std::sort(sorted.begin(), sorted.end());
  for (int times = 0; times < 2; ++times) {
    for (const uint32_t ring : rings) set.mark(ring);
    EXPECT_TRUE(set.any());
    EXPECT_EQ(take(set), sorted);
    EXPECT_FALSE(set.any());
    EXPECT_EQ(take(set), Rings{});
  }
}

TEST(ReadySet, keeps_a_ring_that_is_marked_again_during_the_visit) {
  ReadySet set(1);
  set.add_group();
  set.mark(3);
  uint32_t visits = 0;
  set.take([&](uint32_t ring) {
    ++visits;
    set.mark(ring);
  });
  EXPECT_EQ(visits, 1u);
  EXPECT_TRUE(set.any());
  EXPECT_EQ(take(set), Rings{3});
}

TEST(ReadySet, looks_at_external_words_and_numbers_them_like_others) {
  ReadySet set(3);
  std::atomic<uint64_t> word{0};
  set.set_external(1, &word);
  word.store(uint64_t{1} << 63 | 1);
  set.mark(130);
  EXPECT_TRUE(set.any());
  EXPECT_EQ(take(set), (Rings{130, 64, 127}));
  EXPECT_EQ(word.load(), 0u);
}

TEST(ReadySet, ignores_bits_of_an_external_word_that_stand_for_no_ring) {
  ReadySet set(1);
  std::atomic<uint64_t> word{~uint64_t{0}};
  set.set_external(0, &word, 2);
  EXPECT_TRUE(set.any());
  EXPECT_EQ(take(set), (Rings{0, 1}));
  word.store(~uint64_t{3});
  EXPECT_FALSE(set.any());
  EXPECT_EQ(take(set), Rings{});
}

TEST(ReadySet, a_group_whose_external_word_is_gone_has_its_own_again) {
  ReadySet set(1);
  {
    std::atomic<uint64_t> word{1};
    set.set_external(0, &word);
    EXPECT_EQ(take(set), Rings{0});
    word.store(2);
    set.clear_external(0);
  }
  EXPECT_EQ(take(set), Rings{});
  set.mark(3);
  EXPECT_EQ(take(set), Rings{3});
}

}  // namespace
}  // namespace faro::ring
