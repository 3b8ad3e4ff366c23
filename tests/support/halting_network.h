// HaltingNetwork: a network whose thread stands still for a while.
#pragma once

#include <atomic>

#include "support/cluster.h"

namespace faro::test {

/// Threads: halt and go_on from any but its own.
class HaltingNetwork final : public NetworkAround {
 public:
  using NetworkAround::NetworkAround;
  /// Before a plan's nodes open: this one's network can stand still. `network` is there when it has opened.
  static void give(ClusterPlan& plan, uint32_t node, HaltingNetwork*& network) {
    plan.wrap_networks([node, &network](uint32_t of, std::unique_ptr<session::Network> inner)
                           -> std::unique_ptr<session::Network> {
      if (of != node) return inner;
      auto halting = std::make_unique<HaltingNetwork>(std::move(inner));
      network = halting.get();
      return halting;
    });
  }
  bool run_once(base::Nanoseconds until) override {
    State told = State::is_told;
    if (state_.compare_exchange_strong(told, State::stands)) state_.notify_all();
    state_.wait(State::stands);
    return NetworkAround::run_once(until);
  }
  /// Returns when it stands.
  void halt() {
    state_ = State::is_told;
    wake();
    state_.wait(State::is_told);
  }
  void go_on() {
    state_ = State::runs;
    state_.notify_all();
  }

 private:
  enum class State { runs, is_told, stands };
  std::atomic<State> state_{State::runs};
};

}  // namespace faro::test
