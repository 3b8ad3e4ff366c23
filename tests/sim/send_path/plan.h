// Plan: what a seed decides before a program runs: the nodes, their settings, the queries and how
// the program tends to act.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/workload/chance.h"
#include "sim/programs/record.h"
#include "sim/programs/rings.h"
#include "sim/programs/world.h"

namespace faro::send_path {

using programs::Delivery;
using programs::Kind;
using programs::LeftOut;
using programs::Port;
using programs::Position;
using programs::Record;
using programs::RunResult;
using programs::World;
using workload::Chance;

struct StagePlan {
  uint32_t row_bytes = 0;
  std::vector<uint32_t> senders;
  std::vector<uint32_t> receivers;
  std::string format;
};

struct QueryPlan {
  uint32_t issuer = 0;  // node
  std::vector<StagePlan> stages;
  bool opens_late = false;  // receivers open when the program comes to it
};

/// How often a program does what, as weights.
struct Mood {
  uint32_t send = 10;
  uint32_t many = 4;     // rows at once
  uint32_t claim = 4;    // begin, commit, give up
  uint32_t several = 3;  // multicast and broadcast
  uint32_t receive = 6;
  uint32_t keep = 3;     // batches that are held, detached, given back
  uint32_t end = 2;      // flush, finish
  uint32_t world = 6;    // bytes arrive, time passes
  uint32_t trouble = 1;  // stops, cancels, cuts, losses, mistakes
};

/// What the nodes of a program are set to, all of them alike.
struct NodeSettings {
  uint32_t ring_bytes = 4096;
  uint32_t rings_per_lane = 1;
  uint64_t threshold = 0;
  uint64_t overflow_memory = 0;
  uint64_t overflow_file = 0;
  uint64_t query_limit = 0;  // 0: none
  uint64_t row_limit = 0;
  uint32_t shuffle_limit = 64;
  uint32_t drain_delay_us = 0;
  uint32_t wait_yields = 0;

  /// The largest payload of a frame of one row, as DESIGN.md has it.
  uint32_t row_limit_of_frame() const { return ring_bytes / 4 - 16; }
  std::string to_string() const;
};

struct Plan {
  uint64_t seed = 0;
  uint32_t nodes = 2;
  uint32_t workers_per_node = 1;
  NodeSettings settings;
  Delivery delivery = Delivery::shared;
  bool changing = false;  // cluster.node_limit
  std::vector<QueryPlan> queries;
  uint32_t at_once = 1;  // queries
  uint32_t calls = 0;
  Mood mood;
  bool ends_in_order = true;  // else what is open at the end is closed as it is

  uint32_t worker_count() const { return nodes * workers_per_node; }
  std::string to_string() const;
};

Plan draw_plan(uint64_t seed);

}  // namespace faro::send_path
