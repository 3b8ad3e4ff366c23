#include "lab/simulation/query_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace faro::simulation {
namespace {

// Rows that a worker makes in a stage.
uint64_t draw_row_count(Scene& scene, const QueryPlan& query, const StagePlan& stage) {
  const uint64_t width = stage.row_bytes != 0 ? stage.row_bytes : stage.most_bytes / 2;
  uint64_t most = query.stage_bytes / std::max<uint64_t>(width, 16);
  // Copies count as well.
  if (stage.spread == Spread::broadcast || stage.spread == Spread::multicast)
    most /= stage.receivers.size();
  return scene.chance.below(std::max<uint64_t>(2, most) + 1);
}

uint64_t digest_of(const Batch& batch) {
  const std::span<const std::byte> bytes = batch.bytes();
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

QueryRun::QueryRun(Scene& scene, uint32_t index) : scene_(scene), index_(index) {
  for (const StagePlan& stage : plan().stages) {
    const uint64_t rows = draw_row_count(scene, plan(), stage);
    const bool stops = plan().stops_early && scene.chance.one_in(4);
    stages_.emplace_back(scene, stage, rows, stops ? scene.chance.below(40) : UINT64_MAX);
  }
}

// --- the two kinds of engine

void QueryRun::run() {
  open();
  for (size_t s = 0; s < stages_.size() && phase_ == Phase::runs; ++s) run_stage(s);
  if (phase_ == Phase::runs) leave_stages();
  while (phase_ == Phase::meets) meet(true);
  while (phase_ == Phase::ends) end(true);
}

void QueryRun::run_stage(size_t number) {
  StageRun& stage = stages_[number];
  note(fmt::format("query {} stage {}", index_, number));
  const auto runs = [this] { return phase_ == Phase::runs; };
  while (runs() && stage.has_rows()) send(number, scene_.chance.between(1, 16), true);
  while (runs() && !stage.finished()) finish(number, true);
  while (runs() && !stage.ended()) receive(number, true);
}

bool QueryRun::turn() {
  switch (phase_) {
    case Phase::opens:
      open();
      return true;
    case Phase::runs:
      return turn_stages();
    case Phase::meets:
      return meet(false);
    case Phase::ends:
      return end(false);
    case Phase::over:
      return false;
  }
  return false;
}

bool QueryRun::turn_stages() {
  bool moved = false;
  for (size_t s = 0; s < stages_.size() && phase_ == Phase::runs; ++s) {
    StageRun& stage = stages_[s];
    // A stage begins by itself only at its own pace: mostly its rows are made by those of the stage
    // before.
    const bool is_fed = s == 0 || stages_[s - 1].ended() || scene_.chance.one_in(4);
    if (stage.has_rows() && is_fed) moved |= send(s, scene_.chance.between(1, 8), false);
    if (phase_ == Phase::runs && !stage.finished() && !stage.has_rows()) moved |= finish(s, false);
    if (phase_ == Phase::runs && !stage.ended()) moved |= receive(s, false);
  }
  if (phase_ == Phase::runs && all_stages_over()) {
    leave_stages();
    return true;
  }
  if (!moved) let_go_of_all();  // nobody is to wait for what a worker merely keeps
  return moved;
}

bool QueryRun::all_stages_over() const {
  return std::all_of(stages_.begin(), stages_.end(),
                     [](const StageRun& s) { return s.finished() && s.ended(); });
}

// --- its phases

void QueryRun::open() {
  phase_ = Phase::runs;
  if (!record().declared[scene_.node]) {
    const Status declared =
        scene_.cluster.session(scene_.node).declare_query(record().id, plan().workers);
    record().declared[scene_.node] = true;  // its other workers may use it now
    if (!declared.ok()) return failed(declared);
    // An engine may take its time between the two, and hear much of the query meanwhile.
    if (record().id.counter % 2 == 0) scene_.cluster.sleep(1'000'000);
  }
  std::vector<size_t> order(stages_.size());
  for (size_t s = 0; s < order.size(); ++s) order[s] = s;
  if (scene_.chance.one_in(2)) std::reverse(order.begin(), order.end());
  size_t opened_otherwise = stages_.size();
  if (const auto bad = record().bad_parts.find(scene_.me); bad != record().bad_parts.end()) {
    const auto shared = std::find_if(stages_.begin(), stages_.end(),
                                     [](const StageRun& stage) { return stage.is_shared(); });
    record().must_fail |= bad->second == BadPart::kFails || shared != stages_.end();
    if (bad->second != BadPart::kOpensOtherwise) return play_bad_part(bad->second);
    opened_otherwise = static_cast<size_t>(shared - stages_.begin());
  }
  for (const size_t s : order) {
    if (const Status opened = stages_[s].open(record().id, s == opened_otherwise); !opened.ok())
      return failed(opened);
  }
}

// Ends before it has opened anything; the others are to learn of it from Faro alone.
void QueryRun::play_bad_part(uint32_t way) {
  if (way == BadPart::kFails)
    part_failure_ = Status(Code::resource_limit, "no memory for this part");
  if (plan().has_barrier) arrive_at_barrier();
  begin_to_end();
}

bool QueryRun::send(size_t number, uint64_t rows, bool wait) {
  StageRun& stage = stages_[number];
  look_for_wish();
  if (phase_ != Phase::runs) return true;
  const uint64_t before = stage.rows_made();
  const Outcome outcome = stage.send_some(rows, wait);
  return settle(outcome, stage) || stage.rows_made() != before;
}

bool QueryRun::finish(size_t number, bool wait) {
  StageRun& stage = stages_[number];
  return settle(stage.finish(wait), stage) && stage.finished();
}

bool QueryRun::receive(size_t number, bool wait) {
  StageRun& stage = stages_[number];
  look_for_wish();
  if (phase_ != Phase::runs) return true;
  Batch batch;
  const Outcome outcome = stage.receive(wait, batch);
  if (outcome != Outcome::done) return settle(outcome, stage);
  // Rows make rows of the next stage, some while the batch is still held.
  if (number + 1 < stages_.size() && stages_[number + 1].has_rows())
    send(number + 1, scene_.chance.between(1, 4), wait);
  if (phase_ == Phase::runs && scene_.chance.one_in(scene_.plan.is_tight ? 2 : 6))
    keep(std::move(batch), stage);
  return true;
}

bool QueryRun::settle(Outcome outcome, StageRun& stage) {
  switch (outcome) {
    case Outcome::done:
    case Outcome::stopped:
    case Outcome::end_of_stream:
      return true;
    case Outcome::would_wait:
      return false;
    case Outcome::deadline:
      ++scene_.ledger.happened.time_limits;
      return false;
    case Outcome::holding:
      return let_go_of_some();
    case Outcome::failed:
      break;
  }
  const Status cause = stage.shuffle().status();
  failed(cause.ok() ? Status(Code::internal_error, "an operation failed without a cause") : cause);
  return true;
}

void QueryRun::keep(Batch batch, const StageRun& stage) {
  if (scene_.chance.one_in(2)) {
    if (!batch.detach().ok()) return;  // no room for a copy: released
    ++scene_.ledger.happened.detaches;
  }
  ++scene_.ledger.happened.holds;
  const uint64_t digest = digest_of(batch);
  const bool is_trusted = stage.is_trusted(batch.sender());
  held_.push_back({std::move(batch), digest, is_trusted});
  if (held_.size() > 3) let_go_of_some();
}

// What is held stays as it is, whatever its sender does meanwhile.
void QueryRun::let_go_of(size_t number) {
  const Held& held = held_[number];
  if (held.is_trusted && digest_of(held.batch) != held.digest) {
    scene_.world().violation(
        fmt::format("query {}: worker {} holds a batch of worker {} that changed", index_,
                    scene_.me, held.batch.sender()));
  }
  held_.erase(held_.begin() + static_cast<ptrdiff_t>(number));
}

// In any order.
bool QueryRun::let_go_of_some() {
  if (held_.empty()) return false;  // the batch is of another query of this worker
  let_go_of(scene_.chance.below(held_.size()));
  if (scene_.chance.one_in(4)) let_go_of_all();
  return true;
}

void QueryRun::let_go_of_all() {
  while (!held_.empty()) let_go_of(held_.size() - 1);
}

void QueryRun::look_for_wish() {
  Ledger::QueryRecord& query = record();
  if (query.wish_worker != scene_.me) return;
  query.wish_worker = UINT32_MAX;
  const auto open = std::find_if(stages_.begin(), stages_.end(),
                                 [](StageRun& s) { return s.shuffle().is_open(); });
  if (open == stages_.end()) return;
  if (query.wish_way == 1) {
    open->shuffle().cancel("a worker's wish");
  } else {  // closes in the middle, which cancels unless all that is open is at its end
    const bool at_end = std::all_of(stages_.begin(), stages_.end(), [](StageRun& s) {
      return !s.shuffle().is_open() || (s.finished() && (s.ended() || s.stopped()));
    });
    failed(Status(Code::query_cancelled, "closed early"));
    if (at_end) scene_.cluster.session(scene_.node).cancel_query(query.id, "closed early");
  }
}

void QueryRun::failed(const Status& cause) {
  if (failure_.ok()) failure_ = cause;
  let_go_of_all();
  record().given_up = true;
  scene_.ledger.wake(plan());
  begin_to_end();
}

void QueryRun::note(std::string what) { scene_.world().note(std::move(what)); }

void QueryRun::begin_to_end() {
  note(fmt::format("ends query {}", index_));
  for (StageRun& stage : stages_) stage.shuffle().close();
  record().ending.insert(scene_.me);
  phase_ = Phase::ends;
}

void QueryRun::leave_stages() {
  let_go_of_all();
  if (plan().has_barrier) {
    note(fmt::format("barrier of query {}", index_));
    phase_ = Phase::meets;
    return arrive_at_barrier();
  }
  begin_to_end();
}

void QueryRun::arrive_at_barrier() {
  if (std::exchange(counted_at_barrier_, true)) return;
  ++scene_.ledger.happened.barriers;
  if (++record().at_barrier == plan().workers.size()) scene_.ledger.wake(plan());
}

// A barrier of the engine's own, while Faro moves on what others need.
bool QueryRun::meet(bool wait) {
  const auto all_here = [this] {
    return record().given_up || record().at_barrier == plan().workers.size();
  };
  const Outcome outcome = wait ? scene_.worker.wait_until(all_here, scene_.time_limit())
                               : scene_.worker.try_until(all_here);
  scene_.between();
  if (outcome == Outcome::would_wait || outcome == Outcome::deadline || outcome == Outcome::holding)
    return false;
  if (outcome == Outcome::failed) {
    failed(Status(Code::session_closed, "wait_until failed"));
    return true;
  }
  begin_to_end();
  return true;
}

bool QueryRun::end(bool wait) {
  Status cause;
  const QueryId& id = record().id;
  const Outcome outcome =
      wait ? scene_.worker.end_query(id, part_failure_, &cause, scene_.time_limit())
           : scene_.worker.try_end_query(id, part_failure_, &cause);
  scene_.between();
  if (outcome == Outcome::would_wait || outcome == Outcome::deadline || outcome == Outcome::holding)
    return false;
  scene_.world().note_progress();
  record().endings[scene_.me] = {true, outcome, cause, failure_};
  if (outcome != Outcome::done) {
    record().given_up = true;
    scene_.ledger.wake(plan());
  }
  phase_ = Phase::over;
  return true;
}

}  // namespace faro::simulation
