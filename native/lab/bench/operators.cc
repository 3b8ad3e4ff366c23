#include "lab/bench/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/return_if_error.h"
#include "faro/aggregate.h"
#include "faro/shuffle.h"
#include "lab/bench/node_life.h"
#include "lab/bench/two_stage_job.h"
#include "lab/bench/zipf.h"

namespace faro::bench {
namespace {

constexpr uint64_t kGroupsAfterChange = 1024;
constexpr const char* kShapeNames[] = {"uniform", "zipf", "frequent", "sorted", "changing"};

struct Sum {
  struct Row {
    uint32_t key;
    uint32_t value;
  };
  using Key = uint32_t;
  using State = uint64_t;
  uint32_t key(const Row& row) const { return row.key; }
  void add(uint64_t& sum, const Row& row) const { sum += row.value; }
  void merge(uint64_t& sum, const uint64_t& other) const { sum += other; }
};
using Sums = Aggregation<Sum>;
using Group = Sums::Group;

/// The rows of a job by number, from 0 to job.rows.
class Rows {
 public:
  explicit Rows(const AggregationJob& job) : job_(job) {}

  Sum::Row operator()(uint64_t number) const noexcept {
    const uint64_t drawn = FinalizerHash{}(number + 1);
    return {static_cast<uint32_t>(key(number, drawn)), static_cast<uint32_t>(drawn % 1000)};
  }

 private:
  uint64_t key(uint64_t number, uint64_t drawn) const noexcept {
    const uint64_t in_worker = number % job_.rows_per_worker();
    switch (job_.shape) {
      case KeyShape::uniform:
        return drawn % job_.groups;
      case KeyShape::zipf:
        return zipf(unit_interval(drawn), job_.groups, job_.exponent);
      case KeyShape::frequent:
        return drawn >> 63 != 0 ? 0 : (drawn >> 20) % job_.groups;
      case KeyShape::sorted:
        return in_worker * job_.groups / job_.rows_per_worker();
      case KeyShape::changing:
        return 2 * in_worker < job_.rows_per_worker() ? drawn % job_.groups
                                                      : drawn % kGroupsAfterChange;
    }
    return 0;
  }

  const AggregationJob job_;
};

/// Linear in the sum, so that it can be added up over rows as well as over groups.
uint64_t weight(uint32_t key, uint64_t sum) noexcept { return FinalizerHash{}(key + 1ULL) * sum; }

workload::Totals expected_totals(const AggregationJob& job) {
  const Rows rows(job);
  std::vector<bool> seen(std::max(job.groups, kGroupsAfterChange));
  workload::Totals totals;
  for (uint64_t number = 0; number < job.rows_per_worker() * job.worker_count(); ++number) {
    const Sum::Row row = rows(number);
    totals.checksum += weight(row.key, row.value);
    totals.count += seen[row.key] ? 0 : 1;
    seen[row.key] = true;
  }
  return totals;
}

/// A table by hand, as large as its groups need: half of its places are taken at most.
class HandTable {
 public:
  HandTable() : places_(4096) {}

  void add(uint32_t key, uint64_t sum) {
    if (2 * size_ >= places_.size()) grow();
    Place& place = find(places_, key);
    if (!place.taken) {
      place = {key, true, 0};
      ++size_;
    }
    place.sum += sum;
  }
  template <typename Each>
  void each(Each do_it) const {
    for (const Place& place : places_) {
      if (place.taken) do_it(place.key, place.sum);
    }
  }
  size_t size() const noexcept { return size_; }

 private:
  struct Place {
    uint32_t key = 0;
    bool taken = false;
    uint64_t sum = 0;
  };
  static Place& find(std::vector<Place>& places, uint32_t key) noexcept {
    const size_t mask = places.size() - 1;
    size_t at = FinalizerHash{}(key)&mask;
    while (places[at].taken && places[at].key != key) at = (at + 1) & mask;
    return places[at];
  }
  void grow() {
    std::vector<Place> larger(2 * places_.size());
    for (const Place& place : places_) {
      if (place.taken) find(larger, place.key) = place;
    }
    places_ = std::move(larger);
  }

  std::vector<Place> places_;
  size_t size_ = 0;
};

class AggregationWorker final : public RoundWorker {
 public:
  AggregationWorker(const AggregationJob& job, std::vector<AggregationContestant> contestants,
                    Worker& worker, std::atomic<uint64_t>& progress)
      : job_(job), contestants_(std::move(contestants)), worker_(worker), progress_(progress) {
    const Rows rows(job);
    const uint64_t first = worker.number() * job.rows_per_worker();
    rows_.reserve(job.rows_per_worker());
    for (uint64_t i = 0; i < job.rows_per_worker(); ++i) rows_.push_back(rows(first + i));
  }

  Status run(const QueryId& query) override {
    const AggregationContestant& contestant = contestants_[round_++ % contestants_.size()];
    totals_ = {};
    FARO_RETURN_IF_ERROR(contestant.way == AggregationContestant::Way::tree
                             ? run_tree(query)
                             : run_aggregation(query, contestant));
    return end_query(worker_, query);
  }
  workload::Totals totals() const override { return totals_; }

 private:
  static constexpr size_t kRowsOfACall = 16 * 1024;

  Status run_aggregation(const QueryId& query, const AggregationContestant& contestant) {
    std::optional<uint32_t> table;
    if (contestant.way == AggregationContestant::Way::fixed) table = contestant.table_states;
    FARO_ASSIGN_OR_RETURN(std::unique_ptr<Sums> sums,
                          Sums::make(worker_, {query, 0, {}, {}, table}));
    const std::span<const Sum::Row> rows = rows_;
    for (size_t at = 0; at < rows.size(); at += kRowsOfACall) {
      const size_t count = std::min(kRowsOfACall, rows.size() - at);
      if (sums->add(rows.subspan(at, count)).outcome != Outcome::done) return sums->status();
      progress_.store(at, std::memory_order_relaxed);
    }
    if (sums->finish() != Outcome::done) return sums->status();
    std::span<const Group> groups;
    Outcome outcome;
    while ((outcome = sums->next(groups)) == Outcome::done) {
      for (const Group& group : groups) count(group.key, group.state);
    }
    return outcome == Outcome::end_of_stream ? Status::Ok() : sums->status();
  }

  /// In each step every second of those that are left sends its groups to its neighbour, which adds them to its own.
  Status run_tree(const QueryId& query) {
    HandTable table;
    for (const Sum::Row& row : rows_) table.add(row.key, row.value);
    const uint32_t own = worker_.number();
    for (uint32_t step = 1; step < job_.worker_count(); step *= 2) {
      if (own % step != 0) continue;
      const bool receives = own % (2 * step) == 0;
      const uint32_t other = receives ? own + step : own - step;
      if (other >= job_.worker_count()) continue;
      const std::vector<uint32_t> sender{receives ? other : own}, receiver{receives ? own : other};
      // A stage for each pair: its own number tells it from others.
      const uint32_t stage = 1 + (receives ? other : own);
      FARO_ASSIGN_OR_RETURN(Shuffle shuffle,
                            worker_.open_shuffle({query, stage, sizeof(Group), sender, receiver}));
      FARO_RETURN_IF_ERROR(receives ? receive(shuffle, table) : send(shuffle, table));
    }
    if (own == 0) table.each([this](uint32_t key, uint64_t sum) { count(key, sum); });
    return Status::Ok();
  }
  static Status send(Shuffle& shuffle, const HandTable& table) {
    FARO_ASSIGN_OR_RETURN(const RowSender<Group> sender, shuffle.sender<Group>());
    Outcome outcome = Outcome::done;
    table.each([&](uint32_t key, uint64_t sum) {
      if (outcome == Outcome::done) outcome = sender.send(0, {key, sum});
    });
    if (outcome == Outcome::done) outcome = sender.finish();
    return outcome == Outcome::done ? Status::Ok() : sender.status();
  }
  static Status receive(Shuffle& shuffle, HandTable& table) {
    FARO_ASSIGN_OR_RETURN(const ShuffleReceiver receiver, shuffle.receiver());
    Batch batch;
    Outcome outcome;
    while ((outcome = receiver.receive(batch)) == Outcome::done) {
      for (const Group& group : batch.rows<Group>()) table.add(group.key, group.state);
    }
    return outcome == Outcome::end_of_stream ? Status::Ok() : receiver.status();
  }

  void count(uint32_t key, uint64_t sum) noexcept {
    ++totals_.count;
    totals_.checksum += weight(key, sum);
  }

  const AggregationJob job_;
  const std::vector<AggregationContestant> contestants_;
  Worker& worker_;
  std::atomic<uint64_t>& progress_;
  std::vector<Sum::Row> rows_;
  workload::Totals totals_;
  size_t round_ = 0;
};

}  // namespace

Result<KeyShape> parse_key_shape(std::string_view name) {
  const auto found = std::ranges::find(kShapeNames, name);
  if (found != std::end(kShapeNames))
    return static_cast<KeyShape>(std::distance(std::begin(kShapeNames), found));
  return base::error(Code::invalid_argument, "keys = {}: must be one of {}", name, kKeyShapes);
}

const char* name_of(KeyShape shape) noexcept { return kShapeNames[static_cast<size_t>(shape)]; }

Status AggregationJob::validate() const {
  FARO_RETURN_IF_ERROR((TwoStageJob{process_count, workers_per_process, 0}.validate()));
  constexpr uint64_t kMostGroups = uint64_t{1} << 32;
  if (groups == 0 || groups > kMostGroups)
    return base::error(Code::invalid_argument, "groups = {}: must be 1 … {}", groups, kMostGroups);
  return Status::Ok();
}

std::string AggregationContestant::name() const {
  if (way == Way::automatic) return "automatic";
  if (way == Way::tree) return "tree";
  return table_states == 0 ? "pass" : fmt::format("{} Ki", table_states / 1024);
}

std::vector<AggregationContestant> aggregation_contestants() {
  using Way = AggregationContestant::Way;
  std::vector<AggregationContestant> all{{Way::automatic, 0}, {Way::tree, 0}, {Way::fixed, 0}};
  for (uint32_t states = 4096; states <= 1 << 20; states *= 4) all.push_back({Way::fixed, states});
  return all;
}

Result<std::vector<AggregationFigures>> run_aggregation(
    const AggregationJob& job, const std::vector<AggregationContestant>& contestants,
    const FaroOptions& faro) {
  FARO_RETURN_IF_ERROR(job.validate());
  const auto count = static_cast<uint32_t>(contestants.size());
  RunOptions options;
  options.warmup_rounds = count;
  options.timed_rounds = count * job.rounds;
  const uint64_t rows = job.rows_per_worker() * job.worker_count();
  FARO_ASSIGN_OR_RETURN(
      const FaroRun run,
      run_cluster({job.process_count,
                   job.workers_per_process,
                   {rows, rows, expected_totals(job)},
                   [&](Session&, Worker& worker, std::atomic<uint64_t>& progress) {
                     return std::make_unique<AggregationWorker>(job, contestants, worker, progress);
                   }},
                  faro, options));
  std::vector<AggregationFigures> all;
  for (uint32_t i = 0; i < count; ++i) {
    AggregationFigures figures{contestants[i], {}, {}};
    for (size_t round = i; round < run.rounds.size(); round += count)
      figures.rounds.push_back(run.rounds[round]);
    figures.median = median_of(figures.rounds);
    all.push_back(std::move(figures));
  }
  return all;
}

double times_best(const std::vector<AggregationFigures>& all) {
  const auto cpu_of_half = [](const AggregationFigures& figures, size_t half) {
    std::vector<double> cpu;
    for (size_t round = half; round < figures.rounds.size(); round += 2)
      cpu.push_back(figures.rounds[round].cpu_seconds);
    return cpu.empty() ? figures.median.cpu_seconds : median(std::move(cpu));
  };
  const AggregationFigures* best = nullptr;
  for (const AggregationFigures& each : all) {
    if (each.contestant.way == AggregationContestant::Way::automatic) continue;
    if (best == nullptr || cpu_of_half(each, 0) < cpu_of_half(*best, 0)) best = &each;
  }
  return best == nullptr ? 1 : cpu_of_half(all.front(), 1) / cpu_of_half(*best, 1);
}

}  // namespace faro::bench
