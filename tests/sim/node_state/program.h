// Program: calls drawn from a seed, on the sessions of some nodes in one World.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "sim/node_state/engine.h"
#include "sim/node_state/plan.h"
#include "sim/node_state/queries.h"

namespace faro::node_state {

/// Threads: one.
class Program {
 public:
  Program(const Plan& plan, Record& record);

  /// Runs it from begin to end.
  void run();
  const std::string& violation() { return engine_.rules().violation(); }

 private:
  /// What one session is still to be told.
  struct Order {
    enum What { add, drain, remove, declare } what;
    uint32_t on = 0;
    uint32_t node = 0;
    std::string address;
    QueryRun* query = nullptr;
    uint32_t tries = 0;
  };

  void begin();
  void act();
  void finish();
  void end_queries();
  void give_up(const Part& part);
  void end_processes();

  // --- what is drawn
  void carry_out();
  bool carry_out(Order& order);
  void begin_query();
  void go_on();
  void let_run();
  void live();
  void change();
  void make_trouble();
  void make_mistake();
  void ask_for_node();

  void open(uint32_t number);
  void close(Process& process, bool holds);
  void kill(Process& process, bool loses);
  void join(uint32_t number);
  void tell_all(Order::What what, uint32_t node, bool with_itself);
  std::vector<uint32_t> draw_workers();
  uint32_t draw_number() { return static_cast<uint32_t>(chance_.below(plan_.numbers)); }
  Process* draw_acting();
  std::pair<uint32_t, uint32_t> draw_pair();
  base::Nanoseconds draw_ms(uint64_t least, uint64_t most) {
    return chance_.between(least, most) * kMillisecond;
  }

  const Plan& plan_;
  Chance chance_;
  Engine engine_;
  Queries queries_;
  std::deque<Order> orders_;
  std::vector<std::string> addresses_;  // by number; empty: nobody is to have it
  std::vector<bool> drained_;           // by number: all are told to drain it
  uint32_t variants_ = 0;               // of addresses
};

/// Equal for equal seeds, in every build that behaves alike.
RunResult run_program(uint64_t seed, LeftOut left_out = 0, bool keeps_text = false);

}  // namespace faro::node_state
