// Process: one that has a node's number in a session that changes. It opens its session, does what it is ordered, one after
// the other, while its workers have their parts in queries, and ends.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/settings.h"
#include "faro/session.h"
#include "lab/simulation/churn/churn_ledger.h"
#include "lab/simulation/churn/churn_plan.h"
#include "lab/simulation/churn/coming_queries.h"
#include "lab/simulation/links/sim_internet.h"
#include "lab/simulation/links/sim_network.h"
#include "lab/simulation/sim_spill_file.h"
#include "node/node_core.h"

namespace faro::simulation {

/// What its session's listener was told.
struct ToldEvents {
  std::set<uint32_t> drained;            // until the node is removed
  std::map<uint32_t, uint32_t> removed;  // how often
  std::map<uint32_t, uint32_t> lost;     // or left, or let go as idle, which it is not told
  std::set<uint32_t> missing;            // lost, or left, and neither back nor removed
  std::set<uint32_t> ended;              // of what has cost a link since note_links() looked last
};

/// Threads: its world's.
class Process {
 public:
  /// All outlive it. `id`: of the run, never given twice; `address`: where it listens.
  Process(sim::SimInternet& internet, const ChurnPlan& plan, ChurnLedger& ledger, uint32_t id,
          uint32_t number, std::string address);
  /// In a failed world its session is given up as it is.
  ~Process();

  uint32_t id() const { return who_.id; }
  uint32_t number() const { return who_.number; }
  const std::string& address() const { return who_.address; }
  std::string name() const;
  Fate& fate() { return ledger_.fates[who_.id]; }
  const Fate& fate() const { return ledger_.fates[who_.id]; }

  /// Opens its session with a list, by number, and starts its programs; from a fiber. `waits`: for the nodes in the list.
  Status open(const std::map<uint32_t, std::string>& list, bool waits);
  bool is_open() const { return session_ != nullptr && !life_.is_ending; }
  Session& session() { return *session_; }
  node::NodeCore& core();
  /// Linked, as far as its session knows.
  bool is_linked(uint32_t number);
  SimDisk& disk() { return disk_; }
  const ToldEvents& events() const { return events_; }
  bool is_drained(uint32_t number) const { return events_.drained.contains(number); }
  bool is_missing(uint32_t number) const { return events_.missing.contains(number); }

  /// Orders are done one after the other, each after some time on its way, once the session is open. What is ordered later than
  /// finish() is not.
  void order(std::string what, std::function<void()> action);
  /// A worker's part in a query. Returns whether it has one: it is not dead.
  bool take(uint32_t local_worker, uint32_t query);
  /// Queries that are not declared here yet, and whose issuer is not linked: they may come too late for the nodes that this
  /// process drains.
  void note_unasked();
  /// It has no orders left, and its workers no queries.
  bool is_idle() const;

  /// It does what it was ordered, closes its session, if it has one, and is gone.
  void finish();
  /// It dies, as the others see it; its own code ends by itself. Open only.
  void kill();
  bool is_dead() const { return life_.is_dead; }
  bool is_gone() const { return life_.is_gone; }

  /// By number: the processes that it is to know (ordered), and those that it was told of. One that has come back is not told.
  std::map<uint32_t, uint32_t> knows;
  std::map<uint32_t, uint32_t> told;
  std::map<uint32_t, uint32_t> drains;  // which it was told to drain

 private:
  struct Who {
    uint32_t id = 0;
    uint32_t number = 0;
    std::string address;
  };
  struct Life {
    uint32_t running = 0;  // programs
    bool takes_orders = false;
    bool is_ending = false;
    bool is_dead = false;
    bool is_gone = false;
  };
  // What its membership was when note_links() looked last.
  struct SeenLinks {
    uint64_t changes = 0;
    std::set<uint32_t> nodes;
  };
  struct Order {
    std::string what;
    std::function<void()> action;
  };

  Result<base::Settings> settings(const std::map<uint32_t, std::string>& list, bool waits) const;
  void listen();
  void on_lost(uint32_t number, const Status& cause);
  void note_let_go(uint32_t number);
  void note_links(const session::Membership& membership);
  void start_programs();
  void spawn(std::string name, std::function<void()> body);
  void run_orders();
  void end();
  void close();

  sim::SimInternet& internet_;
  sim::World& world_;
  const ChurnPlan& plan_;
  ChurnLedger& ledger_;
  const Who who_;
  Chance chance_;
  SimDisk disk_;
  std::unique_ptr<Session> session_;
  sim::SimNetwork* network_ = nullptr;  // owned by the session
  sim::World::AgentId agent_ = 0;
  ToldEvents events_;
  SeenLinks seen_;
  std::deque<Order> orders_;  // the first one may be under way
  std::deque<ComingQueries> workers_;
  Life life_;
};

/// What memory.limit_bytes has to be for that many links. `settings`: of a session that changes.
uint64_t memory_for_links(const base::Settings& settings, uint32_t links);

}  // namespace faro::simulation
