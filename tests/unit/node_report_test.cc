// The words in which a node of the benchmark hands in its report.
#include "lab/bench/node_report.h"
#include "support/expect.h"

#include <gtest/gtest.h>

#include <vector>

namespace faro::bench {
namespace {

NodeReport example() {
  NodeReport report;
  report.connect_ns = 11;
  report.idle_cpu_ns = 12;
  report.rounds = {{1, 2, {3, 4}}, {5, 6, {7, 8}}};
  SessionMetrics& metrics = report.metrics;
  metrics.workers.resize(2);
  metrics.workers[1].worker = 9;
  metrics.workers[1].rows_sent = 1'000'000'000'000;
  metrics.workers[1].open_shuffles = 3;
  metrics.workers[1].held_frames = 13;
  metrics.links.resize(1);
  metrics.links[0].node = 4;
  metrics.links[0].transport = "shm";
  metrics.links[0].connected = false;
  metrics.links[0].unreleased_bytes = 14;
  metrics.lanes.resize(3);
  metrics.lanes[2].receiver = 5;
  metrics.lanes[2].read_notifications = 6;
  metrics.lanes[2].unreleased_bytes = 15;
  metrics.overflow_file_peak_bytes = 7;
  metrics.queries_failed = 8;
  return report;
}

TEST(NodeReport, comes_back_as_it_was) {
  const NodeReport report = test::value_of(decode(encode(example())));
  EXPECT_EQ(report.connect_ns, 11u);
  EXPECT_EQ(report.idle_cpu_ns, 12u);
  ASSERT_EQ(report.rounds.size(), 2u);
  EXPECT_EQ(report.rounds[1].rows.checksum, 8u);
  ASSERT_EQ(report.metrics.workers.size(), 2u);
  EXPECT_EQ(report.metrics.workers[1].worker, 9u);
  EXPECT_EQ(report.metrics.workers[1].rows_sent, 1'000'000'000'000u);
  EXPECT_EQ(report.metrics.workers[1].open_shuffles, 3u);
  EXPECT_EQ(report.metrics.workers[1].held_frames, 13u);
  ASSERT_EQ(report.metrics.links.size(), 1u);
  EXPECT_EQ(report.metrics.links[0].transport, "shm");
  EXPECT_FALSE(report.metrics.links[0].connected);
  EXPECT_EQ(report.metrics.links[0].unreleased_bytes, 14u);
  ASSERT_EQ(report.metrics.lanes.size(), 3u);
  EXPECT_EQ(report.metrics.lanes[2].read_notifications, 6u);
  EXPECT_EQ(report.metrics.lanes[2].unreleased_bytes, 15u);
  EXPECT_EQ(report.metrics.overflow_file_peak_bytes, 7u);
  EXPECT_EQ(report.metrics.queries_failed, 8u);
}

TEST(NodeReport, is_within_its_limit) {
  NodeReport report;
  report.rounds.resize(5);
  report.metrics.workers.resize(3);
  report.metrics.links.resize(4);
  report.metrics.lanes.resize(2 * 3 * 12);
  EXPECT_LE(encode(report).size(), report_word_limit(4, 3, 5));
}

TEST(NodeReport, cut_anywhere_is_refused) {
  const std::vector<uint64_t> words = encode(example());
  for (size_t length = 0; length < words.size(); ++length) {
    std::vector<uint64_t> cut(words.begin(), words.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_FALSE(decode(cut).ok()) << length;
    // Also if it lies about its length.
    if (length > 0) cut[0] = length;
    EXPECT_FALSE(decode(cut).ok()) << length;
  }
}

TEST(NodeReport, with_any_word_changed_to_something_huge_is_refused_or_harmless) {
  const std::vector<uint64_t> words = encode(example());
  for (size_t at = 0; at < words.size(); ++at) {
    std::vector<uint64_t> changed = words;
    changed[at] = UINT64_MAX / 3;
    const Result<NodeReport> read = decode(changed);
    if (read.ok()) {
      EXPECT_LE(read.value().metrics.lanes.size(), words.size());
    }
  }
}

}  // namespace
}  // namespace faro::bench
