// Rows larger than a ring, through the public API: over shared memory, over TCP and within a node. tests/sim/large_rows_test.cc has
// the order of events.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <vector>

#include "support/shuffle_api.h"

namespace faro::test {
namespace {

struct WhereRowsGo {
  const char* name;
  uint32_t nodes;
  const char* transport;
};

class ShuffleLargeRows : public ShuffleApi, public testing::WithParamInterface<WhereRowsGo> {
 protected:
  void open_place() {
    open(GetParam().nodes, {{"transport", GetParam().transport},
                            {"cluster.workers", GetParam().nodes == 1 ? "2" : "1,1"},
                            {"ring.bytes", "32 KiB"},
                            {"transfer.threshold_bytes", "16 KiB"}});
  }
  static std::vector<std::byte> row_of(uint32_t seed, size_t bytes) {
    std::vector<std::byte> row(bytes);
    for (size_t at = 0; at < row.size(); ++at)
      row[at] = static_cast<std::byte>((at + seed) * 2654435761u >> 13);
    return row;
  }
};

INSTANTIATE_TEST_SUITE_P(Places, ShuffleLargeRows,
                         testing::Values(WhereRowsGo{"local", 1, "tcp"},
                                         WhereRowsGo{"tcp", 2, "tcp"},
                                         WhereRowsGo{"shm", 2, "shm"}),
                         [](const auto& place) { return place.param.name; });

TEST_P(ShuffleLargeRows, that_two_workers_send_each_other_arrive) {
#if defined(FARO_SANITIZE_THREAD)
  constexpr size_t kBytes = (2 << 20) + 1;  // each byte takes some hundred nanoseconds
#else
  constexpr size_t kBytes = (16 << 20) + 1;
#endif
  constexpr uint32_t kRounds = 2;
  open_place();
  const QueryId id = session().begin_query();
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 0));
    for (uint32_t round = 0; round < kRounds; ++round) {
      ASSERT_EQ(shuffle.sender()->send(1 - w, row_of(w + 2 * round, kBytes)), Outcome::done);
      const Batch batch = take_batch(shuffle);
      ASSERT_EQ(batch.row_count(), 1u);
      EXPECT_TRUE(std::ranges::equal(batch.bytes(), row_of(1 - w + 2 * round, kBytes)));
    }
    EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    EXPECT_EQ(take_rows(shuffle), 0u);
    EXPECT_EQ(worker(w).metrics().frames_out_overflow, 0u);
    close_and_end(shuffle, w, id);
  });
  for (uint32_t node = 0; node < GetParam().nodes; ++node)
    EXPECT_EQ(session(node).metrics().overflow_memory_bytes, 0u);
}

// The receiver cancels in the middle of a row: it has a part of it, and the sender waits for room.
TEST_P(ShuffleLargeRows, that_are_cancelled_in_the_middle_leave_nothing) {
  open_place();
  const QueryId id = session().begin_query();
  cluster_->run_workers([&](uint32_t w) {
    Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 0, {0}, {1}));
    if (w == 0) {
      expect_failed(shuffle.sender()->send(0, row_of(0, 16 << 20)), shuffle, Code::query_cancelled,
                    {"worker 1"});
    } else {
      until_asleep(worker(0));
      Batch batch;
      while (session(GetParam().nodes - 1).metrics().overflow_memory_bytes == 0)
        ASSERT_EQ(shuffle.receiver()->receive(batch, Wait::none()), Outcome::would_wait);
      EXPECT_TRUE(is_ok(shuffle.cancel("enough")));
    }
    shuffle.close();
    EXPECT_EQ(end_failed(worker(w), id).code(), Code::query_cancelled);
  });
  for (uint32_t node = 0; node < GetParam().nodes; ++node)
    EXPECT_EQ(session(node).metrics().overflow_memory_bytes, 0u);
}

}  // namespace
}  // namespace faro::test
