#include "support/random_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace faro::test {
namespace {

std::vector<uint32_t> some_workers(Chance& chance, uint32_t count, bool one) {
  if (one) return {static_cast<uint32_t>(chance.below(count))};
  if (chance.one_in(2)) return {};  // all
  std::vector<uint32_t> workers;
  for (uint32_t w = 0; w < count; ++w) {
    if (chance.one_in(2)) workers.push_back(w);
  }
  // Any order: receivers are numbered by it.
  if (workers.size() > 1) std::swap(workers.front(), workers.back());
  return workers;
}

/// Drawn alike by all workers.
std::vector<StagePlan> draw_stages(Chance& chance, const Program& program, uint32_t query) {
  std::vector<StagePlan> stages(chance.between(1, 5));
  for (uint32_t s = 0; s < stages.size(); ++s) {
    StagePlan& plan = stages[s];
    plan.query = query;
    plan.stage = s;
    plan.spread = static_cast<Spread>(chance.below(4));
    switch (chance.below(6)) {
      case 0:
      case 1:
        plan.row_bytes = 24;
        break;
      case 2: {
        constexpr uint32_t kWidths[] = {1, 8, 13, 100, 1023, 1100};
        plan.row_bytes = kWidths[chance.below(std::size(kWidths))];
        break;
      }
      case 3:
        plan.least_bytes = 0;
        plan.most_bytes = 60;
        break;
      case 4:
        plan.least_bytes = 0;
        plan.most_bytes = 1500;
        break;
      case 5:
        plan.least_bytes = 0;
        plan.most_bytes = static_cast<uint32_t>(3 * program.scale.ring_bytes);
        break;
    }
    plan.senders = some_workers(chance, program.count, chance.one_in(6));
    plan.receivers = some_workers(chance, program.count, chance.one_in(4));
  }
  return stages;
}

/// One worker's run of a drawn plan.
class PlanRun {
 public:
  PlanRun(Program& program, const QueryId& id, uint32_t query, bool may_stop)
      : program_(program), id_(id), query_(query), may_stop_(may_stop) {}

  Status run() {
    Chance common(mix(program_.seed, 3, query_));
    const std::vector<StagePlan> plans = draw_stages(common, program_, query_);
    for (const StagePlan& plan : plans) stages_.emplace_back(program_, plan);
    // Rows that this worker may send in a stage: what it receives in the stage before makes it send,
    // up to here, so that broadcasts do not multiply without end.
    for (const StagePlan& plan : plans) {
      const uint32_t about = plan.row_bytes != 0 ? plan.row_bytes : plan.most_bytes / 2;
      uint64_t limit = std::max<uint64_t>(2, program_.scale.worker_bytes / std::max(about, 24u));
      if (plan.spread == Spread::broadcast || plan.spread == Spread::multicast)
        limit = std::max<uint64_t>(2, limit / program_.count);
      left_.push_back(program_.own.below(limit + 1));
    }
    // Any order; some open only when others have begun.
    std::vector<uint32_t> order(stages_.size());
    for (uint32_t s = 0; s < order.size(); ++s) order[s] = s;
    if (program_.own.one_in(2)) std::reverse(order.begin(), order.end());
    if (program_.own.one_in(4)) FARO_RETURN_IF_ERROR(program_.wait_a_little(200'000));
    for (uint32_t s : order) FARO_RETURN_IF_ERROR(stages_[s].open(id_));
    finished_.resize(stages_.size());
    ended_.resize(stages_.size());
    if (may_stop_) {
      for (size_t s = 0; s < stages_.size(); ++s)
        stop_after_.push_back(program_.own.one_in(5) ? program_.own.below(40) : UINT64_MAX);
    } else {
      stop_after_.assign(stages_.size(), UINT64_MAX);
    }
    taken_.resize(stages_.size());
    const Status status = program_.own.one_in(2) ? all_at_once() : stage_by_stage();
    held_.clear();
    FARO_RETURN_IF_ERROR(status);
    for (Stage& stage : stages_) stage.shuffle().close();
    return Status::Ok();
  }

 private:
  // Polls all stages in turn and never waits for one: an engine with an event loop.
  Status all_at_once() {
    uint32_t idle = 0;
    for (;;) {
      bool over = true;
      bool moved = false;
      for (size_t s = 0; s < stages_.size(); ++s) {
        FARO_RETURN_IF_ERROR(give_up_if_others_did());
        if (left_[s] > 0 && feeds(s) && stages_[s].sends()) {
          FARO_RETURN_IF_ERROR(send_some(s, program_.own.between(1, 8), false, moved));
        }
        if (!finished_[s] && may_finish(s)) {
          const Outcome outcome = stages_[s].try_finish();
          if (outcome == Outcome::failed) return stages_[s].error(outcome, "try_finish");
          if (outcome == Outcome::holding) held_.clear();
          finished_[s] = outcome == Outcome::done;
          moved |= finished_[s];
        }
        if (!ended_[s]) FARO_RETURN_IF_ERROR(poll(s, moved));
        over &= finished_[s] && ended_[s];
      }
      if (over) return Status::Ok();
      idle = moved ? 0 : idle + 1;
      if (idle > 2) {
        held_.clear();
        FARO_RETURN_IF_ERROR(program_.wait_a_little());
      }
    }
  }

  // Takes each stage to its end before the next: a pull engine with blocking calls.
  Status stage_by_stage() {
    bool moved = false;
    for (size_t s = 0; s < stages_.size(); ++s) {
      FARO_RETURN_IF_ERROR(give_up_if_others_did());
      while (left_[s] > 0 && stages_[s].sends())
        FARO_RETURN_IF_ERROR(send_some(s, program_.own.between(1, 16), true, moved));
      held_.clear();
      FARO_RETURN_IF_ERROR(stages_[s].sends() ? stages_[s].finish() : Status::Ok());
      const bool by_sender = program_.own.one_in(3);
      while (!ended_[s]) {
        if (by_sender && stages_[s].receives() && !stages_[s].stopped()) {
          FARO_RETURN_IF_ERROR(take_by_sender(s));
        } else {
          Batch batch;
          program_.doing(Step::takes, query_, static_cast<uint32_t>(s));
          const Outcome outcome = stages_[s].shuffle().take(batch);
          program_.host.between();
          FARO_RETURN_IF_ERROR(received(s, outcome, batch, true));
        }
      }
    }
    return Status::Ok();
  }

  Status take_by_sender(size_t s) {
    const std::vector<uint32_t>& named = stages_[s].plan().senders;
    for (uint32_t sender = 0; sender < program_.count; ++sender) {
      if (!named.empty() && std::find(named.begin(), named.end(), sender) == named.end()) continue;
      for (;;) {
        Batch batch;
        program_.doing(Step::polls, query_, static_cast<uint32_t>(s), sender);
        const Outcome outcome = stages_[s].shuffle().take_from(sender, batch);
        program_.host.between();
        if (outcome == Outcome::end_of_stream) break;
        FARO_RETURN_IF_ERROR(received(s, outcome, batch, true));
        if (stages_[s].stopped()) return Status::Ok();
      }
    }
    ended_[s] = true;
    return stages_[s].check_end();
  }

  Status poll(size_t s, bool& moved) {
    Batch batch;
    program_.doing(Step::polls, query_, static_cast<uint32_t>(s));
    const Outcome outcome = stages_[s].shuffle().try_poll(batch);
    program_.host.between();
    if (outcome == Outcome::would_wait) return Status::Ok();
    if (outcome == Outcome::holding) {
      held_.clear();
      return Status::Ok();
    }
    moved = true;
    return received(s, outcome, batch, false);
  }

  Status received(size_t s, Outcome outcome, Batch& batch, bool wait) {
    Stage& stage = stages_[s];
    if (outcome == Outcome::holding) {
      held_.clear();
      return Status::Ok();
    }
    if (outcome == Outcome::end_of_stream) {
      ended_[s] = true;
      return stage.check_end();
    }
    if (outcome != Outcome::done) return stage.error(outcome, "poll");
    FARO_RETURN_IF_ERROR(stage.check(batch));
    taken_[s] += batch.row_count();
    if (program_.own.one_in(6)) {
      if (program_.own.one_in(2)) {
        const Status detached = batch.detach();
        if (!detached.ok()) return detached;
        program_.board.detaches.fetch_add(1, std::memory_order_relaxed);
      }
      held_.push_back(std::move(batch));
      program_.board.holds.fetch_add(1, std::memory_order_relaxed);
      if (held_.size() > 3) {  // in any order
        std::swap(held_[program_.own.below(held_.size())], held_.back());
        held_.pop_back();
      }
    }
    if (taken_[s] > stop_after_[s]) {
      stop_after_[s] = UINT64_MAX;
      stage.stop();
    }
    // Rows make rows of the next stage.
    if (s + 1 < stages_.size() && left_[s + 1] > 0 && stages_[s + 1].sends()) {
      bool moved = false;
      FARO_RETURN_IF_ERROR(send_some(s + 1, program_.own.between(0, 4), wait, moved));
    }
    return Status::Ok();
  }

  // Sends a few rows of a stage in one of the ways there are.
  Status send_some(size_t s, uint64_t rows, bool wait, bool& moved) {
    Stage& stage = stages_[s];
    rows = std::min(rows, left_[s]);
    if (rows == 0) return Status::Ok();
    const bool one_each =
        stage.plan().spread == Spread::by_key || stage.plan().spread == Spread::one_key;
    const uint64_t way = program_.own.below(8);
    if (program_.own.one_in(16)) stage.shuffle().flush();
    const uint64_t before = stage.rows_made();
    Outcome outcome = Outcome::done;
    // Waiting is not possible while batches are held in place, but sending then never has to.
    if (one_each && way == 0 && (wait || held_.empty())) {
      outcome = stage.claim_next(true);
    } else if (one_each && way <= 2 && stage.plan().row_bytes == 24) {
      outcome = stage.send_many(rows);
    } else {
      for (uint64_t i = 0; i < rows && outcome == Outcome::done; ++i)
        outcome = stage.send_next(wait);
    }
    left_[s] -= std::min(left_[s], stage.rows_made() - before);
    moved |= stage.rows_made() != before;
    switch (outcome) {
      case Outcome::done:
      case Outcome::would_wait:
        return Status::Ok();
      case Outcome::stopped:
        left_[s] = 0;
        return Status::Ok();
      case Outcome::holding:  // a claim or finish; sends answer done
        held_.clear();
        return Status::Ok();
      default:
        return stage.error(outcome, "send");
    }
  }

  // In all_at_once a stage begins by itself only at its own pace.
  bool feeds(size_t s) { return s == 0 || ended_[s - 1] || program_.own.one_in(4); }
  bool may_finish(size_t s) { return left_[s] == 0 || !stages_[s].sends(); }
  Status give_up_if_others_did() const {
    return program_.others_failed() ? Status(Code::query_cancelled, "another worker gave up")
                                    : Status::Ok();
  }

  Program& program_;
  const QueryId id_;
  const uint32_t query_;
  const bool may_stop_;
  std::deque<Stage> stages_;
  std::vector<uint64_t> left_;
  std::vector<bool> finished_;
  std::vector<bool> ended_;
  std::vector<uint64_t> stop_after_;
  std::vector<uint64_t> taken_;
  std::vector<Batch> held_;
};

}  // namespace

Status random_plan(Program& program) {
  const auto issuer = static_cast<uint32_t>(program.common.below(program.count));
  Result<QueryId> id = program.query(0, issuer);
  if (!id.ok()) return id.status();
  const bool may_stop = program.common.one_in(2);
  PlanRun plan(program, *id, 0, may_stop);
  FARO_RETURN_IF_ERROR(plan.run());
  return program.end(*id);
}

Status random_plan_cancelled(Program& program) {
  const auto issuer = static_cast<uint32_t>(program.common.below(program.count));
  const auto canceller = static_cast<uint32_t>(program.common.below(program.count));
  const uint64_t way = program.common.below(3);
  Result<QueryId> id = program.query(0, issuer);
  if (!id.ok()) return id.status();
  // Beside the plan one stage more, which never ends: nobody is done before it is over for all.
  Stage stage(program, StagePlan{0, 5, Spread::by_key, 8, 8, 8, {canceller}, {}});
  Status status = stage.open(*id);
  if (program.me == canceller) {
    program.board.cancels.fetch_add(1, std::memory_order_relaxed);
    if (status.ok()) {
      (void)stage.send_rows(program.own.below(64));
      if (way == 0) stage.shuffle().cancel("the user pressed the button");
      if (way == 1) stage.shuffle().close();  // without finish
      if (way == 2) program.session.cancel_query(*id, "from the session");
    }
  } else {
    if (status.ok()) status = PlanRun(program, *id, 0, false).run();
    for (bool end = false; status.ok() && !end;) status = stage.take_one(end);
    if (!status.ok() && status.category() != Category::query) return status;
  }
  stage.shuffle().close();
  Status cause;
  program.doing(Step::ends, 0);
  const Outcome outcome = program.worker.end_query(*id, &cause);
  if (outcome != Outcome::failed || cause.code() != Code::query_cancelled) {
    return Status(Code::internal_error,
                  fmt::format("worker {}: the cancelled query ended as {}: {}", program.me,
                              outcome_name(outcome), cause.to_string()));
  }
  // The next one is intact.
  Result<QueryId> next = program.query(1, canceller);
  if (!next.ok()) return next.status();
  PlanRun plan(program, *next, 1, false);
  FARO_RETURN_IF_ERROR(plan.run());
  return program.end(*next);
}

}  // namespace faro::test
