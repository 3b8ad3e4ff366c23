#include "support/random_plan.h"

#include <fmt/format.h>

#include <numeric>

#include "base/return_if_error.h"
#include "lab/workload/part.h"
#include "support/query_end.h"

namespace faro::test {
namespace {

/// One worker's part in a query that is drawn alike by all workers.
Status run_plan(Program& program, const QueryId& id, uint32_t query, bool may_stop) {
  workload::QueryPlan plan;
  plan.seed = program.seed;
  plan.workers.resize(program.count);
  std::iota(plan.workers.begin(), plan.workers.end(), 0u);
  plan.stage_bytes = program.scale.worker_bytes;
  plan.stops_early = may_stop;
  Chance common(mix(program.seed, 3, query));
  draw_stages(common, {program.scale.ring_bytes}, query, plan);

  workload::Part part(program, plan);
  part.look = [&] {
    return program.others_failed() ? Status(Code::query_cancelled, "another worker gave up")
                                   : Status::Ok();
  };
  // Some open only when others have begun.
  if (program.chance.one_in(4)) FARO_RETURN_IF_ERROR(program.wait_a_little(200'000));
  FARO_RETURN_IF_ERROR(part.open(id));
  program.has_time_limits = true;
  const Status status = program.chance.one_in(2) ? part.run_in_turns() : part.run();
  program.has_time_limits = false;
  FARO_RETURN_IF_ERROR(status);
  part.close();
  if (program.counts.refused_detaches == 0) return Status::Ok();
  return Status(Code::internal_error, "a batch could not be detached");
}

}  // namespace

Status random_plan(Program& program) {
  const auto issuer = static_cast<uint32_t>(program.common.below(program.count));
  FARO_ASSIGN_OR_RETURN(const QueryId id, program.query(0, issuer));
  const bool may_stop = program.common.one_in(2);
  FARO_RETURN_IF_ERROR(run_plan(program, id, 0, may_stop));
  return program.end(id);
}

Status random_plan_cancelled(Program& program) {
  const auto issuer = static_cast<uint32_t>(program.common.below(program.count));
  const auto canceller = static_cast<uint32_t>(program.common.below(program.count));
  const uint64_t way = program.common.below(3);
  FARO_ASSIGN_OR_RETURN(const QueryId id, program.query(0, issuer));
  // Beside the plan one stage more, which never ends: nobody is done before it is over for all.
  Stage stage(program, StagePlan{0, 5, Spread::by_key, 8, 8, 8, {canceller}, {}});
  Status status = stage.open(id);
  if (program.me == canceller) {
    program.board.cancels.fetch_add(1, std::memory_order_relaxed);
    if (status.ok()) {
      (void)stage.send_rows(program.chance.below(64));
      if (way == 0) (void)stage.shuffle().cancel("the user pressed the button");
      if (way == 1) stage.shuffle().close();  // without finish
      if (way == 2) (void)program.session.cancel_query(id, "from the session");
    }
  } else {
    if (status.ok()) status = run_plan(program, id, 0, false);
    for (bool end = false; status.ok() && !end;) status = stage.take_one(end);
    if (!status.ok() && status.category() != Category::query) return status;
  }
  stage.shuffle().close();
  Status cause;
  program.doing(Step::ends, 0);
  const Outcome outcome = end_query(program.worker, id, cause);
  if (outcome != Outcome::failed || cause.code() != Code::query_cancelled) {
    return Status(Code::internal_error,
                  fmt::format("worker {}: the cancelled query ended as {}: {}", program.me,
                              outcome_name(outcome), cause.to_string()));
  }
  // The next one is intact.
  FARO_ASSIGN_OR_RETURN(const QueryId next, program.query(1, canceller));
  FARO_RETURN_IF_ERROR(run_plan(program, next, 1, false));
  return program.end(next);
}

}  // namespace faro::test
