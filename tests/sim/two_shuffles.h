// A query of two shuffles from node 0 to node 1, with a worker each; node 1 first wants the rows of one of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "faro/session.h"
#include "faro/shuffle.h"
#include "sim/cluster.h"

namespace faro::test {

/// Spawns a node's part: it opens both, does `work`, closes them, and the query has to end as `outcome`.
inline void spawn_part(SimCluster& cluster, uint32_t node, const QueryId& query, uint32_t row_bytes,
                       Outcome outcome,
                       std::function<void(Shuffle& unwanted, Shuffle& wanted)> work) {
  cluster.spawn(node, 0, [&cluster, node, query, row_bytes, outcome, work = std::move(work)] {
    Worker& worker = cluster.session(node).worker(0);
    Result<Shuffle> unwanted = worker.open_shuffle({query, 0, row_bytes, {0}, {1}});
    Result<Shuffle> wanted = worker.open_shuffle({query, 1, row_bytes, {0}, {1}});
    ASSERT_TRUE(wanted.ok() && unwanted.ok());
    work(*unwanted, *wanted);
    unwanted->close();
    wanted->close();
    EXPECT_EQ(worker.end_query(query), outcome);
  });
}

}  // namespace faro::test
