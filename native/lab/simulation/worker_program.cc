#include "lab/simulation/worker_program.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "lab/simulation/misbehaving_node.h"
#include "lab/simulation/query_run.h"

namespace faro::simulation {
namespace {

void poll_in_turn(Scene& scene, std::deque<QueryRun>& queries) {
  uint32_t idle_rounds = 0;
  while (!std::all_of(queries.begin(), queries.end(), [](const auto& q) { return q.over(); })) {
    bool moved = false;
    for (QueryRun& query : queries) moved |= query.turn();
    idle_rounds = moved ? 0 : idle_rounds + 1;
    if (idle_rounds > 1) sleep_until_rung(scene);
  }
}

void lie_if_hostile(Cluster& cluster, Scene& scene) {
  if (scene.ledger.misbehaving.count(scene.node) == 0) return;
  MisbehavingNode misbehaving(cluster, scene.plan, scene.ledger, scene.node, scene.chance.next());
  for (uint64_t times = scene.chance.between(1, 4); times > 0; --times)
    misbehaving.send_rows(scene.worker);
}

}  // namespace

// A wait looks at its condition at first, after each yield, and once more before it sleeps.
void sleep_until_rung(Scene& scene) {
  uint64_t looks_left = scene.plan.wait_yields + 2;
  (void)scene.worker.wait_until([&looks_left] { return looks_left-- == 0; },
                                Wait::at_most(std::chrono::milliseconds(50)));
}

void run_worker(Cluster& cluster, Scene& scene) {
  if (scene.chance.one_in(4)) scene.world.sleep(scene.chance.below(2'000'000));
  std::deque<QueryRun> queries;
  for (uint32_t q = 0; q < scene.plan.queries.size(); ++q) {
    const std::vector<uint32_t>& workers = scene.plan.queries[q].workers;
    if (std::binary_search(workers.begin(), workers.end(), scene.me))
      queries.emplace_back(scene, q);
  }
  lie_if_hostile(cluster, scene);
  if (scene.chance.one_in(2)) {
    poll_in_turn(scene, queries);
  } else {
    for (QueryRun& query : queries) query.run();
  }
  lie_if_hostile(cluster, scene);
}

}  // namespace faro::simulation
