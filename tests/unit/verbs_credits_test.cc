// Who may SEND: never more than there are receives, and nobody waits forever.
#include <gtest/gtest.h>

#include <deque>

#include "contract/frames.h"
#include "transport/verbs/credits.h"

namespace faro::transport::verbs {
namespace {

TEST(CreditsTest, all_but_the_reserved_receives_are_for_notifications) {
  Credits credits(64, 10);
  for (uint32_t sent = 0; sent < 8; ++sent) {
    EXPECT_EQ(credits.notes_left(), 8 - sent);
    credits.note_sent();
  }
  EXPECT_EQ(credits.notes_left(), 0u);
  for (uint32_t sent = 0; sent < Credits::kReturns; ++sent) {
    EXPECT_TRUE(credits.may_return());
    credits.return_sent();
  }
  EXPECT_FALSE(credits.may_return());
  ASSERT_TRUE(credits.accept({5, 1}));
  EXPECT_EQ(credits.notes_left(), 5u);
  EXPECT_TRUE(credits.may_return());
}

TEST(CreditsTest, a_return_is_due_when_half_is_taken_and_not_told) {
  Credits credits(10, 10);
  for (int taken = 0; taken < 3; ++taken) credits.note_taken();
  EXPECT_FALSE(credits.return_due());
  credits.note_taken();
  EXPECT_TRUE(credits.return_due());
  const Credits::Told told = credits.tell();
  EXPECT_EQ(told.notes, 4u);
  EXPECT_EQ(told.returns, 0u);
  EXPECT_FALSE(credits.return_due());
}

TEST(CreditsTest, returns_alone_never_make_one_due) {
  Credits credits(4, 4);
  for (int taken = 0; taken < 100; ++taken) credits.return_taken();
  EXPECT_FALSE(credits.return_due());
  EXPECT_TRUE(credits.must_confirm());
  EXPECT_EQ(credits.tell().returns, 100u);
  EXPECT_FALSE(credits.must_confirm());
}

struct BadTold {
  const char* what;
  Credits::Told told;
};
constexpr BadTold kBadTold[] = {
    {"more notifications than were sent", {4, 1}},      {"more returns than were sent", {3, 2}},
    {"fewer notifications than before", {1, 1}},        {"fewer returns than before", {3, 0}},
    {"a distance of almost 2^32", {2 - (1u << 31), 1}},
};

TEST(CreditsTest, a_peer_cannot_tell_more_than_was_sent_or_less_than_before) {
  for (const BadTold& bad : kBadTold) {
    SCOPED_TRACE(bad.what);
    Credits credits(8, 8);
    for (int sent = 0; sent < 3; ++sent) credits.note_sent();
    credits.return_sent();
    ASSERT_TRUE(credits.accept({2, 1}));
    EXPECT_FALSE(credits.accept(bad.told));
    EXPECT_TRUE(credits.accept({3, 1}));
  }
}

// Both sides always have something to say, on a network that delivers in order, whenever it likes.
class Side {
 public:
  Side(uint32_t own_receives, uint32_t peer_receives, bool immediates)
      : credits_(own_receives, peer_receives), receives_(own_receives), immediates_(immediates) {}

  /// Sends what it may. `limit`: notifications that it has to say at all.
  void send(Side& peer, uint64_t limit) {
    while (said_ < limit && credits_.notes_left() != 0) {
      credits_.note_sent();
      ++said_;
      if (immediates_ && !credits_.must_confirm() && !credits_.return_due()) {
        peer.put({Kind::immediate, {}});
      } else {
        peer.put({Kind::note, credits_.tell()});
      }
    }
    if (credits_.return_due() && credits_.may_return()) {
      credits_.return_sent();
      peer.put({Kind::back, credits_.tell()});
    }
  }
  /// Takes one message, if there is one.
  bool take() {
    if (arriving_.empty()) return false;
    const Message message = arriving_.front();
    arriving_.pop_front();
    if (message.kind == Kind::back) {
      credits_.return_taken();
    } else {
      credits_.note_taken();
      ++heard_;
    }
    if (message.kind != Kind::immediate) {
      EXPECT_TRUE(credits_.accept(message.told));
    }
    return true;
  }
  uint64_t heard() const { return heard_; }

 private:
  enum class Kind { note, immediate, back };
  struct Message {
    Kind kind;
    Credits::Told told;
  };

  void put(Message message) {
    arriving_.push_back(message);
    // What is under way could arrive at once.
    ASSERT_LE(arriving_.size(), receives_) << "receiver not ready";
  }

  Credits credits_;
  const uint32_t receives_;
  const bool immediates_;
  std::deque<Message> arriving_;
  uint64_t said_ = 0;
  uint64_t heard_ = 0;
};

struct Talk {
  const char* what;
  uint32_t receives[2];
  bool immediates;
  uint64_t to_say[2];
};
constexpr Talk kTalks[] = {
    {"4 receives on each side", {4, 4}, false, {1000, 1000}},
    {"4 receives, immediates", {4, 4}, true, {1000, 1000}},
    {"one side is silent", {4, 4}, false, {1000, 0}},
    {"one side is silent, immediates", {4, 4}, true, {0, 1000}},
    {"one side ends early", {4, 4}, true, {1000, 17}},
    {"different receives", {4, 64}, false, {1000, 1000}},
    {"different receives, immediates", {5, 33}, true, {1000, 1000}},
};

TEST(CreditsTest, both_sides_run_dry_and_nobody_waits_for_ever) {
  for (const Talk& talk : kTalks) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(std::string(talk.what) + ", seed " + std::to_string(seed));
      Side a(talk.receives[0], talk.receives[1], talk.immediates);
      Side b(talk.receives[1], talk.receives[0], talk.immediates);
      uint64_t chance = seed;
      const auto one_step = [&] {
        chance = test::mix(chance);
        Side& acting = chance % 2 == 0 ? a : b;
        Side& other = chance % 2 == 0 ? b : a;
        if (chance & 0x100) acting.send(other, talk.to_say[chance % 2]);
        if (chance & 0x200) acting.take();
      };
      for (int step = 0;
           step < 100'000 && (b.heard() < talk.to_say[0] || a.heard() < talk.to_say[1]); ++step)
        one_step();
      ASSERT_EQ(b.heard(), talk.to_say[0]);
      ASSERT_EQ(a.heard(), talk.to_say[1]);
    }
  }
}

}  // namespace
}  // namespace faro::transport::verbs
