// Process: what has the number of a node: a session, from its opening to its end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "faro/cancellation.h"
#include "faro/session.h"
#include "lab/simulation/transport/fiber.h"
#include "session/membership.h"
#include "sim/node_state/plan.h"
#include "sim/node_state/shown.h"
#include "sim/node_state/told.h"
#include "sim/programs/world.h"

namespace faro::node_state {

/// Threads: one. Whatever waits, opening and closing, goes on in the rounds of its World.
class Process {
 public:
  /// All outlive it. `key`: its number among all processes.
  Process(const Plan& plan, World& world, Shown& shown, Rules& rules, uint32_t key, uint32_t number,
          uint32_t life);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  uint32_t key() const noexcept { return key_; }
  uint32_t number() const noexcept { return number_; }
  uint32_t life() const noexcept { return life_; }
  const std::string& name() const noexcept { return name_; }
  /// Where a process of that node, or another one, listens.
  static std::string address_of(uint32_t number, uint32_t variant);

  /// Begins to open its session, with these nodes, by number; empty: no node.
  void open(std::span<const std::string> addresses, bool waits);
  /// Begins to close it. `holds`: its workers may hold batches.
  void close(bool holds);
  /// It dies, as others see it; nothing more is shown of it.
  void kill(bool loses);
  /// It stands still, or goes on.
  void stand_still(bool still) { is_still_ = still; }
  bool is_still() const noexcept { return is_still_; }

  /// It opens, is open, or closes: it has its number for itself.
  bool is_there() const noexcept { return !is_dead_ && (is_open_ || fiber_ != nullptr); }
  bool is_open() const noexcept { return is_open_ && !is_dead_; }
  /// It waits: for others to open with it, or to close.
  bool is_waiting() const noexcept { return fiber_ != nullptr; }
  /// Only while it is open.
  Session& session() { return *session_; }
  Told& told() { return told_; }
  /// The number is that of a node, to its session.
  bool knows(uint32_t number) const;
  bool is_linked(uint32_t number) const;
  /// It has lost the process with that number that was linked last.
  bool has_lost(uint32_t number) const { return lost_.contains(number); }
  programs::ManualNetwork& network() { return *network_; }

  void note_state();

 private:
  class Waiter;
  Result<base::Settings> settings(std::span<const std::string> addresses, bool waits) const;
  void begin(std::function<void()> body);
  bool round();
  void wait(base::Nanoseconds time);
  void listen();
  void note(const char* event, uint32_t node, const Status& cause = {});
  session::Membership& membership() const;

  const Plan& plan_;
  World& world_;
  Shown& shown_;
  Rules& rules_;
  const uint32_t key_;
  const uint32_t number_;
  const uint32_t life_;
  const std::string name_;
  Told told_;
  programs::ManualNetwork* network_ = nullptr;  // of the session; null: there is none
  std::unique_ptr<Session> session_;
  std::unique_ptr<sim::Fiber> fiber_;  // null: it neither opens nor closes
  Cancellation cancellation_;
  std::set<uint32_t> lost_;
  bool is_open_ = false;
  bool is_dead_ = false;
  bool is_still_ = false;
};

}  // namespace faro::node_state
