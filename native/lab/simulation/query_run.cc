#include "lab/simulation/query_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "shuffle/query/last_resorts.h"

namespace faro::simulation {
namespace {

using workload::Stage;

// Not as the others do: one sender more or less.
void change_senders(const std::vector<uint32_t>& all, uint32_t me, ShuffleSpec& spec) {
  const auto extra = std::find_if(all.begin(), all.end(), [&](uint32_t worker) {
    return std::find(spec.senders.begin(), spec.senders.end(), worker) == spec.senders.end();
  });
  if (extra != all.end()) {
    spec.senders.push_back(*extra);
  } else {
    std::erase(spec.senders, spec.senders[0] == me ? spec.senders.back() : spec.senders[0]);
  }
}

}  // namespace

QueryRun::QueryRun(Scene& scene, uint32_t index)
    : scene_(scene), index_(index), part_(scene, scene.plan.queries[index]) {
  part_.look = [this] { return look_for_wish(); };
}

// --- the two kinds of engine

void QueryRun::run() {
  open();
  if (phase_ == Phase::runs) {
    const Status ran = part_.run();
    ran.ok() ? leave_stages() : failed(ran);
  }
  while (phase_ == Phase::meets) meet(true);
  while (phase_ == Phase::ends) end(true);
}

bool QueryRun::turn() {
  switch (phase_) {
    case Phase::opens:
      open();
      return true;
    case Phase::runs:
      return turn_part();
    case Phase::meets:
      return meet(false);
    case Phase::ends:
      return end(false);
    case Phase::over:
      return false;
  }
  return false;
}

bool QueryRun::turn_part() {
  const bool moved = part_.turn();
  if (!part_.over()) return moved;
  part_.failure().ok() ? leave_stages() : failed(part_.failure());
  return true;
}

// --- its phases

void QueryRun::open() {
  phase_ = Phase::runs;
  if (!record().declared[scene_.node]) {
    const Status declared = scene_.session.declare_query(record().id, plan().workers);
    record().declared[scene_.node] = true;  // its other workers may use it now
    if (!declared.ok()) return failed(declared);
    // An engine may take its time between the two, and hear much of the query meanwhile.
    if (record().id.counter % 2 == 0) scene_.world.sleep(1'000'000);
  }
  const Stage* opens_otherwise = nullptr;
  if (const auto bad = record().bad_parts.find(scene_.me); bad != record().bad_parts.end()) {
    std::vector<uint32_t> sound = plan().workers;
    std::erase_if(sound, [&](uint32_t worker) { return record().bad_parts.count(worker) > 0; });
    for (const Stage& stage : part_.stages()) {
      if (opens_otherwise == nullptr && stage.is_shared_with(plan().workers))
        opens_otherwise = &stage;
    }
    record().must_fail |= bad->second == BadPart::kFails ||
                          (opens_otherwise != nullptr && opens_otherwise->is_shared_with(sound));
    if (bad->second != BadPart::kOpensOtherwise) return play_bad_part(bad->second);
  }
  const Status opened = part_.open(record().id, [&](const Stage& stage, ShuffleSpec& spec) {
    if (&stage == opens_otherwise) change_senders(plan().workers, scene_.me, spec);
  });
  if (!opened.ok()) failed(opened);
}

// Ends before it has opened anything; the others are to learn of it from Faro alone.
void QueryRun::play_bad_part(uint32_t way) {
  if (way == BadPart::kFails)
    part_failure_ = Status(Code::resource_limit, "no memory for this part");
  if (plan().has_barrier) arrive_at_barrier();
  begin_to_end();
}

Status QueryRun::look_for_wish() {
  Ledger::QueryRecord& query = record();
  if (query.wish_worker != scene_.me) return Status::Ok();
  query.wish_worker = UINT32_MAX;
  auto& stages = part_.stages();
  const auto open =
      std::find_if(stages.begin(), stages.end(), [](Stage& s) { return s.shuffle().is_open(); });
  if (open == stages.end()) return Status::Ok();
  if (query.wish_way == 1) {
    (void)open->shuffle().cancel("a worker's wish");
    return Status::Ok();
  }
  if (scene_.chance.one_in(2)) {
    says_why_ = true;
    return Status(Code::internal_error, "an operator has thrown");
  }
  // Closes in the middle, which cancels unless all that is open is at its end.
  cancels_when_closed_ = std::all_of(stages.begin(), stages.end(), [](Stage& s) {
    return !s.shuffle().is_open() || (s.finished() && (s.ended() || s.stopped()));
  });
  return Status(Code::query_cancelled, "closed early");
}

void QueryRun::failed(const Status& cause) {
  if (failure_.ok()) failure_ = cause;
  record().given_up = true;
  scene_.ledger.wake(plan());
  begin_to_end();
  if (std::exchange(cancels_when_closed_, false))
    (void)scene_.session.cancel_query(record().id, "closed early");
}

void QueryRun::note(std::string what) { scene_.world.note(std::move(what)); }

// Its shuffles are closed before it says why, as by destructors, or by that itself; and it may take its time in between.
void QueryRun::end_by_failure() {
  constexpr base::Nanoseconds kTellDelay = shuffle::LastResorts::kTellDelay;
  part_failure_ = Status(Code::internal_error, "an operator has thrown");
  record().must_fail |= record().said_to_end.count(scene_.node) == 0;
  base::Nanoseconds waits = 0;
  if (scene_.chance.one_in(2)) {
    waits = scene_.chance.one_in(2) ? scene_.chance.below(2 * kTellDelay) : 0;
    part_.close();
    if (waits > 0) scene_.world.sleep(waits);
  }
  if (waits < kTellDelay / 2) record().said_why.insert(scene_.me);
  (void)end(false);
  part_.close();
}

void QueryRun::begin_to_end() {
  note(fmt::format("ends query {}", index_));
  if (says_why_) {
    record().ending.insert(scene_.me);
    phase_ = Phase::ends;
    return end_by_failure();
  }
  part_.close();
  record().ending.insert(scene_.me);
  phase_ = Phase::ends;
}

void QueryRun::leave_stages() {
  if (!plan().has_barrier) return begin_to_end();
  part_.give_back_all();
  note(fmt::format("barrier of query {}", index_));
  phase_ = Phase::meets;
  arrive_at_barrier();
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
  const Outcome outcome =
      scene_.worker.wait_until(all_here, wait ? scene_.time_limit() : Wait::none());
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
  const QueryId& id = record().id;
  const Outcome outcome =
      scene_.worker.end_query(id, part_failure_, wait ? scene_.time_limit() : Wait::none());
  const Status cause = outcome == Outcome::failed ? scene_.worker.status() : Status::Ok();
  scene_.between();
  if (outcome == Outcome::would_wait || outcome == Outcome::deadline || outcome == Outcome::holding)
    return false;
  scene_.world.note_progress();
  record().endings[scene_.me] = {true, outcome, cause, failure_, scene_.world.now()};
  if (outcome != Outcome::done) {
    record().given_up = true;
    scene_.ledger.wake(plan());
  }
  phase_ = Phase::over;
  return true;
}

}  // namespace faro::simulation
