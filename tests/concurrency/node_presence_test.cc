// For how long a link stays that somebody has asked for, by a clock that the test sets.
#include "node/node_presence.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/expect.h"

namespace faro::node {
namespace {

using test::is_ok;

constexpr base::Nanoseconds kKeep = 100;

class NodePresenceTest : public testing::Test {
 protected:
  NodePresenceTest() { presence_.begin({true, false}, {true, true}, clock_, kKeep); }

  base::ManualClock clock_;
  NodePresence presence_;
};

TEST_F(NodePresenceTest, keeps_what_was_asked_for_for_a_while) {
  EXPECT_FALSE(presence_.is_asked_for(1));
  presence_.ask_for(1);
  clock_.advance(kKeep - 1);
  EXPECT_TRUE(presence_.is_asked_for(1));
  EXPECT_FALSE(presence_.is_asked_for(0));
  clock_.advance(1);
  EXPECT_FALSE(presence_.is_asked_for(1));
}

TEST_F(NodePresenceTest, keeps_it_from_when_it_has_come) {
  presence_.ask_for(1);
  std::thread waiting([&] { EXPECT_TRUE(is_ok(presence_.await(1, Wait::forever(), {}))); });
  while (presence_.awaited().empty()) std::this_thread::yield();
  clock_.advance(2 * kKeep);
  presence_.returned(1);
  waiting.join();
  EXPECT_TRUE(presence_.is_asked_for(1));
  clock_.advance(kKeep);
  EXPECT_FALSE(presence_.is_asked_for(1));
}

TEST_F(NodePresenceTest, keeps_nothing_for_a_node_that_was_removed) {
  presence_.ask_for(1);
  presence_.removed(1);
  EXPECT_FALSE(presence_.is_asked_for(1)) << "whoever has the number next is another node";
}

TEST_F(NodePresenceTest, tells_of_a_node_that_was_lost_while_it_rested) {
  presence_.rests(1);
  presence_.lost(1);
  EXPECT_EQ(presence_.returned(1), NodePresence::Return::again);
}

}  // namespace
}  // namespace faro::node
