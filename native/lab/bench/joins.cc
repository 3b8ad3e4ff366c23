#include "lab/bench/joins.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/return_if_error.h"
#include "faro/join.h"
#include "faro/shuffle.h"
#include "lab/bench/node_life.h"
#include "lab/bench/two_stage_job.h"
#include "lab/bench/zipf.h"

namespace faro::bench {
namespace {

constexpr const char* kNames[] = {"radix join", "without lists", "materialised", "by hand"};

std::vector<JoinContestant> contestants_of(const JoinJob& job) {
  if (job.shape == KeyShape::uniform)
    return {JoinContestant::radix_join, JoinContestant::materialised, JoinContestant::by_hand};
  return {JoinContestant::radix_join, JoinContestant::without_lists, JoinContestant::materialised,
          JoinContestant::by_hand};
}

struct Row {
  uint32_t key;
  uint32_t value;
};
struct Rows {
  using Build = Row;
  using Probe = Row;
  using Key = uint32_t;
  uint32_t build_key(const Row& row) const { return row.key; }
  uint32_t probe_key(const Row& row) const { return row.key; }
};
using Join = RadixJoin<Rows>;

/// An odd factor: each number below 2^32 has another key.
uint32_t key_of(uint64_t number) noexcept { return static_cast<uint32_t>(number * 2'654'435'761); }
Row build_row(uint64_t number) noexcept {
  return {key_of(number), static_cast<uint32_t>(number % 1000)};
}
/// The build row that a probe row meets.
uint64_t partner(const JoinJob& job, uint64_t number) noexcept {
  const uint64_t drawn = FinalizerHash{}(number + 1);
  if (job.shape == KeyShape::zipf) return zipf(unit_interval(drawn), job.build_rows, job.exponent);
  const bool is_frequent = job.shape == KeyShape::frequent && drawn >> 63 != 0;
  return is_frequent ? 0 : drawn % job.build_rows;
}
Row probe_row(const JoinJob& job, uint64_t number) noexcept {
  return {key_of(partner(job, number)), static_cast<uint32_t>(number % 1000)};
}
uint64_t weight(const Row& build, const Row& probe) noexcept {
  return (build.key + 1ULL) * (uint64_t{build.value} + 2 * uint64_t{probe.value} + 1);
}
workload::Totals expected_totals(const JoinJob& job) {
  workload::Totals totals;
  for (uint64_t number = 0; number < job.probe_rows; ++number) {
    totals.checksum += weight(build_row(partner(job, number)), probe_row(job, number));
    ++totals.count;
  }
  return totals;
}
/// The rows of a worker; of all workers if it has none.
template <typename Make>
std::vector<Row> rows_of(uint64_t count, uint32_t worker, uint32_t workers, Make make) {
  std::vector<Row> rows;
  for (uint64_t number = count * worker / workers; number < count * (worker + 1) / workers;
       ++number)
    rows.push_back(make(number));
  return rows;
}

/// A join by hand of rows that lie in memory: both sides in partitions whose tables fit the cache.
class HandJoin {
 public:
  explicit HandJoin(uint64_t build_rows)
      : bits_(static_cast<int>(std::bit_width(build_rows / kRowsOfATable | 1))) {}

  template <typename Each>
  void run(std::span<const Row> build, std::span<const Row> probe, Each each) {
    partition(build, build_, build_begin_);
    partition(probe, probe_, probe_begin_);
    for (size_t p = 0; p < partitions(); ++p) {
      make_table(rows_of(build_, build_begin_, p));
      for (const Row& row : rows_of(probe_, probe_begin_, p)) {
        for (uint32_t at = heads_[hash(row) & mask_]; at != 0; at = nodes_[at - 1].next) {
          if (nodes_[at - 1].row.key == row.key) each(nodes_[at - 1].row, row);
        }
      }
    }
  }

 private:
  struct Node {
    Row row;
    uint32_t next;
  };
  static constexpr uint64_t kRowsOfATable = 16 * 1024;

  static uint64_t hash(const Row& row) noexcept {
    return detail::mix(FinalizerHash{}(row.key), 0x51ed270b9f3c6a35);
  }
  size_t partitions() const noexcept { return size_t{1} << bits_; }
  size_t partition_of(const Row& row) const noexcept { return hash(row) >> (64 - bits_); }
  static std::span<const Row> rows_of(const std::vector<Row>& rows,
                                      const std::vector<size_t>& begin, size_t partition) {
    return std::span(rows).subspan(begin[partition], begin[partition + 1] - begin[partition]);
  }
  /// Counts, then puts each row where it belongs.
  void partition(std::span<const Row> from, std::vector<Row>& to,
                 std::vector<size_t>& begin) const {
    begin.assign(partitions() + 1, 0);
    for (const Row& row : from) ++begin[partition_of(row) + 1];
    for (size_t p = 0; p < partitions(); ++p) begin[p + 1] += begin[p];
    std::vector<size_t> at(begin.begin(), begin.end() - 1);
    to.resize(from.size());
    for (const Row& row : from) to[at[partition_of(row)]++] = row;
  }
  void make_table(std::span<const Row> rows) {
    const size_t places = std::bit_ceil(std::max<size_t>(2 * rows.size(), 2));
    mask_ = places - 1;
    heads_.assign(places, 0);
    nodes_.clear();
    for (const Row& row : rows) {
      uint32_t& head = heads_[hash(row) & mask_];
      nodes_.push_back({row, head});
      head = static_cast<uint32_t>(nodes_.size());
    }
  }

  const int bits_;
  std::vector<Row> build_, probe_;
  std::vector<size_t> build_begin_, probe_begin_;
  std::vector<uint32_t> heads_;
  std::vector<Node> nodes_;
  size_t mask_ = 0;
};

class JoinWorker final : public RoundWorker {
 public:
  JoinWorker(const JoinJob& job, Worker& worker, std::atomic<uint64_t>& progress)
      : job_(job), contestants_(contestants_of(job)), worker_(worker), progress_(progress) {
    const uint32_t own = worker.number(), count = job.worker_count();
    const auto make_probe = [&](uint64_t number) { return probe_row(job, number); };
    build_ = rows_of(job.build_rows, own, count, build_row);
    probe_ = rows_of(job.probe_rows, own, count, make_probe);
    if (own != 0) return;
    all_build_ = rows_of(job.build_rows, 0, 1, build_row);
    all_probe_ = rows_of(job.probe_rows, 0, 1, make_probe);
  }

  Status run(const QueryId& query) override {
    totals_ = {};
    const JoinContestant contestant = contestants_[round_++ % contestants_.size()];
    switch (contestant) {
      case JoinContestant::radix_join:
      case JoinContestant::without_lists:
        FARO_RETURN_IF_ERROR(run_radix_join(query, contestant == JoinContestant::radix_join));
        break;
      case JoinContestant::materialised:
        FARO_RETURN_IF_ERROR(run_materialised(query));
        break;
      case JoinContestant::by_hand:
        if (!all_build_.empty()) join_by_hand(all_build_, all_probe_);
        break;
    }
    return end_query(worker_, query);
  }
  workload::Totals totals() const override { return totals_; }

 private:
  static constexpr size_t kRowsOfACall = 16 * 1024;

  /// Calls add(some) with some rows after the others.
  template <typename Add>
  Outcome add_all(std::span<const Row> rows, Add add) {
    for (size_t at = 0; at < rows.size(); at += kRowsOfACall) {
      const Outcome outcome = add(rows.subspan(at, std::min(kRowsOfACall, rows.size() - at)));
      if (outcome != Outcome::done) return outcome;
      progress_.store(at, std::memory_order_relaxed);
    }
    return Outcome::done;
  }
  /// Pairs that there are; each is counted.
  Outcome take(Join& join, Wait wait) {
    std::span<const Join::Pair> pairs;
    Outcome outcome;
    while ((outcome = join.next(pairs, wait)) == Outcome::done) {
      for (const auto& [build, probe] : pairs) count(*build, *probe);
    }
    return outcome;
  }

  Status run_radix_join(const QueryId& query, bool hot_keys) {
    JoinSpec spec{query};
    spec.hot_keys = hot_keys;
    FARO_ASSIGN_OR_RETURN(const std::unique_ptr<Join> join, Join::make(worker_, spec));
    const auto build = [&](std::span<const Row> rows) { return join->build(rows).outcome; };
    const auto probe = [&](std::span<const Row> rows) {
      const Outcome outcome = join->probe(rows).outcome;
      return outcome == Outcome::done && take(*join, Wait::none()) == Outcome::failed
                 ? Outcome::failed
                 : outcome;
    };
    const bool is_done =
        add_all(build_, build) == Outcome::done && join->finish_build() == Outcome::done &&
        add_all(probe_, probe) == Outcome::done && join->finish_probe() == Outcome::done &&
        take(*join, Wait::forever()) == Outcome::end_of_stream;
    return is_done ? Status::Ok() : join->status();
  }

  Status run_materialised(const QueryId& query) {
    std::vector<Row> build, probe;
    FARO_RETURN_IF_ERROR(shuffle({query, 0, sizeof(Row), {}, {}}, build_, build));
    FARO_RETURN_IF_ERROR(shuffle({query, 1, sizeof(Row), {}, {}}, probe_, probe));
    join_by_hand(build, probe);
    return Status::Ok();
  }
  Status shuffle(const ShuffleSpec& spec, std::span<const Row> rows, std::vector<Row>& received) {
    received.reserve(rows.size() + rows.size() / 8);
    FARO_ASSIGN_OR_RETURN(Shuffle shuffle, worker_.open_shuffle(spec));
    FARO_ASSIGN_OR_RETURN(const RowSender<Row> sender, shuffle.sender<Row>());
    const auto produce = [&](const ShuffleSender&) {
      const Sent sent = sender.send_all(
          rows.first(std::min(kRowsOfACall, rows.size())), FinalizerHash{},
          [](const Row& row) { return uint64_t{row.key}; }, Wait::none());
      rows = rows.subspan(sent.rows);
      return sent.outcome == Outcome::done && rows.empty() ? Outcome::end_of_stream : sent.outcome;
    };
    const auto consume = [&](Batch& batch) {
      const std::span<const Row> some = batch.rows<Row>();
      received.insert(received.end(), some.begin(), some.end());
    };
    const Outcome outcome = worker_.exchange(shuffle, produce, consume);
    return outcome == Outcome::end_of_stream ? Status::Ok() : worker_.status();
  }
  void join_by_hand(std::span<const Row> build, std::span<const Row> probe) {
    HandJoin(build.size()).run(build, probe, [this](const Row& of_build, const Row& of_probe) {
      count(of_build, of_probe);
    });
  }

  void count(const Row& build, const Row& probe) noexcept {
    ++totals_.count;
    totals_.checksum += weight(build, probe);
  }

  const JoinJob job_;
  const std::vector<JoinContestant> contestants_;
  Worker& worker_;
  std::atomic<uint64_t>& progress_;
  std::vector<Row> build_, probe_;
  std::vector<Row> all_build_, all_probe_;  // of all workers, at the first one
  workload::Totals totals_;
  size_t round_ = 0;
};

}  // namespace

Status JoinJob::validate() const {
  FARO_RETURN_IF_ERROR((TwoStageJob{process_count, workers_per_process, 0}.validate()));
  constexpr uint64_t kMostKeys = uint64_t{1} << 32;
  if (build_rows == 0 || build_rows > kMostKeys)
    return base::error(Code::invalid_argument, "rows = {}: must be 1 … {}", build_rows, kMostKeys);
  if (shape == KeyShape::sorted || shape == KeyShape::changing) {
    return base::error(Code::invalid_argument,
                       "keys = {}: those of a join must be uniform, zipf or frequent",
                       name_of(shape));
  }
  return Status::Ok();
}

const char* name_of(JoinContestant contestant) noexcept {
  return kNames[static_cast<size_t>(contestant)];
}

Result<std::vector<JoinFigures>> run_join(const JoinJob& job, const FaroOptions& faro) {
  FARO_RETURN_IF_ERROR(job.validate());
  const std::vector<JoinContestant> contestants = contestants_of(job);
  const auto count = static_cast<uint32_t>(contestants.size());
  RunOptions options;
  options.warmup_rounds = count;
  options.timed_rounds = count * job.rounds;
  const uint64_t rows = job.build_rows + job.probe_rows;
  FARO_ASSIGN_OR_RETURN(
      const FaroRun run,
      run_cluster({job.process_count,
                   job.workers_per_process,
                   {rows, rows, expected_totals(job)},
                   [&](Session&, Worker& worker, std::atomic<uint64_t>& progress) {
                     return std::make_unique<JoinWorker>(job, worker, progress);
                   }},
                  faro, options));
  std::vector<JoinFigures> all;
  for (uint32_t i = 0; i < count; ++i) {
    JoinFigures figures{contestants[i], {}, {}};
    for (size_t round = i; round < run.rounds.size(); round += count)
      figures.rounds.push_back(run.rounds[round]);
    figures.median = median_of(figures.rounds);
    all.push_back(std::move(figures));
  }
  return all;
}

}  // namespace faro::bench
