// Members: the processes of a session that changes, as the engine's coordinator knows them. It decides who is in, and orders all
// others to say so to their sessions; orders arrive at different times, but at each process in order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/simulation/churn/churn_ledger.h"
#include "lab/simulation/churn/churn_plan.h"
#include "lab/simulation/churn/process.h"

namespace faro::simulation {

/// Threads: its world's. Nothing here waits: what takes time goes on in a fiber of its own.
class Members {
 public:
  struct Member {
    Process* process = nullptr;
    bool is_ready =
        false;  // its session is open, and all others are told of it, or will be before anything else
    bool is_drained = false;  // or will be
  };

  /// All outlive it.
  Members(sim::SimInternet& internet, const ChurnPlan& plan, ChurnLedger& ledger, Chance& chance)
      : internet_(internet),
        world_(internet.world()),
        plan_(plan),
        ledger_(ledger),
        chance_(chance) {}

  /// By number.
  const std::map<uint32_t, Member>& all() const { return members_; }
  Process& operator[](uint32_t number) { return *members_.at(number).process; }
  Process& process(uint32_t id) { return processes_[id]; }
  /// Numbers of those that queries may contain, once they are told of each other.
  std::vector<uint32_t> ready() const;
  /// Some of those that are ready, which were told of each other.
  std::vector<uint32_t> ready_together() const;
  /// Has those that are ready linked with nodes that they have lost and that have come back: until
  /// then they refuse its queries. From a fiber.
  void await_missing();
  bool know_each_other(const Process& process, const std::vector<uint32_t>& others) const;
  /// Numbers that nobody has, and of which no session knows: one that still has to remove the former process would take
  /// the next one for it.
  std::vector<uint32_t> free_numbers() const;

  /// The first ones.
  void found();
  void join(uint32_t number);
  void drain(uint32_t number);
  /// By all others, while it lives.
  void remove(uint32_t number);
  /// Its process dies; the others are told to remove it, before they find out or after.
  void kill(uint32_t number);
  /// Its process dies, and another one takes its place. One at a time: those that come back are no members meanwhile.
  void come_back(uint32_t number);

  bool may_come_back() const { return !comes_back_; }

  /// Nothing is under way.
  bool is_settled() const;
  /// All close their sessions.
  void finish_all();

 private:
  using List = std::map<uint32_t, std::string>;

  Process& make(uint32_t number, std::string address);
  Process& enter(uint32_t number, std::string address);
  bool open(Process& process, const List& list, bool waits);
  void list_at_open(Process& process, uint32_t number);
  List draw_list(StartList style, const std::vector<uint32_t>& numbers, uint32_t own);
  void tell(Process& process, Process& other);
  void order_drain(Process& process, Process& other);
  void order_remove(Process& process, Process& other);
  void remove_everywhere(Process& gone);
  void lose(Process& process);
  void die(uint32_t number);
  bool is_drained_everywhere(Process& process);
  void cancel_queries_of(Process& killed, Process& at);
  void await_return(Process& process, Process& returned, uint32_t lost_before, bool was_linked);
  void go_on(const std::string& what, std::function<void()> body);
  void story(const std::string& line);
  void count(const char* what) { ++ledger_.changes[what]; }

  sim::SimInternet& internet_;
  sim::World& world_;
  const ChurnPlan& plan_;
  ChurnLedger& ledger_;
  Chance& chance_;
  std::deque<Process> processes_;  // by id
  std::map<uint32_t, Member> members_;
  uint32_t going_on_ = 0;  // changes
  bool comes_back_ = false;
};

}  // namespace faro::simulation
