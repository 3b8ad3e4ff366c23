// What a soak takes for growing memory.
#include "lab/soak/memory_trend.h"

#include <gtest/gtest.h>

namespace faro::soak {
namespace {

constexpr uint64_t kAllowed = 1000;

MemoryTrend trend_of(int looks, uint64_t (*bytes)(int look)) {
  MemoryTrend trend(kAllowed);
  for (int look = 0; look < looks; ++look) trend.look(bytes(look));
  return trend;
}

TEST(MemoryTrend, sees_a_little_more_at_every_look) {
  EXPECT_TRUE(trend_of(1000, [](int look) { return 50'000 + uint64_t(look) * 3; }).grew());
  EXPECT_FALSE(trend_of(1000, [](int look) { return 50'000 + uint64_t(look); }).grew());
}

TEST(MemoryTrend, does_not_mind_the_beginning_nor_looks_that_scatter) {
  EXPECT_FALSE(trend_of(1000, [](int look) { return uint64_t(look < 200 ? 0 : 90'000); }).grew());
  EXPECT_FALSE(trend_of(1000, [](int look) { return uint64_t(look % 7) * 10'000; }).grew());
}

TEST(MemoryTrend, of_a_few_looks_is_not_known) {
  EXPECT_FALSE(trend_of(15, [](int look) { return uint64_t(look) << 20; }).is_known());
  EXPECT_TRUE(trend_of(16, [](int look) { return uint64_t(look) << 20; }).grew());
}

}  // namespace
}  // namespace faro::soak
