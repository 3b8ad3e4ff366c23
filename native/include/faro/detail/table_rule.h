// TableRule: how large the table is in which rows are aggregated before they are sent, or that they
// pass it. Not part of the API.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace faro::detail {

/// The median of the last measurements of a cost, in ns. One that was taken while the thread was
/// not running is an outlier.
class MeasuredCost {
 public:
  void add(double ns) noexcept;
  bool is_known() const noexcept { return count_ > 0; }
  /// 0 as long as nothing is known.
  double ns() const noexcept { return median_; }

 private:
  static constexpr size_t kKept = 7;
  std::array<double, kKept> last_{};
  size_t count_ = 0;
  double median_ = 0;
};

/// How a table has filled since it was empty.
struct TableFilling {
  uint64_t rows = 0;
  uint64_t rows_to_half = 0;     // until half of it was full
  uint64_t rows_to_quarter = 0;  // until a quarter was
};

/// Decides by what has been measured in this run, whenever the table is full: to let it grow, to
/// send what it has and to fill it again, or to let rows pass it.
///
/// What a row costs with a table of S states is the cost of updating such a table, and that of
/// passing a state on times the share of rows that become a state of their own. Both costs are
/// measured: of each size of table that was used, of sending, and of taking in, since a worker is a
/// receiver, too. The share is measured for the size in use and for half and a quarter of it. For
/// larger ones it is predicted: if rows look as if they were drawn evenly from some number of
/// groups, from that number, which is estimated twice, before and after the table was half full;
/// else the share of new groups among the rows is taken to change from one doubling to the next as
/// it has changed last. (By evenness alone sorted rows, and those of frequent keys, look as if
/// there were hardly more groups than have come.) Where rows pass, those of frequent keys do not.
///
/// Threads: one.
class TableRule {
 public:
  static constexpr uint32_t kLeastStates = 4096;

  /// `most_states`: of the largest table. `fixed`: for measurements, the table never has another
  /// size; 0: rows pass it.
  TableRule(uint32_t most_states, std::optional<uint32_t> fixed);

  /// The table to be used; 0: rows pass it.
  uint32_t states() const noexcept { return states_; }
  /// The largest one that was used.
  uint32_t most_used() const noexcept { return most_used_; }

  // What was measured.
  void updated(uint64_t rows, uint64_t ns) noexcept;
  void sent(uint64_t states, uint64_t ns) noexcept;
  void taken(uint64_t states, uint64_t ns) noexcept;

  /// What becomes of a table that is full.
  enum class Full : uint8_t {
    grows,    // to states(), and keeps its groups
    is_sent,  // and goes on with states(), or 0
  };
  /// A table of states() is full. `hot_share`: the share of rows whose keys are frequent; where
  /// rows pass, those meet a small table.
  Full full(const TableFilling& filling, double hot_share) noexcept;
  /// There was no memory for a table of states().
  Full could_not_grow() noexcept;
  /// Rows have passed. True: states() is that of a table for a sample of what comes next.
  bool passed(uint64_t rows) noexcept;

  /// What passing a row on costs, at both ends.
  double passing_ns() const noexcept;

 private:
  static constexpr size_t kSizes = 20;  // 4 Ki … 2 Gi

  static size_t size_of(uint64_t states) noexcept;
  double updating_ns(uint64_t states) const noexcept;
  double share_of_new(uint64_t states, const TableFilling& filling, double groups) const noexcept;
  double quarter_rate(const TableFilling& filling) const noexcept;
  double half_rate(const TableFilling& filling) const noexcept;
  double even_groups(const TableFilling& filling) const noexcept;
  Full use(uint64_t states, Full how) noexcept;

  uint32_t most_states_;
  const std::optional<uint32_t> fixed_;
  uint32_t states_ = 0;
  uint32_t most_used_ = 0;
  std::array<MeasuredCost, kSizes> updating_{};
  MeasuredCost sending_;
  MeasuredCost taking_;
  uint64_t rows_ = 0;          // in all
  uint64_t passed_ = 0;        // since the last sample
  uint64_t until_sample_ = 0;  // that many rows pass
};

}  // namespace faro::detail

#pragma GCC visibility pop
