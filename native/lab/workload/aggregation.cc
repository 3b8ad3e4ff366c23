#include "lab/workload/aggregation.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace faro::workload {
namespace {

constexpr uint64_t kGroups[] = {1, 3, 100, 4000, 4096, 5000, 20'000, 100'000};
constexpr const char* kKeysOfGroups[] = {"uniform",   "frequent", "constant", "distinct",
                                         "clustered", "drifting", "sorted",   "changing"};

std::optional<uint32_t> draw_table(Chance& chance) {
  switch (chance.below(6)) {
    case 0:
      return 0;
    case 1:
      return 4096;
    case 2:
      return 16'384;
    default:
      return std::nullopt;
  }
}

}  // namespace

void Readings::add(Digest& state, const Reading& row) const noexcept {
  merge(state, {1, row.value, row.value + 1, row.value});
}
void Readings::merge(Digest& state, const Digest& other) const noexcept {
  state.count += other.count;
  state.sum += other.sum;
  state.least = state.least == 0 || other.least == 0 ? std::max(state.least, other.least)
                                                     : std::min(state.least, other.least);
  state.most = std::max(state.most, other.most);
}

AggregationPlan AggregationPlan::draw(uint64_t seed, std::vector<uint32_t> workers,
                                      uint64_t most_rows) {
  Chance chance(mix(seed, 0xa66ULL));
  AggregationPlan plan;
  plan.seed = seed;
  plan.workers = std::move(workers);
  plan.depth = chance.one_in(2) ? 1 : static_cast<uint32_t>(chance.between(2, 3));
  plan.keys = static_cast<Keys>(chance.below(kKeyKinds));
  plan.groups = kGroups[chance.below(std::size(kGroups))];
  const uint64_t most = most_rows / plan.workers.size() >> chance.below(8);
  for (size_t i = 0; i < plan.workers.size(); ++i)
    plan.rows.push_back(chance.one_in(5) ? 0 : chance.between(most / 2, most));
  for (uint32_t i = 0; i < plan.depth; ++i) plan.table.push_back(draw_table(chance));
  if (chance.one_in(8)) plan.stops = static_cast<uint32_t>(chance.below(plan.workers.size()));
  return plan;
}

Reading AggregationPlan::row(uint32_t sender, uint64_t number) const noexcept {
  const uint64_t drawn = mix(seed, sender, number);
  const uint64_t value = drawn >> 40;
  switch (keys) {
    case Keys::uniform:
      return {drawn % groups, value};
    case Keys::frequent:  // the minimum of several: small ones come most
      return {std::min({drawn % groups, (drawn >> 16) % groups, (drawn >> 32) % groups}), value};
    case Keys::constant:
      return {groups, value};
    case Keys::distinct:
      return {number * workers.size() + sender, value};
    case Keys::clustered:
      return {mix(seed, sender, number / 50) % groups, value};
    case Keys::drifting:
      return {number / 8 + drawn % 100, value};
    case Keys::sorted:
      return {number / 3, value};
    case Keys::changing:
      return {number < rows[sender] / 2 ? drawn : drawn % 16, value};
  }
  return {};
}

Groups AggregationPlan::expected() const {
  const Readings readings;
  Groups groups_of_all;
  for (uint32_t sender = 0; sender < workers.size(); ++sender) {
    for (uint64_t number = 0; number < rows[sender]; ++number) {
      const Reading reading = row(sender, number);
      readings.add(groups_of_all[reading.key], reading);
    }
  }
  for (uint32_t i = 1; i < depth; ++i) {
    Groups next;
    for (const auto& [key, state] : groups_of_all) {
      const Reading reading = next_row(key, state);
      readings.add(next[reading.key], reading);
    }
    groups_of_all = std::move(next);
  }
  return groups_of_all;
}

std::string AggregationPlan::to_string() const {
  std::string text =
      fmt::format("seed {}: {} workers, {} deep, keys {} of {} groups, rows", seed, workers.size(),
                  depth, kKeysOfGroups[static_cast<size_t>(keys)], groups);
  for (const uint64_t of_worker : rows) text += fmt::format(" {}", of_worker);
  for (const std::optional<uint32_t> of_depth : table)
    text += of_depth ? fmt::format(", table {}", *of_depth) : ", automatic";
  return stops ? text + fmt::format(", worker {} stops", *stops) : text;
}

// --- a worker's part

Outcome AggregationPart::make() {
  for (uint32_t depth = 0; depth < plan_.depth; ++depth) {
    auto made =
        Operator::make(worker_, {query_, depth, plan_.workers, plan_.workers, plan_.table[depth]});
    if (!made.ok()) return calls_.fail(made.status());
    operators_.push_back(std::move(*made));
    if (!calls_.between()) return Outcome::stopped;
  }
  return Outcome::done;
}

Outcome AggregationPart::add(Operator& to, std::vector<Reading>& rows) {
  std::span<const Reading> rest = rows;
  while (!rest.empty()) {
    const Outcome outcome = calls_.call(to, [&](Wait wait) {
      const Sent sent = to.add(rest, wait);
      rest = rest.subspan(sent.rows);
      return sent.outcome;
    });
    if (outcome != Outcome::done) return outcome;
  }
  rows.clear();
  return Outcome::done;
}

Outcome AggregationPart::add_own() {
  std::vector<Reading> rows;
  for (uint64_t number = 0; number < plan_.rows[place_];) {
    const uint64_t count = kRowsOfACall[chance_.below(std::size(kRowsOfACall))];
    for (uint64_t i = 0; i < count && number < plan_.rows[place_]; ++i)
      rows.push_back(plan_.row(place_, number++));
    if (const Outcome outcome = add(*operators_.front(), rows); outcome != Outcome::done)
      return outcome;
  }
  return Outcome::done;
}

/// Takes the groups of one aggregation, and adds them to the next.
Outcome AggregationPart::pass_on(uint32_t depth) {
  Operator& from = *operators_[depth];
  std::vector<Reading> rows;
  for (;;) {
    std::span<const Operator::Group> groups;
    Outcome outcome = calls_.call(from, [&](Wait wait) { return from.next(groups, wait); });
    if (outcome == Outcome::end_of_stream) return Outcome::done;
    if (outcome != Outcome::done) return outcome;
    for (const Operator::Group& group : groups)
      rows.push_back(AggregationPlan::next_row(group.key, group.state));
    outcome = add(*operators_[depth + 1], rows);
    if (outcome != Outcome::done) return outcome;
  }
}

Outcome AggregationPart::take_last() {
  Operator& last = *operators_.back();
  if (plan_.stops == place_) {
    has_stopped_ = true;
    if (last.stop() == Outcome::failed) return calls_.fail(last.status());
  }
  for (;;) {
    std::span<const Operator::Group> groups;
    const Outcome outcome = calls_.call(last, [&](Wait wait) { return last.next(groups, wait); });
    if (outcome == Outcome::end_of_stream) return Outcome::done;
    if (outcome != Outcome::done) return outcome;
    for (const Operator::Group& group : groups) {
      if (!taken_.emplace(group.key, group.state).second)
        mistake_ = fmt::format("group {} comes twice", group.key);
    }
  }
}

Outcome AggregationPart::run() {
  Outcome outcome = add_own();
  for (uint32_t depth = 0; depth < plan_.depth && outcome == Outcome::done; ++depth) {
    Operator& each = *operators_[depth];
    outcome = calls_.call(each, [&](Wait wait) { return each.finish(wait); });
    if (outcome != Outcome::done) break;
    outcome = depth + 1 < plan_.depth ? pass_on(depth) : take_last();
  }
  metrics_ = operators_.front()->metrics();
  operators_.clear();
  if (outcome == Outcome::done) check();
  return outcome;
}

void AggregationPart::check() {
  if (!mistake_.empty()) return;
  if (has_stopped_) {
    if (!taken_.empty()) mistake_ = "it has stopped, and gets groups";
    return;
  }
  Groups expected = plan_.expected();
  const auto count = static_cast<uint32_t>(plan_.workers.size());
  std::erase_if(expected, [&](const auto& group) {
    return partition(FinalizerHash{}(group.first), count) != place_;
  });
  for (const auto& [key, state] : expected) {
    const auto found = taken_.find(key);
    if (found == taken_.end()) {
      mistake_ = fmt::format("group {} is lost", key);
    } else if (!(found->second == state)) {
      mistake_ = fmt::format("group {}: {} rows with sum {}, and not {} with {}", key,
                             found->second.count, found->second.sum, state.count, state.sum);
    }
    if (!mistake_.empty()) return;
  }
  if (taken_.size() != expected.size())
    mistake_ = fmt::format("{} groups, and not {}", taken_.size(), expected.size());
}

}  // namespace faro::workload
