// What one worker does in a session that changes: its part of each query, as they come.
#pragma once

#include <cstdint>
#include <deque>

#include "lab/simulation/scene.h"

namespace faro::simulation {

/// Queries of a worker that have not begun for it, by index.
struct ComingQueries {
  std::deque<uint32_t> queries;
  bool are_over = false;  // no more come
  bool is_idle = true;    // the worker has none either
};

/// In a fiber, until they are over. Half of the workers block, query after query; the others poll all that they have in
/// turn.
void run_coming_queries(Scene& scene, ComingQueries& coming);

}  // namespace faro::simulation
