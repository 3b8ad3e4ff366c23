// What `faro explain` says of the operators of a query, from another process.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "faro/aggregate.h"
#include "faro/join.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"
#include "system/command_runner.h"

namespace faro::test {
namespace {

using nlohmann::json;

struct Numbers {
  using Row = uint64_t;
  using Key = uint64_t;
  using State = uint64_t;
  using Build = uint64_t;
  using Probe = uint64_t;
  uint64_t key(const uint64_t& row) const { return row; }
  void add(uint64_t& count, const uint64_t&) const { ++count; }
  void merge(uint64_t& count, const uint64_t& other) const { count += other; }
  uint64_t build_key(const uint64_t& row) const { return row; }
  uint64_t probe_key(const uint64_t& row) const { return row; }
};
using Counting = Aggregation<Numbers>;
using Joining = RadixJoin<Numbers>;

/// A node of one worker, in whose query a join and an aggregation have done something.
class ExplainOperators : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(is_ok(cluster_.status()));
    query_ = cluster_[0].begin_query();
    join_ = value_of(Joining::make(cluster_.worker(0), {query_, 0}));
    counting_ = value_of(Counting::make(cluster_.worker(0), {query_, 4, {}, {}, uint32_t{4096}}));
    EXPECT_EQ(join_->build(std::vector<uint64_t>{1, 2, 3}).outcome, Outcome::done);
    EXPECT_EQ(join_->finish_build(), Outcome::done);
    EXPECT_EQ(join_->probe(std::vector<uint64_t>{1, 2}).outcome, Outcome::done);
    EXPECT_EQ(join_->finish_probe(), Outcome::done);
    std::span<const Joining::Pair> pairs;
    while (join_->next(pairs) == Outcome::done) pairs_ += pairs.size();
    std::vector<uint64_t> rows(1000, 5);
    rows.resize(1500, 6);
    EXPECT_EQ(counting_->add(rows).outcome, Outcome::done);
    EXPECT_EQ(counting_->finish(), Outcome::done);
  }
  CommandResult explain(std::vector<std::string> more) {
    std::vector<std::string> words{"explain", "--folder", folder_.path(), "--interval", "0.01"};
    words.insert(words.end(), more.begin(), more.end());
    return run_faro(words);
  }
  json operators() {
    const json seen = json::parse(explain({"--json"}).output, nullptr, false);
    return seen["queries"].at(0)["operators"];
  }

  TemporaryFolder folder_;
  SessionCluster cluster_{1, {{"counters.folder", folder_.path()}}};
  QueryId query_;
  std::unique_ptr<Joining> join_;
  std::unique_ptr<Counting> counting_;
  uint64_t pairs_ = 0;
};

TEST_F(ExplainOperators, says_what_each_has_done_until_it_is_gone) {
  const std::string text = explain({}).output;
  expect_contains(text, "  join at worker 0, stage 0: 5 rows in, 2 pairs out; holds ");
  expect_contains(text,
                  "  aggregation at worker 0, stage 4: 1500 rows in, 0 groups out, 750.0 rows per "
                  "state sent, ");
  const json both = operators();
  ASSERT_EQ(both.size(), 2u) << both;
  EXPECT_EQ(both[0]["kind"], "join");
  EXPECT_EQ(both[0]["rows_out"], pairs_);
  EXPECT_EQ(both[1]["kind"], "aggregation");
  EXPECT_EQ(both[1]["stage"], 4);
  EXPECT_EQ(both[1]["worker"], 0);
  EXPECT_EQ(both[1]["rows_in"], 1500);
  EXPECT_EQ(both[1]["states_sent"], 2);
  EXPECT_GT(both[1]["peak_bytes"], 0);

  std::span<const Counting::Group> groups;
  while (counting_->next(groups) == Outcome::done) {
  }
  EXPECT_EQ(operators()[1]["rows_out"], 2);
  join_.reset();
  EXPECT_EQ(operators().size(), 1u);
  counting_.reset();
  EXPECT_EQ(operators().size(), 0u);
  EXPECT_EQ(cluster_.worker(0).end_query(query_), Outcome::done);
}

}  // namespace
}  // namespace faro::test
