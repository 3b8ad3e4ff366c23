// Which links are not worth mending once more.
#include "transport/mending_tally.h"

#include <gtest/gtest.h>

namespace faro::transport {
namespace {

class AMendingTally : public testing::Test {
 protected:
  /// A connection goes silent until that is noticed.
  void goes_dark() {
    for (uint32_t i = 0; i < MendingTally::kBeatsPerLimit; ++i) tally_.beat(false);
    tally_.broke();
  }
  void lives_for(uint32_t beats) {
    for (uint32_t i = 0; i < beats; ++i) tally_.beat(true);
  }
  void is_cut_while_it_lives() {
    tally_.beat(true);
    tally_.broke();
  }
  void resumes_at(uint64_t delivered, bool owes) { tally_.resumed(delivered, 0, owes); }

  MendingTally tally_;
};

TEST_F(AMendingTally, is_not_stuck_before_anything_broke) {
  lives_for(3);
  EXPECT_FALSE(tally_.is_stuck());
}

TEST_F(AMendingTally, is_stuck_when_three_connections_went_silent_and_nothing_moved) {
  for (const bool is_last : {false, false, true}) {
    goes_dark();
    EXPECT_FALSE(tally_.is_stuck());
    resumes_at(640, false);
    EXPECT_EQ(tally_.is_stuck(), is_last);
  }
}

TEST_F(AMendingTally, is_stuck_when_connections_are_dark_from_the_beginning) {
  goes_dark();
  goes_dark();
  EXPECT_FALSE(tally_.is_stuck());
  goes_dark();
  EXPECT_TRUE(tally_.is_stuck());
}

TEST_F(AMendingTally, is_stuck_when_what_is_sent_never_comes_although_the_peer_is_heard) {
  for (const bool is_last : {false, false, true}) {
    lives_for(4);
    is_cut_while_it_lives();
    resumes_at(640, true);
    EXPECT_EQ(tally_.is_stuck(), is_last);
  }
}

TEST_F(AMendingTally, begins_anew_when_anything_has_moved) {
  for (uint64_t i = 1; i < 9; ++i) {
    goes_dark();
    resumes_at(64 * i, true);
    EXPECT_FALSE(tally_.is_stuck());
  }
  for (uint64_t i = 1; i < 9; ++i) {
    goes_dark();
    tally_.resumed(512, 64 * i, false);
    EXPECT_FALSE(tally_.is_stuck());
  }
}

// What comes the other way does not help what is stuck.
TEST_F(AMendingTally, is_stuck_in_one_direction_while_the_other_moves) {
  for (uint64_t i = 0; i < 3; ++i) {
    goes_dark();
    tally_.resumed(512, 64 * i, true);
  }
  EXPECT_TRUE(tally_.is_stuck());
}

// Nothing was on its way when the two connections before broke.
TEST_F(AMendingTally, is_not_stuck_if_what_is_on_its_way_was_sent_since_something_has_come) {
  for (int i = 0; i < 2; ++i) {
    goes_dark();
    tally_.resumed(512, 0, false);
  }
  is_cut_while_it_lives();
  tally_.resumed(512, 64, true);
  EXPECT_FALSE(tally_.is_stuck());
  for (const bool is_last : {false, true}) {
    goes_dark();
    tally_.resumed(512, 64, true);
    EXPECT_EQ(tally_.is_stuck(), is_last);
  }
}

TEST_F(AMendingTally, is_not_stuck_by_cuts_while_nothing_is_on_its_way) {
  for (int i = 0; i < 20; ++i) {
    is_cut_while_it_lives();
    resumes_at(640, false);
    EXPECT_FALSE(tally_.is_stuck());
  }
}

// A proxy that is restarted, again and again, within a moment.
TEST_F(AMendingTally, is_not_stuck_by_cuts_faster_than_silence_would_be_noticed) {
  for (int i = 0; i < 20; ++i) {
    tally_.broke();
    resumes_at(640, true);
    EXPECT_FALSE(tally_.is_stuck());
  }
  lives_for(MendingTally::kBeatsPerLimit);
  EXPECT_FALSE(tally_.is_stuck());
}

// One that cuts each connection as soon as something large comes.
TEST_F(AMendingTally, is_stuck_by_cuts_that_go_on_for_as_long_as_that_takes) {
  for (uint32_t i = 0; i <= MendingTally::kBeatsPerLimit; ++i) {
    EXPECT_FALSE(tally_.is_stuck());
    is_cut_while_it_lives();
    resumes_at(640, true);
  }
  EXPECT_TRUE(tally_.is_stuck());
}

TEST_F(AMendingTally, is_not_stuck_by_connections_that_end_before_the_peer_says_where_it_is) {
  for (int i = 0; i < 20; ++i) {
    tally_.broke();
    tally_.beat(false);
  }
  EXPECT_FALSE(tally_.is_stuck());
}

// The silence alone takes as long as cuts have to go on for, whichever of the three it is.
TEST_F(AMendingTally, is_not_stuck_by_one_silence_and_two_cuts_within_a_moment) {
  for (const uint32_t dark : {0, 1, 2}) {
    tally_ = MendingTally();
    for (uint32_t i = 0; i < 3; ++i) {
      i == dark ? goes_dark() : tally_.broke();
      resumes_at(640, true);
      EXPECT_FALSE(tally_.is_stuck()) << "connection " << i << ", dark is " << dark;
    }
  }
}

// The other end of one that is dark in one direction hears signs of life until the connection is closed.
TEST_F(AMendingTally,
       is_not_stuck_by_a_silence_of_the_other_direction_and_two_cuts_within_a_moment) {
  for (const uint32_t dark : {0, 1, 2}) {
    tally_ = MendingTally();
    for (uint32_t i = 0; i < 3; ++i) {
      if (i == dark) lives_for(MendingTally::kBeatsPerLimit + 1);
      tally_.broke();
      resumes_at(640, true);
      EXPECT_FALSE(tally_.is_stuck()) << "connection " << i << ", dark is " << dark;
    }
  }
}

// What was not heard while there was no connection is no silence of the next one.
TEST_F(AMendingTally, is_not_stuck_by_one_silence_and_two_cuts_after_a_link_was_mended_late) {
  tally_.broke();
  for (uint32_t i = 0; i < MendingTally::kBeatsPerLimit; ++i) tally_.beat(false);
  resumes_at(640, true);
  tally_.broke();
  resumes_at(1280, true);
  goes_dark();
  resumes_at(1280, true);
  tally_.broke();
  resumes_at(1280, true);
  EXPECT_FALSE(tally_.is_stuck());
}

TEST_F(AMendingTally, is_stuck_by_two_silences_and_a_cut_in_any_order) {
  for (const uint32_t cut : {0, 1, 2}) {
    tally_ = MendingTally();
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(tally_.is_stuck());
      i == cut ? tally_.broke() : goes_dark();
      resumes_at(640, true);
    }
    EXPECT_TRUE(tally_.is_stuck()) << "connection " << cut << " was cut";
  }
}

// Cuts that go on after a silence count as cuts alone do.
TEST_F(AMendingTally, is_stuck_by_a_silence_and_cuts_that_go_on_for_as_long) {
  tally_.broke();
  resumes_at(640, true);
  goes_dark();
  resumes_at(640, true);
  for (uint32_t i = 0; i < MendingTally::kBeatsPerLimit; ++i) {
    EXPECT_FALSE(tally_.is_stuck());
    is_cut_while_it_lives();
    resumes_at(640, true);
  }
  EXPECT_TRUE(tally_.is_stuck());
}

// A firewall forgets a connection each hour, over which nothing but signs of life has gone.
TEST_F(AMendingTally, is_not_stuck_when_each_connection_has_lived_for_long) {
  for (int i = 0; i < 20; ++i) {
    lives_for(3 * MendingTally::kBeatsPerLimit);
    goes_dark();
    resumes_at(640, false);
    EXPECT_FALSE(tally_.is_stuck());
  }
}

}  // namespace
}  // namespace faro::transport
