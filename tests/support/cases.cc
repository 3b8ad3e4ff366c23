// The cases: what must not deadlock, and what must leave nothing behind.
#include "support/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/return_if_error.h"
#include "support/query_end.h"
#include "support/random_plan.h"

namespace faro::test {
namespace {

StagePlan fixed_rows(uint32_t stage, uint32_t row_bytes = 24) {
  return {.stage = stage, .row_bytes = row_bytes, .senders = {}, .receivers = {}};
}

uint64_t rows_for(const Program& program, uint32_t row_bytes) {
  return std::max<uint64_t>(1, program.scale.worker_bytes / std::max(row_bytes, 16u));
}

Status close_and_end(Program& program, const QueryId& id, std::initializer_list<Stage*> stages) {
  for (Stage* stage : stages) stage->shuffle().close();
  return program.end(id);
}

/// A case of one query, which worker 0 begins.
template <Status (*kBody)(Program&, const QueryId&)>
Status in_query(Program& program) {
  const Result<QueryId> id = program.query(0);
  return id.ok() ? kBody(program, *id) : id.status();
}

// Everyone sends everything before polling anything.
Status send_everything_first(Program& program, const QueryId& id) {
  Stage stage(program, fixed_rows(0, 100));
  FARO_RETURN_IF_ERROR(stage.open(id));
  FARO_RETURN_IF_ERROR(stage.send_rows(rows_for(program, 100)));
  FARO_RETURN_IF_ERROR(stage.finish());
  FARO_RETURN_IF_ERROR(stage.take_to_end());
  return close_and_end(program, id, {&stage});
}

// Everyone holds a polled batch while sending: those sends must neither wait nor be refused.
Status hold_while_sending(Program& program, const QueryId& id) {
  Stage stage(program, fixed_rows(1, 56));
  FARO_RETURN_IF_ERROR(stage.open(id));
  const uint64_t rows = rows_for(program, 56);
  const uint64_t part = std::max<uint64_t>(1, rows / 4);
  bool end = false;
  for (uint64_t sent = 0; sent < rows; sent += part) {
    FARO_RETURN_IF_ERROR(stage.send_rows(1));
    (void)stage.shuffle().sender()->flush();
    Batch held;
    const Outcome outcome =
        stage.shuffle().receiver()->receive(held, Wait::at_most(std::chrono::milliseconds(2)));
    if (outcome == Outcome::end_of_stream) end = true;
    if (outcome == Outcome::failed) return stage.error(outcome, "take");
    if (outcome == Outcome::done) ++program.counts.holds;
    for (uint64_t i = 0; i + 1 < part; ++i) {
      const Outcome sending = stage.send_next();
      if (sending != Outcome::done) return stage.error(sending, "send while holding");
    }
    if (outcome == Outcome::done) FARO_RETURN_IF_ERROR(stage.check(held));
  }
  FARO_RETURN_IF_ERROR(stage.finish());
  if (!end) FARO_RETURN_IF_ERROR(stage.take_to_end());
  return close_and_end(program, id, {&stage});
}

// A hash join: the build side is taken to its end while the probe side is already flowing.
Status hash_join(Program& program) {
  FARO_ASSIGN_OR_RETURN(const QueryId id, program.query(0, program.count - 1));
  Stage build(program, fixed_rows(0, 40));
  Stage probe(program, fixed_rows(1, 24));
  FARO_RETURN_IF_ERROR(probe.open(id));
  FARO_RETURN_IF_ERROR(build.open(id));
  const uint64_t builds = rows_for(program, 80);
  const uint64_t probes = rows_for(program, 24);
  // Scans of both sides run side by side; the probe side is ahead.
  for (uint64_t i = 0; i < std::max(builds, probes); ++i) {
    if (i < probes) FARO_RETURN_IF_ERROR(probe.send_rows(1));
    if (i < builds) FARO_RETURN_IF_ERROR(build.send_rows(1));
  }
  FARO_RETURN_IF_ERROR(build.finish());
  FARO_RETURN_IF_ERROR(build.take_to_end());
  FARO_RETURN_IF_ERROR(probe.finish());
  FARO_RETURN_IF_ERROR(probe.take_to_end());
  return close_and_end(program, id, {&build, &probe});
}

// Two queries on one worker: one sends everything before polling, the other goes row by row.
Status two_queries(Program& program) {
  FARO_ASSIGN_OR_RETURN(const QueryId a_id, program.query(0, 0));
  FARO_ASSIGN_OR_RETURN(const QueryId b_id, program.query(1, program.count / 2));
  Stage a(program, fixed_rows(0, 100));
  // It has the stage number of `a`, and so its rings.
  Stage b(program,
          {.query = 1, .least_bytes = 0, .most_bytes = 300, .senders = {}, .receivers = {}});
  FARO_RETURN_IF_ERROR(a.open(a_id));
  FARO_RETURN_IF_ERROR(b.open(b_id));
  const uint64_t rows = rows_for(program, 200);
  for (uint64_t i = 0; i < rows; ++i) {
    FARO_RETURN_IF_ERROR(a.send_rows(1));
    FARO_RETURN_IF_ERROR(b.send_rows(1));
    Batch batch;
    const Outcome outcome = b.shuffle().receiver()->receive(batch, Wait::none());
    if (outcome == Outcome::failed) return b.error(outcome, "receive");
    if (outcome == Outcome::done) FARO_RETURN_IF_ERROR(b.check(batch));
  }
  FARO_RETURN_IF_ERROR(b.finish());
  FARO_RETURN_IF_ERROR(b.take_to_end());
  FARO_RETURN_IF_ERROR(close_and_end(program, b_id, {&b}));
  FARO_RETURN_IF_ERROR(a.finish());
  FARO_RETURN_IF_ERROR(a.take_to_end());
  return close_and_end(program, a_id, {&a});
}

// Five stages, all rows to one key; each stage is taken to its end and sent on.
Status five_stages_one_key(Program& program, const QueryId& id) {
  std::deque<Stage> stages;
  for (uint32_t s = 0; s < 5; ++s) {
    StagePlan plan = fixed_rows(s);
    plan.spread = Spread::one_key;
    stages.emplace_back(program, plan);
    FARO_RETURN_IF_ERROR(stages.back().open(id));
  }
  FARO_RETURN_IF_ERROR(stages[0].send_rows(rows_for(program, 24)));
  for (uint32_t s = 0; s < 5; ++s) {
    FARO_RETURN_IF_ERROR(stages[s].finish());
    for (bool end = false; !end;) {
      const uint64_t before = stages[s].rows_taken();
      FARO_RETURN_IF_ERROR(stages[s].take_one(end));
      // What came goes on, a batch for a batch; how many rows does not matter to the check.
      if (!end && s + 1 < 5) {
        const uint64_t rows = stages[s].rows_taken() - before;
        FARO_RETURN_IF_ERROR(stages[s + 1].send_rows(std::min<uint64_t>(rows, 200)));
      }
    }
  }
  for (Stage& stage : stages) stage.shuffle().close();
  return program.end(id);
}

// An engine barrier between build and probe.
Status engine_barrier(Program& program, const QueryId& id) {
  Stage build(program, fixed_rows(0, 48));
  Stage probe(program, fixed_rows(2, 24));  // with two rings per lane: the same ring
  FARO_RETURN_IF_ERROR(build.open(id));
  FARO_RETURN_IF_ERROR(probe.open(id));
  FARO_RETURN_IF_ERROR(build.send_rows(rows_for(program, 48)));
  FARO_RETURN_IF_ERROR(build.finish());
  FARO_RETURN_IF_ERROR(build.take_to_end());
  // Some are ahead: their probe rows flow while others still wait.
  if (program.me % 2 == 1) FARO_RETURN_IF_ERROR(probe.send_rows(rows_for(program, 48)));
  FARO_RETURN_IF_ERROR(program.barrier(0));
  FARO_RETURN_IF_ERROR(probe.send_rows(rows_for(program, 48)));
  FARO_RETURN_IF_ERROR(probe.finish());
  FARO_RETURN_IF_ERROR(program.barrier(1));
  FARO_RETURN_IF_ERROR(probe.take_to_end());
  return close_and_end(program, id, {&build, &probe});
}

// A broadcast with one slow receiver.
Status broadcast_slow_receiver(Program& program, const QueryId& id) {
  StagePlan plan{.stage = 3,
                 .spread = Spread::broadcast,
                 .least_bytes = 1,
                 .most_bytes = 200,
                 .senders = {0, program.count / 2},
                 .receivers = {}};
  if (plan.senders[0] == plan.senders[1]) plan.senders.pop_back();
  Stage stage(program, plan);
  FARO_RETURN_IF_ERROR(stage.open(id));
  if (stage.sends()) {
    FARO_RETURN_IF_ERROR(stage.send_rows(rows_for(program, 100)));
    FARO_RETURN_IF_ERROR(stage.finish());
  }
  for (bool end = false; !end;) {
    if (program.me == program.count - 1) program.host.work(100'000);
    FARO_RETURN_IF_ERROR(stage.take_one(end));
  }
  return close_and_end(program, id, {&stage});
}

// A scan into slow operators. Workers with even numbers scan, the others are slow; with one worker
// it does both, as an engine does that never waits.
Status slow_operator(Program& program, const QueryId& id) {
  StagePlan plan = fixed_rows(0, 100);
  for (uint32_t w = 0; w < program.count; ++w) {
    if (w % 2 == 0) plan.senders.push_back(w);
    if (w % 2 == 1 || program.count == 1) plan.receivers.push_back(w);
  }
  Stage stage(program, plan);
  FARO_RETURN_IF_ERROR(stage.open(id));
  const uint64_t rows = 2 * rows_for(program, 100);
  bool end = !stage.receives();
  bool finished = !stage.sends();
  while (!end || !finished) {
    if (stage.sends() && stage.rows_made() < rows) {
      if (!stage.receives()) {
        FARO_RETURN_IF_ERROR(stage.send_rows(rows));
        continue;
      }
      const Outcome outcome = stage.send_next(false);
      if (outcome == Outcome::done) continue;
      if (outcome != Outcome::would_wait) return stage.error(outcome, "send");
    } else if (!finished) {
      const Outcome outcome = stage.try_finish();
      if (outcome == Outcome::failed) return stage.error(outcome, "finish");
      finished = outcome == Outcome::done;
    }
    if (end) continue;
    if (stage.receives() && (stage.rows_made() >= rows || !stage.sends())) {
      program.host.work(200'000);
      if (!finished) continue;
      FARO_RETURN_IF_ERROR(stage.take_one(end));
      continue;
    }
    Batch batch;
    const Outcome outcome = stage.shuffle().receiver()->receive(batch, Wait::none());
    if (outcome == Outcome::failed) return stage.error(outcome, "receive");
    if (outcome == Outcome::done) FARO_RETURN_IF_ERROR(stage.check(batch));
  }
  return close_and_end(program, id, {&stage});
}

Status no_file_was_used(const SessionMetrics& metrics) {
  if (metrics.overflow_file_peak_bytes == 0) return Status::Ok();
  return Status(Code::internal_error, fmt::format("the overflow file was used: {} bytes",
                                                  metrics.overflow_file_peak_bytes));
}

// No rows at all, and stages that only some take part in.
Status empty_shuffles(Program& program, const QueryId& id) {
  Stage all(program, fixed_rows(0, 8));
  const uint32_t last = program.count - 1;
  Stage to_one(program, {.stage = 1, .senders = {}, .receivers = {last}});
  Stage one_to_one(program, {.stage = 2, .row_bytes = 24, .senders = {0}, .receivers = {last}});
  for (Stage* stage : {&to_one, &one_to_one, &all}) FARO_RETURN_IF_ERROR(stage->open(id));
  for (Stage* stage : {&all, &one_to_one, &to_one}) {
    if (stage->sends()) FARO_RETURN_IF_ERROR(stage->finish());
    if (stage->receives()) FARO_RETURN_IF_ERROR(stage->take_to_end());
  }
  return close_and_end(program, id, {&all, &to_one, &one_to_one});
}

// Rows up to several rings: fragments. By copies and by claims.
Status large_rows(Program& program, const QueryId& id) {
  const auto most_bytes = static_cast<uint32_t>(3 * program.scale.ring_bytes);
  Stage stage(program,
              {.least_bytes = 0, .most_bytes = most_bytes, .senders = {}, .receivers = {}});
  Stage wide_stage(program, fixed_rows(1, static_cast<uint32_t>(program.scale.ring_bytes + 13)));
  FARO_RETURN_IF_ERROR(stage.open(id));
  FARO_RETURN_IF_ERROR(wide_stage.open(id));
  const uint64_t rows = rows_for(program, most_bytes) + 2;
  for (uint64_t i = 0; i < rows; ++i) {
    const Outcome outcome =
        program.chance.one_in(2) ? stage.send_by_claim(true) : stage.send_next();
    if (outcome != Outcome::done) return stage.error(outcome, "send or claim");
    if (i % 2 == 0) FARO_RETURN_IF_ERROR(wide_stage.send_rows(1));
    if (program.chance.one_in(3)) (void)stage.shuffle().sender()->flush();
  }
  FARO_RETURN_IF_ERROR(wide_stage.finish());
  FARO_RETURN_IF_ERROR(stage.finish());
  FARO_RETURN_IF_ERROR(stage.take_to_end());
  FARO_RETURN_IF_ERROR(wide_stage.take_to_end());
  return close_and_end(program, id, {&stage, &wide_stage});
}

// One query is cancelled at some point; the other on the same rings goes on, and so does the next.
Status cancel_beside_another(Program& program) {
  const uint32_t canceller = static_cast<uint32_t>(program.common.below(program.count));
  FARO_ASSIGN_OR_RETURN(const QueryId good_id, program.query(0));
  FARO_ASSIGN_OR_RETURN(const QueryId bad_id, program.query(1, canceller));
  Stage good(program, fixed_rows(0, 32));
  Stage bad(program, {.query = 1, .most_bytes = 2000, .senders = {}, .receivers = {}});
  FARO_RETURN_IF_ERROR(good.open(good_id));
  const uint64_t rows = rows_for(program, 64);
  const uint64_t cancel_at = program.chance.below(rows + rows / 4);
  Status bad_status = bad.open(bad_id);
  for (uint64_t i = 0; i < rows; ++i) {
    FARO_RETURN_IF_ERROR(good.send_rows(1));
    if (bad_status.ok() && i % 8 == 0) bad_status = bad.send_rows(1);
    if (i == cancel_at && program.me == canceller) {
      program.board.cancels.fetch_add(1, std::memory_order_relaxed);
      if (bad_status.ok()) (void)bad.shuffle().cancel("it was enough");
    }
  }
  if (program.me == canceller && cancel_at >= rows) {
    program.board.cancels.fetch_add(1, std::memory_order_relaxed);
    (void)program.session.cancel_query(bad_id, "at the end");
  }
  // Before or after others know of it: both must work.
  if (bad_status.ok() && program.chance.one_in(2)) bad_status = bad.finish();
  if (bad_status.ok()) {
    for (bool end = false; bad_status.ok() && !end;) bad_status = bad.take_one(end);
    // The canceller never finished before: the end of stream cannot have come.
  }
  bad.shuffle().close();
  Status cause;
  program.doing(Step::ends, 1);
  const Outcome ended = end_query(program.worker, bad_id, cause);
  if (ended != Outcome::failed || cause.category() != Category::query) {
    return Status(Code::internal_error,
                  fmt::format("worker {}: end of the cancelled query answered {}: {}", program.me,
                              outcome_name(ended), cause.to_string()));
  }
  FARO_RETURN_IF_ERROR(good.finish());
  FARO_RETURN_IF_ERROR(good.take_to_end());
  FARO_RETURN_IF_ERROR(close_and_end(program, good_id, {&good}));

  FARO_ASSIGN_OR_RETURN(const QueryId next_id, program.query(2, program.count - 1));
  Stage next(program, {.query = 2, .row_bytes = 24, .senders = {}, .receivers = {}});
  FARO_RETURN_IF_ERROR(next.open(next_id));
  FARO_RETURN_IF_ERROR(next.send_rows(rows / 2));
  FARO_RETURN_IF_ERROR(next.finish());
  FARO_RETURN_IF_ERROR(next.take_to_end());
  return close_and_end(program, next_id, {&next});
}

// Receivers that need no more: LIMIT. The query goes on and ends well.
Status early_stop(Program& program, const QueryId& id) {
  Stage limited(program, fixed_rows(0, 64));
  Stage other(program, fixed_rows(2, 24));
  FARO_RETURN_IF_ERROR(limited.open(id));
  FARO_RETURN_IF_ERROR(other.open(id));
  const uint64_t rows = rows_for(program, 64);
  // Odd workers stop after a while; if all are odd enough, senders are told `stopped`.
  const bool stops = program.count < 3 || program.me % 2 == 1;
  bool end = false;
  bool told = false;
  for (uint64_t i = 0; i < rows; ++i) {
    if (!told) {
      const Outcome outcome = limited.send_next();
      told = outcome == Outcome::stopped;
      if (outcome != Outcome::done && !told) return limited.error(outcome, "send");
    }
    FARO_RETURN_IF_ERROR(other.send_rows(1));
    if (stops && i == rows / 4) limited.stop();
    if (!end && i % 16 == 0) {
      Batch batch;
      const Outcome outcome = limited.shuffle().receiver()->receive(batch, Wait::none());
      if (outcome == Outcome::failed) return limited.error(outcome, "receive");
      if (outcome == Outcome::done) FARO_RETURN_IF_ERROR(limited.check(batch));
      end = outcome == Outcome::end_of_stream;
      if (limited.stopped() && !end) {
        return Status(Code::internal_error,
                      fmt::format("receive after stop answered {}", outcome_name(outcome)));
      }
    }
  }
  FARO_RETURN_IF_ERROR(limited.finish());
  FARO_RETURN_IF_ERROR(other.finish());
  if (!end) FARO_RETURN_IF_ERROR(limited.take_to_end());
  // Closing before the end is a stop as well.
  if (program.me % 4 == 2) {
    other.stop();
  } else {
    FARO_RETURN_IF_ERROR(other.take_to_end());
  }
  return close_and_end(program, id, {&limited, &other});
}

// Merging: one sender after the other, or all at once with detached batches.
Status merge_by_sender(Program& program, const QueryId& id) {
  Stage stage(program, fixed_rows(0, 72));
  FARO_RETURN_IF_ERROR(stage.open(id));
  FARO_RETURN_IF_ERROR(stage.send_rows(rows_for(program, 72)));
  FARO_RETURN_IF_ERROR(stage.finish());
  if (program.me % 2 == 0) {
    for (uint32_t sender = program.count; sender-- > 0;) {
      for (;;) {
        Batch batch;
        program.doing(Step::takes, 0, 0, sender);
        const Outcome outcome = stage.shuffle().receiver()->receive_from(sender, batch);
        program.host.between();
        if (outcome == Outcome::end_of_stream) break;
        if (outcome != Outcome::done) return stage.error(outcome, "receive_from");
        if (batch.sender() != sender) return Status(Code::internal_error, "of another sender");
        FARO_RETURN_IF_ERROR(stage.check(batch));
      }
    }
  } else {
    std::vector<Batch> heads(program.count);
    std::vector<bool> over(program.count);
    for (uint32_t left = program.count; left > 0;) {
      for (uint32_t sender = 0; sender < program.count; ++sender) {
        if (over[sender] || !heads[sender].empty()) continue;
        program.doing(Step::takes, 0, 0, sender);
        const Outcome outcome = stage.shuffle().receiver()->receive_from(sender, heads[sender]);
        program.host.between();
        if (outcome == Outcome::end_of_stream) {
          over[sender] = true;
          --left;
          continue;
        }
        if (outcome != Outcome::done) return stage.error(outcome, "receive_from");
        FARO_RETURN_IF_ERROR(heads[sender].detach());
        ++program.counts.detaches;
      }
      // Any of the heads goes.
      const auto first = static_cast<uint32_t>(program.chance.below(program.count));
      for (uint32_t i = 0; i < program.count; ++i) {
        Batch& head = heads[(first + i) % program.count];
        if (head.empty()) continue;
        FARO_RETURN_IF_ERROR(stage.check(head));
        head.release();
        break;
      }
    }
  }
  FARO_RETURN_IF_ERROR(stage.check_end());
  return close_and_end(program, id, {&stage});
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = {
      {"send_everything_first", {}, in_query<send_everything_first>, {}},
      {"hold_while_sending", {}, in_query<hold_while_sending>, {}},
      {"hash_join", {}, hash_join, {}},
      {"hash_join_one_ring", {{"ring.per_lane", "1"}}, hash_join, {}},
      {"two_queries", {}, two_queries, {}},
      {"five_stages_one_key", {}, in_query<five_stages_one_key>, {}},
      {"engine_barrier", {}, in_query<engine_barrier>, {}},
      {"broadcast_slow_receiver", {}, in_query<broadcast_slow_receiver>, {}},
      {"slow_operator", {}, in_query<slow_operator>, no_file_was_used},
      {"empty_shuffles", {}, in_query<empty_shuffles>, {}},
      {"large_rows", {}, in_query<large_rows>, {}},
      {"cancel_beside_another", {}, cancel_beside_another, {}},
      {"early_stop", {}, in_query<early_stop>, {}},
      {"merge_by_sender", {}, in_query<merge_by_sender>, {}},
      {"random_plan", {}, random_plan, {}},
      {"random_plan_cancelled", {}, random_plan_cancelled, {}},
  };
  return cases;
}

const Case& find_case(std::string_view name) {
  for (const Case& c : all_cases()) {
    if (c.name == name) return c;
  }
  std::abort();
}

}  // namespace faro::test
