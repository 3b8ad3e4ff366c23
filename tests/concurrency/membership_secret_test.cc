// Who may join, over real sockets, by shared memory and by TCP: the right, a wrong and no secret; outsiders that replay,
// send garbage and come in a storm; and that a node listens beyond loopback only with a secret or on demand.
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "links/attempt_limiter.h"
#include "links/secret_authentication.h"
#include "support/cluster.h"
#include "support/crowded_network.h"
#include "support/log_lines.h"
#include "support/raw_peer.h"
#include "support/secret_file.h"

namespace faro::test {
namespace {

using Pairs = ClusterPlan::Settings;

class WhoMayJoin : public testing::Test {
 protected:
  const LogLines log_;
  const SecretFile secret_;
  const SecretFile other_{kOtherSecret};
  const Pairs right_ = {{"security.secret_file", secret_.path()}};
  const Pairs wrong_ = {{"security.secret_file", other_.path()}};
};

TEST_F(WhoMayJoin, nodes_with_the_same_secret_over_every_transport) {
  for (const std::string& transport : transports_to_test({"shm", "tcp"})) {
    ClusterPlan plan(4, {{"transport", transport}, {"security.secret_file", secret_.path()}});
    OpenCluster cluster(plan);
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
      ClusterPlan plan(2, {{"transport", transport}, {"connect.timeout_ms", "1500"}});
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

/// An outsider that speaks for node 1 of a plan to node 0; keeps what it says.
class Speaker {
 public:
  explicit Speaker(const ClusterPlan& plan) : peer_(plan.address(0)), hello_(plan.hello(1)) {}

  /// A whole handshake, or as far as it is let. Returns the last answer.
  std::optional<wire::ControlMessage> authenticate(std::string_view secret) {
    const wire::ControlMessage hello = wire::encode(hello_);
    peer_.send_preamble();
    say(hello);
    const auto answer = peer_.receive();
    if (!answer || wire::kind_of(*answer) != wire::ControlKind::hello) return answer;
    links::SecretAuthentication authentication(
        links::Secret::make(std::as_bytes(std::span(secret)), "the test").value(),
        links::Role::dialling, {}, {hello, *answer});
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
  const wire::Hello hello_;
  std::vector<wire::ControlMessage> said_;
};

std::string reason_of(const std::optional<wire::ControlMessage>& message) {
  if (!message || wire::kind_of(*message) != wire::ControlKind::refuse) return "no REFUSE";
  return wire::decode_ending(*message).value().reason;
}

TEST_F(WhoMayJoin, a_recorded_handshake_opens_nothing_and_nobody_is_told_a_token) {
  ClusterPlan plan(3);  // node 0 waits for more than the one who is recorded
  OpeningNode zero(plan, 0, right_);
  std::vector<wire::ControlMessage> recorded;
  {
    Speaker member(plan);
    const auto last = member.authenticate(kSecret);
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
  OpeningNode one(plan, 1, right_);
  OpeningNode two(plan, 2, right_);
  expect_open({&zero, &one, &two});
}

TEST_F(WhoMayJoin, a_storm_of_guesses_and_garbage_is_cut_short_and_the_cluster_opens) {
  ClusterPlan plan(2);
  OpeningNode zero(plan, 0, right_);
  const base::Clock& clock = base::SystemClock::instance();
  const base::Nanoseconds begin = clock.now_ns();
  constexpr int kGuesses = 3 * links::AttemptLimiter::kAtOnce;
  for (int i = 0; i < kGuesses; ++i) {
    RawPeer garbage(plan.address(0));
    garbage.send_preamble();
    garbage.send_message(wire::encode(wire::Auth{wire::AuthMethod::secret, true, {}}));
    Speaker guess(plan);
    expect_contains(reason_of(guess.authenticate(kOtherSecret)), "have different secrets");
  }
  EXPECT_GE(clock.now_ns() - begin,
            (kGuesses - links::AttemptLimiter::kAtOnce) * links::AttemptLimiter::kInterval)
      << "it is not limited";
  OpeningNode one(plan, 1, right_);
  expect_open({&zero, &one});
}

TEST_F(WhoMayJoin, few_of_an_address_that_keeps_failing_wait_for_their_turn) {
  ClusterPlan plan(2);
  plan.wrap_networks([](uint32_t, std::unique_ptr<links::Network> network) {
    return std::make_unique<CrowdedNetwork>(std::move(network));
  });
  OpeningNode zero(plan, 0, right_);
  std::vector<std::unique_ptr<RawPeer>> storm;
  for (size_t i = 0; i < 3 * links::AttemptLimiter::kWaitingPerAddress; ++i) {
    storm.push_back(std::make_unique<RawPeer>(plan.address(0)));
    storm.back()->send_preamble();
  }
  expect_contains(reason_of(storm.back()->receive()), "wait for their turn already");
  storm.clear();
  // Node 1 comes from the same address: it is let in when those who came before have had theirs.
  OpeningNode one(plan, 1, right_);
  expect_open({&zero, &one});
}

TEST_F(WhoMayJoin, nodes_from_an_address_from_which_somebody_guesses_all_the_time) {
  ClusterPlan plan(2);
  OpeningNode zero(plan, 0, right_);
  std::atomic<bool> over = false;
  std::atomic<int> guesses = 0;
  std::thread guesser([&] {
    while (!over) {
      (void)Speaker(plan).authenticate(kOtherSecret);
      ++guesses;
      guesses.notify_one();
    }
  });
  for (int seen = 0; seen < 2 * links::AttemptLimiter::kAtOnce; seen = guesses) guesses.wait(seen);
  OpeningNode one(plan, 1, right_);
  (void)one.opened();
  over = true;
  guesser.join();
  expect_open({&zero, &one});
}

/// Somebody without the secret who listens where a node should be, and answers everyone with this.
class Impostor {
 public:
  Impostor(const std::string& address, wire::ControlMessage says)
      : listener_(links::ListeningSocket::bind(address).value()), says_(std::move(says)) {}

  /// Answers once.
  void answer_one() {
    pollfd waits{listener_.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&waits, 1, 10'000), 1);
    const base::UniqueFd caller(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto length = static_cast<uint32_t>(says_.size());
    std::vector<std::byte> bytes(sizeof length);
    std::memcpy(bytes.data(), &length, sizeof length);
    bytes.insert(bytes.end(), says_.begin(), says_.end());
    EXPECT_EQ(send(caller.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
    shutdown(caller.get(), SHUT_WR);
    std::byte heard[256];
    while (recv(caller.get(), heard, sizeof heard, 0) > 0) continue;
  }

 private:
  links::ListeningSocket listener_;
  const wire::ControlMessage says_;
};

TEST_F(WhoMayJoin, nodes_whose_address_somebody_else_had_before_who_wants_to_end_the_open) {
  ClusterPlan plan(2);
  { const links::ListeningSocket given_up = plan.take_listener(0); }
  std::optional<Impostor> impostor;
  impostor.emplace(plan.address(0),
                   wire::encode_refuse({Code::configuration_mismatch, false, "go home"}));
  OpeningNode one(plan, 1, right_);
  for (int i = 0; i < 3; ++i) impostor->answer_one();
  impostor.reset();
  plan.listen_again(0);
  OpeningNode zero(plan, 0, right_);
  expect_open({&zero, &one});
}

TEST_F(WhoMayJoin, nobody_and_what_was_heard_is_reported_at_the_time_limit_as_unverified) {
  ClusterPlan plan(2);
  { const links::ListeningSocket given_up = plan.take_listener(0); }
  Impostor impostor(plan.address(0), wire::encode_refuse({Code::internal_error, false, "go home"}));
  Pairs settings = right_;
  settings.emplace_back("connect.timeout_ms", "1500");
  OpeningNode one(plan, 1, settings);
  impostor.answer_one();
  expect_error(one.status(), Code::connect_failed,
               {"connect.timeout_ms = 1500", "go home (unverified: "});
}

TEST_F(WhoMayJoin, who_is_about_to_is_not_pushed_out_by_a_flood_from_elsewhere) {
  ClusterPlan plan(2);
  OpeningNode zero(plan, 0, right_);
  RawPeer honest(plan.address(0));
  honest.send_preamble();
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (int i = 0; i < 300; ++i) {  // more than a node keeps
    flood.push_back(std::make_unique<RawPeer>(plan.address(0), "127.0.0.2"));
    ASSERT_TRUE(flood.back()->connected());
    flood.back()->send_preamble();
  }
  EXPECT_TRUE(flood[0]->closed_within(4000)) << "nobody was pushed out";
  honest.send_message(wire::encode(plan.hello(1)));
  const auto answer = honest.receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(wire::kind_of(*answer), wire::ControlKind::hello);
  flood.clear();
  OpeningNode one(plan, 1, right_);
  expect_open({&zero, &one});
}

TEST_F(WhoMayJoin, a_node_listens_beyond_loopback_only_with_a_secret_or_on_demand) {
  const auto open = [](const Pairs& settings) {
    ClusterPlan plan(1, {}, "0.0.0.0");
    return OpeningNode(plan, 0, settings).status();
  };
  expect_error(open({{"security.open", "0"}}), Code::config_invalid,
               {"security.secret_file", "security.open = 1"});
  EXPECT_TRUE(open({{"security.open", "1"}}).ok());
  EXPECT_TRUE(open({{"security.open", "0"}, right_[0]}).ok());
  ClusterPlan loopback(1, {}, "127.0.0.1");
  EXPECT_TRUE(OpeningNode(loopback, 0, {{"security.open", "0"}}).status().ok());
}

}  // namespace
}  // namespace faro::test
