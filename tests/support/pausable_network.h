// PausableNetwork: a network whose thread can be paused.
#pragma once

#include <atomic>

#include "support/cluster.h"

namespace faro::test {

/// Threads: pause and resume from any but its own.
class PausableNetwork final : public ForwardingNetwork {
 public:
  using ForwardingNetwork::ForwardingNetwork;
  /// Before a plan's nodes open: this one's network can be paused. `network` is there when it has opened.
  static void give(ClusterPlan& plan, uint32_t node, PausableNetwork*& network) {
    plan.wrap_networks(
        [node, &network](uint32_t of,
                         std::unique_ptr<links::Network> inner) -> std::unique_ptr<links::Network> {
          if (of != node) return inner;
          auto pausable = std::make_unique<PausableNetwork>(std::move(inner));
          network = pausable.get();
          return pausable;
        });
  }
  bool run_once(base::Nanoseconds until) override {
    State told = State::is_told;
    if (state_.compare_exchange_strong(told, State::stands)) state_.notify_all();
    state_.wait(State::stands);
    return ForwardingNetwork::run_once(until);
  }
  /// Returns when it stands still.
  void pause() {
    state_ = State::is_told;
    wake();
    state_.wait(State::is_told);
  }
  void resume() {
    state_ = State::runs;
    state_.notify_all();
  }

 private:
  enum class State { runs, is_told, stands };
  std::atomic<State> state_{State::runs};
};

}  // namespace faro::test
