// Clusters whose nodes are threads of this process: every node with its own network thread, over
// real sockets.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>

#include "support/cluster.h"
#include "support/send_frame.h"

namespace faro::test {
namespace {

class MembershipOver : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, MembershipOver, testing::Values("auto", "shm", "tcp"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_P(MembershipOver, opens_clusters_of_two_to_eight_nodes) {
  for (uint32_t count = 1; count <= 8; ++count) {
    ClusterPlan plan(count, {{"transport", GetParam()}, {"cluster.workers", "2"}});
    OpenCluster cluster(plan);
    std::set<uint64_t> incarnations;
    for (uint32_t node = 0; node < count; ++node) {
      EXPECT_EQ(cluster[node].worker_count(), 2 * count);
      incarnations.insert(cluster[node].peers().incarnation(node));
      for (uint32_t peer = 0; peer < count; ++peer) {
        EXPECT_TRUE(cluster[node].connected(peer));
        EXPECT_EQ(cluster[node].peers().incarnation(peer), cluster[peer].peers().incarnation(peer));
      }
    }
    EXPECT_EQ(incarnations.size(), count);
  }
}

TEST_P(MembershipOver, nodes_are_found_by_name) {
  ClusterPlan plan(3, {{"transport", GetParam()}});
  std::string names;
  for (uint32_t node = 0; node < plan.node_count(); ++node) {
    const std::string& address = plan.address(node);
    names += (node == 0 ? "localhost" : ",localhost") + address.substr(address.rfind(':'));
  }
  plan.set_nodes(names);
  OpenCluster cluster(plan);
}

size_t ring_bytes(session::Membership& from, uint32_t to) {
  const size_t bytes = from.link(to)->outgoing(0).memory().size();
  EXPECT_EQ(from.link(to)->incoming(0).memory().size(), bytes);
  return bytes;
}

// Which nodes leave ring.bytes as it is; the others set it to what it is by default, and offer no such rings.
TEST_P(MembershipOver, links_with_one_lane_each_way_have_larger_rings_if_both_nodes_offer_them) {
  for (const uint32_t unset : {3u, 2u, 0u}) {
    ClusterPlan plan(3, {{"transport", GetParam()}, {"cluster.workers", "1,1,2"}});
    plan.amend([unset](uint32_t node, Config& config) {
      ASSERT_TRUE(config.set("ring.bytes", "32 KiB", node < unset ? "default" : "set").ok());
    });
    OpenCluster cluster(plan);
    EXPECT_EQ(ring_bytes(cluster[0], 1), unset >= 2 ? 65536u : 32768u);
    EXPECT_EQ(ring_bytes(cluster[1], 0), unset >= 2 ? 65536u : 32768u);
    EXPECT_EQ(ring_bytes(cluster[0], 2), 32768u) << "two lanes each way";
    EXPECT_EQ(ring_bytes(cluster[2], 1), 32768u) << "two lanes each way";
  }
  ClusterPlan plan(2, {{"transport", GetParam()}});
  plan.amend([](uint32_t node, Config& config) {
    ASSERT_TRUE(config.set("ring.bytes", "32 KiB", node == 0 ? "default" : "set").ok());
  });
  OpenCluster cluster(plan);
  EXPECT_EQ(ring_bytes(cluster[0], 1), 32768u) << "the other one offers none";
  EXPECT_EQ(ring_bytes(cluster[1], 0), 32768u);
}

// A frame from every worker to every worker, by way of the ready sets, checked for its origin.
TEST_P(MembershipOver, links_carry_frames_between_all_workers) {
  constexpr uint32_t kNodes = 3;
  ClusterPlan plan(kNodes, {{"transport", GetParam()}, {"cluster.workers", "1,3,2"}});
  OpenCluster cluster(plan);

  for (uint32_t from = 0; from < kNodes; ++from) {
    for (uint32_t to = 0; to < kNodes; ++to) {
      const ring::Layout layout = cluster[from].outgoing_layout(to);
      for (uint32_t ring = 0; ring < layout.ring_count(); ++ring) {
        transport::Outgoing& outgoing = cluster[from].link(to)->outgoing(ring);
        const uint64_t mark = from * 1000 + ring;
        ASSERT_TRUE(send_frame(outgoing, std::as_bytes(std::span(&mark, 1))));
        outgoing.post();
      }
    }
  }

  for (uint32_t to = 0; to < kNodes; ++to) {
    for (uint32_t worker = 0; worker < cluster[to].nodes()[to].worker_count; ++worker) {
      uint32_t expected = 0;
      for (uint32_t from = 0; from < kNodes; ++from)
        expected += cluster[to].incoming_layout(from).rings_of_receiver();
      for (uint32_t from = 0; from < kNodes; ++from) {
        cluster[to].link(from)->attach_ready(
            cluster[to].ready_set(worker),
            cluster[to].first_ready(from, worker) / ring::ReadySet::kRingsPerGroup, worker);
      }
      std::set<uint64_t> seen;
      ring::Doorbell doorbell(&cluster[to].doorbell(worker));
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (seen.size() < expected) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "rows are missing";
        doorbell.arm();
        std::vector<uint32_t> ready;
        cluster[to].ready_set(worker).take([&](uint32_t number) { ready.push_back(number); });
        if (ready.empty()) {
          doorbell.sleep(1'000'000'000);
          continue;
        }
        doorbell.disarm();
        for (uint32_t from = 0; from < kNodes; ++from) {
          const ring::Layout layout = cluster[to].incoming_layout(from);
          const uint32_t first = cluster[to].first_ready(from, worker);
          for (uint32_t ring = 0; ring < layout.ring_count(); ++ring) {
            if (layout.receiver_of(ring) != worker) continue;
            if (std::find(ready.begin(), ready.end(), first + layout.index_at_receiver(ring)) ==
                ready.end())
              continue;
            transport::FrameView view;
            while (cluster[to].link(from)->incoming(ring).next(view) == transport::Next::frame) {
              uint64_t mark = 0;
              ASSERT_EQ(view.payload_bytes(), sizeof mark);
              std::memcpy(&mark, view.payload, sizeof mark);
              EXPECT_EQ(mark, from * 1000 + ring);
              EXPECT_TRUE(seen.insert(mark).second) << "a frame came twice";
              cluster[to].link(from)->incoming(ring).release(view.token);
            }
          }
        }
      }
    }
  }
}

TEST(Membership, delivers_control_messages_in_order_and_to_itself) {
  ClusterPlan plan(3);
  OpenCluster cluster(plan);
  constexpr int kMessages = 10'000;  // more than the command queue holds
  for (int i = 0; i < kMessages; ++i) {
    for (uint32_t to = 0; to < 3; ++to) cluster[0].send(to, bytes_of(std::to_string(i)));
  }
  for (uint32_t to = 0; to < 3; ++to) {
    RecordingObserver& observer = cluster.observer(to);
    ASSERT_TRUE(observer.wait([&] { return observer.messages().size() == kMessages; }));
    const auto messages = observer.messages();
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(messages[static_cast<size_t>(i)].from, 0u);
      ASSERT_EQ(messages[static_cast<size_t>(i)].text, std::to_string(i));
    }
  }
}

/// A network whose next round ends with an exception that is not a std::exception, as one of a plug-in with
/// a C++ runtime of its own is not.
class ThrowingNetwork final : public ForwardingNetwork {
 public:
  ThrowingNetwork(std::unique_ptr<links::Network> inner, std::atomic<bool>& throws_next)
      : ForwardingNetwork(std::move(inner)), throws_next_(throws_next) {}
  bool run_once(base::Nanoseconds until) override {
    if (throws_next_.exchange(false)) throw ForeignException{};
    return ForwardingNetwork::run_once(until);
  }

 private:
  struct ForeignException {};
  std::atomic<bool>& throws_next_;
};

TEST(Membership, goes_on_after_an_exception_of_another_runtime) {
  std::atomic<bool> throws_next{false};
  ClusterPlan plan(2);
  plan.wrap_networks([&](uint32_t node, std::unique_ptr<links::Network> inner) {
    return node != 0 ? std::move(inner)
                     : std::make_unique<ThrowingNetwork>(std::move(inner), throws_next);
  });
  OpenCluster cluster(plan);
  // Each message to itself is a round of the network thread, the later of which throws.
  throws_next = true;
  RecordingObserver& observer = cluster.observer(0);
  for (size_t i = 1; throws_next || i == 1; ++i) {
    cluster[0].send(0, bytes_of("round"));
    ASSERT_TRUE(observer.wait([&] { return observer.messages().size() == i; }));
  }
  cluster[0].send(1, bytes_of("still here"));
  ASSERT_TRUE(cluster.observer(1).wait([&] { return !cluster.observer(1).messages().empty(); }));
  EXPECT_EQ(cluster.observer(1).messages()[0].text, "still here");
}

// The connection breaks when only the node that dials knows that both have agreed.
TEST(Membership, loses_a_node_that_has_lost_this_one_instead_of_letting_the_link_go) {
  ClusterPlan plan(2, {{"cluster.node_limit", "4"}});
  OpenCluster cluster(plan);
  (void)cluster[1].peers().on(0, session::Peers::Event::agreed);
  cluster[0].fail_link(1, cluster[0].link(1), Status(Code::peer_lost, "it breaks"));
  for (const uint32_t n : {0u, 1u})
    ASSERT_TRUE(cluster.observer(n).wait([&] { return !cluster.observer(n).losses().empty(); }));
  cluster[1].want_link(0);
  ASSERT_TRUE(cluster.observer(1).wait([&] { return cluster.observer(1).losses().size() >= 2; }));
  const RecordingObserver::Loss loss = cluster.observer(1).losses()[1];
  EXPECT_EQ(loss.node, 0u);
  expect_error(loss.cause, Code::peer_lost, {"refuses this process", "has to start again"});
}

}  // namespace
}  // namespace faro::test
