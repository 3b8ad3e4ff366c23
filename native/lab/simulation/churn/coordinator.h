// Coordinator: the engine's, of a session that changes. It draws what happens next: a query over some of the members, a member
// that comes or goes, a fault. It waits for nothing of that before the next one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/simulation/churn/churn_ledger.h"
#include "lab/simulation/churn/churn_plan.h"
#include "lab/simulation/churn/members.h"

namespace faro::simulation {

/// Threads: its fiber.
class Coordinator {
 public:
  /// All outlive it. `plan`: gets the queries.
  Coordinator(sim::SimInternet& internet, ChurnPlan& plan, ChurnLedger& ledger);

  /// Everything, from the first sessions to the end of the last one. What goes wrong is a violation.
  void run();

 private:
  void step();
  void settle();
  void begin_query();
  void begin_query(const std::vector<uint32_t>& numbers, uint32_t issuer);
  void begin(uint32_t query, Process& issuer);
  void take(uint32_t query, Process& process);
  void note_wants(uint32_t query, Process& process);
  void cancel_some();
  void cut_some();
  void stop_some();
  void query_over_all(const char* when, bool has_to_be_done);
  void look_at_all(const char* when);
  void look_at_witness(uint32_t witness);
  std::string what_is_left(Process& process) const;
  void count(const char* what) { ++ledger_.changes[what]; }
  uint32_t one_of(const std::vector<uint32_t>& numbers) {
    return numbers[chance_.below(numbers.size())];
  }

  sim::SimInternet& internet_;
  sim::World& world_;
  ChurnPlan& plan_;
  ChurnLedger& ledger_;
  Chance chance_;
  Members members_;
};

}  // namespace faro::simulation
