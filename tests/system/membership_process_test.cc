// Clusters of real processes: connecting, dying, being stopped, closing.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "faro/log.h"
#include "support/child.h"
#include "support/cluster.h"
#include "support/test_network.h"
#include "wire/control.h"

namespace faro::test {
namespace {

// A network whose process dies in its n-th round, or when nothing happens any more.
class DyingNetwork final : public ForwardingNetwork {
 public:
  DyingNetwork(std::unique_ptr<links::Network> inner, int rounds)
      : ForwardingNetwork(std::move(inner)), rounds_left_(rounds) {}
  bool run_once(base::Nanoseconds until) override {
    if (rounds_left_-- <= 0) die();
    const bool worked = ForwardingNetwork::run_once(until);
    if (!worked) die();
    return worked;
  }

 private:
  static void die() { kill(getpid(), SIGKILL); }

  int rounds_left_;
};

// A network whose process dies when it would send its n-th message that sets up a link, counted over all links.
class NetworkThatDiesBeforeAMessage final : public ForwardingNetwork,
                                            private links::Network::Acceptor {
 public:
  NetworkThatDiesBeforeAMessage(std::unique_ptr<links::Network> inner, int messages)
      : ForwardingNetwork(std::move(inner)), left_(messages) {}
  void set_acceptor(links::Network::Acceptor* acceptor) override {
    acceptor_ = acceptor;
    ForwardingNetwork::set_acceptor(acceptor == nullptr ? nullptr : this);
  }
  void connect(
      const std::string& address,
      std::function<void(Result<std::unique_ptr<links::ControlConnection>>)> done) override {
    ForwardingNetwork::connect(address,
                               [this, done = std::move(done)](
                                   Result<std::unique_ptr<links::ControlConnection>> connection) {
                                 if (!connection.ok()) return done(connection.status());
                                 done(std::unique_ptr<links::ControlConnection>(
                                     std::make_unique<Connection>(std::move(*connection), left_)));
                               });
  }

 private:
  class Connection final : public links::ControlConnection {
   public:
    Connection(std::unique_ptr<links::ControlConnection> inner, int& left)
        : inner_(std::move(inner)), left_(left) {}
    void set_handler(Handler* handler) override { inner_->set_handler(handler); }
    void send(std::span<const std::byte> message) override {
      const wire::ControlKind kind = wire::kind_of(message);
      if ((kind == wire::ControlKind::link || kind == wire::ControlKind::setup ||
           kind == wire::ControlKind::ready) &&
          left_-- <= 0) {
        kill(getpid(), SIGKILL);
      }
      inner_->send(message);
    }
    bool flushed() const override { return inner_->flushed(); }
    const std::string& peer_address() const override { return inner_->peer_address(); }

   private:
    const std::unique_ptr<links::ControlConnection> inner_;
    int& left_;
  };

  void on_connection(std::unique_ptr<links::ControlConnection> connection) override {
    acceptor_->on_connection(std::make_unique<Connection>(std::move(connection), left_));
  }
  void on_data_stream(const links::StreamToken& token, transport::DataStream stream) override {
    acceptor_->on_data_stream(token, std::move(stream));
  }

  links::Network::Acceptor* acceptor_ = nullptr;
  int left_;
};

// Node 1 of the plan has a network that dies like that.
template <class DeadlyNetwork>
void let_node_1_die(ClusterPlan& plan, int after) {
  plan.wrap_networks(
      [=](uint32_t node,
          std::unique_ptr<links::Network> network) -> std::unique_ptr<links::Network> {
        if (node != 1) return network;
        return std::make_unique<DeadlyNetwork>(std::move(network), after);
      });
}

// A node in a process of its own. It says "open" or "failed <status>", then obeys the test:
//   send <node>     sends a control message            losses   waits for the first loss, says "<node> <cause>"
//   messages <n>    waits for that many, says "got"      count    says the number of losses
//   left <n>        waits until that many have left      beat     waits for a tick after now
//   close           closes, says "closed"              gone <n>  waits until that many are lost or have left
int node_process(const Child::Side& test, ClusterPlan& plan, uint32_t node) {
  set_log_level(LogLevel::off);
  for (uint32_t other = 0; other < plan.node_count(); ++other) {
    if (other == node) continue;
    [[maybe_unused]] const links::ListeningSocket inherited =
        plan.take_listener(other);  // would answer for a dead node
  }
  RecordingObserver observer;
  auto opened = plan.open(node, observer);
  if (!opened.ok()) {
    test.say("failed " + opened.status().to_string());
    return 1;
  }
  session::Membership& membership = *opened.value();
  const auto say_once = [&](const char* word, const auto& condition) {
    test.say(observer.wait(condition) ? word : "nothing");
  };
  test.say("open");
  for (;;) {
    const std::string line = test.hear();
    const std::string word = line.substr(0, line.find(' '));
    const auto number = static_cast<uint32_t>(std::atoi(line.substr(line.find(' ') + 1).c_str()));
    if (word == "send") {
      membership.send(number, bytes_of("message"));
      test.say("sent");
    } else if (word == "messages") {
      say_once("got", [&] { return observer.messages().size() >= number; });
    } else if (word == "left") {
      say_once("left", [&] { return observer.left().size() >= number; });
    } else if (word == "gone") {
      const auto gone = [&] { return observer.losses().size() + observer.left().size(); };
      observer.wait([&] { return gone() >= number; });
      test.say(std::to_string(gone()));
    } else if (word == "losses") {
      if (observer.wait([&] { return !observer.losses().empty(); })) {
        const auto loss = observer.losses().front();
        test.say(std::to_string(loss.node) + " " + loss.cause.to_string());
      } else {
        test.say("nothing");
      }
    } else if (word == "count") {
      test.say(std::to_string(observer.losses().size()));
    } else if (word == "beat") {
      const int before = observer.ticks();
      say_once("beat", [&] { return observer.ticks() > before; });
    } else if (word == "close") {
      membership.close();
      test.say("closed");
    } else {
      return 0;  // the test has ended
    }
  }
}

class Processes {
 public:
  explicit Processes(ClusterPlan& plan) : plan_(plan), children_(plan.node_count()) {
    for (uint32_t node = 0; node < plan.node_count(); ++node) start(node);
  }
  Processes(ClusterPlan& plan, std::initializer_list<uint32_t> first)
      : plan_(plan), children_(plan.node_count()) {
    for (const uint32_t node : first) start(node);
  }
  void start(uint32_t node) {
    children_[node] = std::make_unique<Child>(
        [&](const Child::Side& side) { return node_process(side, plan_, node); });
  }
  Child& operator[](uint32_t node) { return *children_[node]; }
  /// The first line of each node.
  std::vector<std::string> outcomes() {
    // The listeners that this process still has would accept dials on behalf of dead nodes.
    for (uint32_t node = 0; node < plan_.node_count(); ++node) {
      [[maybe_unused]] const links::ListeningSocket closed = plan_.take_listener(node);
    }
    std::vector<std::string> lines;
    for (auto& child : children_) lines.push_back(child->hear().value_or("ended"));
    return lines;
  }
  std::string ask(uint32_t node, const std::string& line) {
    children_[node]->say(line);
    return children_[node]->hear().value_or("ended");
  }

 private:
  ClusterPlan& plan_;
  std::vector<std::unique_ptr<Child>> children_;
};

class ProcessesOver : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Transports, ProcessesOver,
                         testing::ValuesIn(transports_to_test({"auto", "shm", "tcp"})),
                         [](const auto& instance) { return instance.param; });

TEST_P(ProcessesOver, two_to_eight_open_talk_and_close) {
  for (const uint32_t count : {2u, 3u, 5u, 8u}) {
    ClusterPlan plan(count, {{"transport", GetParam()}, {"cluster.workers", "2"}});
    Processes nodes(plan);
    for (const std::string& outcome : nodes.outcomes()) ASSERT_EQ(outcome, "open");
    for (uint32_t from = 0; from < count; ++from) {
      for (uint32_t to = 0; to < count; ++to) nodes.ask(from, "send " + std::to_string(to));
    }
    for (uint32_t node = 0; node < count; ++node) {
      EXPECT_EQ(nodes.ask(node, "messages " + std::to_string(count)), "got");
    }
    for (uint32_t node = 0; node < count; ++node) {
      EXPECT_EQ(nodes.ask(node, "close"), "closed");
      if (node + 1 == count) break;
      EXPECT_EQ(nodes.ask(count - 1, "left " + std::to_string(node + 1)), "left");
    }
    for (uint32_t node = 0; node < count; ++node) EXPECT_EQ(nodes.ask(node, "count"), "0");
  }
}

TEST_P(ProcessesOver, survivors_of_a_killed_node_are_told_and_stay_linked) {
  ClusterPlan plan(4, {{"transport", GetParam()}});
  Processes nodes(plan);
  for (const std::string& outcome : nodes.outcomes()) ASSERT_EQ(outcome, "open");
  nodes[2].signal(SIGKILL);
  nodes[2].wait_for_end();
  for (const uint32_t node : {0u, 1u, 3u}) {
    const std::string loss = nodes.ask(node, "losses");
    EXPECT_EQ(loss.rfind("2 peer_lost: node 2 (" + plan.address(2) + ") is lost", 0), 0u) << loss;
    expect_contains(loss, "died");
  }
  nodes.ask(0, "send 3");
  EXPECT_EQ(nodes.ask(3, "messages 1"), "got");
  for (const uint32_t node : {0u, 1u, 3u}) {
    EXPECT_EQ(nodes.ask(node, "count"), "1");
    EXPECT_EQ(nodes.ask(node, "close"), "closed");
  }
}

// Killed before, while and after it is admitted by the others: without node 3 nobody can be open yet.
TEST(Processes, of_which_one_is_killed_while_connecting_all_say_who_is_missing) {
  for (const int rounds : {0, 1, 2, 3, 5, 1000}) {
    ClusterPlan plan(4, {{"connect.timeout_ms", "2000"}});
    let_node_1_die<DyingNetwork>(plan, rounds);
    Processes nodes(plan, {0, 1, 2});
    EXPECT_EQ(nodes[1].wait_for_end(), -SIGKILL);
    nodes.start(3);
    const auto outcomes = nodes.outcomes();
    EXPECT_EQ(outcomes[1], "ended");
    for (const uint32_t node : {0u, 2u, 3u}) {
      EXPECT_EQ(outcomes[node].rfind("failed connect_failed", 0), 0u) << outcomes[node];
      expect_contains(outcomes[node], "node 1 (" + plan.address(1) + ")");
    }
  }
}

// All are there, so that it also dies when the links are set up: before each message of that, until it is open before.
TEST_P(ProcessesOver, of_which_one_is_killed_at_any_time_until_it_is_open_all_say_so) {
  int lost_while_connecting = 0;
  bool has_opened = false;
  // In an emulated machine those that live take longer to link.
  const char* const connect_timeout_ms = names_addresses() ? "2000" : "500";
  for (int messages = 0; !has_opened; ++messages) {
    ASSERT_LT(messages, 100);
    ClusterPlan plan(4, {{"transport", GetParam()}, {"connect.timeout_ms", connect_timeout_ms}});
    let_node_1_die<NetworkThatDiesBeforeAMessage>(plan, messages);
    Processes nodes(plan);
    const auto outcomes = nodes.outcomes();
    has_opened = outcomes[1] == "open";
    const std::string victim = "node 1 (" + plan.address(1) + ")";
    bool is_lost = false;
    for (const uint32_t node : {0u, 2u, 3u}) {
      if (outcomes[node] == "open") continue;  // before it died
      EXPECT_EQ(outcomes[node].rfind("failed connect_failed", 0), 0u) << outcomes[node];
      expect_contains(outcomes[node], victim);
      is_lost |= outcomes[node].find(victim + " was lost while the cluster was connecting: ") !=
                 std::string::npos;
    }
    lost_while_connecting += is_lost;
  }
  // It says READY to three nodes, and each of those hears of its death while it waits for that.
  EXPECT_GE(lost_while_connecting, 3) << "it did not die when the links were set up";
}

TEST_P(ProcessesOver, a_node_killed_while_it_closes_is_gone_for_the_others_once) {
  ClusterPlan plan(3, {{"transport", GetParam()}});
  Processes nodes(plan);
  for (const std::string& outcome : nodes.outcomes()) ASSERT_EQ(outcome, "open");
  nodes[1].say("close");
  nodes[1].signal(SIGKILL);
  nodes[1].wait_for_end();
  for (const uint32_t node : {0u, 2u}) EXPECT_EQ(nodes.ask(node, "gone 1"), "1");
  nodes.ask(0, "send 2");
  EXPECT_EQ(nodes.ask(2, "messages 1"), "got");
  for (const uint32_t node : {0u, 2u}) EXPECT_EQ(nodes.ask(node, "close"), "closed");
}

TEST(Processes, a_node_stopped_for_less_than_the_limit_is_not_lost) {
  ClusterPlan plan(3, {{"liveness.timeout_ms", "4000"}});
  Processes nodes(plan);
  for (const std::string& outcome : nodes.outcomes()) ASSERT_EQ(outcome, "open");
  nodes[1].stop();
  nodes.ask(0, "beat");  // at least one interval (1 s), at most two
  nodes[1].signal(SIGCONT);
  for (uint32_t node = 0; node < 3; ++node) EXPECT_EQ(nodes.ask(node, "beat"), "beat");
  for (uint32_t node = 0; node < 3; ++node) EXPECT_EQ(nodes.ask(node, "count"), "0");
}

TEST(Processes, a_node_stopped_for_longer_is_lost_and_told_so_and_accuses_nobody) {
  ClusterPlan plan(3, {{"liveness.timeout_ms", "400"}});
  Processes nodes(plan);
  for (const std::string& outcome : nodes.outcomes()) ASSERT_EQ(outcome, "open");
  nodes[1].stop();
  for (const uint32_t node : {0u, 2u}) {
    const std::string loss = nodes.ask(node, "losses");
    expect_contains(loss, "1 peer_lost: node 1 (" + plan.address(1) + ") is lost");
    expect_contains(loss, "heard nothing from node 1");
    expect_contains(loss, "liveness.timeout_ms = 400");
  }
  nodes[1].signal(SIGCONT);
  // It learns that the others have given it up; it does not say that they were silent.
  const std::string loss = nodes.ask(1, "losses");
  expect_contains(loss, "it gave up");
  expect_contains(loss, "heard nothing from node 1");
  for (const uint32_t node : {0u, 2u}) EXPECT_EQ(nodes.ask(node, "count"), "1");
  nodes.ask(0, "send 2");
  EXPECT_EQ(nodes.ask(2, "messages 1"), "got");
}

// All stopped together (a laptop's lid, a paused virtual machine): nobody may be accused afterwards.
TEST(Processes, stopped_together_for_longer_than_the_limit_lose_nobody) {
  ClusterPlan plan(3, {{"liveness.timeout_ms", "400"}});
  Processes nodes(plan);
  for (const std::string& outcome : nodes.outcomes()) ASSERT_EQ(outcome, "open");
  // The stop has to outlast the limit: until others, who stopped later, have been given up.
  ClusterPlan later(2, {{"liveness.timeout_ms", "400"}});
  Processes clock(later);
  for (const std::string& outcome : clock.outcomes()) ASSERT_EQ(outcome, "open");
  for (uint32_t node = 0; node < 3; ++node) nodes[node].stop();
  clock[1].stop();
  expect_contains(clock.ask(0, "losses"), "liveness.timeout_ms = 400");
  for (uint32_t node = 0; node < 3; ++node) nodes[node].signal(SIGCONT);
  for (int beats = 0; beats < 5; ++beats) {
    for (uint32_t node = 0; node < 3; ++node) EXPECT_EQ(nodes.ask(node, "beat"), "beat");
  }
  for (uint32_t node = 0; node < 3; ++node) EXPECT_EQ(nodes.ask(node, "count"), "0");
}

TEST(Processes, too_few_descriptors_are_an_error_before_connecting) {
  ClusterPlan plan(40);
  Child child([&](const Child::Side& side) {
    set_log_level(LogLevel::off);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 200;
    setrlimit(RLIMIT_NOFILE, &limit);
    RecordingObserver observer;
    side.say(plan.open(39, observer).status().to_string());
    return 0;
  });
  const std::string outcome = child.hear().value_or("ended");
  expect_contains(outcome, "resource_limit");
  expect_contains(outcome, "RLIMIT_NOFILE");
}

}  // namespace
}  // namespace faro::test
