#include "faro/detail/table_rule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace faro::detail {
namespace {

// Rows that are expected to follow, at least. What a table saves only after more rows than that is not saved.
constexpr double kHorizonRows = 512 * 1024;
// A table becomes at most that many times as large at a time: each step copies it, and shows what its size costs.
constexpr uint64_t kMostGrowth = 4;
// A table that was not used yet costs that much more than one of half its size.
constexpr double kDoubling = 1.15;
// Merging a state costs that much more than adding a row to the smallest table, since tables of partitions are larger.
constexpr double kMerging = 1.3;
// Finding out whether a key is frequent costs that much of adding a row to the smallest table.
constexpr double kLookingUp = 0.6;
// How far two estimates of the number of groups may be apart where rows are evenly drawn. With a constant share of new groups the
// second one is twice the first.
constexpr double kEven = 1.4;
// Rows that pass between two samples: at first, and at most.
constexpr uint64_t kFirstSample = uint64_t{64} << 10;
constexpr uint64_t kMostBetweenSamples = uint64_t{256} << 10;

/// The number of groups that rows are of, if `rows` of them have raised the number of groups seen from `from` to `to`, and each is of any group
/// with the same chance: rows = groups · ln((groups - from) / (groups - to)), solved by bisection.
double estimated_groups(double from, double to, double rows) {
  const double added = to - from;
  if (rows <= added * 1.0001) return std::numeric_limits<double>::infinity();
  double low = to, high = to * 2;
  const auto needed = [&](double groups) {
    return groups * std::log((groups - from) / (groups - to));
  };
  while (needed(high) > rows && high < 1e15) high *= 2;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (needed(middle) > rows ? low : high) = middle;
  }
  return high;
}

/// How many groups that many rows are of.
double expected_groups(double groups, double rows) {
  return std::isinf(groups) ? rows : groups * -std::expm1(-rows / groups);
}

}  // namespace

void MeasuredCost::add(double ns) noexcept {
  last_[count_++ % kKept] = ns;
  std::array<double, kKept> sorted = last_;
  const size_t known = std::min(count_, kKept);
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(known / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<ptrdiff_t>(known));
  median_ = *middle;
}

TableRule::TableRule(uint32_t most_states, std::optional<uint32_t> fixed)
    : most_states_(std::max(most_states, kLeastStates)), fixed_(fixed) {
  (void)use(fixed.value_or(kLeastStates), Full::is_sent);
}

size_t TableRule::size_of(uint64_t states) noexcept {
  const auto log2 = static_cast<size_t>(std::bit_width(states / kLeastStates));
  return std::min(log2 == 0 ? 0 : log2 - 1, kSizes - 1);
}

void TableRule::updated(uint64_t rows, uint64_t ns) noexcept {
  rows_ += rows;
  updating_[size_of(states_)].add(static_cast<double>(ns) / static_cast<double>(rows));
}
void TableRule::sent(uint64_t states, uint64_t ns) noexcept {
  sending_.add(static_cast<double>(ns) / static_cast<double>(states));
}
void TableRule::taken(uint64_t states, uint64_t ns) noexcept {
  taking_.add(static_cast<double>(ns) / static_cast<double>(states));
}

// A worker to which nothing has come yet takes in for as much as it sends.
double TableRule::passing_ns() const noexcept {
  const double taking = taking_.is_known() ? taking_.ns() : sending_.ns();
  return sending_.ns() + taking + kMerging * updating_[0].ns();
}

double TableRule::updating_ns(uint64_t states) const noexcept {
  size_t size = size_of(states);
  double factor = 1;
  while (size > 0 && !updating_[size].is_known()) {
    --size;
    factor *= kDoubling;
  }
  return updating_[size].ns() * factor;
}

/// The share of rows that become a state of their own with a table of that size. `groups`: those of which the rows are, if they
/// are even; else 0.
double TableRule::share_of_new(uint64_t states, const TableFilling& filling,
                               double groups) const noexcept {
  const auto room = static_cast<double>(states);
  const auto filled = static_cast<double>(states_);
  const auto rows = static_cast<double>(filling.rows);
  if (states * 4 <= states_) return filled / 4 / static_cast<double>(filling.rows_to_quarter);
  if (states * 2 == states_) return filled / 2 / static_cast<double>(filling.rows_to_half);
  if (states == states_) return filled / rows;
  if (groups == 0) {
    const double before = quarter_rate(filling), last = half_rate(filling);
    const double change = std::min(1.0, last / before);
    double rate = last, needed = rows;
    for (uint64_t size = states_; size < states; size *= 2) {
      rate *= change;
      needed += static_cast<double>(size) / rate;
    }
    return room / needed;
  }
  if (room < groups * 0.98)
    return room / (rows + groups * std::log((groups - filled) / (groups - room)));
  const double horizon = std::max(kHorizonRows, static_cast<double>(rows_));
  return (filled + expected_groups(groups - filled, horizon)) / (rows + horizon);
}

// New groups among the rows that have filled the second quarter, and the second half.
double TableRule::quarter_rate(const TableFilling& filling) const noexcept {
  return states_ / 4.0 / static_cast<double>(filling.rows_to_half - filling.rows_to_quarter);
}
double TableRule::half_rate(const TableFilling& filling) const noexcept {
  return states_ / 2.0 / static_cast<double>(filling.rows - filling.rows_to_half);
}

/// How many groups the rows are of, if they look evenly drawn; else 0.
double TableRule::even_groups(const TableFilling& filling) const noexcept {
  const double before =
      estimated_groups(states_ / 4.0, states_ / 2.0,
                       static_cast<double>(filling.rows_to_half - filling.rows_to_quarter));
  const double last = estimated_groups(states_ / 2.0, states_,
                                       static_cast<double>(filling.rows - filling.rows_to_half));
  return std::isinf(before) || last <= kEven * before ? last : 0;
}

TableRule::Full TableRule::use(uint64_t states, Full how) noexcept {
  states_ = static_cast<uint32_t>(states);
  most_used_ = std::max(most_used_, states_);
  return how;
}

TableRule::Full TableRule::full(const TableFilling& filling, double hot_share) noexcept {
  // Before a state was sent nothing is known of what passing costs.
  if (fixed_ || !sending_.is_known()) return Full::is_sent;
  const double groups = even_groups(filling);
  const double passing = passing_ns();
  double least =
      hot_share == 0 ? passing : (1 - hot_share) * passing + kLookingUp * updating_[0].ns();
  uint64_t best = 0;
  for (uint64_t states = kLeastStates; states <= most_states_; states *= 2) {
    const double cost = updating_ns(states) + share_of_new(states, filling, groups) * passing;
    if (cost < least) {
      least = cost;
      best = states;
    }
    if (groups > 0 && states > states_ && static_cast<double>(states) >= groups) break;
  }
  // Step by step: what the next size costs is measured before the one after it is taken.
  if (best > states_) return use(std::min(best, uint64_t{states_} * kMostGrowth), Full::grows);
  if (best == 0) {
    until_sample_ =
        until_sample_ > 0 ? std::min(2 * until_sample_, kMostBetweenSamples) : kFirstSample;
    passed_ = 0;
  } else {
    until_sample_ = 0;
  }
  return use(best, Full::is_sent);
}

TableRule::Full TableRule::could_not_grow() noexcept {
  most_states_ = std::max(states_ / 2, kLeastStates);
  return use(most_states_, Full::grows);
}

bool TableRule::passed(uint64_t rows) noexcept {
  rows_ += rows;
  passed_ += rows;
  if (fixed_ || passed_ < until_sample_) return false;
  passed_ = 0;
  (void)use(kLeastStates, Full::is_sent);
  return true;
}

}  // namespace faro::detail
