#include "node/early_events.h"

#include <gtest/gtest.h>

#include <string>

namespace faro::node {
namespace {

class EarlyEventsTest : public testing::Test {
 protected:
  EarlyEvents::Event note(std::string what) {
    return [this, what = std::move(what)] { happened_ += what; };
  }
  void message(uint32_t node, size_t bytes, const std::string& name) {
    early_.arrives(node, bytes, note(name), note("!" + name));
  }

  EarlyEvents early_;
  std::string happened_;
};

TEST_F(EarlyEventsTest, happen_in_order_once_the_node_is_complete) {
  message(1, 10, "a");
  early_.happens(note("b"));
  message(2, 10, "c");
  EXPECT_EQ(happened_, "");
  EXPECT_FALSE(early_.is_over());
  early_.end();
  EXPECT_EQ(happened_, "abc");
  EXPECT_TRUE(early_.is_over());
}

TEST_F(EarlyEventsTest, happen_at_once_afterwards) {
  early_.end();
  message(1, EarlyEvents::kPeerBytes + 1, "a");
  early_.happens(note("b"));
  EXPECT_EQ(happened_, "ab");
}

TEST_F(EarlyEventsTest, of_a_peer_that_sends_too_much_are_refused_once) {
  message(1, EarlyEvents::kPeerBytes / 2, "a");
  message(1, EarlyEvents::kPeerBytes / 2, "b");
  message(1, 1, "c");
  message(2, 1, "d");
  early_.happens(note("e"));
  early_.end();
  EXPECT_EQ(happened_, "ade!b");
}

TEST_F(EarlyEventsTest, of_a_peer_that_is_lost_do_not_count_for_who_comes_in_its_place) {
  message(1, EarlyEvents::kPeerBytes, "a");
  early_.loses(1, note("b"));
  message(1, EarlyEvents::kPeerBytes / 2, "c");
  early_.end();
  EXPECT_EQ(happened_, "bc");
}

TEST_F(EarlyEventsTest, of_a_peer_are_few_even_if_they_are_empty) {
  int refused = 0, kept = 0;
  for (size_t i = 0; i < EarlyEvents::kPeerBytes; ++i) {
    early_.arrives(
        1, 0, [&] { ++kept; }, [&] { ++refused; });
  }
  early_.end();
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(kept, static_cast<int>(EarlyEvents::kPeerBytes / EarlyEvents::kMessageOverhead));
}

}  // namespace
}  // namespace faro::node
