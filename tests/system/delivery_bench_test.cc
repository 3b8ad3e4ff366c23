// The benchmark of delivery to nodes: every way of every case carries all rows, with real processes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/bench/delivery.h"
#include "lab/bench/ring_memory.h"
#include "support/expect.h"

namespace faro::bench {
namespace {

DeliveryJob job_of(DeliveryCase which, uint64_t rows) {
  DeliveryJob job;
  job.which = which;
  job.workers_per_process = 3;
  job.rows = rows;
  job.steps_per_row = 10;
  job.hold_ns = 100'000;
  job.rounds = 2;
  return job;
}

std::vector<DeliveryWay> run(const DeliveryJob& job) {
  Config config;
  if (job.which == DeliveryCase::wide) {
    EXPECT_TRUE(test::is_ok(config.set("ring.bytes", "512KiB")));
  }
  Result<std::vector<DeliveryWay>> ways = run_delivery(job, config);
  EXPECT_TRUE(test::is_ok(ways));
  return ways.ok() ? std::move(ways).value() : std::vector<DeliveryWay>{};
}

TEST(DeliveryBench, carries_every_row_once_whoever_takes_none_or_holds_some) {
  for (const char* name : {"skewed", "absent", "holding", "wide", "broadcast"}) {
    SCOPED_TRACE(name);
    const DeliveryCase which = parse_delivery_case(name).value();
    const uint64_t rows = which == DeliveryCase::wide ? 101 : 50'001;
    const std::vector<DeliveryWay> ways = run(job_of(which, rows));
    ASSERT_EQ(ways.size(), which >= DeliveryCase::wide ? 3u : 2u);
    for (const DeliveryWay& way : ways) {
      SCOPED_TRACE(way.name);
      ASSERT_EQ(way.rounds.size(), 2u);
      for (const RunFigures& round : way.rounds) {
        EXPECT_TRUE(round.verified());
        const uint64_t copies = which == DeliveryCase::broadcast ? 2 * 3 : 1;
        const workload::Totals each = workload::totals_of(rows);
        EXPECT_EQ(round.totals, (workload::Totals{copies * each.count, copies * each.checksum}));
        EXPECT_GT(round.busiest_cpu_seconds, 0);
        EXPECT_LE(round.busiest_cpu_seconds, round.cpu_seconds);
      }
    }
  }
}

TEST(DeliveryBench, one_worker_has_three_quarters_of_skewed_rows_that_go_to_workers) {
  const std::vector<DeliveryWay> ways = run(job_of(DeliveryCase::skewed, 40'000));
  ASSERT_EQ(ways.size(), 2u);
  EXPECT_GE(ways[0].median.most_rows, 30'000);
  EXPECT_LT(ways[0].median.most_rows, 33'000);  // a sixth of the others
}

TEST(DeliveryBench, a_replicated_row_travels_once_to_each_node) {
  const std::vector<DeliveryWay> ways = run(job_of(DeliveryCase::broadcast, 30'000));
  ASSERT_EQ(ways.size(), 3u);
  // Three workers of a node.
  const double times =
      static_cast<double>(ways[1].bytes_to_others) / static_cast<double>(ways[0].bytes_to_others);
  EXPECT_NEAR(times, 1.0 / 3, 0.05);
}

TEST(DeliveryBench, refuses_what_it_cannot_run) {
  EXPECT_EQ(parse_delivery_case("broad").status().code(), Code::invalid_argument);
  DeliveryJob job = job_of(DeliveryCase::absent, 100);
  job.workers_per_process = 1;
  EXPECT_EQ(run_delivery(job, Config()).status().code(), Code::invalid_argument);
  job.which = DeliveryCase::skewed;
  EXPECT_TRUE(job.validate().ok());
}

TEST(DeliveryBench, time_is_at_least_that_of_the_busiest_worker_and_that_of_all_processors) {
  RunFigures run;
  run.cpu_seconds = 8;
  run.busiest_cpu_seconds = 3;
  EXPECT_EQ(least_seconds(run, 2), 4);
  EXPECT_EQ(least_seconds(run, 4), 3);
}

TEST(DeliveryBench, the_most_loaded_of_many_units_feels_a_frequent_key_most) {
  EXPECT_EQ(most_loaded(1000, 0.5, 1), 1);
  EXPECT_NEAR(most_loaded(4'000'000, 0.0056, 240), 1 + 239 * 0.0056, 0.05);
  EXPECT_NEAR(most_loaded(4'000'000, 0.0056, 6), 1 + 5 * 0.0056, 0.01);
  EXPECT_NEAR(most_loaded(1'000'000, 1, 8), 8, 1e-9);
}

TEST(DeliveryBench, an_open_cluster_takes_its_rings_and_little_else) {
  constexpr uint64_t kRingBytes = 1024 * 1024;  // a sanitizer takes memory, too
  Config config;
  ASSERT_TRUE(test::is_ok(config.set("ring.bytes", "1MiB")));
  ASSERT_TRUE(test::is_ok(config.set("lane.ends", "node")));
  const Result<OpenMemory> memory = open_cluster_memory(2, 3, config);
  ASSERT_TRUE(test::is_ok(memory));
  const uint64_t rings =
      2 * 3 * 2 * 2 * kRingBytes;  // nodes, workers, nodes they send to, of a lane
  EXPECT_NEAR(static_cast<double>(memory->ring_bytes), rings, 0.1 * rings);
  EXPECT_GE(memory->bytes, rings);
  EXPECT_LT(memory->bytes, 2 * rings);
}

}  // namespace
}  // namespace faro::bench
