#include "lab/workload/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_map>
#include <utility>

namespace faro::workload {
namespace {

constexpr uint64_t kKeyCounts[] = {1, 3, 100, 4000, 20'000, 100'000};
constexpr const char* kKeysOfSides[] = {"uniform", "frequent", "constant", "distinct", "nulls"};
constexpr const char* kKindNames[] = {"inner", "left", "right", "full", "semi", "anti"};
constexpr const char* kInputNames[] = {"partition", "everywhere", "here"};
// Pairs of a key that many rows of both sides have are many.
constexpr uint64_t kMostRowsOfAFewKeys = 200;
// So that their owner sees that a key is hot.
constexpr uint64_t kRowsOfHotKey = 40'000;
// More than a table has that is made of a reserve.
constexpr uint64_t kRowsOfOneKey = 20'000;

std::vector<uint64_t> draw_rows(Chance& chance, size_t workers, uint64_t most) {
  std::vector<uint64_t> rows;
  for (size_t i = 0; i < workers; ++i)
    rows.push_back(chance.one_in(5) ? 0 : chance.between(most / 2, most));
  return rows;
}

}  // namespace

JoinPlan JoinPlan::draw(uint64_t seed, std::vector<uint32_t> workers, uint64_t most_rows) {
  Chance chance(mix(seed, 0x701aULL));
  JoinPlan plan;
  plan.seed = seed;
  plan.workers = std::move(workers);
  plan.kind = static_cast<JoinKind>(chance.below(std::size(kKindNames)));
  const size_t count = plan.workers.size();
  const auto draw_side = [&](Side& side) {
    side.keys = static_cast<Keys>(chance.below(std::size(kKeysOfSides)));
    side.rows = draw_rows(chance, count, most_rows / count / 2 >> chance.below(5));
    if (chance.one_in(6)) side.input = JoinInput::here;
  };
  draw_side(plan.build);
  draw_side(plan.probe);
  if (!detail::keeps_build(plan.kind) && chance.one_in(4)) plan.build.input = JoinInput::everywhere;
  plan.most_keys = kKeyCounts[chance.below(std::size(kKeyCounts))];
  if (chance.one_in(2)) {
    plan.rows.is_rare = chance.one_in(2);
    plan.rows.modulus = plan.rows.is_rare ? chance.between(2, 1000) : chance.between(2, 5);
  }
  plan.output_early = chance.one_in(2);
  if (chance.one_in(8)) plan.stops = static_cast<uint32_t>(chance.below(count));
  plan.hot_keys = chance.one_in(2);
  if (chance.one_in(5)) {  // a hot key
    plan.probe.keys = chance.one_in(3) ? Keys::constant : Keys::frequent;
    plan.probe.input = JoinInput::partition;
    plan.probe.rows = draw_rows(chance, count, 2 * kRowsOfHotKey / count);
    plan.build.keys = chance.one_in(4) ? Keys::nulls : Keys::distinct;
    plan.build.rows = draw_rows(chance, count, most_rows / count / 2 >> chance.below(8));
    plan.most_keys = kKeyCounts[chance.between(2, std::size(kKeyCounts) - 1)];
    plan.hot_keys = !chance.one_in(4);
    if (plan.build.keys == Keys::nulls) {
      plan.most_keys = std::size(kKeyCounts);
      for (uint64_t& rows : plan.build.rows) rows = std::min<uint64_t>(rows, 20);
    }
    return plan;
  }
  if (chance.one_in(6)) {  // one key, of more build rows than one table takes
    plan.build.keys = plan.probe.keys = Keys::constant;
    plan.build.rows = draw_rows(chance, count, kRowsOfOneKey / count);
    plan.probe.rows = draw_rows(chance, count, 10);
    plan.rows.is_rare = true;
    plan.rows.modulus = chance.between(500, 50'000);
    return plan;
  }
  const auto has_few = [&](const Side& side) {
    return side.keys == Keys::frequent || side.keys == Keys::constant ||
           (plan.most_keys <= 100 && side.keys != Keys::distinct);
  };
  if (has_few(plan.build) || has_few(plan.probe)) {
    for (uint64_t& rows : plan.probe.rows) rows = std::min(rows, kMostRowsOfAFewKeys);
    if (has_few(plan.build) && has_few(plan.probe)) {
      for (uint64_t& rows : plan.build.rows) rows = std::min(rows, kMostRowsOfAFewKeys);
    }
  }
  return plan;
}

uint64_t JoinPlan::key(const Side& side, uint32_t sender, uint64_t number) const noexcept {
  const uint64_t drawn = mix(seed, &side == &build ? 1 : 2, mix(sender, number));
  const uint64_t uniform = (drawn >> 8) % most_keys;
  switch (side.keys) {
    case Keys::uniform:
      return uniform;
    case Keys::frequent:
      return drawn % 4 == 0 ? 0 : uniform;
    case Keys::constant:
      return 0;
    case Keys::distinct:
      return number * workers.size() + sender;
    case Keys::nulls:
      return drawn % 4 == 0 ? JoinRows::kNull : uniform;
  }
  return 0;
}

JoinRow JoinPlan::row(const Side& side, uint32_t sender, uint64_t number) const noexcept {
  JoinRow row{key(side, sender, number), number * workers.size() + sender + 1, {}};
  // What stays at its worker lies by its key, unless it meets rows that are everywhere.
  const bool is_anywhere = &side == &probe && build.input == JoinInput::everywhere;
  if (side.input == JoinInput::here && !is_anywhere) {
    while (home(row.key) != sender) ++row.key;
  }
  return row;
}

JoinedIds JoinPlan::expected(uint32_t place) const {
  const auto count = static_cast<uint32_t>(workers.size());
  const bool is_everywhere = build.input == JoinInput::everywhere;
  struct BuildRow {
    JoinRow row;
    bool has_partner = false;
  };
  std::unordered_map<uint64_t, std::vector<BuildRow>> by_key;
  for (uint32_t sender = 0; sender < count; ++sender) {
    for (uint64_t number = 0; number < build.rows[sender]; ++number) {
      const JoinRow of_build = row(build, sender, number);
      if (is_everywhere || home(of_build.key) == place) by_key[of_build.key].push_back({of_build});
    }
  }
  JoinedIds ids;
  for (uint32_t sender = 0; sender < count; ++sender) {
    for (uint64_t number = 0; number < probe.rows[sender]; ++number) {
      const JoinRow of_probe = row(probe, sender, number);
      const bool is_here =
          probe.input == JoinInput::here ? sender == place : home(of_probe.key) == place;
      if (!is_here) continue;
      bool has_partner = false;
      const auto found = by_key.find(of_probe.key);
      if (found != by_key.end() && of_probe.key != JoinRows::kNull) {
        for (BuildRow& each : found->second) {
          if (!rows.matches(each.row, of_probe)) continue;
          has_partner = each.has_partner = true;
          if (detail::hands_out_pairs(kind)) ids.emplace_back(each.row.id, of_probe.id);
        }
      }
      const bool comes_alone =
          kind == JoinKind::semi ? has_partner : detail::keeps_probe(kind) && !has_partner;
      if (comes_alone) ids.emplace_back(0, of_probe.id);
    }
  }
  if (detail::keeps_build(kind)) {
    for (const auto& [key, of_key] : by_key) {
      for (const BuildRow& each : of_key) {
        if (!each.has_partner) ids.emplace_back(each.row.id, 0);
      }
    }
  }
  std::ranges::sort(ids);
  return ids;
}

std::string JoinPlan::to_string() const {
  std::string text = fmt::format("seed {}: {} join at {} workers, {} keys at most", seed,
                                 kKindNames[static_cast<size_t>(kind)], workers.size(), most_keys);
  for (const Side* side : {&build, &probe}) {
    text += fmt::format("; {}, {} keys, {}, rows", side == &build ? "build" : "probe",
                        kKeysOfSides[static_cast<size_t>(side->keys)],
                        kInputNames[static_cast<size_t>(side->input)]);
    for (const uint64_t of_worker : side->rows) text += fmt::format(" {}", of_worker);
  }
  if (rows.modulus != 0) text += fmt::format("; a condition, modulo {}", rows.modulus);
  if (rows.is_rare) text += ", seldom true";
  if (output_early) text += "; early output";
  if (hot_keys) text += "; hot keys";
  return stops ? text + fmt::format("; worker {} stops", *stops) : text;
}

// --- a worker's part

Outcome JoinPart::make() {
  JoinSpec spec{query_};
  spec.kind = plan_.kind;
  spec.build_input = plan_.build.input;
  spec.probe_input = plan_.probe.input;
  spec.senders = spec.receivers = plan_.workers;
  spec.output_early = plan_.output_early;
  spec.hot_keys = plan_.hot_keys;
  auto made = Operator::make(worker_, spec, plan_.rows);
  if (!made.ok()) return calls_.fail(made.status());
  join_ = std::move(*made);
  return calls_.between() ? Outcome::done : Outcome::stopped;
}

template <typename Add>
Outcome JoinPart::add_rows(const JoinPlan::Side& side, Add add) {
  std::vector<JoinRow> rows;
  for (uint64_t number = 0; number < side.rows[place_];) {
    const uint64_t count = kRowsOfACall[chance_.below(std::size(kRowsOfACall))];
    for (uint64_t i = 0; i < count && number < side.rows[place_]; ++i)
      rows.push_back(plan_.row(side, place_, number++));
    std::span<const JoinRow> rest = rows;
    while (!rest.empty()) {
      const Outcome outcome = calls_.call(*join_, [&](Wait wait) {
        const Sent sent = add(rest, wait);
        // Where every receiver has stopped nobody needs the rest.
        rest =
            sent.outcome == Outcome::stopped ? std::span<const JoinRow>() : rest.subspan(sent.rows);
        return sent.outcome == Outcome::stopped ? Outcome::done : sent.outcome;
      });
      if (outcome != Outcome::done) return outcome;
    }
    rows.clear();
  }
  return Outcome::done;
}

Outcome JoinPart::build_all() {
  const Outcome added = add_rows(plan_.build, [&](std::span<const JoinRow> rows, Wait wait) {
    return join_->build(rows, wait);
  });
  if (added != Outcome::done) return added;
  return calls_.call(*join_, [&](Wait wait) { return join_->finish_build(wait); });
}

Outcome JoinPart::probe_all() {
  const bool takes = chance_.one_in(2);
  const Outcome added =
      add_rows(plan_.probe, [&](std::span<const JoinRow> rows, Wait wait) -> Sent {
        if (takes) {
          if (const Outcome outcome = take_ready(); outcome == Outcome::failed) return {0, outcome};
        }
        return join_->probe(rows, wait);
      });
  early_pairs_ = taken_.size();
  if (added != Outcome::done) return added;
  return calls_.call(*join_, [&](Wait wait) { return join_->finish_probe(wait); });
}

/// Pairs that there are now; a few of them.
Outcome JoinPart::take_ready() {
  std::span<const Operator::Pair> pairs;
  Outcome outcome = Outcome::done;
  for (uint64_t calls = chance_.below(20); calls > 0 && outcome == Outcome::done; --calls) {
    outcome = join_->next(pairs, Wait::none());
    take(pairs);
  }
  return outcome;
}

Outcome JoinPart::take_all() {
  for (;;) {
    std::span<const Operator::Pair> pairs;
    const Outcome outcome =
        calls_.call(*join_, [&](Wait wait) { return join_->next(pairs, wait); });
    if (outcome == Outcome::end_of_stream) return Outcome::done;
    if (outcome != Outcome::done) return outcome;
    take(pairs);
  }
}

void JoinPart::take(std::span<const Operator::Pair> pairs) {
  for (const auto& [build, probe] : pairs)
    taken_.emplace_back(build == nullptr ? 0 : build->id, probe == nullptr ? 0 : probe->id);
}

Outcome JoinPart::run() {
  Outcome outcome = Outcome::done;
  if (plan_.stops == place_ && join_->stop() == Outcome::failed)
    outcome = calls_.fail(join_->status());
  if (outcome == Outcome::done) outcome = build_all();
  if (outcome == Outcome::done) outcome = probe_all();
  if (outcome == Outcome::done) outcome = take_all();
  metrics_ = join_->metrics();
  join_.reset();
  if (outcome == Outcome::done) check();
  return outcome;
}

void JoinPart::check() {
  if (plan_.stops == place_ && !taken_.empty()) mistake_ = "it has stopped, and gets pairs";
  if (!plan_.hot_keys) {
    if (plan_.stops != place_) compare(taken_, plan_.expected(place_));
    return;
  }
  JoinTally& tally = *plan_.tally;
  tally.ids.insert(tally.ids.end(), taken_.begin(), taken_.end());
  if (++tally.workers < plan_.workers.size()) return;
  JoinedIds expected;
  for (uint32_t place = 0; place < plan_.workers.size(); ++place) {
    if (plan_.stops == place) continue;
    const JoinedIds of_place = plan_.expected(place);
    expected.insert(expected.end(), of_place.begin(), of_place.end());
  }
  std::ranges::sort(expected);
  compare(tally.ids, expected);
}

void JoinPart::compare(JoinedIds& taken, const JoinedIds& expected) {
  std::ranges::sort(taken);
  const auto [is, should] = std::ranges::mismatch(taken, expected);
  if (is == taken.end() && should == expected.end()) return;
  if (should == expected.end() || (is != taken.end() && *is < *should)) {
    mistake_ = fmt::format("build row {} comes with probe row {}, and should not, or once alone",
                           is->first, is->second);
  } else {
    mistake_ = fmt::format("build row {} with probe row {} is lost", should->first, should->second);
  }
}

}  // namespace faro::workload
