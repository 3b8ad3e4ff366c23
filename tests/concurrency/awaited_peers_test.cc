// Peers that somebody waits for, and for how long a link stays that was asked for, by a clock that the test sets.
#include "session/peers.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/expect.h"

namespace faro::session {
namespace {

using test::is_ok;

constexpr base::Nanoseconds kKeep = 100 * base::kMillisecond;

class AwaitedPeersTest : public testing::Test {
 protected:
  static base::Settings settings() {
    Config config;
    EXPECT_TRUE(is_ok(config.set("cluster.nodes", "127.0.0.1:1,127.0.0.1:2")));
    EXPECT_TRUE(is_ok(config.set("connect.timeout_ms", "100")));
    return base::Settings::resolve(config).value();
  }

  const base::Settings settings_ = settings();
  const Topology topology_{settings_, "127.0.0.1:1"};
  base::ManualClock clock_;
  Peers peers_{settings_, topology_, clock_};
};

TEST_F(AwaitedPeersTest, keeps_what_was_asked_for_for_a_while) {
  EXPECT_FALSE(peers_.is_asked_for(1));
  peers_.ask_for(1);
  clock_.advance(kKeep - 1);
  EXPECT_TRUE(peers_.is_asked_for(1));
  EXPECT_FALSE(peers_.is_asked_for(0));
  clock_.advance(1);
  EXPECT_FALSE(peers_.is_asked_for(1));
}

TEST_F(AwaitedPeersTest, keeps_it_from_when_it_has_come) {
  peers_.ask_for(1);
  std::thread waiting([&] { EXPECT_TRUE(is_ok(peers_.await(1, Wait::forever(), {}))); });
  while (peers_.awaited().empty()) std::this_thread::yield();
  clock_.advance(2 * kKeep);
  (void)peers_.on(1, Peers::Event::up, 7);
  (void)peers_.on(1, Peers::Event::opened);
  waiting.join();
  EXPECT_TRUE(peers_.awaited().empty());
  EXPECT_TRUE(peers_.is_asked_for(1));
  clock_.advance(kKeep);
  EXPECT_FALSE(peers_.is_asked_for(1));
}

TEST_F(AwaitedPeersTest, are_awaited_no_more_when_the_session_closes) {
  std::thread waiting(
      [&] { EXPECT_EQ(peers_.await(1, Wait::forever(), {}).code(), Code::session_closed); });
  while (peers_.awaited().empty()) std::this_thread::yield();
  peers_.close();
  waiting.join();
  EXPECT_TRUE(peers_.awaited().empty());
}

TEST_F(AwaitedPeersTest, keeps_nothing_for_a_node_that_was_removed) {
  peers_.ask_for(1);
  (void)peers_.on(1, Peers::Event::removed);
  EXPECT_FALSE(peers_.is_asked_for(1)) << "whoever has the number next is another node";
}

}  // namespace
}  // namespace faro::session
