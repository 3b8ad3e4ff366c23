// A node that starts again finds open nodes, one after the other, and loses some of them before its own open is complete.
#include <gtest/gtest.h>

#include <utility>

#include "support/cluster.h"
#include "support/pausable_network.h"
#include "support/raw_peer.h"
#include "wire/control.h"

namespace faro::test {
namespace {

/// Node 2, by hand.
class HandNode {
 public:
  HandNode(const ClusterPlan& plan, uint32_t of) : peer_(plan.address(of)) {
    peer_.send_preamble();
    peer_.send_message(wire::encode(plan.hello(2, of)));
    admitted_ = hears(wire::ControlKind::hello);
    peer_.send_message(wire::encode(wire::Auth{}));
    admitted_ = admitted_ && hears(wire::ControlKind::auth);
  }

  bool admitted() const { return admitted_; }
  /// That its own session is open, where these are missing; then it is gone.
  void say_it_is_open_and_end(std::vector<bool> missing) {
    peer_.send_message(wire::encode(wire::Members{.linked = false, .missing = std::move(missing)}));
    peer_.end();
    EXPECT_TRUE(peer_.closed_within(10'000));
  }

 private:
  bool hears(wire::ControlKind kind) {
    const auto message = peer_.receive();
    return message && wire::kind_of(*message) == kind;
  }

  RawPeer peer_;
  bool admitted_ = false;
};

// Node 1 knows by node 0 alone that it returns; node 0 closes when it has taken it back. Then node 2 says that it is open,
// and is gone too. Both start again, and the cluster is complete.
TEST(ReturningNode, goes_on_without_nodes_that_leave_or_are_lost_before_its_open_is_complete) {
  ClusterPlan plan(3, {{"transport", "tcp"}});
  PausableNetwork* network_of_0 = nullptr;
  PausableNetwork::give(plan, 0, network_of_0);
  OpenCluster cluster(plan);
  for (const uint32_t node : {2u, 1u}) {
    cluster.member(node).reset();
    plan.listen_again(node);
  }
  ASSERT_TRUE(cluster.observer(0).wait([&] { return cluster.observer(0).left().size() == 2; }));

  network_of_0->pause();  // it would say that node 2 need not be waited for
  const OpeningNode one(plan, 1);
  HandNode second(plan, 1);
  EXPECT_TRUE(second.admitted());
  network_of_0->resume();
  EXPECT_TRUE(cluster.observer(0).wait([&] { return !cluster.observer(0).joined().empty(); }));
  cluster.member(0).reset();
  second.say_it_is_open_and_end({true, false, false});

  plan.listen_again(0);
  const OpeningNode zero(plan, 0);
  const OpeningNode two(plan, 2);
  expect_open({&zero, &one, &two});
}

}  // namespace
}  // namespace faro::test
