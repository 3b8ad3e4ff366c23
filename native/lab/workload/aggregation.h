// Aggregations that are drawn from a seed, what each worker does in them, and an oracle that compares every group.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faro/aggregate.h"
#include "faro/session.h"
#include "lab/workload/chance.h"
#include "lab/workload/operator_calls.h"

namespace faro::workload {

/// How keys are drawn.
enum class Keys : uint8_t {
  uniform,
  frequent,   // small ones more often, as by Zipf's law
  constant,   // one group
  distinct,   // each row a group
  clustered,  // runs of one key
  drifting,   // from a window that moves on
  sorted,
  changing,  // first hardly any key twice, then 16 of them
};
inline constexpr uint8_t kKeyKinds = 8;

struct Reading {
  uint64_t key;
  uint64_t value;
};
struct Digest {
  uint64_t count;
  uint64_t sum;
  uint64_t least;  // of values + 1; 0: there was none
  uint64_t most;

  bool operator==(const Digest&) const = default;
};
/// What is aggregated: the order of rows does not matter.
struct Readings {
  using Row = Reading;
  using Key = uint64_t;
  using State = Digest;
  uint64_t key(const Reading& row) const noexcept { return row.key; }
  void add(Digest& state, const Reading& row) const noexcept;
  void merge(Digest& state, const Digest& other) const noexcept;
};
using Groups = std::map<uint64_t, Digest>;

/// A pipeline of aggregations: the groups of one are the rows of the next.
struct AggregationPlan {
  uint64_t seed = 0;
  uint32_t depth = 1;
  std::vector<uint32_t> workers;               // who takes part in all of it
  std::vector<uint64_t> rows;                  // that each of them adds to the first one
  std::vector<std::optional<uint32_t>> table;  // by depth
  Keys keys = Keys::uniform;
  uint64_t groups = 1;
  /// One that needs no groups of the last one, by its place among them.
  std::optional<uint32_t> stops;

  /// `most_rows`: of all workers together.
  static AggregationPlan draw(uint64_t seed, std::vector<uint32_t> workers, uint64_t most_rows);

  Reading row(uint32_t sender, uint64_t number) const noexcept;
  /// What a group of one aggregation is to the next.
  static Reading next_row(uint64_t key, const Digest& state) noexcept {
    return {key / 5, state.sum + state.count};
  }
  /// What the last aggregation has to come to, at all workers.
  Groups expected() const;
  std::string to_string() const;
};

/// A worker's part in an AggregationPlan.
///
/// Threads: the worker's.
class AggregationPart {
 public:
  AggregationPart(const AggregationPlan& plan, uint32_t place, Worker& worker, const QueryId& query,
                  OperatorHost& host)
      : plan_(plan),
        place_(place),
        worker_(worker),
        query_(query),
        chance_(mix(plan.seed, uint64_t{place} + 1)),
        calls_(worker, host, chance_) {}

  /// Makes the operators. To be called once, before run().
  Outcome make();
  /// Adds its rows, takes its groups, and lets go of the operators. done: `groups` are compared with
  /// the oracle; failed: why() says so; stopped: the host has said that it ends here.
  Outcome run();
  const Status& why() const noexcept { return calls_.why(); }
  /// What is wrong with its groups; empty: nothing, if run() answered done.
  const std::string& mistake() const noexcept { return mistake_; }
  uint64_t groups() const noexcept { return taken_.size(); }
  /// What the first aggregation had done when it was let go.
  const AggregationMetrics& metrics() const noexcept { return metrics_; }

 private:
  using Operator = Aggregation<Readings>;

  Outcome add(Operator& to, std::vector<Reading>& rows);
  Outcome add_own();
  Outcome pass_on(uint32_t depth);
  Outcome take_last();
  void check();

  const AggregationPlan& plan_;
  const uint32_t place_;
  Worker& worker_;
  const QueryId query_;
  Chance chance_;
  OperatorCalls calls_;
  std::vector<std::unique_ptr<Operator>> operators_;
  Groups taken_;
  bool has_stopped_ = false;
  std::string mistake_;
  AggregationMetrics metrics_;
};

}  // namespace faro::workload
