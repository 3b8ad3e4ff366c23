// The programs of native/operators/README.md, as the page has them.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "faro/aggregate.h"
#include "faro/join.h"
#include "support/session_cluster.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

std::mutex the_mutex;
std::map<uint64_t, uint64_t> the_counts;
std::map<uint32_t, uint64_t> the_amounts;  // by city

void complain(const Status& status) { ADD_FAILURE() << status.to_string(); }
void use(uint64_t key, uint64_t count) {
  const std::lock_guard lock(the_mutex);
  EXPECT_TRUE(the_counts.emplace(key, count).second) << key << " comes twice";
}
void use(uint32_t city, uint32_t amount) {
  const std::lock_guard lock(the_mutex);
  the_amounts[city] += amount;
}

#include "operators_page_programs.h"

TEST(OperatorsPage, its_program_counts) {
  SessionCluster cluster(2, {});
  ASSERT_TRUE(is_ok(cluster.status()));
  const QueryId query = cluster[0].begin_query();
  cluster.run_workers([&](uint32_t w) {
    std::vector<uint64_t> rows(1005);
    std::iota(rows.begin(), rows.end(), 0);
    count(cluster.worker(w), query, rows);
    EXPECT_EQ(cluster.worker(w).end_query(query), Outcome::done);
  });
  ASSERT_EQ(the_counts.size(), 10u);
  for (const auto& [key, count] : the_counts) EXPECT_EQ(count, key < 5 ? 202u : 200u) << key;
}

TEST(OperatorsPage, its_program_joins) {
  SessionCluster cluster(2, {});
  ASSERT_TRUE(is_ok(cluster.status()));
  const QueryId query = cluster[0].begin_query();
  cluster.run_workers([&](uint32_t w) {
    const Sales::Build shops[] = {{2 * w, 100}, {2 * w + 1, 200}};
    const Sales::Probe sold[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {9, 5}};
    join(cluster.worker(w), query, shops, sold);
    EXPECT_EQ(cluster.worker(w).end_query(query), Outcome::done);
  });
  EXPECT_EQ(the_amounts, (std::map<uint32_t, uint64_t>{{100, 8}, {200, 12}}));
}

}  // namespace
}  // namespace faro::test
