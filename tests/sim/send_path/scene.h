// Scene: the nodes of a program, and what happens to them beside its calls: bytes arrive, time
// passes, connections break, nodes end.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/programs/record.h"
#include "sim/programs/rings.h"
#include "sim/programs/world.h"
#include "sim/send_path/effects.h"
#include "sim/send_path/nodes.h"
#include "sim/send_path/plan.h"

namespace faro::send_path {

/// All that happens is noted as a call is, in the record. A `port` is any number: it stands for one
/// of those that there are.
///
/// Threads: one.
class Scene {
 public:
  Scene(const Plan& plan, Record& record);
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  Nodes& nodes() noexcept { return nodes_; }
  Effects& effects() noexcept { return effects_; }
  /// Notes what is new in all rings.
  void note_rings() { effects_.note_rings(world_, nodes_, plan_); }

  /// At most that many frames of a ring arrive, or (`reads`) the peer's read position does.
  void deliver(uint32_t port, uint32_t ring, uint32_t frames, bool reads);
  void deliver_all();
  void pass(base::Nanoseconds time);
  /// The network threads run.
  void pump();
  void hold(uint32_t port, bool held);
  /// Breaks the data connection of two nodes, or their control connection.
  void cut(uint32_t port, bool data);
  void kill(uint32_t node);
  void close_node(uint32_t node);

 private:
  /// Null: there is no port yet.
  std::shared_ptr<Port> find(uint32_t port) const;

  const Plan& plan_;
  Record& record_;
  Effects effects_;
  World world_;
  Nodes nodes_;
};

}  // namespace faro::send_path
