// WorkerContext: which worker this is, and what it uses of its node.
#pragma once

#include <cstdint>
#include <memory>

#include "base/settings.h"
#include "counters/counter_file.h"
#include "session/membership.h"
#include "shuffle/operation/intake.h"
#include "shuffle/operation/node_life.h"
#include "shuffle/overflow/operator_memory.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/query/query_table.h"
#include "transport/transport.h"

namespace faro::shuffle {

/// Shared by the parts of one worker, which all outlive no part of it.
struct WorkerContext {
  const uint32_t number;       // in the cluster
  const uint32_t local_index;  // on its node
  const NodeLife& node;
  session::Membership& membership;
  transport::IdleWork& network;
  QueryTable& queries;
  Overflow& overflow;
  OperatorMemory& operator_memory;
  const base::Settings& settings;
  counters::WorkerCounters& counters;    // written by this worker, read by anyone
  counters::OperatorSlots operators;     // where operators of this worker count
  const std::shared_ptr<Intake> intake;  // never null

  static WorkerContext of(uint32_t local_index, const NodeLife& node,
                          session::Membership& membership, QueryTable& queries, Overflow& overflow,
                          OperatorMemory& operator_memory, const base::Settings& settings) {
    const uint32_t first_worker = membership.nodes()[membership.node()].first_worker;
    return {first_worker + local_index,
            local_index,
            node,
            membership,
            membership.idle_work(),
            queries,
            overflow,
            operator_memory,
            settings,
            membership.counters().worker(local_index),
            membership.counters().operators(local_index),
            std::make_shared<Intake>()};
  }

  base::Nanoseconds now() const noexcept { return membership.clock().now_ns(); }
  const session::Node& own_node() const { return membership.nodes()[membership.node()]; }
};

}  // namespace faro::shuffle
