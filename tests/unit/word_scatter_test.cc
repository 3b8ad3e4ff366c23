// Rows of 8 bytes to their receivers' frames with vector instructions: the same as row by row.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "faro/shuffle.h"

namespace faro::detail {
namespace {

constexpr uint64_t kUntouched = 0x5a5a5a5a5a5a5a5aULL;

/// A frame per receiver, each with room for some rows and memory behind it that is not its own.
class Frames {
 public:
  explicit Frames(const std::vector<size_t>& rooms) : cursors(rooms.size()), memory(rooms.size()) {
    constexpr size_t kBehind = 16;
    for (size_t r = 0; r < rooms.size(); ++r) {
      memory[r].assign(rooms[r] + kBehind, kUntouched);
      auto* const begin = reinterpret_cast<std::byte*>(memory[r].data());
      cursors[r] = {begin, begin + rooms[r] * sizeof(uint64_t)};
    }
  }

  std::vector<uint64_t> rows_of(size_t r) const {
    const auto bytes =
        static_cast<size_t>(cursors[r].at - reinterpret_cast<const std::byte*>(memory[r].data()));
    return {memory[r].begin(),
            memory[r].begin() + static_cast<ptrdiff_t>(bytes / sizeof(uint64_t))};
  }

  std::vector<OutboxCursor> cursors;
  std::vector<std::vector<uint64_t>> memory;
};

struct Rows {
  std::vector<uint64_t> values;
  std::vector<uint32_t> receivers;
};

Rows random_rows(std::mt19937_64& random, size_t count, uint32_t receiver_count) {
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    rows.values.push_back(random());
    rows.receivers.push_back(static_cast<uint32_t>(random() % receiver_count));
  }
  return rows;
}

class WordScatterTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    if (scatter == nullptr) GTEST_SKIP() << "this processor has no AVX-512";
  }

  const uint32_t receiver_count = GetParam();
  const WordScatter scatter = word_scatter(receiver_count);
};

TEST_P(WordScatterTest, puts_each_row_behind_the_last_one_of_its_receiver) {
  std::mt19937_64 random(receiver_count);
  for (int round = 0; round < 200; ++round) {
    const size_t count = random() % 300;
    const Rows rows = random_rows(random, count, receiver_count);
    Frames frames(std::vector<size_t>(receiver_count, count + 8));

    const size_t done =
        scatter(rows.values.data(), rows.receivers.data(), count, frames.cursors.data());

    ASSERT_EQ(done, count / 8 * 8);
    std::vector<std::vector<uint64_t>> expected(receiver_count);
    for (size_t i = 0; i < done; ++i) expected[rows.receivers[i]].push_back(rows.values[i]);
    for (uint32_t r = 0; r < receiver_count; ++r) ASSERT_EQ(frames.rows_of(r), expected[r]);
  }
}

TEST_P(WordScatterTest, writes_nothing_behind_a_frame_and_stops_where_one_is_short) {
  std::mt19937_64 random(100 + receiver_count);
  for (int round = 0; round < 500; ++round) {
    const Rows rows = random_rows(random, 256, receiver_count);
    std::vector<size_t> rooms(receiver_count);
    for (size_t& room : rooms) room = random() % 200;
    Frames frames(rooms);

    const size_t done =
        scatter(rows.values.data(), rows.receivers.data(), 256, frames.cursors.data());

    std::vector<size_t> taken(receiver_count);
    for (size_t i = 0; i < done; ++i) ++taken[rows.receivers[i]];
    bool some_is_short = false;
    for (uint32_t r = 0; r < receiver_count; ++r) {
      ASSERT_EQ(frames.rows_of(r).size(), taken[r]);
      some_is_short |= rooms[r] - taken[r] < 8;
      for (size_t i = rooms[r]; i < frames.memory[r].size(); ++i)
        ASSERT_EQ(frames.memory[r][i], kUntouched) << "receiver " << r;
    }
    ASSERT_TRUE(done == 256 || some_is_short) << "stopped after " << done << " with room for all";
  }
}

INSTANTIATE_TEST_SUITE_P(Receivers, WordScatterTest, testing::Values(2, 3, 4, 5, 6),
                         testing::PrintToStringParamName());

TEST(WordScatter, is_only_for_few_receivers) {
  EXPECT_EQ(word_scatter(0), nullptr);
  EXPECT_EQ(word_scatter(1), nullptr);
  EXPECT_EQ(word_scatter(7), nullptr);
  EXPECT_EQ(word_scatter(1000), nullptr);
}

}  // namespace
}  // namespace faro::detail
