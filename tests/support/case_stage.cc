#include <fmt/format.h>

#include "base/return_if_error.h"
#include "support/cases.h"

namespace faro::test {

Stage::Stage(Program& program, StagePlan plan)
    : workload::Stage(program, workload::RowGenerator(program.seed, std::move(plan), program.count),
                      {}),
      me_(program.me) {}

Status Stage::error(Outcome outcome, const char* what) const {
  const Status cause = status();
  return Status(outcome == Outcome::failed ? cause.code() : Code::internal_error,
                fmt::format("query {} stage {} at worker {}: {} answered {}: {}", plan().query,
                            plan().stage, me_, what, outcome_name(outcome), cause.to_string()));
}

Status Stage::send_rows(uint64_t rows) {
  for (uint64_t i = 0; i < rows; ++i) {
    const Outcome outcome = send_next();
    if (outcome == Outcome::stopped) return Status::Ok();
    if (outcome != Outcome::done) return error(outcome, "send");
  }
  return Status::Ok();
}

Status Stage::finish() {
  const Outcome outcome = workload::Stage::finish(true);
  return outcome == Outcome::done ? Status::Ok() : error(outcome, "finish");
}

Status Stage::take_one(bool& end) {
  Batch batch;
  const Outcome outcome = receive(true, batch);
  end = outcome == Outcome::end_of_stream;
  return end || outcome == Outcome::done ? Status::Ok() : error(outcome, "take");
}

Status Stage::take_to_end() {
  for (bool end = false; !end;) FARO_RETURN_IF_ERROR(take_one(end));
  return Status::Ok();
}

}  // namespace faro::test
