#include "sim/send_path/runs.h"

namespace faro::send_path {

RunResult run_program(uint64_t seed, LeftOut left_out, bool keeps_text) {
  const Plan plan = draw_plan(seed);
  Record record(left_out, keeps_text);
  RunResult result;
  {
    Program program(plan, record);
    program.run();
    result.violation = program.violation();
    result.tally = record.tally();
    result.sent = program.rows().sent_count();
    result.received = program.rows().received_count();
  }
  record.end_call();
  result.digest = record.digest();
  result.calls = record.calls();
  return result;
}

}  // namespace faro::send_path
