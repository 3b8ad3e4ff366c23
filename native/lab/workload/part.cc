#include "lab/workload/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

namespace faro::workload {
namespace {

uint64_t digest_of(const Batch& batch) {
  const std::span<const std::byte> bytes = batch.bytes();
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

Part::Part(Participant& participant, const QueryPlan& plan) : participant_(participant) {
  Chance& chance = participant.chance;
  for (const StagePlan& stage : plan.stages) {
    Habits habits;
    habits.rows = plan.rows(stage, participant.me);
    if (plan.stops_early && chance.one_in(4)) habits.enough_rows = chance.below(40);
    habits.one_by_one = chance.one_in(5);
    stages_.emplace_back(participant, RowGenerator(plan.seed, stage, 0), habits);
  }
}

Status Part::open(const QueryId& id,
                  const std::function<void(const Stage&, ShuffleSpec&)>& otherwise) {
  std::vector<size_t> order(stages_.size());
  std::iota(order.begin(), order.end(), 0u);
  if (participant_.chance.one_in(2)) std::reverse(order.begin(), order.end());
  for (const size_t s : order) {
    // Those that neither send nor receive need not open.
    if (!stages_[s].sends() && !stages_[s].receives() && participant_.chance.one_in(2)) continue;
    ShuffleSpec spec = stages_[s].spec(id);
    if (otherwise) otherwise(stages_[s], spec);
    if (const Status opened = stages_[s].open(spec); !opened.ok()) {
      fail(opened);
      break;
    }
  }
  return failure_;
}

// --- three kinds of engine

Status Part::run() {
  // Where overflow is tight, that would be the end of most queries.
  const bool sends_first = !participant_.is_tight && participant_.chance.one_in(3);
  const uint64_t takes_one_in =
      participant_.chance.one_in(3) ? 0 : participant_.chance.between(1, 20);
  for (size_t s = 0; s < stages_.size(); ++s) {
    while (failure_.ok() && stages_[s].has_rows()) {
      send(s, participant_.chance.between(1, 16), true);
      if (!sends_first || !participant_.chance.one_in(takes_one_in)) continue;
      for (size_t other = 0; other < stages_.size(); ++other) {
        if (failure_.ok() && !stages_[other].ended()) receive(other, false);
      }
    }
    while (failure_.ok() && !stages_[s].finished()) finish(s, true);
    while (failure_.ok() && !sends_first && !stages_[s].ended()) receive(s, true);
  }
  for (size_t s = 0; s < stages_.size(); ++s) {
    while (failure_.ok() && !stages_[s].ended()) receive(s, true);
  }
  return failure_;
}

bool Part::turn() {
  bool moved = false;
  for (size_t s = 0; s < stages_.size() && failure_.ok(); ++s) {
    Stage& stage = stages_[s];
    // A stage begins by itself only at its own pace: mostly its rows are made by those of the stage before.
    const bool is_fed = s == 0 || stages_[s - 1].ended() || participant_.chance.one_in(4);
    if (stage.has_rows() && is_fed) moved |= send(s, participant_.chance.between(1, 8), false);
    if (failure_.ok() && !stage.finished() && !stage.has_rows()) moved |= finish(s, false);
    if (failure_.ok() && !stage.ended()) moved |= receive(s, false);
  }
  if (!moved) give_back_all();  // nobody is to wait for what a worker merely keeps
  return moved;
}

Status Part::run_in_turns() {
  uint32_t idle = 0;
  while (!over()) {
    idle = turn() ? 0 : idle + 1;
    if (idle <= 2) continue;
    (void)participant_.worker.wait_until([] { return false; },
                                         Wait::at_most(std::chrono::microseconds(50)));
    participant_.between();
  }
  return failure_;
}

bool Part::over() const {
  return !failure_.ok() || std::all_of(stages_.begin(), stages_.end(), [](const Stage& stage) {
    return stage.finished() && stage.ended();
  });
}

void Part::close() {
  give_back_all();
  for (Stage& stage : stages_) stage.shuffle().close();
}

// --- their operations

bool Part::goes_on() {
  if (const Status status = look(); !status.ok()) fail(status);
  return failure_.ok();
}

bool Part::send(size_t number, uint64_t rows, bool wait) {
  if (!goes_on()) return true;
  Stage& stage = stages_[number];
  const uint64_t before = stage.rows_made();
  const Outcome outcome = stage.send_some(rows, wait);
  return settle(outcome, stage) || stage.rows_made() != before;
}

bool Part::finish(size_t number, bool wait) {
  if (!goes_on()) return true;
  Stage& stage = stages_[number];
  return settle(stage.finish(wait), stage) && stage.finished();
}

bool Part::receive(size_t number, bool wait) {
  if (!goes_on()) return true;
  Batch batch;
  const Outcome outcome = stages_[number].receive(wait, batch);
  if (outcome != Outcome::done) return settle(outcome, stages_[number]);
  // Rows make rows of the next stage, some while the batch is still held.
  if (number + 1 < stages_.size() && stages_[number + 1].has_rows())
    send(number + 1, participant_.chance.between(1, 4), wait);
  if (failure_.ok() && participant_.chance.one_in(participant_.is_tight ? 2 : 6))
    keep(std::move(batch), stages_[number]);
  return true;
}

bool Part::settle(Outcome outcome, Stage& stage) {
  switch (outcome) {
    case Outcome::done:
    case Outcome::stopped:
    case Outcome::end_of_stream:
      return true;
    case Outcome::would_wait:
      return false;
    case Outcome::deadline:
      ++participant_.counts.time_limits;
      return false;
    case Outcome::holding:
      return give_back_some();
    case Outcome::failed:
      break;
  }
  fail(stage.status());
  return true;
}

void Part::fail(const Status& cause) {
  if (failure_.ok()) failure_ = cause;
  give_back_all();
}

// --- batches that are held

void Part::keep(Batch batch, const Stage& stage) {
  if (participant_.chance.one_in(2)) {
    if (!batch.detach().ok()) {  // no room for a copy: released
      ++participant_.counts.refused_detaches;
      return;
    }
    ++participant_.counts.detaches;
  }
  ++participant_.counts.holds;
  const uint64_t digest = digest_of(batch);
  const uint32_t sender = stage.worker_of(batch);
  held_.push_back({std::move(batch), digest, sender, participant_.is_trusted(sender)});
  if (held_.size() > 3) give_back_some();
}

// What is held stays as it is, whatever its sender does meanwhile.
void Part::give_back(size_t number) {
  const Held& held = held_[number];
  if (held.is_trusted && digest_of(held.batch) != held.digest) {
    const std::string text = fmt::format("worker {} holds a batch of worker {} that changed",
                                         participant_.me, held.sender);
    participant_.broken(text);
    if (failure_.ok()) failure_ = Status(Code::internal_error, text);
  }
  held_.erase(held_.begin() + static_cast<ptrdiff_t>(number));
}

// In any order.
bool Part::give_back_some() {
  if (held_.empty()) return false;  // the batch is of another query of this worker
  give_back(participant_.chance.below(held_.size()));
  if (participant_.chance.one_in(4)) give_back_all();
  return true;
}

void Part::give_back_all() {
  while (!held_.empty()) give_back(held_.size() - 1);
}

}  // namespace faro::workload
