// A disk that is full: the query that uses most of overflow fails with what the disk says, and no other.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/child.h"
#include "support/session_cluster.h"
#include "support/small_disk.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

constexpr std::chrono::seconds kLimit{40};

std::vector<std::byte> filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

TEST(ShuffleDisk, a_full_disk_fails_the_query_that_uses_most_and_no_other) {
  std::string folder = testing::TempDir() + "/faro_small_disk_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Child child([&](const Child::Side& parent) {
    if (!mount_small_disk(folder, "256k")) {
      parent.say("skip");
      return 0;
    }
    Watchdog watchdog(kLimit, [] { return std::string("the full disk"); });
    const auto complain = [&](const std::string& what) {
      parent.say(what);
      return 1;
    };
    SessionCluster cluster(
        1, small_rings({{"overflow.memory_bytes", "0"}, {"overflow.folder", folder}}));
    if (!cluster.status().ok()) return complain(cluster.status().to_string());
    Worker& worker = cluster[0].worker(0);
    const QueryId big = cluster[0].begin_query();
    const QueryId small = cluster[0].begin_query();
    Shuffle glutton = std::move(*worker.open_shuffle({big, 0, 100, {}, {}}));
    Shuffle modest = std::move(*worker.open_shuffle({small, 1, 100, {}, {}}));
    for (int i = 0; i < 50; ++i) {
      if (modest.sender()->send(0, filled(100, i)) != Outcome::done)
        return complain("the small query");
    }
    Outcome outcome = Outcome::done;
    for (int i = 0; i < 100'000 && outcome == Outcome::done; ++i)
      outcome = glutton.sender()->send(0, filled(100, i));
    const Status status = glutton.status();
    if (outcome != Outcome::failed || status.code() != Code::overflow_exhausted)
      return complain(fmt::format("{}: {}", outcome_name(outcome), status.to_string()));
    for (const std::string& word : {std::string("No space left"), folder}) {
      if (status.message().find(word) == std::string_view::npos)
        return complain(fmt::format("\"{}\" is missing in: {}", word, status.to_string()));
    }
    glutton.close();
    if (worker.end_query(big) != Outcome::failed) return complain("the big query did not fail");
    if (modest.sender()->finish() != Outcome::done) return complain(modest.status().to_string());
    uint32_t rows = 0;
    Batch batch;
    while (modest.receiver()->receive(batch) == Outcome::done) rows += batch.row_count();
    if (rows != 50) return complain(fmt::format("{} rows: {}", rows, modest.status().to_string()));
    modest.close();
    if (worker.end_query(small) != Outcome::done) return complain("the small query failed");
    if (cluster[0].metrics().overflow_file_bytes != 0) return complain("something is left");
    cluster.close();
    parent.say("well");
    return 0;
  });
  const std::string answer = child.hear().value_or("(it has ended)");
  const int code = child.wait_for_end();
  rmdir(folder.c_str());
  if (answer == "skip") GTEST_SKIP() << "this system permits no mounts of its own";
  EXPECT_EQ(answer, "well");
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace faro::test
