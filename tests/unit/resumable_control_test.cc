// The control connections of a link that is mended: what has to arrive does, once and in order.
#include "links/resumable_control.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/handshake_pair.h"

namespace faro::links {
namespace {

using test::HandConnection;
using test::HandWire;
using Verdict = ResumableControl::Verdict;
using wire::ControlKind;

wire::ControlMessage message(int number, size_t bytes = 1) {
  return wire::encode_payload(ControlKind::application,
                              std::vector<std::byte>(bytes, static_cast<std::byte>(number)));
}

class NoHandler final : public ControlConnection::Handler {
  void on_message(std::span<const std::byte>) override {}
  void on_closed(const Status&) override {}
};

class ResumableControlTest : public testing::Test {
 protected:
  /// The connection is cut, and there is another one.
  void mend() {
    control_.detach();
    EXPECT_TRUE(wire_->closed);
    wire_ = std::make_shared<HandWire>();
    control_.resume(std::make_unique<HandConnection>(wire_), handler_);
  }
  std::vector<wire::ControlMessage> take_sent() {
    const std::vector<wire::ControlMessage> sent(wire_->sent.begin(), wire_->sent.end());
    wire_->sent.clear();
    return sent;
  }
  Verdict hear(const wire::ControlMessage& said) { return control_.on_message(said); }

  using Messages = std::vector<wire::ControlMessage>;
  NoHandler handler_;
  std::shared_ptr<HandWire> wire_ = std::make_shared<HandWire>();
  ResumableControl control_{std::make_unique<HandConnection>(wire_), true};
};

TEST_F(ResumableControlTest, sends_what_the_peer_has_not_got) {
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(control_.send(message(i)));
  EXPECT_EQ(take_sent(), (Messages{message(1), message(2), message(3)}));
  EXPECT_EQ(hear(message(9)), Verdict::passes);
  mend();
  EXPECT_TRUE(control_.send(message(4)));
  EXPECT_EQ(take_sent(), (Messages{wire::encode_resume({1})})) << "before the peer has named its";
  EXPECT_EQ(hear(wire::encode_resume({2})), Verdict::taken);
  EXPECT_EQ(take_sent(), (Messages{message(3), message(4)}));
  EXPECT_TRUE(control_.send(message(5)));
  EXPECT_EQ(take_sent(), (Messages{message(5)}));
}

TEST_F(ResumableControlTest, forgets_what_a_heartbeat_acknowledges) {
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(control_.send(message(i)));
  EXPECT_EQ(control_.kept_bytes(), 6u);
  EXPECT_EQ(hear(wire::encode_heartbeat({2})), Verdict::passes);
  EXPECT_EQ(control_.kept_bytes(), 2u);
  EXPECT_EQ(hear(wire::encode_plain(ControlKind::heartbeat)), Verdict::passes);
  mend();
  take_sent();
  EXPECT_EQ(hear(wire::encode_resume({2})), Verdict::taken);
  EXPECT_EQ(take_sent(), (Messages{message(3)}));
}

TEST_F(ResumableControlTest, keeps_while_there_is_no_connection_and_not_what_concerns_one) {
  control_.detach();
  EXPECT_FALSE(control_.attached());
  EXPECT_TRUE(control_.send(message(1)));
  EXPECT_TRUE(control_.send(wire::encode_plain(ControlKind::ready)));
  EXPECT_TRUE(control_.send(wire::encode_plain(ControlKind::heartbeat)));
  wire_ = std::make_shared<HandWire>();
  control_.resume(std::make_unique<HandConnection>(wire_), handler_);
  EXPECT_EQ(hear(wire::encode_resume({0})), Verdict::taken);
  EXPECT_EQ(take_sent(), (Messages{wire::encode_resume({0}), message(1)}));
}

TEST_F(ResumableControlTest, a_peer_cannot_have_what_was_not_sent_nor_lose_what_it_had) {
  EXPECT_TRUE(control_.send(message(1)));
  EXPECT_EQ(hear(wire::encode_heartbeat({2})), Verdict::broken);
  EXPECT_EQ(hear(wire::encode_heartbeat({~uint64_t{0}})), Verdict::broken);
  EXPECT_EQ(hear(wire::encode_heartbeat({1})), Verdict::passes);
  EXPECT_EQ(hear(wire::encode_heartbeat({0})), Verdict::broken);
  EXPECT_EQ(hear(wire::encode_resume({1})), Verdict::broken) << "on the first connection";
  mend();
  EXPECT_EQ(hear(message(1)), Verdict::broken) << "before RESUME";
  EXPECT_EQ(hear(wire::encode_resume({2})), Verdict::broken);
  EXPECT_EQ(hear(wire::encode_resume({1})), Verdict::taken);
  EXPECT_EQ(hear(wire::encode_resume({1})), Verdict::broken) << "twice";
}

TEST_F(ResumableControlTest, acknowledges_much_at_once_and_keeps_so_much_at_most) {
  size_t heard = 0;
  while (wire_->sent.empty()) {
    EXPECT_EQ(hear(message(1, 4096)), Verdict::passes);
    ASSERT_LE(++heard, 20u);
  }
  EXPECT_EQ(take_sent(), (Messages{wire::encode_heartbeat({heard})}));
  while (control_.send(message(1, 4096))) ASSERT_LE(control_.kept_bytes(), ControlLog::kLimit);
  EXPECT_GT(control_.kept_bytes(), ControlLog::kLimit - 4097);
}

TEST(ResumableControl, of_a_link_that_is_not_mended_keeps_nothing) {
  const auto wire = std::make_shared<HandWire>();
  ResumableControl control(std::make_unique<HandConnection>(wire), false);
  EXPECT_TRUE(control.send(message(1)));
  EXPECT_EQ(control.kept_bytes(), 0u);
  EXPECT_TRUE(control.send(wire::encode_plain(ControlKind::heartbeat)));
  EXPECT_EQ(wire->sent.back(), wire::encode_plain(ControlKind::heartbeat));
  EXPECT_EQ(control.on_message(wire::encode_resume({0})), Verdict::broken);
  control.detach();
  EXPECT_TRUE(control.send(message(2)));
}

}  // namespace
}  // namespace faro::links
