// JoinLoop: probe rows meet a table of build rows. Not part of the API.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "faro/detail/join_table.h"
#include "faro/detail/operator_hash.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "faro/detail/row_stream.h"
#include "faro/outcome.h"

#pragma GCC visibility push(default)

namespace faro {

/// Which rows a join hands out. Left is the probe side.
enum class JoinKind : uint8_t {
  inner,  ///< pairs that match
  left,   ///< and probe rows without a partner
  right,  ///< pairs that match, and build rows without a partner
  full,   ///< pairs that match, and rows of both sides without a partner
  semi,   ///< probe rows with a partner, once each
  anti,   ///< probe rows without a partner
};

namespace detail {

constexpr bool hands_out_pairs(JoinKind kind) noexcept {
  return kind != JoinKind::semi && kind != JoinKind::anti;
}
/// Whether probe rows without a partner come out.
constexpr bool keeps_probe(JoinKind kind) noexcept {
  return kind == JoinKind::left || kind == JoinKind::full || kind == JoinKind::anti;
}
/// Whether build rows without a partner come out.
constexpr bool keeps_build(JoinKind kind) noexcept {
  return kind == JoinKind::right || kind == JoinKind::full;
}

/// Bugs that a test of the library plants, by a function `bool planted(JoinBug)` of What.
enum class JoinBug : uint8_t { matched_by_key, pass_left_out, hot_key_at_some_workers };
template <typename What>
bool planted(const What& what, JoinBug bug) noexcept {
  if constexpr (requires { what.planted(bug); }) return what.planted(bug);
  return false;
}

/// A row of each side; or one of them alone.
template <typename Build, typename Probe>
struct JoinedPair {
  const Build* build;
  const Probe* probe;
};

/// What came of some work on a join.
enum class JoinStep : uint8_t {
  goes_on,
  full,     // pairs have to be handed out first
  nothing,  // until more rows come
  ended,
  failed,  // the operator has
};

/// Joins probe rows with a table of build rows, some thousand steps at a time. It stops wherever
/// there is no room for a pair.
///
/// Threads: those of the worker.
template <typename What>
class JoinLoop {
 public:
  using Build = typename What::Build;
  using Probe = typename What::Probe;
  using Key = typename What::Key;
  using Pair = JoinedPair<Build, Probe>;
  using Table = JoinTable<Build>;
  using Source = typename RowStream<Probe>::Source;

  /// `room`: what else the operator may need as long as there is a table.
  JoinLoop(OperatorPart& part, const What& what, JoinKind kind, uint64_t room)
      : what_(what), kind_(kind), table_(part, room) {}

  JoinKind kind() const noexcept { return kind_; }
  Table& table() noexcept { return table_; }

  /// Pairs that wait to be handed out: they refer to the table and to the rows of `probe_some`.
  std::span<const Pair> pairs() const noexcept { return {pairs_.data(), count_}; }
  void forget_pairs() noexcept { count_ = 0; }
  /// Whether a row has met a part of its chain.
  bool is_in_row() const noexcept { return is_in_row_; }
  void clear() noexcept {
    rows_.clear();
    table_.let_go();
    at_ = count_ = 0;
    is_in_row_ = false;
  }

  /// Which rows meet the table, in which they are found by hashes mixed with `number`. `kept`: rows
  /// are to meet another table later, and go to its partition 1 if they have matched, to 0 if not;
  /// null: this is the last one.
  void begin(std::initializer_list<Source> rows, uint64_t number, PartitionStore* kept) noexcept {
    rows_.begin(rows);
    number_ = number;
    kept_ = kept;
    at_ = 0;
    is_in_row_ = false;
  }
  JoinStep probe_some() {
    if (at_ == rows_.rows().size()) {
      if (count_ > 0) return JoinStep::full;
      at_ = 0;
      const Outcome outcome = rows_.next();
      if (outcome == Outcome::end_of_stream) return JoinStep::ended;
      if (outcome != Outcome::done) return JoinStep::failed;
    }
    switch (kind_) {
      case JoinKind::inner:
        return probe_rows<JoinKind::inner>();
      case JoinKind::left:
        return probe_rows<JoinKind::left>();
      case JoinKind::right:
        return probe_rows<JoinKind::right>();
      case JoinKind::full:
        return probe_rows<JoinKind::full>();
      case JoinKind::semi:
        return probe_rows<JoinKind::semi>();
      case JoinKind::anti:
        return probe_rows<JoinKind::anti>();
    }
    return JoinStep::failed;
  }
  /// Hands out the rows of the table that have not matched, from `at` on.
  JoinStep unmatched_some(uint64_t& at) noexcept {
    for (size_t steps = 0; at < table_.size(); ++at, ++steps) {
      if (steps == kSteps) return JoinStep::goes_on;
      const typename Table::Node& node = table_.node(at);
      if ((node.link & Table::kMatched) != 0) continue;
      if (count_ == kPairs) return JoinStep::full;
      pairs_[count_++] = {&node.row, nullptr};
    }
    return JoinStep::ended;
  }

 private:
  static constexpr size_t kPairs = 512;
  // Nodes of chains that are looked at between two looks at the clock.
  static constexpr size_t kSteps = 4096;

  /// Whether a row with this key can have a partner.
  bool can_match(const Key& key) const noexcept {
    if constexpr (requires { what_.is_null(key); }) return !what_.is_null(key);
    return true;
  }
  bool matches(const Build& build, const Probe& probe) const noexcept {
    if constexpr (requires { what_.matches(build, probe); }) return what_.matches(build, probe);
    return true;
  }

  template <JoinKind kKind>
  JoinStep probe_rows() {
    const std::span<const Probe> rows = rows_.rows();
    const auto table = table_.view();
    const bool was_matched = rows_.is_matched();
    Pair* out = pairs_.data() + count_;
    Pair* const end = pairs_.data() + kPairs;
    size_t steps = kSteps, at = at_;
    uint32_t number = next_;
    bool is_matched = is_matched_, is_in_row = is_in_row_;
    JoinStep step = JoinStep::goes_on;
    for (;;) {
      const Probe& row = rows[at];
      const Key key = what_.probe_key(row);
      if (!is_in_row) [[likely]] {
        if (out == end) {
          step = JoinStep::full;
          break;
        }
        number = can_match(key) ? table.first(mix(hash_of_key(what_, key), number_)) : 0;
        is_matched = was_matched;
        is_in_row = true;
      }
      while (number != 0 && steps > 0) {
        typename Table::Node& node = table.nodes[number - 1];
        if (what_.build_key(node.row) == key) {
          if (hands_out_pairs(kKind) && out == end) [[unlikely]] {
            step = JoinStep::full;
            break;
          }
          const bool is_pair = matches(node.row, row);
          if (is_pair && hands_out_pairs(kKind)) *out++ = {&node.row, &row};
          if (is_pair || planted(what_, JoinBug::matched_by_key)) {
            is_matched = true;
            if (keeps_build(kKind)) node.link |= Table::kMatched;
            if (!hands_out_pairs(kKind)) {
              number = 0;
              break;
            }
          }
        }
        number = node.link & ~Table::kMatched;
        --steps;
      }
      if (number != 0) [[unlikely]]
        break;
      if (kKind == JoinKind::semi ? is_matched : keeps_probe(kKind) && !is_matched && !kept_)
        *out++ = {nullptr, &row};
      if (kept_ != nullptr && (hands_out_pairs(kKind) || !is_matched)) [[unlikely]] {
        if (!kept_->append(is_matched ? 1 : 0, row)) step = JoinStep::failed;
      }
      is_in_row = false;
      if (++at == rows.size() || step == JoinStep::failed) break;
    }
    count_ = static_cast<size_t>(out - pairs_.data());
    at_ = at;
    next_ = number;
    is_matched_ = is_matched;
    is_in_row_ = is_in_row;
    return step;
  }

  const What& what_;
  const JoinKind kind_;
  Table table_;
  RowStream<Probe> rows_;
  uint64_t number_ = 0;
  PartitionStore* kept_ = nullptr;
  size_t at_ = 0;           // the row that is being joined
  bool is_in_row_ = false;  // its chain is not at its end:
  uint32_t next_ = 0;       // the number + 1 of its next node
  bool is_matched_ = false;
  size_t count_ = 0;
  std::array<Pair, kPairs> pairs_;
};

}  // namespace detail
}  // namespace faro

#pragma GCC visibility pop
