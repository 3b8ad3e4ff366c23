// Who may join, over real sockets, by shared memory and by TCP: the right, a wrong and no secret; strangers that replay,
// send garbage and come in a storm; and that a node listens beyond loopback only with a secret or on demand.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "faro/log.h"
#include "session/attempt_limiter.h"
#include "session/handshake.h"
#include "session/secret_authentication.h"
#include "support/cluster.h"
#include "support/raw_peer.h"
#include "support/secret_file.h"

namespace faro {
namespace {

using test::ClusterPlan;
using test::kOtherSecret;
using test::RawPeer;
using test::RecordingObserver;
using test::SecretFile;
using test::ThreadCluster;
using test::transports_to_test;

using Pairs = std::vector<std::pair<std::string, std::string>>;

void expect_contains(std::string_view text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string_view::npos) << "'" << part << "' is not in: " << text;
}

class WhoMayJoin : public testing::Test {
 protected:
  WhoMayJoin() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~WhoMayJoin() override { set_log_sink({}); }

  const SecretFile secret_;
  const SecretFile other_{kOtherSecret};
  const Pairs right_ = {{"security.secret_file", secret_.path()}};
  const Pairs wrong_ = {{"security.secret_file", other_.path()}};
};

TEST_F(WhoMayJoin, nodes_with_the_same_secret_over_every_transport) {
  for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
    ClusterPlan plan(4);
    plan.set("transport", transport);
    plan.set("security.secret_file", secret_.path());
    ThreadCluster cluster(plan);
    ASSERT_TRUE(cluster.all_open()) << transport << ": " << cluster.problems();
    for (uint32_t node = 1; node < 4; ++node) EXPECT_TRUE(cluster[0].connected(node));
  }
}

TEST_F(WhoMayJoin, nobody_with_a_wrong_or_missing_secret_and_both_sides_say_so) {
  const struct {
    Pairs zero;
    Pairs one;
    const char* said;
  } cases[] = {{right_, wrong_, "have different secrets"},
               {right_, {}, "has none"},
               {{}, right_, "has none"}};
  for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
    for (const auto& each : cases) {
      ClusterPlan plan(2);
      plan.set("transport", transport);
      plan.set("connect.timeout_ms", "700");
      ThreadCluster cluster(plan, [&](uint32_t node) { return node == 0 ? each.zero : each.one; });
      EXPECT_EQ(cluster.status(1).code(), Code::authentication_failed) << cluster.problems();
      for (uint32_t node = 0; node < 2; ++node) {
        EXPECT_FALSE(cluster.status(node).ok());
        expect_contains(cluster.status(node).message(), each.said);
        expect_contains(cluster.status(node).message(), "node 0 (" + plan.address(0) + ")");
        expect_contains(cluster.status(node).message(), "node 1 (" + plan.address(1) + ")");
      }
    }
  }
}

/// A stranger that speaks for node 1 of a plan; keeps what it says.
class Speaker {
 public:
  Speaker(const ClusterPlan& plan, const std::string& address) : peer_(address) {
    hello_ = session::hello_of(plan.settings(1).value());
    hello_.incarnation = 0x1234;
    hello_.address = "127.0.0.1:9";
    hello_.transports = {"tcp", "shm"};
  }

  /// A whole handshake, or as far as it is let. Returns the last answer.
  std::optional<wire::ControlMessage> authenticate(std::string_view secret) {
    const wire::ControlMessage hello = wire::encode(hello_);
    peer_.send_preamble();
    say(hello);
    const auto answer = peer_.receive();
    if (!answer || wire::kind_of(*answer) != wire::ControlKind::hello) return answer;
    session::SecretAuthentication authentication(
        session::Secret::make(std::as_bytes(std::span(secret)), "the test").value(),
        session::Role::dialling, {}, {hello, *answer});
    std::vector<std::byte> received;
    std::optional<wire::ControlMessage> message;
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<std::byte> payload;
      EXPECT_TRUE(authentication.advance(received, payload).ok());
      say(wire::encode(wire::Auth{authentication.method(), authentication.said_all(), payload}));
      message = peer_.receive();
      if (!message || wire::kind_of(*message) != wire::ControlKind::auth) return message;
      received = wire::decode_auth(*message).value().payload;
    }
    return message;
  }

  const std::vector<wire::ControlMessage>& said() const { return said_; }

 private:
  void say(const wire::ControlMessage& message) {
    said_.push_back(message);
    peer_.send_message(message);
  }

  RawPeer peer_;
  wire::Hello hello_;
  std::vector<wire::ControlMessage> said_;
};

using Opened = Result<std::unique_ptr<session::Membership>>;

/// Opens a node in a thread of its own.
std::future<Opened> open_later(ClusterPlan& plan, uint32_t node, RecordingObserver& observer,
                               const Pairs& settings) {
  return std::async(std::launch::async, [&plan, &observer, node, settings] {
    return plan.open(node, observer, settings);
  });
}

std::string reason_of(const std::optional<wire::ControlMessage>& message) {
  if (!message || wire::kind_of(*message) != wire::ControlKind::refuse) return "no REFUSE";
  return wire::decode_ending(*message).value().reason;
}

TEST_F(WhoMayJoin, a_recorded_handshake_opens_nothing_and_nobody_is_told_a_token) {
  ClusterPlan plan(3);  // node 0 waits for more than the one who is recorded
  RecordingObserver observers[3];
  auto zero = open_later(plan, 0, observers[0], right_);
  std::vector<wire::ControlMessage> recorded;
  {
    Speaker member(plan, plan.address(0));
    const auto last = member.authenticate(test::kSecret);
    ASSERT_TRUE(last && wire::kind_of(*last) == wire::ControlKind::auth) << reason_of(last);
    recorded = member.said();
  }
  RawPeer replay(plan.address(0));
  replay.send_preamble();
  for (const wire::ControlMessage& message : recorded) replay.send_message(message);
  std::optional<wire::ControlMessage> answer;
  while ((answer = replay.receive())) {
    EXPECT_NE(wire::kind_of(*answer), wire::ControlKind::link);
    EXPECT_NE(wire::kind_of(*answer), wire::ControlKind::setup);
    if (wire::kind_of(*answer) == wire::ControlKind::refuse) break;
  }
  expect_contains(reason_of(answer), "have different secrets");
  EXPECT_TRUE(replay.closed_within(10'000));
  auto one = open_later(plan, 1, observers[1], right_);
  auto two = open_later(plan, 2, observers[2], right_);
  const Opened nodes[] = {zero.get(), one.get(), two.get()};
  for (const Opened& node : nodes) EXPECT_TRUE(node.ok()) << node.status().to_string();
}

TEST_F(WhoMayJoin, a_storm_of_guesses_and_garbage_is_cut_short_and_the_cluster_opens) {
  ClusterPlan plan(2);
  RecordingObserver observers[2];
  auto zero = open_later(plan, 0, observers[0], right_);
  int refused = 0;
  bool limited = false;
  for (int i = 0; i < 4 * session::AttemptLimiter::kAtOnce; ++i) {
    RawPeer garbage(plan.address(0));
    garbage.send_preamble();
    garbage.send_message(wire::encode(wire::Auth{wire::AuthMethod::secret, true, {}}));
    Speaker guess(plan, plan.address(0));
    const auto last = guess.authenticate(kOtherSecret);
    const std::string reason = reason_of(last);
    refused += reason.find("have different secrets") != std::string::npos;
    limited |= reason.find("too many attempts") != std::string::npos;
  }
  EXPECT_GE(refused, session::AttemptLimiter::kAtOnce);
  EXPECT_LT(refused, 2 * session::AttemptLimiter::kAtOnce) << "it is not limited";
  EXPECT_TRUE(limited);
  // Node 1 comes from the same address: it is let in when the address may try again.
  auto one = open_later(plan, 1, observers[1], right_);
  const Opened nodes[] = {zero.get(), one.get()};
  for (const Opened& node : nodes) EXPECT_TRUE(node.ok()) << node.status().to_string();
}

TEST_F(WhoMayJoin, who_is_about_to_is_not_pushed_out_by_a_flood_from_elsewhere) {
  ClusterPlan plan(2);
  RecordingObserver observers[2];
  auto zero = open_later(plan, 0, observers[0], right_);
  RawPeer honest(plan.address(0));
  honest.send_preamble();
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (int i = 0; i < 300; ++i) {  // more than a node keeps
    flood.push_back(std::make_unique<RawPeer>(plan.address(0), "127.0.0.2"));
    ASSERT_TRUE(flood.back()->connected());
    flood.back()->send_preamble();
  }
  EXPECT_TRUE(flood[0]->closed_within(4000)) << "nobody was pushed out";
  wire::Hello hello = session::hello_of(plan.settings(1).value());
  hello.incarnation = 0x1234;
  hello.transports = {"tcp"};
  honest.send_message(wire::encode(hello));
  const auto answer = honest.receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(wire::kind_of(*answer), wire::ControlKind::hello);
  flood.clear();
  auto one = open_later(plan, 1, observers[1], right_);
  const Opened nodes[] = {zero.get(), one.get()};
  for (const Opened& node : nodes) EXPECT_TRUE(node.ok()) << node.status().to_string();
}

TEST_F(WhoMayJoin, a_node_listens_beyond_loopback_only_with_a_secret_or_on_demand) {
  const auto open = [](const Pairs& settings) {
    ClusterPlan plan(1, "0.0.0.0");
    RecordingObserver observer;
    return plan.open(0, observer, settings).status();
  };
  const Status refused = open({{"security.open", "0"}});
  EXPECT_EQ(refused.code(), Code::config_invalid);
  expect_contains(refused.message(), "security.secret_file");
  expect_contains(refused.message(), "security.open = 1");
  EXPECT_TRUE(open({{"security.open", "1"}}).ok());
  EXPECT_TRUE(open({{"security.open", "0"}, right_[0]}).ok());
  ClusterPlan loopback(1, "127.0.0.1");
  RecordingObserver observer;
  EXPECT_TRUE(loopback.open(0, observer, {{"security.open", "0"}}).ok());
}

}  // namespace
}  // namespace faro
