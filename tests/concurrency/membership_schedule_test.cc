// What nodes say of network.schedule when they open: who differs is refused, and where it has no effect, or less than it says, the
// log tells it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "faro/log.h"
#include "support/cluster.h"
#include "support/log_lines.h"
#include "transport/tcp/tcp_transport.h"

namespace faro::test {
namespace {

using Pairs = ClusterPlan::Settings;

const std::pair<std::string, std::string> kPhases{"network.schedule", "phases"};

class MembershipSchedule : public testing::Test {
 protected:
  MembershipSchedule() { set_log_level(LogLevel::info); }
  ~MembershipSchedule() override { set_log_level(LogLevel::warning); }

  LogLines log_;
};

/// Moves rows as tcp does, under the name of verbs: that needs no device.
class TcpAsVerbs final : public transport::Transport {
 public:
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Status available() const override { return tcp_.available(); }
  uint64_t memory_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override {
    return tcp_.memory_bytes(outgoing, incoming);
  }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext& context) override {
    return tcp_.begin(context);
  }

 private:
  transport::tcp::TcpTransport tcp_;
  const transport::Capabilities capabilities_{
      .name = "verbs", .same_host_only = false, .mends = 0, .dials_data = true};
};

class VerbsNetwork final : public ForwardingNetwork {
 public:
  using ForwardingNetwork::ForwardingNetwork;
  transport::Transport* own_transport() override { return &transport_; }

 private:
  TcpAsVerbs transport_;
};

TEST_F(MembershipSchedule, nodes_that_differ_in_it_refuse_each_other_by_name) {
  struct Difference {
    const char* name;
    const char* value;
    const char* other;
  };
  const Difference kDifferences[] = {{"network.schedule", "off", "phases"},
                                     {"network.turn_bytes", "4194304", "8388608"},
                                     {"network.turn_ms", "10", "20"},
                                     {"network.schedule_from", "1048576", "1000"}};
  for (const Difference& difference : kDifferences) {
    SCOPED_TRACE(difference.name);
    const std::string name = difference.name;
    ClusterPlan plan(2, name == "network.schedule" ? Pairs{} : Pairs{kPhases});
    ThreadCluster cluster(plan, [&](uint32_t node) {
      return node == 1 ? Pairs{{name, difference.other}} : Pairs{};
    });
    for (uint32_t node = 0; node < 2; ++node) {
      expect_error(cluster.status(node), Code::configuration_mismatch,
                   {name + " is ", std::string(difference.other) + " on node 1",
                    std::string(difference.value) + " on node 0"});
    }
  }
}

TEST_F(MembershipSchedule, two_nodes_are_told_that_it_has_no_effect) {
  ClusterPlan plan(2, {kPhases, {"transport", "tcp"}});
  const OpenCluster cluster(plan);
  EXPECT_EQ(log_.count("network.schedule = phases has no effect with 2 nodes"), 2u);
}

TEST_F(MembershipSchedule, turns_of_more_than_the_rings_hold_are_said_to_end_sooner) {
  const auto open = [](const char* turn_bytes) {
    ClusterPlan plan(3, {kPhases,
                         {"transport", "tcp"},
                         {"ring.per_lane", "1"},
                         {"network.turn_bytes", turn_bytes}});
    const OpenCluster cluster(plan);
  };
  open("4097");
  EXPECT_EQ(log_.count("network.turn_bytes = 4097, but the rings to a node hold 4096: a turn ends "
                       "sooner"),
            3u);
  open("4096");
  EXPECT_EQ(log_.count("a turn ends sooner"), 3u);
  EXPECT_EQ(log_.warnings(), 0u);
}

// Once, though each of them has two such links.
TEST_F(MembershipSchedule, each_node_says_once_that_links_by_verbs_have_no_turns) {
  ClusterPlan plan(3, {kPhases});
  plan.wrap_networks([](uint32_t, std::unique_ptr<links::Network> network) {
    return std::make_unique<VerbsNetwork>(std::move(network));
  });
  const OpenCluster cluster(plan);
  EXPECT_EQ(cluster.status(0).code(), Code::ok);
  EXPECT_EQ(log_.count("whose link is by verbs: only tcp has turns"), 3u);
  EXPECT_EQ(log_.warnings(), 3u);
}

TEST_F(MembershipSchedule, off_says_nothing_of_links_by_verbs) {
  ClusterPlan plan(3);
  plan.wrap_networks([](uint32_t, std::unique_ptr<links::Network> network) {
    return std::make_unique<VerbsNetwork>(std::move(network));
  });
  const OpenCluster cluster(plan);
  EXPECT_EQ(log_.count("network.schedule"), 0u);
}

}  // namespace
}  // namespace faro::test
