// The program of native/operators/README.md, as the page has it.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "faro/aggregate.h"
#include "support/session_cluster.h"
#include "support/shuffle_api.h"

namespace faro::test {
namespace {

std::mutex the_mutex;
std::map<uint64_t, uint64_t> the_counts;

void complain(const Status& status) { ADD_FAILURE() << status.to_string(); }
void use(uint64_t key, uint64_t count) {
  const std::lock_guard lock(the_mutex);
  EXPECT_TRUE(the_counts.emplace(key, count).second) << key << " comes twice";
}

#include "operators_page_program.h"

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

}  // namespace
}  // namespace faro::test
