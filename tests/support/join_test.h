// JoinTest: joins over two real sessions, compared with nested loops.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "faro/join.h"
#include "support/operator_test.h"

namespace faro::test {

struct Row {
  uint64_t key;
  uint64_t id;  // from 1 on, another one for each row of its side
};
constexpr uint64_t kNull = UINT64_MAX;

/// Joined by key; with a condition on pairs, and a key that has no partner.
struct Rows {
  using Build = Row;
  using Probe = Row;
  using Key = uint64_t;
  uint64_t build_key(const Row& row) const { return row.key; }
  uint64_t probe_key(const Row& row) const { return row.key; }
  bool is_null(uint64_t key) const { return key == kNull; }
  bool matches(const Row& build, const Row& probe) const {
    return modulus == 0 || ((build.id + probe.id) % modulus == 0) == is_rare;
  }
  uint64_t modulus = 0;
  bool is_rare = false;
};
using Join = RadixJoin<Rows>;

/// Ids of the build row and the probe row; 0: there is none.
using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

constexpr JoinKind kKinds[] = {JoinKind::inner, JoinKind::left, JoinKind::right,
                               JoinKind::full,  JoinKind::semi, JoinKind::anti};

inline uint64_t drawn(uint64_t number) { return FinalizerHash{}(number + 1); }

/// The keys of one side, by number of row.
using Keys = uint64_t (*)(uint64_t row);
inline uint64_t distinct(uint64_t row) { return row; }
inline uint64_t some(uint64_t row) { return drawn(row) % 5000; }
inline uint64_t one(uint64_t) { return 7; }
inline uint64_t skewed(uint64_t row) { return row % 4 == 0 ? 7 : drawn(row) % 100'000; }
inline uint64_t with_nulls(uint64_t row) { return row % 5 == 0 ? kNull : drawn(row) % 3000; }

/// Both sides of a join, which lie at the workers by turns.
struct Input {
  uint64_t build_rows = 0;
  Keys build_key = distinct;
  uint64_t probe_rows = 0;
  Keys probe_key = distinct;
  uint64_t modulus = 0;
  bool is_rare = false;

  std::vector<Row> of_build(uint32_t worker) const { return of(worker, build_rows, build_key); }
  std::vector<Row> of_probe(uint32_t worker) const { return of(worker, probe_rows, probe_key); }
  static std::vector<Row> of(uint32_t worker, uint64_t count, Keys key) {
    std::vector<Row> rows;
    for (uint64_t row = worker; row < count; row += kWorkers) rows.push_back({key(row), row + 1});
    return rows;
  }

  Pairs expected(JoinKind kind) const {
    const Rows rows{modulus, is_rare};
    std::multimap<uint64_t, Row> build;
    std::vector<bool> matched(build_rows + 1);
    for (uint64_t row = 0; row < build_rows; ++row)
      build.emplace(build_key(row), Row{build_key(row), row + 1});
    Pairs pairs;
    for (uint64_t number = 0; number < probe_rows; ++number) {
      const Row probe{probe_key(number), number + 1};
      bool has_partner = false;
      if (!rows.is_null(probe.key)) {
        const auto [first, last] = build.equal_range(probe.key);
        for (auto each = first; each != last; ++each) {
          if (!rows.matches(each->second, probe)) continue;
          has_partner = matched[each->second.id] = true;
          if (!detail::hands_out_pairs(kind)) break;
          pairs.emplace_back(each->second.id, probe.id);
        }
      }
      if (kind == JoinKind::semi ? has_partner : detail::keeps_probe(kind) && !has_partner)
        pairs.emplace_back(0, probe.id);
    }
    if (detail::keeps_build(kind)) {
      for (uint64_t id = 1; id <= build_rows; ++id) {
        if (!matched[id]) pairs.emplace_back(id, 0);
      }
    }
    std::ranges::sort(pairs);
    return pairs;
  }
};

inline void add_pairs(std::span<const Join::Pair> from, Pairs& to) {
  for (const auto& [build, probe] : from)
    to.emplace_back(build == nullptr ? 0 : build->id, probe == nullptr ? 0 : probe->id);
}

class JoinTest : public OperatorTest {
 protected:
  JoinSpec spec(JoinKind kind = JoinKind::inner) const {
    JoinSpec made{query_};
    made.kind = kind;
    return made;
  }
  template <typename Add>
  static void add_all(Join& into, const std::vector<Row>& rows, Add add) {
    for (size_t begin = 0; begin < rows.size(); begin += 3000) {
      const auto some = std::span(rows).subspan(begin, std::min<size_t>(3000, rows.size() - begin));
      const Sent sent = add(some);
      ASSERT_EQ(sent.outcome, Outcome::done) << into.status().to_string();
      ASSERT_EQ(sent.rows, some.size());
    }
  }
  static void build_all(Join& into, const std::vector<Row>& rows) {
    add_all(into, rows, [&](std::span<const Row> some) { return into.build(some); });
    EXPECT_EQ(into.finish_build(), Outcome::done) << into.status().to_string();
  }
  /// Takes the pairs that there are after each call, if `takes`.
  static void probe_all(Join& into, const std::vector<Row>& rows, bool takes, Pairs& pairs) {
    add_all(into, rows, [&](std::span<const Row> some) {
      const Sent sent = into.probe(some);
      std::span<const Join::Pair> ready;
      Outcome outcome = takes ? Outcome::done : Outcome::would_wait;
      while (outcome == Outcome::done) {
        outcome = into.next(ready);
        add_pairs(ready, pairs);
      }
      EXPECT_EQ(outcome, Outcome::would_wait) << into.status().to_string();
      return sent;
    });
    EXPECT_EQ(into.finish_probe(), Outcome::done) << into.status().to_string();
  }
  static void take_all(Join& from, Pairs& pairs) {
    std::span<const Join::Pair> some;
    Outcome outcome;
    while ((outcome = from.next(some)) == Outcome::done) {
      EXPECT_FALSE(some.empty());
      add_pairs(some, pairs);
    }
    EXPECT_EQ(outcome, Outcome::end_of_stream) << from.status().to_string();
  }
  /// Waits until all workers are here, as often as the caller was.
  void meet(Worker& worker) {
    const uint32_t all = (met_++ / kWorkers + 1) * kWorkers;
    for (uint32_t w = 0; w < kWorkers; ++w) cluster_->worker(w).wake();
    EXPECT_EQ(worker.wait_until([&] { return met_ >= all; }), Outcome::done);
  }
  /// Joins, and compares with nested loops; returns what all workers have done, in sum.
  JoinMetrics join(const Input& input, const JoinSpec& spec, bool takes = false) {
    JoinMetrics all;
    std::mutex mutex;
    Pairs pairs;
    cluster_->run_workers([&](uint32_t w) {
      Worker& worker = cluster_->worker(w);
      std::unique_ptr<Join> join =
          value_of(Join::make(worker, spec, {input.modulus, input.is_rare}));
      // Each has its reserve before another one takes more than that.
      meet(worker);
      Pairs own;
      build_all(*join, input.of_build(w));
      probe_all(*join, input.of_probe(w), takes, own);
      const uint64_t early = own.size();
      take_all(*join, own);
      const JoinMetrics metrics = join->metrics();
      join.reset();
      EXPECT_EQ(worker.end_query(query_), Outcome::done) << worker.status().to_string();
      EXPECT_EQ(metrics.pairs, own.size());
      const std::lock_guard lock(mutex);
      early_ += early;
      pairs.insert(pairs.end(), own.begin(), own.end());
      all.hot_keys += metrics.hot_keys;
      all.probe_rows_kept += metrics.probe_rows_kept;
      all.probe_rows_received += metrics.probe_rows_received;
      all.build_rows_received += metrics.build_rows_received;
      all.gulps += metrics.gulps;
      all.passes += metrics.passes;
      all.partitions_split += metrics.partitions_split;
      all.spilled_bytes += metrics.spilled_bytes;
      all.peak_bytes = std::max(all.peak_bytes, metrics.peak_bytes);
    });
    std::ranges::sort(pairs);
    const Pairs expected = input.expected(spec.kind);
    EXPECT_EQ(pairs.size(), expected.size());
    EXPECT_TRUE(pairs == expected);
    return all;
  }

  std::atomic<uint32_t> met_{0};
  std::atomic<uint64_t> early_{0};  // pairs that came before all probe rows had been added
};

}  // namespace faro::test
