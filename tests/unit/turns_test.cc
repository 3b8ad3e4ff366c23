// Turns: a burst of handshakes begins a few at a time, and nobody waits for a peer that has gone.
#include "tls/turns.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace faro::tls {
namespace {

class TurnsTest : public testing::Test {
 protected:
  void ask(const std::string& peer, Turns::Order order = Turns::Order::last) {
    turns_.push_back(made_.take(peer, order, [this, n = turns_.size()] { began_.push_back(n); }));
  }
  void ask(size_t count, const std::string& peer) {
    for (size_t i = 0; i < count; ++i) ask(peer);
  }

  base::ManualClock clock_;
  Turns made_{clock_};
  std::vector<size_t> began_;
  std::vector<Turns::Turn> turns_;  // the end of one may begin another
};

TEST_F(TurnsTest, come_at_once_while_few_are_under_way_and_then_one_for_each_that_ends) {
  ask(Turns::kPerPeer + 2, "a");
  for (size_t i = 0; i < Turns::kPerPeer; ++i) EXPECT_TRUE(turns_[i].has_come());
  EXPECT_FALSE(turns_[Turns::kPerPeer].has_come());
  EXPECT_TRUE(began_.empty());
  turns_[3].end();
  EXPECT_EQ(began_, std::vector<size_t>{Turns::kPerPeer});
  turns_[3].end();
  EXPECT_EQ(began_.size(), 1u);
  turns_[Turns::kPerPeer] = {};
  EXPECT_EQ(began_.size(), 2u);
}

TEST_F(TurnsTest, come_first_to_who_is_nearly_there) {
  ask(Turns::kInAll, "a");
  ask("b");
  ask("b", Turns::Order::first);
  turns_[0].end();
  EXPECT_EQ(began_, std::vector<size_t>{Turns::kInAll + 1});
}

TEST_F(TurnsTest, of_who_does_not_wait_any_more_are_given_on) {
  ask(Turns::kInAll + 2, "a");
  turns_[Turns::kInAll].end();
  turns_[0].end();
  EXPECT_EQ(began_, std::vector<size_t>{Turns::kInAll + 1});
}

TEST_F(TurnsTest, do_not_wait_for_hosts_that_have_gone) {
  ask(Turns::kInAll, "gone");
  EXPECT_EQ(made_.next_deadline(), base::kForever) << "nobody waits";
  ask("b");
  EXPECT_EQ(made_.next_deadline(), clock_.now_ns() + Turns::kConnectingCounts);
  made_.advance();
  EXPECT_TRUE(began_.empty());
  clock_.advance(Turns::kConnectingCounts);
  made_.advance();
  EXPECT_EQ(began_, std::vector<size_t>{Turns::kInAll});
  ask("gone");
  made_.advance();
  EXPECT_FALSE(turns_.back().has_come()) << "this one has enough under way";
}

TEST_F(TurnsTest, count_longer_once_the_peer_is_reached) {
  ask(Turns::kInAll, "slow");
  for (Turns::Turn& each : turns_) each.connected();
  ask("b");
  clock_.advance(Turns::kConnectingCounts);
  made_.advance();
  EXPECT_TRUE(began_.empty());
  clock_.advance(Turns::kHandshakeCounts);
  made_.advance();
  EXPECT_EQ(began_.size(), 1u);
}

TEST_F(TurnsTest, may_outlive_what_has_given_them) {
  Turns::Turn kept;
  {
    Turns gone(clock_);
    kept = gone.take("a", Turns::Order::last, [] {});
  }
  EXPECT_TRUE(kept.has_come());
}

}  // namespace
}  // namespace faro::tls
