#include "lab/simulation/churn/coming_queries.h"

#include <list>

#include "lab/simulation/query_run.h"
#include "lab/simulation/worker_program.h"

namespace faro::simulation {
namespace {

// A query has at most five stages, and shuffle.limit is at least 32.
constexpr size_t kAtOnce = 6;

}  // namespace

void run_coming_queries(Scene& scene, ComingQueries& coming) {
  const bool polls = scene.chance.one_in(2);
  std::list<QueryRun> running;
  uint32_t idle_rounds = 0;
  for (;;) {
    if (running.empty()) {
      coming.is_idle = coming.queries.empty();
      scene.world.wait_until([&] { return !coming.queries.empty() || coming.are_over; },
                             base::kForever, "queries");
      coming.is_idle = false;
    }
    if (!coming.queries.empty() && running.size() < (polls ? kAtOnce : 1)) {
      running.emplace_back(scene, coming.queries.front());
      coming.queries.pop_front();
    }
    if (running.empty()) break;
    if (!polls) {
      running.front().run();
      running.pop_front();
      continue;
    }
    bool moved = false;
    for (QueryRun& query : running) moved |= query.turn();
    running.remove_if([](const QueryRun& query) { return query.over(); });
    idle_rounds = moved ? 0 : idle_rounds + 1;
    const bool begins = !coming.queries.empty() && running.size() < kAtOnce;
    if (idle_rounds > 1 && !begins) sleep_until_rung(scene);
  }
  coming.is_idle = true;
}

}  // namespace faro::simulation
