// The simulated cluster as tests call it.
#pragma once

#include "lab/simulation/cluster.h"

namespace faro::test {

using SimCluster = simulation::Cluster;
using simulation::ClusterShape;
using simulation::RememberingObserver;

}  // namespace faro::test
