// What goes wrong while a cluster opens, runs and closes, with all nodes in this process: every wait ends, and every
// error says which node, key and values.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "faro/log.h"
#include "support/cluster.h"
#include "support/log_lines.h"
#include "support/pausable_network.h"
#include "support/raw_peer.h"
#include "support/traces.h"
#include "wire/control.h"
#include "wire/preamble.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

using Pairs = ClusterPlan::Settings;

class OpeningTrouble : public testing::Test {
 protected:
  LogLines log_;
};

TEST_F(OpeningTrouble,
       a_different_setting_ends_open_at_once_on_both_nodes_and_names_key_and_values) {
  ClusterPlan plan(2);
  const auto start = steady_clock::now();
  ThreadCluster cluster(plan, [](uint32_t node) {
    return node == 1 ? Pairs{{"ring.bytes", "8192"}} : Pairs{};
  });
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20)) << "it waited for the deadline";
  for (uint32_t node = 0; node < 2; ++node) {
    expect_error(cluster.status(node), Code::configuration_mismatch,
                 {"ring.bytes is ", "8192 on node 1 (" + plan.address(1) + ")",
                  "4096 on node 0 (" + plan.address(0) + ")"});
  }
}

TEST_F(OpeningTrouble, nodes_whose_lanes_end_elsewhere_refuse_each_other_by_name) {
  for (const auto& [one, other] : {std::pair{"workers", "node"}, {"node", "both"}}) {
    SCOPED_TRACE(other);
    ClusterPlan plan(2, {{"lane.ends", one}});
    ThreadCluster cluster(plan, [value = other](uint32_t node) {
      return node == 1 ? Pairs{{"lane.ends", value}} : Pairs{};
    });
    for (uint32_t node = 0; node < 2; ++node) {
      expect_error(cluster.status(node), Code::configuration_mismatch,
                   {"lane.ends is ", other + (" on node 1 (" + plan.address(1) + ")"),
                    one + (" on node 0 (" + plan.address(0) + ")")});
    }
  }
}

TEST_F(OpeningTrouble, a_different_setting_on_one_of_many_nodes_reaches_all) {
  ClusterPlan plan(5, {{"connect.timeout_ms", "5000"}});
  ThreadCluster cluster(plan, [](uint32_t node) {
    return node == 3 ? Pairs{{"liveness.timeout_ms", "1234"}} : Pairs{};
  });
  int named = 0;
  for (uint32_t node = 0; node < 5; ++node) {
    EXPECT_FALSE(cluster.status(node).ok());
    named +=
        cluster.status(node).message().find("liveness.timeout_ms is ") != std::string_view::npos;
  }
  EXPECT_GE(named, 2) << cluster.problems();
}

TEST_F(OpeningTrouble, another_cluster_is_refused_and_ours_opens) {
  ClusterPlan ours(2, {{"cluster.id", "ours"}});
  ClusterPlan theirs(2, {{"cluster.id", "theirs"}, {"connect.timeout_ms", "5000"}});
  theirs.set_nodes(ours.address(0) + "," + theirs.address(1));
  const OpeningNode intruder(theirs, 1);
  const OpeningNode zero(ours, 0);
  const Status refused = intruder.status();  // node 0 is alone until its answer has come
  const OpeningNode one(ours, 1);
  expect_open({&zero, &one});
  expect_error(refused, Code::configuration_mismatch,
               {"cluster.id is ours on node 0", "theirs on node 1"});
  EXPECT_EQ(log_.count("cluster.id is ours"), 1u);
}

TEST_F(OpeningTrouble,
       of_two_nodes_with_the_same_number_the_second_is_refused_and_the_first_opens) {
  ClusterPlan plan(3);
  ClusterPlan twin(3);
  twin.set_nodes(plan.addresses());
  const OpeningNode zero(plan, 0);
  const OpeningNode first(plan, 2);
  const OpeningNode second(twin, 2);
  // The winner cannot be open yet: node 1 is missing.
  while (!first.has_ended() && !second.has_ended()) std::this_thread::yield();
  const OpeningNode one(plan, 1);
  expect_open({&zero, &one});
  ASSERT_NE(first.status().ok(), second.status().ok());
  expect_error(first.status().ok() ? second.status() : first.status(), Code::configuration_mismatch,
               {"node number 2 is taken"});
}

TEST_F(OpeningTrouble, a_node_at_the_address_of_another_number_ends_open_on_both) {
  ClusterPlan plan(3);
  ClusterPlan swapped(3);
  // Node 2 believes that node 0 listens where node 1 does.
  swapped.set_nodes(plan.address(1) + "," + plan.address(0) + "," + plan.address(2));
  const OpeningNode first(plan, 1);
  const OpeningNode second(swapped, 2);
  const Status one = first.status();
  const Status two = second.status();
  expect_error(one, Code::configuration_mismatch, {"is node 1"});
  expect_error(two, Code::configuration_mismatch, {plan.address(1) + " is node 1"});
}

TEST_F(OpeningTrouble, a_node_that_reaches_itself_says_so) {
  ClusterPlan plan(2);
  const std::string own = plan.address(1);
  plan.set_nodes("localhost" + own.substr(own.rfind(':')) + "," + own);
  expect_error(OpeningNode(plan, 1).status(), Code::configuration_mismatch, {"reaches itself"});
}

TEST_F(OpeningTrouble, another_protocol_version_is_refused_by_name) {
  ClusterPlan plan(2);
  const OpeningNode opening(plan, 0);
  wire::Hello hello = plan.hello(1);
  hello.head.version = 77;
  auto message = wire::encode(hello);
  message.resize(40);  // what follows the head may be anything in another version
  RawPeer old(plan.address(0));
  ASSERT_TRUE(old.connected());
  old.send_preamble();
  old.send_message(message);
  const auto ending = value_of(old.receive_ending());
  EXPECT_EQ(ending.code, Code::configuration_mismatch);
  expect_contains(ending.reason, "speaks protocol version 4");
  expect_contains(ending.reason, "speaks version 77");
  // It is of our cluster: open cannot succeed.
  expect_error(opening.status(), Code::configuration_mismatch, {"speaks version 77"});
}

TEST_F(OpeningTrouble, garbage_and_half_handshakes_do_not_keep_the_cluster_from_opening) {
  ClusterPlan plan(3);
  std::vector<std::unique_ptr<RawPeer>> outsiders;
  for (uint32_t node = 0; node < 3; ++node) {
    for (int i = 0; i < 60; ++i) {
      auto outsider = std::make_unique<RawPeer>(plan.address(node));
      ASSERT_TRUE(outsider->connected());
      const int kind = i % 6;  // the last says nothing
      if (kind == 0) outsider->send_text("GET / HTTP/1.1\r\nHost: example\r\n\r\n");
      if (kind == 1) outsider->send_text("FARO");
      if (kind >= 2 && kind <= 4) outsider->send_preamble();
      if (kind == 3) outsider->send_text(std::string(300, '\xff'));
      if (kind == 4) {
        auto half = wire::encode(plan.hello(2, node));
        half.resize(half.size() / 2);
        outsider->send_message(half);
      }
      outsiders.push_back(std::move(outsider));
    }
  }
  OpenCluster cluster(plan);
  cluster[2].send(0, bytes_of("hello"));
  EXPECT_TRUE(cluster.observer(0).wait([&] { return cluster.observer(0).messages().size() == 1; }));
  EXPECT_GT(log_.count("does not begin") + log_.count("not a Faro connection"), 0u);
  // Those who said something wrong are out; one line per cause, not per outsider.
  EXPECT_TRUE(outsiders[0]->closed_within(10'000));
  EXPECT_TRUE(outsiders[3]->closed_within(10'000));
  EXPECT_LE(log_.count("dropped a connection"), 3u * 4u);
}

TEST_F(OpeningTrouble, a_taken_port_is_named) {
  auto taken = value_of(links::ListeningSocket::bind("127.0.0.1:0"));
  const auto network = links::SocketNetwork::create(
      base::Settings::resolve_without_nodes({}).value(), taken.address());
  ASSERT_FALSE(network.ok());
  expect_error(network.status(), Code::address_in_use, {taken.address()});
}

TEST_F(OpeningTrouble, a_memory_limit_that_is_too_small_is_an_error_before_anyone_is_dialled) {
  ClusterPlan plan(2);
  expect_error(OpeningNode(plan, 1, {{"memory.limit_bytes", "10000"}}).status(),
               Code::resource_limit, {"memory.limit_bytes is 10000 bytes", "need "});
}

std::unique_ptr<links::Network> foreign(uint32_t node, std::unique_ptr<links::Network> network) {
  return std::make_unique<RemoteHostNetwork>(std::move(network), "host " + std::to_string(node));
}

TEST_F(OpeningTrouble, nodes_of_different_hosts_are_linked_by_tcp) {
  ClusterPlan plan(2);
  plan.wrap_networks(foreign);
  OpenCluster cluster(plan);
  EXPECT_EQ(cluster[0].link(1)->capabilities().name, "tcp");
  EXPECT_EQ(cluster[1].link(0)->capabilities().name, "tcp");
}

TEST_F(OpeningTrouble, forced_shared_memory_between_hosts_is_an_error_on_both) {
  ClusterPlan plan(2, {{"transport", "shm"}});
  plan.wrap_networks(foreign);
  ThreadCluster cluster(plan);
  for (uint32_t node = 0; node < 2; ++node) {
    EXPECT_FALSE(cluster.status(node).ok());
    expect_contains(cluster.status(node).message(), "transport = shm");
    expect_contains(cluster.status(node).message(), "do not run on one host");
  }
}

TEST_F(OpeningTrouble, forced_verbs_without_its_module_is_an_error_that_names_the_path) {
  ClusterPlan plan(2,
                   {{"transport", "verbs"}, {"verbs.module", "/no/such/folder/libfaro_verbs.so"}});
  ThreadCluster cluster(plan);
  for (uint32_t node = 0; node < 2; ++node) {
    expect_error(cluster.status(node), Code::transport_unavailable,
                 {"transport = verbs", "/no/such/folder/libfaro_verbs.so"});
  }
}

TEST_F(OpeningTrouble, verbs_that_is_not_there_is_not_missed) {
  ClusterPlan plan(2, {{"verbs.module", "/no/such/folder/libfaro_verbs.so"}});
  plan.wrap_networks(foreign);
  OpenCluster cluster(plan);
  EXPECT_EQ(cluster[0].link(1)->capabilities().name, "tcp");
}

// Enough for the least need (shared memory: one copy of the rings), too little for what tcp takes; which of them
// it will be is known when the peers are.
TEST_F(OpeningTrouble, the_exact_need_is_checked_when_the_peers_are_known) {
  ClusterPlan plan(2, {{"ring.bytes", "64 KiB"}});
  plan.wrap_networks(foreign);
  const auto start = steady_clock::now();
  ThreadCluster cluster(plan, [](uint32_t node) {
    return node == 0 ? Pairs{{"memory.limit_bytes", "350000"}} : Pairs{};
  });
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20)) << "it waited for the deadline";
  expect_error(cluster.status(0), Code::resource_limit, {"memory.limit_bytes is 350000 bytes"});
  // The other is told whose limit it is.
  expect_error(cluster.status(1), Code::connect_failed,
               {"node 0 (" + plan.address(0) + ")", "memory.limit_bytes is 350000 bytes"});
}

TEST_F(OpeningTrouble, at_the_deadline_the_missing_nodes_and_causes_are_listed) {
  ClusterPlan plan(4, {{"connect.timeout_ms", "2000"}});
  { const links::ListeningSocket closed = plan.take_listener(0); }  // nobody listens there
  expect_error(OpeningNode(plan, 2).status(), Code::connect_failed,
               {"0 of 3 peers linked within connect.timeout_ms = 2000",
                "node 0 (" + plan.address(0) + "): connect to", "Connection refused",
                "node 3 (" + plan.address(3) + "): it has not connected"});
  // Whoever looks before the deadline sees it in the log.
  EXPECT_EQ(log_.count("node 2 (" + plan.address(2) + "): still waits for node 0 (" +
                       plan.address(0) + "): connect to"),
            1u);
}

TEST_F(OpeningTrouble, a_node_that_starts_after_the_others_gave_up_says_who_is_not_there) {
  ClusterPlan plan(3, {{"connect.timeout_ms", "300"}});
  const OpeningNode zero(plan, 0);
  const OpeningNode one(plan, 1);
  EXPECT_EQ(zero.status().code(), Code::connect_failed);
  EXPECT_EQ(one.status().code(), Code::connect_failed);
  const Status late = OpeningNode(plan, 2).status();
  EXPECT_EQ(late.code(), Code::connect_failed) << late.to_string();
  for (uint32_t node = 0; node < 2; ++node) {
    const std::string missing = "node " + std::to_string(node) + " (" + plan.address(node) + ")";
    expect_contains(late.message(), missing + ": connect to");
    EXPECT_EQ(log_.count(missing + ": connect to"), 1u);
  }
  EXPECT_EQ(log_.count("node 2 (" + plan.address(2) + "): still waits for node 0"), 1u);
}

TEST_F(OpeningTrouble, a_slow_starter_is_waited_for) {
  ClusterPlan plan(3);
  { const links::ListeningSocket closed = plan.take_listener(0); }
  OpeningNode one(plan, 1);
  const OpeningNode two(plan, 2);
  // The late one begins when the others have been refused there for a while: a tick tells.
  ASSERT_TRUE(one.observer().wait([&] { return one.observer().ticks() >= 0; }));
  plan.listen_again(0);
  const OpeningNode zero(plan, 0);
  expect_open({&zero, &one, &two});
}

TEST_F(OpeningTrouble, nodes_that_are_not_dialled_may_have_port_zero) {
  ClusterPlan plan(2);
  plan.set_nodes(plan.address(0) + ",127.0.0.1:0");
  OpenCluster cluster(plan);
  expect_contains(cluster[0].nodes()[1].name, plan.address(1));
  ClusterPlan unreachable(2);
  unreachable.set_nodes("127.0.0.1:0," + unreachable.address(1));
  expect_error(OpeningNode(unreachable, 1).status(), Code::config_invalid,
               {"cluster.nodes: node 0"});
}

TEST_F(OpeningTrouble, ipv6_works_where_the_machine_has_it) {
  if (!links::ListeningSocket::bind("[::1]:0").ok()) GTEST_SKIP() << "no IPv6 loopback here";
  ClusterPlan plan(3, {}, "[::1]");
  for (const char* transport : {"shm", "tcp"}) {
    ClusterPlan each(3, {{"transport", transport}}, "[::1]");
    OpenCluster cluster(each);
  }
}

class RunningTrouble : public OpeningTrouble {};

TEST_F(RunningTrouble, a_late_unauthenticated_peer_is_refused_politely) {
  ClusterPlan plan(2);
  OpenCluster cluster(plan);
  RawPeer late(plan.address(0));
  wire::Hello hello = plan.hello(1);
  hello.cluster_id = "somebody else";
  late.send_preamble();
  late.send_message(wire::encode(hello));
  const auto ending = value_of(late.receive_ending());
  EXPECT_FALSE(ending.retry);
  expect_contains(ending.reason, "cluster.id is faro on node 0");
  EXPECT_TRUE(late.closed_within(10'000));
  EXPECT_TRUE(cluster[0].connected(1));
}

TEST_F(RunningTrouble, a_node_that_comes_back_with_a_number_in_use_is_refused) {
  ClusterPlan plan(2);
  OpenCluster cluster(plan);
  ClusterPlan again(2, {{"connect.timeout_ms", "5000"}});
  again.set_nodes(plan.addresses());
  expect_error(OpeningNode(again, 1).status(), Code::configuration_mismatch,
               {"node number 1 is taken"});
  EXPECT_TRUE(cluster[0].connected(1));
  EXPECT_TRUE(cluster.observer(0).losses().empty());
}

// An old process, or one that guesses, gets nothing of a link by naming it, and does it no harm.
TEST_F(RunningTrouble, only_the_process_at_the_other_end_can_mend_a_link) {
  ClusterPlan plan(2);
  OpenCluster cluster(plan);
  for (const wire::LinkName& name :
       {wire::LinkName{0, 1}, wire::LinkName{cluster[0].peers().incarnation(0), 1},
        wire::LinkName{cluster[0].peers().incarnation(0), 0}}) {
    wire::Hello hello = plan.hello(1);  // of another incarnation than the node that is linked
    hello.mends = name;
    RawPeer old(plan.address(0));
    old.send_preamble();
    old.send_message(wire::encode(hello));
    const auto ending = value_of(old.receive_ending());
    EXPECT_EQ(ending.code, Code::peer_lost);
    EXPECT_FALSE(ending.retry);
    expect_contains(ending.reason, "does not have that link (any more)");
  }
  EXPECT_TRUE(cluster[0].connected(1));
  EXPECT_TRUE(cluster.observer(0).losses().empty());
}

// Incarnations and numbers of links are no secrets: another member may know them.
TEST_F(RunningTrouble, another_node_cannot_mend_a_link) {
  ClusterPlan plan(3);
  OpenCluster cluster(plan);
  for (uint64_t number = 1; number <= 4; ++number) {
    wire::Hello hello = plan.hello(2);
    hello.incarnation = cluster[0].peers().incarnation(1);
    hello.mends = wire::LinkName{cluster[0].peers().incarnation(0), number};
    RawPeer other(plan.address(0));
    other.send_preamble();
    other.send_message(wire::encode(hello));
    const auto ending = value_of(other.receive_ending());
    EXPECT_EQ(ending.code, Code::peer_lost);
    expect_contains(ending.reason, "does not have that link (any more)");
  }
  EXPECT_TRUE(cluster[0].connected(1));
}

/// Node 1 of a cluster of two, made by hand: its link with node 0 over tcp.
class HandMember {
 public:
  explicit HandMember(ClusterPlan& plan) : plan_(plan) {}

  /// Dials node 0, and says what is said up to LINK.
  void dials(const std::optional<wire::LinkName>& mends) {
    control_.emplace(plan_.address(0));
    wire::Hello hello = plan_.hello(1);
    hello.mends = mends;
    control_->send_preamble();
    control_->send_message(wire::encode(hello));
    incarnation_ = value_of(wire::decode_hello(next(wire::ControlKind::hello))).incarnation;
    control_->send_message(wire::encode(wire::Auth{wire::AuthMethod::none, true, {}}));
    next(wire::ControlKind::auth);
    if (mends) control_->send_message(wire::encode_resume({.messages = members_}));
    choice_ = value_of(wire::decode_link_choice(next(wire::ControlKind::link)));
  }
  void mends() {
    control_.reset();
    dials(wire::LinkName{incarnation_, choice_.number});
  }
  const transport::StreamToken& token() const { return choice_.token; }
  /// A data connection for the link with that token.
  RawPeer data(const transport::StreamToken& token) const {
    RawPeer peer(plan_.address(0));
    const wire::Preamble preamble = wire::data_preamble(token);
    peer.send_bytes(std::as_bytes(std::span(&preamble, 1)));
    return peer;
  }
  /// Both sides are ready.
  void is_ready() {
    next(wire::ControlKind::ready);
    control_->send_message(wire::encode_plain(wire::ControlKind::ready));
  }

 private:
  // The next message of that kind.
  wire::ControlMessage next(wire::ControlKind kind) {
    for (;;) {
      auto message = control_->receive();
      if (!message) throw std::runtime_error("no " + std::string(wire::name_of(kind)));
      members_ += wire::kind_of(*message) == wire::ControlKind::members ? 1 : 0;
      if (wire::kind_of(*message) == kind) return *message;
    }
  }

  ClusterPlan& plan_;
  std::optional<RawPeer> control_;
  uint64_t incarnation_ = 0;
  uint64_t members_ = 0;  // that have come: they count
  wire::LinkChoice choice_;
};

// Somebody may have seen it, or dial late: between the break and the mending of a link, and afterwards.
TEST_F(RunningTrouble, the_token_of_a_broken_connection_opens_nothing) {
  ClusterPlan plan(2, {{"transport", "tcp"},
                       {"liveness.timeout_ms", "60000"},
                       {"link.mend_ms", "60000"},
                       {"close.timeout_ms", "1000"}});
  OpeningNode node(plan, 0);
  HandMember member(plan);
  member.dials(std::nullopt);
  const transport::StreamToken first = member.token();
  RawPeer old_data = member.data(first);
  member.is_ready();
  ASSERT_TRUE(is_ok(node.opened()));
  session::Membership& opened = **node.opened();

  member.mends();
  const transport::StreamToken second = member.token();
  EXPECT_NE(second, first);
  EXPECT_TRUE(old_data.closed_within(10'000));
  EXPECT_TRUE(member.data(first).closed_within(10'000));
  RawPeer data = member.data(second);
  member.is_ready();
  EXPECT_TRUE(member.data(first).closed_within(10'000));
  EXPECT_FALSE(data.closed_within(0));
  EXPECT_TRUE(opened.connected(1));
  EXPECT_TRUE(node.observer().losses().empty());
}

TEST_F(RunningTrouble, a_link_failed_above_is_lost_on_both_sides_with_the_cause) {
  ClusterPlan plan(3);
  OpenCluster cluster(plan);
  cluster[0].fail_link(1, cluster[0].link(1),
                       Status(Code::protocol_error, "frame for a slot that was never opened"));
  for (uint32_t node = 0; node < 2; ++node) {
    RecordingObserver& observer = cluster.observer(node);
    ASSERT_TRUE(observer.wait([&] { return observer.losses().size() == 1; }));
    const auto losses = observer.losses();
    EXPECT_EQ(losses[0].node, 1 - node);
    expect_error(losses[0].cause, Code::protocol_error,
                 {cluster[node].nodes()[1 - node].name, "a slot that was never opened"});
    EXPECT_EQ(log_.count(std::string(losses[0].cause.message())), 1u) << "one line, in full";
    EXPECT_FALSE(cluster[node].connected(1 - node));
    EXPECT_TRUE(cluster[node].connected(2));
    // The memory is still there.
    EXPECT_EQ(cluster[node].link(1 - node)->outgoing(0).pending_bytes(), 0u);
  }
  cluster[2].send(0, bytes_of("still"));
  EXPECT_TRUE(cluster.observer(0).wait([&] { return cluster.observer(0).messages().size() == 1; }));
  EXPECT_TRUE(cluster.observer(2).losses().empty());
}

class Closing : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, Closing, testing::Values("shm", "tcp"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_P(Closing, in_any_order_tells_the_others_that_a_node_has_left) {
  for (const std::vector<uint32_t>& order :
       {std::vector<uint32_t>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
    ClusterPlan plan(3, {{"transport", GetParam()}});
    OpenCluster cluster(plan);
    for (size_t i = 0; i < order.size(); ++i) {
      cluster[order[i]].close();
      for (size_t k = i + 1; k < order.size(); ++k) {
        RecordingObserver& observer = cluster.observer(order[k]);
        ASSERT_TRUE(observer.wait([&] { return observer.left().size() == i + 1; }));
        EXPECT_EQ(observer.left().back(), order[i]);
        EXPECT_FALSE(cluster[order[k]].connected(order[i]));
        EXPECT_EQ(cluster[order[k]].link(order[i])->capabilities().name, GetParam())
            << "metrics still tell what the link was";
      }
    }
    for (uint32_t node = 0; node < 3; ++node) EXPECT_TRUE(cluster.observer(node).losses().empty());
  }
}

TEST_P(Closing, delivers_what_was_sent_before) {
  ClusterPlan plan(2, {{"transport", GetParam()}});
  OpenCluster cluster(plan);
  for (int i = 0; i < 500; ++i) cluster[0].send(1, bytes_of(std::string(1000, 'x')));
  cluster[0].close();
  RecordingObserver& observer = cluster.observer(1);
  ASSERT_TRUE(observer.wait([&] { return observer.left().size() == 1; }));
  EXPECT_EQ(observer.messages().size(), 500u);
}

// It waits for the goodbye of node 2, and meanwhile node 1, whose link is gone, looks for a process
// that comes in its place.
TEST_P(Closing, warns_nobody_who_looks_for_its_successor_meanwhile) {
  ClusterPlan plan(3, {{"transport", GetParam()}});
  PausableNetwork* slow = nullptr;
  PausableNetwork::give(plan, 2, slow);
  OpenCluster cluster(plan);
  set_log_level(LogLevel::debug);
  {
    const LogLines log;
    slow->pause();
    std::thread closing([&] { cluster[0].close(); });
    const auto deadline = steady_clock::now() + std::chrono::seconds(10);
    while (log.count("node 0 (" + plan.address(0) + "): refused a connection") == 0 &&
           steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_EQ(log.count("refused a connection"), 1u);
    slow->resume();
    closing.join();
    EXPECT_EQ(log.warnings(), 0u);
  }
  set_log_level(LogLevel::warning);
}

TEST_P(Closing, twice_and_from_several_threads_is_harmless) {
  ClusterPlan plan(2, {{"transport", GetParam()}});
  OpenCluster cluster(plan);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { cluster[static_cast<uint32_t>(i % 2)].close(); });
  for (std::thread& thread : threads) thread.join();
  cluster[0].close();
  cluster[1].close();
  cluster[0].send(1, bytes_of("into the void"));
  EXPECT_FALSE(cluster[0].connected(1));
}

TEST_P(Closing, two_hundred_sessions_leave_no_descriptor_and_no_thread) {
#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_THREAD)
  constexpr int kRounds = 30;
#else
  constexpr int kRounds = 200;
#endif
  std::ptrdiff_t descriptors = 0;
  std::ptrdiff_t threads = 0;
  for (int round = 0; round < kRounds; ++round) {
    {
      ClusterPlan plan(2, {{"transport", GetParam()}});
      OpenCluster cluster(plan);
    }
    if (round == 5) {  // what is made once and kept is there
      descriptors = entries_of("/proc/self/fd");
      threads = entries_of("/proc/self/task");
    }
  }
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  // A thread that was joined may have been listed yet when they were counted.
  EXPECT_LE(entries_of("/proc/self/task"), threads);
}

}  // namespace
}  // namespace faro::test
