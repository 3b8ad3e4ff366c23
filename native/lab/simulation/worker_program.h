// What one worker of a run does: its part of every query, in one of two styles.
#pragma once

#include "lab/simulation/cluster.h"
#include "lab/simulation/scene.h"

namespace faro::simulation {

/// In a fiber. Half of the workers block, query after query and stage after stage; the others poll all
/// their queries in turn. Every query of the worker has an ending in the ledger afterwards.
void run_worker(Cluster& cluster, Scene& scene);

/// Sleeps until something rings the worker's doorbell, or 50 ms.
void sleep_until_rung(Scene& scene);

}  // namespace faro::simulation
