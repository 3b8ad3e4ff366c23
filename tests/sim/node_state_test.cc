// Programs on the state of nodes: what a session tells its engine makes sense, every query and every
// process ends, and a seed is the same program each time. That two builds do the same is shown by
// node_state/compare_commits.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/node_state/engine.h"
#include "sim/node_state/program.h"
#include "sim/node_state/queries.h"
#include "sim/programs/cases.h"

namespace faro::test {
namespace {

constexpr uint64_t kPrograms = programs_of(300);

class NodeState : public ProgramTest {};

TEST_F(NodeState, what_sessions_tell_makes_sense_and_everything_ends) {
  Counted counted = run_programs(kPrograms, node_state::run_program);
  if (counted.programs < kPrograms) return;  // SIM_SEED
  // A program that does nothing must not pass for one.
  for (const char* what : {"told added",
                           "told returned",
                           "told lost",
                           "told left",
                           "told drained",
                           "told removed",
                           "answer end_of_stream",
                           "answer holding",
                           "answer resource_limit",
                           "openings again",
                           "deaths",
                           "closings",
                           "outcome",
                           "await",
                           "released",
                           "rest_ask",
                           "rest_yes",
                           "rest_no",
                           "MEMBERS",
                           "RESUME",
                           "BROKEN",
                           "REFUSE",
                           "FAIL",
                           "links without memory",
                           "paths dark",
                           "processes that stand still",
                           "batches held",
                           "queries of all",
                           "queries declared"})
    EXPECT_GE(counted.with[what], kPrograms / 50) << what;
}

TEST_F(NodeState, a_seed_is_the_same_program_each_time) {
  expect_repeatable_programs(kPrograms / 10, node_state::run_program);
}

// By hand, where random programs come to it once in thousands: a worker that holds a batch of a process that
// has died binds to the next one's rings later than that sends its rows.
TEST_F(NodeState,
       rows_of_a_node_that_returned_arrive_though_a_batch_of_its_former_process_was_held) {
  node_state::Plan plan;
  plan.numbers = 2;
  programs::Record record(0, false);
  node_state::Engine engine(plan, record);
  node_state::Queries queries(plan, engine);
  const std::vector<std::string> list{"node0:7000", "node1:7000"};
  const auto open = [&](uint32_t node) { engine.open(node, list, true); };
  const auto run = [&] { engine.pass(200 * node_state::kMillisecond); };
  const auto begin = [&] {
    node_state::QueryRun& query = queries.begin(*engine.process(1), {0, 1}, true);
    for (const uint32_t node : {0, 1}) queries.declare(*engine.process(node), query);
    return queries.parts();
  };
  const auto go_on_to = [&](node_state::Part& part, node_state::Part::Step step) {
    for (int tries = 0; part.step < step && tries < 20; ++tries) {
      queries.go_on(part, part.worker == 1);
      run();
    }
    EXPECT_EQ(part.step, step);
  };
  using Step = node_state::Part::Step;
  open(0);
  open(1);
  run();
  const auto former = begin();
  go_on_to(*former[0], Step::receives);
  go_on_to(*former[1], Step::receives);
  queries.go_on(*former[1], true);  // the batch is held
  queries.drop(*engine.process(0), false);
  engine.kill(*engine.process(0), true);
  run();
  open(0);
  run();
  go_on_to(*former[1], Step::over);
  const auto next = begin();
  ASSERT_EQ(next.size(), 3);
  go_on_to(*next[1], Step::receives);
  queries.go_on(*next[2], false);
  EXPECT_EQ(next[2]->step, Step::opens);  // while the batch is held
  // It looks at its rings, which are still those of the former process.
  Worker& worker = engine.process(1)->session().worker(0);
  EXPECT_EQ(worker.wait_until([] { return false; }, Wait::none()), Outcome::holding);
  queries.release(*former[1]);
  go_on_to(*next[2], Step::closes);
  go_on_to(*next[1], Step::closes);
  EXPECT_EQ(engine.rules().violation(), "");
}

}  // namespace
}  // namespace faro::test
