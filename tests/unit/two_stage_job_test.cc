// The synthetic job: who generates what, and what has to come of it.
#include "lab/bench/two_stage_job.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/bench/figures.h"
#include "support/expect.h"

namespace faro::bench {
namespace {

TwoStageJob job_of(uint32_t processes, uint32_t workers, uint64_t rows_per_process) {
  TwoStageJob job;
  job.process_count = processes;
  job.workers_per_process = workers;
  job.rows_per_process = rows_per_process;
  return job;
}

TEST(TwoStageJob, ranges_of_the_workers_cover_all_integers_once) {
  for (const TwoStageJob& job :
       {job_of(4, 1, 1000), job_of(3, 4, 1001), job_of(2, 8, 3), job_of(1, 1, 0)}) {
    uint64_t next = 0;
    for (uint32_t worker = 0; worker < job.worker_count(); ++worker) {
      const IntegerRange range = job.range_of(worker);
      EXPECT_EQ(range.begin, next);
      EXPECT_GE(range.end, range.begin);
      next = range.end;
    }
    EXPECT_EQ(next, job.row_count());
  }
}

TEST(TwoStageJob, every_process_generates_its_own_rows) {
  const TwoStageJob job = job_of(3, 4, 1001);
  for (uint32_t worker = 0; worker < job.worker_count(); ++worker) {
    const IntegerRange range = job.range_of(worker);
    EXPECT_GE(range.begin, job.process_of(worker) * 1001u);
    EXPECT_LE(range.end, (job.process_of(worker) + 1) * 1001u);
  }
}

TEST(TwoStageJob, refuses_what_it_cannot_run) {
  struct Case {
    const char* name;
    TwoStageJob job;
    bool valid;
  };
  auto width = [](uint32_t row_bytes) {
    TwoStageJob job;
    job.row_bytes = row_bytes;
    return job;
  };
  TwoStageJob cheap_wide = width(16);
  cheap_wide.hash = HashKind::multiplicative;
  const std::vector<Case> cases = {
      {"default", TwoStageJob(), true},
      {"no process", job_of(0, 1, 1), false},
      {"no worker", job_of(1, 0, 1), false},
      {"no rows", job_of(1, 1, 0), true},
      {"most workers", job_of(64, 64, 1), true},
      {"too many workers", job_of(64, 65, 1), false},
      {"workers that overflow", job_of(4096, UINT32_MAX, 1), false},
      {"too many rows", job_of(2, 1, uint64_t{1} << 48), false},
      {"16 bytes", width(16), true},
      {"100 bytes", width(100), true},
      {"128 bytes", width(128), true},
      {"1 MiB", width(1024 * 1024), true},
      {"wide rows by the cheap hash", cheap_wide, false},
      {"12 bytes", width(12), false},
  };
  for (const Case& one : cases) EXPECT_EQ(one.job.validate().ok(), one.valid) << one.name;
}

TEST(TwoStageJob, expects_the_transformed_integers_of_all_workers) {
  const TwoStageJob job = job_of(2, 2, 500);
  RowSum seen;
  for (uint32_t worker = 0; worker < job.worker_count(); ++worker) {
    const IntegerRange range = job.range_of(worker);
    for (uint64_t n = range.begin; n < range.end; ++n) seen.add(transform(n));
  }
  EXPECT_EQ(seen.totals(), job.expectation().totals);
  EXPECT_EQ(job.expectation().rows, 1000u);
  EXPECT_EQ(job.expectation().hops, 2000u);
}

TEST(TwoStageJob, dispatches_to_its_hash_and_width) {
  for (const char* name : {"finalizer", "multiplicative"}) {
    for (uint32_t row_bytes : kJobWidths) {
      TwoStageJob job;
      job.hash = test::value_of(parse_hash(name));
      job.row_bytes = row_bytes;
      if (!job.validate().ok()) continue;
      const std::string seen = with_job_types(job, []<class Hash, uint32_t kRowBytes>() {
        return Hash::kName + std::to_string(kRowBytes);
      });
      EXPECT_EQ(seen, name + std::to_string(row_bytes));
    }
  }
  EXPECT_EQ(parse_hash("crc").status().code(), Code::invalid_argument);
}

TEST(Figures, medians_are_taken_apart_and_one_wrong_run_spoils_all) {
  auto run = [](double seconds, double cpu_seconds, bool verified) {
    RunFigures figures;
    figures.seconds = seconds;
    figures.cpu_seconds = cpu_seconds;
    figures.expected = {10, 20, {}};
    figures.totals.count = verified ? 0 : 1;
    return figures;
  };
  const RunFigures median = median_of({run(3, 1, true), run(1, 2, true), run(2, 6, true)});
  EXPECT_EQ(median.seconds, 2);
  EXPECT_EQ(median.cpu_seconds, 2);
  EXPECT_TRUE(median.verified());
  EXPECT_EQ(median.rows_per_second(), 5);
  EXPECT_EQ(median.cpu_ns_per_hop(), 1e8);
  EXPECT_EQ(median_of({run(1, 1, true), run(2, 3, true)}).seconds, 1.5);
  EXPECT_FALSE(median_of({run(1, 1, true), run(2, 3, false)}).verified());
}

TEST(Figures, tell_what_the_busiest_worker_took_and_what_came_to_the_one_that_got_most) {
  RoundTotals round;
  round.workers = {{0, 9, 5'000'000'000, {7, 0}}, {0, 9, 2'000'000'000, {8, 0}}};
  const RunFigures figures = figures_of({}, round);
  EXPECT_EQ(figures.busiest_cpu_seconds, 5);
  EXPECT_EQ(figures.most_rows, 8);
  RunFigures other = figures;
  other.busiest_cpu_seconds = 7;
  other.most_rows = 4;
  EXPECT_EQ(median_of({figures, other}).busiest_cpu_seconds, 6);
  EXPECT_EQ(median_of({figures, other}).most_rows, 6);
}

}  // namespace
}  // namespace faro::bench
