// ShuffleOperator over real sessions: a two-stage plan of operators, each the child of the next, a
// parent that is slow, and one that wants nothing after a while.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "faro/operator.h"
#include "support/session_cluster.h"

namespace faro::test {
namespace {

struct Integers {  // a scan
  uint64_t next_integer, end;
  bool next(uint64_t& row) {
    if (next_integer == end) return false;
    row = next_integer++;
    return true;
  }
};

// What the paper's synthetic plan does between its two shuffles.
template <typename Source>
struct Times3Over2 {
  Source& source;
  bool next(uint64_t& row) {
    if (source.next(row) != Outcome::done) return false;
    row = row * 3 / 2;
    return true;
  }
};

constexpr auto kIdentity = [](const uint64_t& row) { return row; };
using Scan = ShuffleOperator<uint64_t, Integers, decltype(kIdentity)>;
using Second = ShuffleOperator<uint64_t, Times3Over2<Scan>, decltype(kIdentity)>;

Result<Shuffle> open(Worker& worker, const QueryId& query, uint32_t stage) {
  return worker.open_shuffle({query, stage, sizeof(uint64_t), {}, {}});
}

class OperatorTest : public testing::TestWithParam<const char*> {
 protected:
  OperatorTest()
      : cluster_(2, small_rings({{"cluster.workers", "2"}, {"transport", GetParam()}})) {}
  void SetUp() override { ASSERT_TRUE(is_ok(cluster_.status())); }

  SessionCluster cluster_;
};

TEST_P(OperatorTest, rows_of_a_plan_of_two_operators_come_out_once_at_their_worker) {
  constexpr uint64_t kRows = 20000;
  const QueryId query = cluster_[0].begin_query();
  std::atomic<uint64_t> count{0}, sum{0}, elsewhere{0};
  cluster_.run_workers([&](uint32_t w) {
    Worker& worker = cluster_.worker(w);
    Shuffle first = value_of(open(worker, query, 0));
    Shuffle second = value_of(open(worker, query, 1));
    Integers integers{w * kRows, (w + 1) * kRows};
    auto scan = value_of(Scan::make(worker, std::move(first), integers, kIdentity));
    Times3Over2<Scan> transform{scan};
    auto top = value_of(Second::make(worker, std::move(second), transform, kIdentity));
    uint64_t row = 0;
    Outcome outcome;
    while ((outcome = top.next(row)) == Outcome::done) {
      ++count;
      sum += row;
      elsewhere += partition(FinalizerHash{}(row), cluster_.worker_count()) != w;
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream) << top.status().to_string();
    EXPECT_EQ(top.next(row), Outcome::end_of_stream);
    scan.shuffle().close();
    top.shuffle().close();
    EXPECT_EQ(worker.end_query(query), Outcome::done);
  });
  uint64_t expected = 0;
  for (uint64_t n = 0; n < kRows * cluster_.worker_count(); ++n) expected += n * 3 / 2;
  EXPECT_EQ(count, kRows * cluster_.worker_count());
  EXPECT_EQ(sum, expected);
  EXPECT_EQ(elsewhere, 0u);
}

// The operator finds its own place: the receivers are not in the order of the workers.
TEST_P(OperatorTest, an_operator_is_the_receiver_that_its_worker_is_in_any_order_of_them) {
  constexpr uint64_t kRows = 1000;
  const QueryId query = cluster_[0].begin_query();
  const std::vector<uint32_t> receivers{2, 0, 3};
  std::atomic<uint64_t> count{0}, elsewhere{0};
  cluster_.run_workers([&](uint32_t w) {
    Worker& worker = cluster_.worker(w);
    auto shuffle = value_of(worker.open_shuffle({query, 0, sizeof(uint64_t), {}, receivers}));
    const auto place =
        static_cast<uint32_t>(std::find(receivers.begin(), receivers.end(), w) - receivers.begin());
    Integers integers{w * kRows, (w + 1) * kRows};
    if (w == 1) {  // sends, and receives nothing
      const RowSender<uint64_t> sender = *shuffle.sender<uint64_t>();
      for (uint64_t row = 0; integers.next(row);)
        EXPECT_EQ(sender.send(partition(FinalizerHash{}(row), 3), row), Outcome::done);
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
      const auto refused = Scan::make(worker, std::move(shuffle), integers, kIdentity);
      EXPECT_EQ(refused.status().code(), Code::wrong_state) << refused.status().to_string();
    } else {
      auto scan = value_of(Scan::make(worker, std::move(shuffle), integers, kIdentity));
      uint64_t row = 0;
      for (; scan.next(row) == Outcome::done; ++count)
        elsewhere += partition(FinalizerHash{}(row), 3) != place;
      scan.shuffle().close();
    }
    EXPECT_EQ(worker.end_query(query), Outcome::done);
  });
  EXPECT_EQ(count, 4 * kRows);
  EXPECT_EQ(elsewhere, 0u);
}

TEST_P(OperatorTest, a_parent_that_stops_asking_ends_its_senders_and_not_the_query) {
  const QueryId query = cluster_[0].begin_query();
  std::atomic<uint64_t> ended{0};
  cluster_.run_workers([&](uint32_t w) {
    Worker& worker = cluster_.worker(w);
    auto shuffle = value_of(open(worker, query, 0));
    Integers integers{0, 50000};
    auto scan = value_of(Scan::make(worker, std::move(shuffle), integers, kIdentity));
    uint64_t row = 0;
    Outcome outcome;
    for (uint64_t taken = 0; (outcome = scan.next(row)) == Outcome::done; ++taken) {
      if (w == 3 && taken == 100) (void)scan.shuffle().receiver()->stop();  // a LIMIT
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream) << scan.status().to_string();
    scan.shuffle().close();
    ended += worker.end_query(query) == Outcome::done;
  });
  EXPECT_EQ(ended, cluster_.worker_count());
}

TEST_P(OperatorTest, a_cancelled_query_fails_the_operator_with_the_reason) {
  const QueryId query = cluster_[0].begin_query();
  cluster_.run_workers([&](uint32_t w) {
    Worker& worker = cluster_.worker(w);
    Result<Shuffle> shuffle = open(worker, query, 0);
    if (!shuffle.ok()) {  // cancelled before this worker came to it
      EXPECT_EQ(shuffle.status().code(), Code::query_cancelled);
      EXPECT_EQ(worker.end_query(query), Outcome::failed);
      return;
    }
    Integers integers{0, UINT64_MAX};  // only the cancel ends it
    auto scan = value_of(Scan::make(worker, std::move(*shuffle), integers, kIdentity));
    uint64_t row = 0;
    Outcome outcome;
    for (uint64_t taken = 0; (outcome = scan.next(row)) == Outcome::done; ++taken) {
      if (w == 1 && taken == 1000) (void)cluster_[0].cancel_query(query, "enough");
    }
    EXPECT_EQ(outcome, Outcome::failed);
    expect_error(scan.status(), Code::query_cancelled, {"enough"});
    scan.shuffle().close();
    EXPECT_EQ(worker.end_query(query), Outcome::failed);
  });
}

INSTANTIATE_TEST_SUITE_P(Over, OperatorTest, testing::Values("tcp", "shm"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace faro::test
