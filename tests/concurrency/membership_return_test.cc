// A node that starts again finds open nodes, one after the other, and loses some of them before its own open is complete.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <utility>

#include "session/cluster_identity.h"
#include "support/cluster.h"
#include "support/pausable_network.h"
#include "support/raw_peer.h"
#include "wire/control.h"

namespace faro {
namespace {

using test::ClusterPlan;
using test::PausableNetwork;
using test::RawPeer;
using test::RecordingObserver;
using test::ThreadCluster;
using Opened = Result<std::unique_ptr<session::Membership>>;

/// Node 2, by hand.
class HandNode {
 public:
  HandNode(const ClusterPlan& plan, uint32_t of) : peer_(plan.address(of)) {
    wire::Hello hello = session::hello_of(plan.settings(2).value());
    hello.expected_node = of;
    hello.incarnation = 0x1234;
    hello.address = plan.address(2);
    hello.transports = {"tcp"};
    peer_.send_preamble();
    peer_.send_message(wire::encode(hello));
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
  ClusterPlan plan(3);
  plan.set("transport", "tcp");
  PausableNetwork* network_of_0 = nullptr;
  PausableNetwork::give(plan, 0, network_of_0);
  ThreadCluster cluster(plan);
  ASSERT_TRUE(cluster.all_open()) << cluster.problems();
  for (const uint32_t node : {2u, 1u}) {
    cluster.member(node).reset();
    plan.listen_again(node);
  }
  ASSERT_TRUE(cluster.observer(0).wait([&] { return cluster.observer(0).left().size() == 2; }));

  network_of_0->pause();  // it would say that node 2 need not be waited for
  RecordingObserver observer;
  std::future<Opened> returning =
      std::async(std::launch::async, [&] { return plan.open(1, observer); });
  HandNode second(plan, 1);
  EXPECT_TRUE(second.admitted());
  network_of_0->resume();
  EXPECT_TRUE(cluster.observer(0).wait([&] { return !cluster.observer(0).joined().empty(); }));
  cluster.member(0).reset();
  second.say_it_is_open_and_end({true, false, false});

  plan.listen_again(0);
  RecordingObserver observers[3];
  std::future<Opened> zero =
      std::async(std::launch::async, [&] { return plan.open(0, observers[0]); });
  Opened two = plan.open(2, observers[2]);
  Opened first = zero.get();
  Opened one = returning.get();
  EXPECT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_TRUE(one.ok()) << one.status().to_string();
  EXPECT_TRUE(two.ok()) << two.status().to_string();
  // All at the same time: an orderly close waits for the others.
  std::vector<std::future<void>> closing;
  for (Opened* each : {&first, &one, &two}) {
    if (each->ok())
      closing.push_back(std::async(std::launch::async, [each] { each->value().reset(); }));
  }
}

}  // namespace
}  // namespace faro
