// Plan: what a seed decides before a program runs: the session, its settings, and what the program
// tends to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "sim/programs/draw.h"
#include "sim/programs/record.h"
#include "sim/programs/world.h"

namespace faro::node_state {

using programs::Delivery;
using programs::Kind;
using programs::LeftOut;
using programs::Record;
using programs::RunResult;
using programs::World;
using workload::Chance;

inline constexpr base::Nanoseconds kMillisecond = 1'000'000;
inline constexpr uint64_t kLivenessMs = 1000;
inline constexpr uint64_t kConnectMs = 2000;
inline constexpr uint64_t kCloseMs = 1000;
inline constexpr uint64_t kUnopenedMs = 3000;

/// How often a program does what, as weights.
struct Mood {
  uint32_t order = 24;   // what sessions are still to be told: of nodes, and of queries
  uint32_t query = 10;   // one begins
  uint32_t part = 48;    // a worker goes on with its part of one
  uint32_t run = 16;     // network threads run, time passes
  uint32_t life = 1;     // processes open, close, die
  uint32_t change = 3;   // nodes are added, drained, removed
  uint32_t trouble = 2;  // connections break, paths go dark, processes stand still
  uint32_t mistake = 4;  // calls that are refused; await_node
};

struct Plan {
  uint64_t seed = 0;
  uint32_t numbers = 3;           // that nodes can have
  uint32_t founders = 3;          // that open at the beginning
  uint32_t workers_per_node = 1;  // 1 or 2
  bool changing = false;          // cluster.node_limit
  bool waits = true;              // connect.wait_for = all, at the beginning
  Delivery delivery = Delivery::told;
  uint64_t mend_ms = 0;
  uint64_t idle_ms = 0;
  std::optional<uint32_t> poor{};  // a node with little memory
  uint64_t poor_bytes = 0;
  uint32_t calls = 0;
  Mood mood;

  uint32_t worker_count() const { return numbers * workers_per_node; }
  std::string to_string() const;
};

Plan draw_plan(uint64_t seed);

}  // namespace faro::node_state
