// QueryContext: what all queries of a node share.
#pragma once

#include <utility>

#include "base/clock.h"
#include "faro/status.h"
#include "shuffle/query/cluster_view.h"
#include "shuffle/query/ended_queries.h"
#include "shuffle/query/query_report.h"

namespace faro::shuffle {

/// Threads: under the table's lock, except what is constant, and report.failed_count(): any.
struct QueryContext {
  QueryContext(ClusterShape shape, base::Nanoseconds unopened_timeout)
      : cluster(std::move(shape)), unopened_timeout_ns(unopened_timeout) {}

  ClusterView cluster;
  const base::Nanoseconds unopened_timeout_ns;
  /// Why a query fails for want of memory; made beforehand.
  const Status no_memory{
      Code::overflow_exhausted,
      "the process of " + cluster.own_name() + " has no memory left that it could use for rows"};
  base::Nanoseconds now = 0;  // as of the last tick
  EndedQueries ended;
  QueryReport report{cluster.own_name()};
};

}  // namespace faro::shuffle
