// The synthetic job: who generates what, how rows look, and that the totals tell right from wrong.
#include "lab/bench/two_stage_job.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "lab/bench/figures.h"

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
      {"wide rows by the cheap hash", cheap_wide, false},
      {"12 bytes", width(12), false},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(one.job.validate().ok(), one.valid) << one.name;
  }
}

TEST(TwoStageJob, transform_is_injective_and_moves_most_rows) {
  std::set<uint64_t> seen;
  uint64_t moved = 0;
  constexpr uint64_t kRows = 100'000;
  for (uint64_t n = 0; n < kRows; ++n) {
    EXPECT_TRUE(seen.insert(transform(n)).second) << n;
    if (destination_of<FinalizerHash>(n, 4) != destination_of<FinalizerHash>(transform(n), 4)) {
      ++moved;
    }
  }
  EXPECT_GT(moved, kRows * 7 / 10);
}

template <class Hash>
void expect_even_destinations() {
  std::vector<uint64_t> counts(7);
  constexpr uint64_t kRows = 700'000;
  for (uint64_t n = 0; n < kRows; ++n) ++counts[destination_of<Hash>(n, 7)];
  for (uint64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 100'000, 2'000);
}

TEST(TwoStageJob, both_hashes_spread_rows_evenly) {
  expect_even_destinations<FinalizerHash>();
  expect_even_destinations<MultiplicativeHash>();
}

template <uint32_t kRowBytes>
void expect_damage_is_found() {
  std::vector<char> row(kRowBytes);
  for (uint64_t n : {uint64_t{0}, uint64_t{12345}, UINT64_MAX}) {
    RowCodec<kRowBytes>::write(row.data(), n);
    uint64_t damage = 0;
    EXPECT_EQ(RowCodec<kRowBytes>::read(row.data(), damage), n);
    EXPECT_EQ(damage, 0u);
    for (uint32_t at = 8; at < kRowBytes; ++at) {
      row[at] = static_cast<char>(row[at] ^ 0x10);
      damage = 0;
      (void)RowCodec<kRowBytes>::read(row.data(), damage);
      EXPECT_NE(damage, 0u) << "byte " << at << " of " << kRowBytes;
      row[at] = static_cast<char>(row[at] ^ 0x10);
    }
  }
}

TEST(RowCodec, finds_every_damaged_byte_behind_n) {
  expect_damage_is_found<8>();
  expect_damage_is_found<16>();
  expect_damage_is_found<24>();
  expect_damage_is_found<32>();
  expect_damage_is_found<64>();
  expect_damage_is_found<100>();
  expect_damage_is_found<128>();
}

TEST(RowCodec, writes_nothing_behind_the_row) {
  std::vector<char> memory(101, 'x');
  RowCodec<100>::write(memory.data(), 7);
  EXPECT_EQ(memory[100], 'x');
}

TEST(Sink, agrees_with_the_expected_totals_in_any_order) {
  const TwoStageJob job = job_of(2, 2, 500);
  const ExpectedTotals expected = expected_totals(job);
  Sink forwards;
  Sink backwards;
  for (uint64_t n = 0; n < job.row_count(); ++n) forwards.consume(transform(n));
  for (uint64_t n = job.row_count(); n-- > 0;) backwards.consume_batch(1, mix(transform(n)));
  EXPECT_EQ(forwards.count(), expected.count);
  EXPECT_EQ(forwards.checksum(), expected.checksum);
  EXPECT_EQ(backwards.count(), expected.count);
  EXPECT_EQ(backwards.checksum(), expected.checksum);
}

TEST(Sink, notices_a_swapped_a_doubled_and_a_damaged_row) {
  const TwoStageJob job = job_of(1, 1, 1000);
  const uint64_t expected = expected_totals(job).checksum;
  auto run = [&](auto change, uint64_t damage) {
    Sink sink;
    for (uint64_t n = 0; n < job.row_count(); ++n) sink.consume(transform(change(n)));
    sink.add_damage(damage);
    EXPECT_EQ(sink.count(), job.row_count());
    return sink.checksum();
  };
  EXPECT_EQ(run([](uint64_t n) { return n; }, 0), expected);
  EXPECT_NE(run([](uint64_t n) { return n == 7 ? 8 : n; }, 0), expected);
  // Two wrong rows whose plain sum would be right.
  EXPECT_NE(run([](uint64_t n) { return n == 10 ? 8 : n == 20 ? 22 : n; }, 0), expected);
  EXPECT_NE(run([](uint64_t n) { return n; }, 0x10), expected);
}

TEST(TwoStageJob, dispatches_to_its_hash_and_width) {
  for (const char* name : {"finalizer", "multiplicative"}) {
    for (uint32_t row_bytes : kRowWidths) {
      TwoStageJob job;
      Result<HashKind> hash = parse_hash(name);
      ASSERT_TRUE(hash.ok());
      job.hash = hash.value();
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
    figures.rows = 10;
    figures.hops = 20;
    figures.verified = verified;
    return figures;
  };
  const RunFigures median = median_of({run(3, 1, true), run(1, 2, true), run(2, 6, true)});
  EXPECT_EQ(median.seconds, 2);
  EXPECT_EQ(median.cpu_seconds, 2);
  EXPECT_TRUE(median.verified);
  EXPECT_EQ(median.rows_per_second(), 5);
  EXPECT_EQ(median.cpu_ns_per_hop(), 1e8);
  EXPECT_EQ(median_of({run(1, 1, true), run(2, 3, true)}).seconds, 1.5);
  EXPECT_FALSE(median_of({run(1, 1, true), run(2, 3, false)}).verified);
}

}  // namespace
}  // namespace faro::bench
