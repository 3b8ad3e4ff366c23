// PartitionJoin: the receiving half of a join: rows of both sides by partition, joined in cache.
// Not part of the API.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "faro/detail/join_list_sender.h"
#include "faro/detail/join_lists.h"
#include "faro/detail/join_loop.h"
#include "faro/detail/join_table.h"
#include "faro/detail/operator_hash.h"
#include "faro/detail/operator_input.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "faro/detail/partitioning.h"
#include "faro/detail/row_stream.h"
#include "faro/outcome.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// What a PartitionJoin has done.
struct PartitionJoinCounts {
  uint64_t build_rows = 0;
  uint64_t probe_rows = 0;
  uint64_t listed_rows = 0;      // build rows of keys that belong to other workers
  uint64_t probe_rows_kept = 0;  // of such keys: they were not sent
  uint64_t pairs = 0;
  uint64_t gulps = 0;   // partitions that were probed before all probe rows had come
  uint64_t passes = 0;  // over the probe rows of a partition, beyond the first
  uint64_t splits = 0;

  uint64_t all_build_rows() const noexcept { return build_rows + listed_rows; }
  uint64_t all_probe_rows() const noexcept { return probe_rows + probe_rows_kept; }
};

/// Partitions of one hash, and the first of them that was not joined.
template <typename Build, typename Probe>
struct JoinLevel {
  JoinLevel(OperatorPart& part, uint32_t bits, uint64_t mixed_with, bool has_matched)
      : build(part, bits), probe(part, bits), number(mixed_with) {
    if (has_matched) matched.emplace(part, bits);
  }
  uint64_t build_rows(uint32_t partition) const noexcept {
    const uint64_t bytes =
        build.row_bytes(partition) + (matched ? matched->row_bytes(partition) : 0);
    return bytes / sizeof(Build);
  }
  uint64_t probe_rows(uint32_t partition) const noexcept {
    return probe.row_bytes(partition) / sizeof(Probe);
  }
  bool has_waiting() const noexcept {
    for (uint32_t p = 0; p < probe.partition_count(); ++p) {
      if (probe.row_bytes(p) > 0) return true;
    }
    return false;
  }
  void clear(uint32_t partition) noexcept {
    build.clear(partition);
    probe.clear(partition);
    if (matched) matched->clear(partition);
  }

  PartitionStore build;
  PartitionStore probe;
  std::optional<PartitionStore> matched;  // build rows that have, if that is of interest
  const uint64_t number;
  uint32_t next = 0;
  uint64_t of_one_key =
      0;  // partitions, by bit, that have one key more or less: no hash splits them
};

/// Keeps the rows that arrive by partition. Partitions are joined when all rows have come, or,
/// where probe rows are more than memory allows, earlier, with those that wait. If all build rows
/// fit the cache there is one table, and probe rows meet it at once.
///
/// A partition whose build rows do not fit the cache is split, on both sides, by a hash that is
/// mixed anew. Where that does not help, since most rows have one key, its probe rows meet one
/// table after the other: a nested loop over blocks of build rows.
///
/// Threads: those of the worker.
template <typename What>
class PartitionJoin {
 public:
  using Build = typename What::Build;
  using Probe = typename What::Probe;
  using Key = typename What::Key;
  using Loop = JoinLoop<What>;
  using Pair = typename Loop::Pair;
  using Table = typename Loop::Table;
  using Level = JoinLevel<Build, Probe>;

  static constexpr uint64_t kLeastRows = 4096;

  /// What it takes at least: open partitions of two levels, and those between two passes; a block
  /// of each side that is read, and one of each side read back; a table.
  static constexpr uint64_t least_bytes() noexcept {
    constexpr uint32_t kBits = Partitioning::kBits, kSplitBits = Partitioning::kSplitBits;
    return 2 * PartitionStore::least_bytes(kBits, sizeof(Build)) +
           2 * PartitionStore::least_bytes(kSplitBits, sizeof(Build)) +
           PartitionStore::least_bytes(kBits, sizeof(Probe)) +
           PartitionStore::least_bytes(kSplitBits, sizeof(Probe)) +
           2 * PartitionStore::least_bytes(1, sizeof(Probe)) +
           2 * PartitionReader::least_bytes(sizeof(Build)) +
           2 * PartitionReader::least_bytes(sizeof(Probe)) + Table::bytes(kLeastRows);
  }

  /// What it takes at least beside a table: a block of each side that is read back, and one where
  /// a row is put, as others can be spilled.
  static constexpr uint64_t bytes_beside_table() noexcept {
    return PartitionReader::least_bytes(sizeof(Build)) +
           PartitionReader::least_bytes(sizeof(Probe)) +
           std::max(PartitionStore::least_bytes(0, sizeof(Build)),
                    PartitionStore::least_bytes(0, sizeof(Probe)));
  }

  PartitionJoin(OperatorPart& part, const What& what, JoinKind kind, bool output_early)
      : part_(part),
        what_(what),
        output_early_(output_early),
        most_rows_(std::max(kLeastRows, Table::rows_of(std::min(Partitioning::kCacheBytes,
                                                                part.fair_bytes() / 4)))),
        kept_{{{part, 1}, {part, 1}}},
        loop_(part, what, kind, bytes_beside_table()) {
    levels_.push_back(make_level());
  }

  const PartitionJoinCounts& counts() const noexcept { return counts_; }

  /// Keep rows that have come. False: the operator has failed, or was cleared. The bytes may be a
  /// peer's: each row is copied before it is looked at.
  bool take_build(std::span<const Build> rows) {
    if (levels_.empty()) return false;
    counts_.build_rows += rows.size();
    return keep(levels_.front()->build, rows, build_key());
  }
  bool take_probe(std::span<const Probe> rows) {
    if (levels_.empty()) return false;
    counts_.probe_rows += rows.size();
    return keep(levels_.front()->probe, rows, probe_key());
  }
  /// All build rows have come.
  void build_ended() {
    if (come_.build || levels_.empty()) return;
    come_.build = true;
    const uint64_t rows = counts_.all_build_rows();
    come_.is_one_table = rows <= most_rows_ && loop_.table().begin(rows);
  }
  /// All probe rows have.
  void probe_ended() noexcept { come_.probe = true; }

  /// Calls each(row) for the build rows of a key that are at hand.
  template <typename Each>
  JoinLookup each_build_row(const Key& key, uint64_t mixed, Each each) {
    if (levels_.empty() || !come_.build || come_.probe) return JoinLookup::not_now;
    if (come_.is_loaded) {
      const auto table = loop_.table().view();
      uint32_t number = table.first(mixed);
      for (; number != 0; number = table.nodes[number - 1].link & ~Table::kMatched) {
        if (what_.build_key(table.nodes[number - 1].row) == key) each(table.nodes[number - 1].row);
      }
      return JoinLookup::done;
    }
    if (phase_ != Phase::choosing) return JoinLookup::not_now;
    const PartitionStore& store = levels_.front()->build;
    const uint32_t partition = local_partition(mixed, Partitioning::kBits);
    if (store.spilled_bytes(partition) > 0) return JoinLookup::spilled;
    for (size_t i = 0;; ++i) {
      const std::span<const std::byte> block = store.block(partition, i);
      if (block.empty()) return JoinLookup::done;
      const auto* const rows = reinterpret_cast<const Build*>(block.data());
      for (const Build& row : std::span(rows, block.size() / sizeof(Build))) {
        if (what_.build_key(row) == key) each(row);
      }
    }
  }
  /// Build rows of a key that belongs to another worker join those of this one. It may move the
  /// rows that pairs refer to.
  Adoption adopt(std::span<const Build> rows) {
    if (levels_.empty() || come_.probe) return Adoption::not_now;
    if (!come_.is_one_table) {
      if (come_.build && phase_ != Phase::choosing) return Adoption::not_now;
      counts_.listed_rows += rows.size();
      return keep(levels_.front()->build, rows, build_key()) ? Adoption::done : Adoption::not_now;
    }
    if (!come_.is_loaded && !load()) return Adoption::not_now;
    if (loop_.is_in_row()) return Adoption::not_now;
    Table& table = loop_.table();
    const uint64_t number = levels_.front()->number, needed = table.size() + rows.size();
    const auto mixed_of = [&](const Build& row) {
      return mix(hash_of_key(what_, what_.build_key(row)), number);
    };
    if (needed > 2 * most_rows_) return Adoption::no_memory;
    if (needed > table.capacity() && !table.grow(needed + needed / 4, mixed_of))
      return Adoption::no_memory;
    for (const Build& row : rows) table.add(row, mixed_of(row), false);
    counts_.listed_rows += rows.size();
    return Adoption::done;
  }
  /// Keeps a probe row of a key whose build rows were adopted. False: as take_probe.
  bool keep_probe(const Probe& row, uint64_t mixed, bool has_rows) {
    if (levels_.empty()) return false;
    ++counts_.probe_rows_kept;
    if (!has_rows && !keeps_probe(loop_.kind())) return true;
    const uint32_t partition = come_.is_one_table ? 0 : local_partition(mixed, Partitioning::kBits);
    return levels_.front()->probe.append(partition, row);
  }

  /// There is nothing left to join.
  bool has_ended() const noexcept { return levels_.empty(); }
  /// Whether `next` has something to do.
  bool can_go_on() noexcept {
    if (levels_.empty() || phase_ != Phase::choosing) return true;
    if (!come_.build || come_.probe) return come_.build;
    return come_.is_one_table ? !come_.is_loaded || levels_.front()->has_waiting() : find_gulp();
  }

  /// Lets go of everything.
  void clear() noexcept {
    end_task();
    loop_.clear();
    split_.reset();
    levels_.clear();
  }

  /// Joins on, until there are pairs, which are valid until the next call; or nothing can be done
  /// before more rows come (would_wait); or there is nothing left (end_of_stream); or `is_over`
  /// says so (deadline). It is asked, and so is whether the query is alive, after some thousand
  /// rows.
  template <typename IsOver>
  Outcome next(std::span<const Pair>& pairs, IsOver is_over) {
    loop_.forget_pairs();
    for (;;) {
      const JoinStep step = go_on();
      if (step == JoinStep::failed || !part_.is_alive()) return Outcome::failed;
      if (step == JoinStep::nothing) return Outcome::would_wait;
      if (step == JoinStep::ended) return Outcome::end_of_stream;
      const bool has_time = step != JoinStep::full && !is_over();
      if (has_time) continue;
      pairs = loop_.pairs();
      counts_.pairs += pairs.size();
      return pairs.empty() ? Outcome::deadline : Outcome::done;
    }
  }

 private:
  enum class Phase : uint8_t {
    choosing,
    splitting_build,
    splitting_probe,
    loading,
    probing,
    resting
  };

  /// Makes the one table now, or the rest of it. False: the operator has failed.
  bool load() {
    JoinStep step = phase_ == Phase::loading ? JoinStep::goes_on : begin_join(*levels_.front());
    while (step == JoinStep::goes_on && phase_ == Phase::loading) step = load_some();
    if (step != JoinStep::goes_on) return false;
    phase_ = Phase::choosing;
    return true;
  }
  std::unique_ptr<Level> make_level() {
    const auto depth = static_cast<uint32_t>(levels_.size());
    return std::make_unique<Level>(
        part_, depth == 0 ? Partitioning::kBits : Partitioning::kSplitBits,
        number_of_level(part_.number(), depth), keeps_build(loop_.kind()));
  }
  auto build_key() const noexcept {
    return [this](const Build& row) { return what_.build_key(row); };
  }
  auto probe_key() const noexcept {
    return [this](const Probe& row) { return what_.probe_key(row); };
  }

  /// Rows that meet one table need no partition.
  template <typename Row, typename KeyOf>
  bool keep(PartitionStore& store, std::span<const Row> rows, KeyOf key_of) {
    const uint64_t number = levels_.front()->number;
    const bool is_one_table = come_.is_one_table;
    for (const Row& each : rows) {
      Row row;
      std::memcpy(static_cast<void*>(&row), &each, sizeof row);
      uint32_t partition = 0;
      if (!is_one_table) {
        partition =
            local_partition(mix(hash_of_key(what_, key_of(row)), number), Partitioning::kBits);
      }
      if (!store.append(partition, row)) [[unlikely]]
        return false;
    }
    return true;
  }

  JoinStep go_on() {
    switch (phase_) {
      case Phase::choosing:
        return choose();
      case Phase::splitting_build:
      case Phase::splitting_probe:
        return split_some();
      case Phase::loading:
        return load_some();
      case Phase::probing:
        return probe_some();
      case Phase::resting:
        return rest();
    }
    return JoinStep::failed;
  }

  // --- what to join next

  JoinStep choose() {
    if (levels_.empty()) return JoinStep::ended;
    if (!come_.build) return JoinStep::nothing;
    if (come_.is_one_table) return choose_in_one_table();
    if (!come_.probe) return choose_gulp();
    Level& level = *levels_.back();
    if (level.next == level.build.partition_count()) {
      levels_.pop_back();
      if (levels_.empty()) loop_.clear();
      return JoinStep::goes_on;
    }
    task_.partition = level.next++;
    const uint64_t build = level.build_rows(task_.partition);
    const bool gives_nothing =
        (build == 0 && !keeps_probe(loop_.kind())) ||
        (level.probe_rows(task_.partition) == 0 && !keeps_build(loop_.kind()));
    if (gives_nothing) {
      level.clear(task_.partition);
      return JoinStep::goes_on;
    }
    const bool has_one_key = (level.of_one_key >> task_.partition & 1) != 0;
    const bool is_split =
        build > most_rows_ && levels_.size() < Partitioning::kMostLevels && !has_one_key;
    return is_split ? begin_split(level) : begin_join(level);
  }

  JoinStep choose_in_one_table() {
    Level& level = *levels_.front();
    if (!come_.is_loaded) return begin_join(level);
    if (level.has_waiting()) return begin_probe();
    if (!come_.probe) return JoinStep::nothing;
    phase_ = Phase::resting;
    return JoinStep::goes_on;
  }

  /// Where memory is short, or output is wanted early: the partition for which most rows wait, if
  /// they are as many as its build rows, of which a table is made each time.
  bool find_gulp() noexcept {
    if (counts_.all_probe_rows() == refused_at_ || (!output_early_ && !is_short_of_memory()))
      return false;
    const Level& level = *levels_.front();
    uint64_t most = 0;
    for (uint32_t p = 0; p < level.probe.partition_count(); ++p) {
      const uint64_t waiting = level.probe_rows(p);
      if (waiting <= most) continue;
      const uint64_t build = level.build_rows(p);
      if (build > most_rows_ || waiting < build) continue;
      most = waiting;
      task_.partition = p;
    }
    return most > 0;
  }
  JoinStep choose_gulp() {
    const bool is_found = find_gulp();
    spilled_before_ = part_.spilled_bytes();
    return is_found ? begin_join(*levels_.front()) : JoinStep::nothing;
  }
  bool is_short_of_memory() const noexcept {
    return part_.used_bytes() >= part_.fair_bytes() / 4 * 3 ||
           part_.spilled_bytes() > spilled_before_;
  }

  // --- splitting

  JoinStep begin_split(Level& level) {
    split_ = make_level();
    begin_build_rows(level);
    ++counts_.splits;
    phase_ = Phase::splitting_build;
    return JoinStep::goes_on;
  }
  /// Moves the next block of rows to the level below.
  JoinStep split_some() {
    const bool is_build = phase_ == Phase::splitting_build;
    const Outcome outcome = is_build ? build_rows_.next() : probe_rows_.next();
    if (outcome == Outcome::failed) return JoinStep::failed;
    if (outcome == Outcome::end_of_stream && is_build) {
      probe_rows_.begin({{&levels_.back()->probe, task_.partition, task_.partition + 1}});
      phase_ = Phase::splitting_probe;
      return JoinStep::goes_on;
    }
    if (outcome == Outcome::end_of_stream) return end_split();
    if (!is_build) return pass_down(split_->probe, probe_rows_.rows(), probe_key());
    return pass_down(build_rows_.is_matched() ? *split_->matched : split_->build,
                     build_rows_.rows(), build_key());
  }
  template <typename Row, typename KeyOf>
  JoinStep pass_down(PartitionStore& store, std::span<const Row> rows, KeyOf key_of) {
    for (const Row& row : rows) {
      const uint64_t hash = mix(hash_of_key(what_, key_of(row)), split_->number);
      if (!store.append(local_partition(hash, Partitioning::kSplitBits), row))
        return JoinStep::failed;
    }
    return JoinStep::goes_on;
  }
  JoinStep end_split() {
    uint64_t rows = 0;
    for (uint32_t p = 0; p < split_->build.partition_count(); ++p) rows += split_->build_rows(p);
    for (uint32_t p = 0; p < split_->build.partition_count(); ++p) {
      if (split_->build_rows(p) > rows / 2) split_->of_one_key |= uint64_t{1} << p;
    }
    end_task();
    levels_.push_back(std::move(split_));
    return JoinStep::goes_on;
  }

  // --- joining

  /// The rows of a partition; or all, for one table.
  std::pair<uint32_t, uint32_t> partitions() const noexcept {
    if (come_.is_one_table) return {0, levels_.front()->build.partition_count()};
    return {task_.partition, task_.partition + 1};
  }
  void begin_build_rows(Level& level) noexcept {
    const auto [first, last] = partitions();
    if (level.matched) {
      build_rows_.begin({{&level.build, first, last, false}, {&*level.matched, first, last, true}});
    } else {
      build_rows_.begin({{&level.build, first, last, false}});
    }
    task_.of_block = 0;
  }
  JoinStep begin_join(Level& level) {
    task_.is_gulp = !come_.probe && !come_.is_one_table;
    task_.left = come_.is_one_table ? counts_.all_build_rows() : level.build_rows(task_.partition);
    task_.pass = 0;
    begin_build_rows(level);
    return begin_pass();
  }
  /// The next table: of all rows that are left, or of as many as there is memory for.
  JoinStep begin_pass() {
    uint64_t rows = std::min(task_.left, most_rows_);
    while (!loop_.table().begin(rows)) {
      if (!part_.is_alive()) return JoinStep::failed;
      if (rows <= kLeastRows) {
        (void)part_.fail_for_memory("the table of one partition");
        return JoinStep::failed;
      }
      rows = std::max(kLeastRows, rows / 2);
    }
    if (task_.is_gulp && rows < task_.left) {  // it waits for more rows, or their end
      refused_at_ = counts_.all_probe_rows();
      end_task();
      return JoinStep::nothing;
    }
    task_.to_load = rows;
    task_.left -= rows;
    if (task_.pass > 0) ++counts_.passes;
    if (task_.pass == 0 && planted(what_, JoinBug::pass_left_out)) task_.left = 0;
    phase_ = Phase::loading;
    return JoinStep::goes_on;
  }
  /// Adds the next rows to the table, up to the end of a block.
  JoinStep load_some() {
    Table& table = loop_.table();
    if (table.size() == task_.to_load) {
      come_.is_loaded = come_.is_one_table;
      return begin_probe();
    }
    if (task_.of_block == build_rows_.rows().size()) {
      task_.of_block = 0;
      const Outcome outcome = build_rows_.next();
      if (outcome == Outcome::failed) return JoinStep::failed;
      if (outcome == Outcome::end_of_stream) task_.to_load = table.size();
      return JoinStep::goes_on;
    }
    const uint64_t number = levels_.back()->number;
    const bool is_matched = build_rows_.is_matched();
    const std::span<const Build> rows = build_rows_.rows();
    const uint64_t end =
        task_.of_block + std::min(rows.size() - task_.of_block, task_.to_load - table.size());
    for (; task_.of_block < end; ++task_.of_block) {
      const Build& row = rows[task_.of_block];
      table.add(row, mix(hash_of_key(what_, what_.build_key(row)), number), is_matched);
    }
    return JoinStep::goes_on;
  }

  JoinStep begin_probe() noexcept {
    Level& level = *levels_.back();
    PartitionStore* const kept = task_.left > 0 ? &kept_[task_.pass % 2] : nullptr;
    if (task_.pass == 0) {
      const auto [first, last] = partitions();
      loop_.begin({{&level.probe, first, last}}, level.number, kept);
    } else {
      PartitionStore& before = kept_[(task_.pass + 1) % 2];
      loop_.begin({{&before, 0, 1, false}, {&before, 1, 2, true}}, level.number, kept);
    }
    phase_ = Phase::probing;
    return JoinStep::goes_on;
  }
  JoinStep probe_some() {
    const JoinStep step = loop_.probe_some();
    if (step != JoinStep::ended) return step;
    task_.rested = 0;
    phase_ = come_.is_one_table ? Phase::choosing : Phase::resting;
    return JoinStep::goes_on;
  }

  /// What becomes of a table that all probe rows have met: its rows wait for more of them, or come
  /// out if they have no partner.
  JoinStep rest() {
    JoinStep step = JoinStep::ended;
    if (task_.is_gulp) {
      step = put_back();
    } else if (keeps_build(loop_.kind())) {
      step = loop_.unmatched_some(task_.rested);
    }
    if (step != JoinStep::ended) return step;
    if (!loop_.pairs().empty()) return JoinStep::full;
    if (!task_.is_gulp && task_.left > 0) {
      ++task_.pass;
      return begin_pass();
    }
    end_task();
    if (task_.is_gulp) {
      ++counts_.gulps;
    } else if (come_.is_one_table) {
      loop_.clear();
      levels_.clear();
    } else {
      levels_.back()->clear(task_.partition);
    }
    return JoinStep::goes_on;
  }
  JoinStep put_back() {
    Level& level = *levels_.front();
    Table& table = loop_.table();
    for (uint64_t steps = 0; task_.rested < table.size(); ++task_.rested, ++steps) {
      if (steps == kRowsAtOnce) return JoinStep::goes_on;
      const typename Table::Node& node = table.node(task_.rested);
      const bool is_matched = level.matched && (node.link & Table::kMatched) != 0;
      PartitionStore& store = is_matched ? *level.matched : level.build;
      if (!store.append(task_.partition, node.row)) return JoinStep::failed;
    }
    return JoinStep::ended;
  }
  void end_task() noexcept {
    build_rows_.clear();
    probe_rows_.clear();
    for (PartitionStore& store : kept_) {
      for (uint32_t p = 0; p < store.partition_count(); ++p) store.clear(p);
    }
    phase_ = Phase::choosing;
  }

  /// What has come.
  struct Come {
    bool build = false;  // all rows of this side
    bool probe = false;
    bool is_one_table = false;  // of all build rows
    bool is_loaded = false;     // it
  };
  /// What is being done with a partition.
  struct Task {
    uint32_t partition = 0;
    bool is_gulp = false;
    uint64_t left = 0;     // build rows, for later passes
    uint64_t to_load = 0;  // into the table of this pass
    size_t of_block = 0;   // rows that are in the table already
    uint64_t pass = 0;
    uint64_t rested = 0;  // rows of the table
  };

  OperatorPart& part_;
  const What& what_;
  const bool output_early_;
  const uint64_t most_rows_;  // of a table
  PartitionJoinCounts counts_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::unique_ptr<Level> split_;        // where a partition that is split goes, until it has gone
  std::array<PartitionStore, 2> kept_;  // probe rows between two passes
  RowStream<Build> build_rows_;
  RowStream<Probe> probe_rows_;
  JoinLoop<What> loop_;
  Phase phase_ = Phase::choosing;
  Come come_;
  Task task_;
  uint64_t spilled_before_ = 0;       // when a gulp was chosen last, or none was
  uint64_t refused_at_ = UINT64_MAX;  // probe rows that had come when one had no memory
};

}  // namespace faro::detail

#pragma GCC visibility pop
