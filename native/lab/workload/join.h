// Joins that are drawn from a seed, what each worker does in them, and an oracle that compares every pair.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/planted.h"
#include "faro/join.h"
#include "faro/session.h"
#include "lab/workload/chance.h"
#include "lab/workload/operator_calls.h"

namespace faro::workload {

/// A row of either side, so wide that some thousand of them are more than a reserve holds.
struct JoinRow {
  uint64_t key;
  uint64_t id;  // from 1 on, another one for each row of its side
  uint64_t rest[8];
};

/// What is joined: by key, if the sum of both ids says so.
struct JoinRows {
  using Build = JoinRow;
  using Probe = JoinRow;
  using Key = uint64_t;
  static constexpr uint64_t kNull = UINT64_MAX;

  uint64_t build_key(const JoinRow& row) const noexcept { return row.key; }
  uint64_t probe_key(const JoinRow& row) const noexcept { return row.key; }
  bool is_null(uint64_t key) const noexcept { return key == kNull; }
  bool matches(const JoinRow& build, const JoinRow& probe) const noexcept {
    return modulus == 0 || ((build.id + probe.id) % modulus == 0) == is_rare;
  }
  bool planted(detail::JoinBug bug) const noexcept {
    switch (bug) {
      case detail::JoinBug::matched_by_key:
        return base::planted(base::Plant::matched_by_key);
      case detail::JoinBug::pass_left_out:
        return base::planted(base::Plant::pass_left_out);
      case detail::JoinBug::hot_key_at_some_workers:
        return base::planted(base::Plant::hot_key_at_some_workers);
    }
    return false;
  }

  uint64_t modulus = 0;  // 0: no condition
  bool is_rare = false;  // that a pair satisfies it
};

/// Ids of the build row and of the probe row, 0: there is none; sorted.
using JoinedIds = std::vector<std::pair<uint64_t, uint64_t>>;

/// What the workers of a plan have got: pairs of a hot key come out at any of them.
struct JoinTally {
  uint32_t workers = 0;
  JoinedIds ids;
};

struct JoinPlan {
  /// How keys of a side are drawn.
  enum class Keys : uint8_t {
    uniform,
    frequent,  // a quarter of them are one key
    constant,
    distinct,
    nulls,  // a quarter of them are null
  };
  struct Side {
    Keys keys = Keys::uniform;
    std::vector<uint64_t> rows;  // of each worker
    JoinInput input = JoinInput::partition;
  };

  uint64_t seed = 0;
  std::vector<uint32_t> workers;
  JoinKind kind = JoinKind::inner;
  Side build, probe;
  uint64_t most_keys = 1;
  JoinRows rows;
  bool output_early = false;
  bool hot_keys = false;
  /// One that needs no pairs, by its place among them.
  std::optional<uint32_t> stops;

  /// `most_rows`: of all workers and both sides together, more or less.
  static JoinPlan draw(uint64_t seed, std::vector<uint32_t> workers, uint64_t most_rows);

  JoinRow row(const Side& side, uint32_t sender, uint64_t number) const noexcept;
  /// What one of the workers has to get, if there are no hot keys.
  JoinedIds expected(uint32_t place) const;
  std::shared_ptr<JoinTally> tally = std::make_shared<JoinTally>();
  std::string to_string() const;

 private:
  uint64_t key(const Side& side, uint32_t sender, uint64_t number) const noexcept;
  /// The place to which a key belongs.
  uint32_t home(uint64_t key) const noexcept {
    return partition(FinalizerHash{}(key), static_cast<uint32_t>(workers.size()));
  }
};

/// A worker's part in a JoinPlan.
///
/// Threads: the worker's.
class JoinPart {
 public:
  JoinPart(const JoinPlan& plan, uint32_t place, Worker& worker, const QueryId& query,
           OperatorHost& host)
      : plan_(plan),
        place_(place),
        worker_(worker),
        query_(query),
        chance_(mix(plan.seed, uint64_t{place} + 1)),
        calls_(worker, host, chance_) {}

  /// Makes the join. To be called once, before run().
  Outcome make();
  /// Adds its rows, takes its pairs, and lets go of the join. done: pairs are compared with the oracle, those of all workers
  /// by the last one if there are hot keys; failed: why() says so;
  /// stopped: the host has said that it ends here.
  Outcome run();
  const Status& why() const noexcept { return calls_.why(); }
  /// What is wrong with its pairs; empty: nothing, if run() answered done.
  const std::string& mistake() const noexcept { return mistake_; }
  /// What it had done when it was let go.
  const JoinMetrics& metrics() const noexcept { return metrics_; }
  uint64_t early_pairs() const noexcept { return early_pairs_; }

 private:
  using Operator = RadixJoin<JoinRows>;

  template <typename Add>
  Outcome add_rows(const JoinPlan::Side& side, Add add);
  Outcome build_all();
  Outcome probe_all();
  Outcome take_ready();
  Outcome take_all();
  void take(std::span<const Operator::Pair> pairs);
  void check();
  void compare(JoinedIds& taken, const JoinedIds& expected);

  const JoinPlan& plan_;
  const uint32_t place_;
  Worker& worker_;
  const QueryId query_;
  Chance chance_;
  OperatorCalls calls_;
  std::unique_ptr<Operator> join_;
  JoinedIds taken_;
  uint64_t early_pairs_ = 0;  // before all its probe rows were added
  std::string mistake_;
  JoinMetrics metrics_;
};

}  // namespace faro::workload
