// Engine: the calls that an engine makes on the sessions of its nodes, but those about queries, and
// what happens to these sessions beside them. Each is a call of the Record, with what it was answered
// and has brought about.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "sim/node_state/plan.h"
#include "sim/node_state/process.h"
#include "sim/node_state/shown.h"
#include "sim/node_state/told.h"

namespace faro::node_state {

/// Threads: one.
class Engine {
 public:
  Engine(const Plan& plan, Record& record);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Rules& rules() noexcept { return rules_; }
  Shown& shown() noexcept { return shown_; }
  void count(const std::string& what) { shown_.count(what); }
  /// The last process with that number; null: there was none.
  Process* process(uint32_t number) { return last_[number]; }
  /// That process, if it is open and does not stand still; else null.
  Process* acting(uint32_t number);
  /// Whether any opens or closes.
  bool is_any_waiting() const;

  // --- a call
  template <typename... Args>
  void begin(fmt::format_string<Args...> format, Args&&... args) {
    shown_.begin(world_.clock(), fmt::format(format, std::forward<Args>(args)...));
  }
  void end();
  void end(const Process& process, const std::string& what, const Status& answer);
  void end(const Process& process, Outcome answer, const Status& why);

  // --- the life of processes
  void open(uint32_t number, std::span<const std::string> addresses, bool waits);
  /// `holds`: its workers may hold batches. They have nothing open.
  void close(Process& process, bool holds);
  void kill(Process& process, bool loses);
  void stand_still(Process& process, bool still);

  // --- what one session is told of nodes
  void add(Process& on, uint32_t node, const std::string& address);
  void drain(Process& on, uint32_t node);
  void remove(Process& on, uint32_t node);
  void await(Process& on, uint32_t node);

  // --- what happens beside them
  /// Everything arrives, and all network threads run.
  void settle();
  void run(Process& process);
  /// In steps, in each of which everything arrives and runs.
  void pass(base::Nanoseconds time);
  /// Nobody runs meanwhile.
  void jump(base::Nanoseconds time);
  void cut_control(uint32_t a, uint32_t b);
  void cut_data(uint32_t a, uint32_t b);
  void darken(uint32_t from, uint32_t to);
  void lighten_all();

  /// What holds when everything has come to rest, and every path is light.
  void check_rest();

 private:
  void settle_once();

  const Plan& plan_;
  Rules rules_;
  Shown shown_;
  World world_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Process*> last_;  // by number
};

}  // namespace faro::node_state
