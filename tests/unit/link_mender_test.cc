// Links that are mended: who dials, and whose answer counts.
#include "links/link_mender.h"
#include "base/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "links/link_table.h"
#include "support/expect.h"
#include "support/handshake_pair.h"
#include "support/test_reactor.h"
#include "transport/absent_link.h"
#include "transport/standing_rings.h"

namespace faro::links {
namespace {

using test::HandConnection;
using test::HandshakeSide;
using test::HandWire;

/// Its links carry nothing, and are ready at once. One that is mended gives its connection up when `mend` is called.
class MendingTransport final : public transport::Transport {
 public:
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Status available() const override { return Status::Ok(); }
  uint64_t memory_bytes(const ring::Layout&, const ring::Layout&) const override { return 0; }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext&) override {
    return std::make_unique<Setup>();
  }
  std::unique_ptr<transport::LinkMending> mend(transport::LinkContext&,
                                               transport::DataLink&) override {
    if (on_mend) on_mend();
    return std::make_unique<transport::StandingRings>();
  }

  std::function<void()> on_mend;

 private:
  class Setup final : public transport::LinkSetup {
   public:
    Status start() override { return Status::Ok(); }
    Status on_message(std::span<const std::byte>) override { return Status::Ok(); }
    Status on_stream(transport::DataStream) override { return Status::Ok(); }
    Status status() const override { return Status::Ok(); }
    bool ready() const override { return true; }
    std::unique_ptr<transport::DataLink> take() override {
      return std::make_unique<transport::AbsentLink>(4096);
    }
  };

  const transport::Capabilities capabilities_{.name = "fake", .mends = true};
};

/// The test answers when it wants to.
class HandNetwork final : public Network {
 public:
  using Connected = std::function<void(Result<std::unique_ptr<ControlConnection>>)>;
  transport::Reactor& reactor() override { return reactor_; }
  const std::string& local_address() const override { return nowhere_; }
  const std::string& host_identity() const override { return nowhere_; }
  void set_acceptor(Acceptor*) override {}
  void connect(const std::string& address, Connected done) override {
    dialled = address;
    connected = std::move(done);
  }
  bool run_once(base::Nanoseconds) override { return false; }
  void wake() override {}
  bool wants_thread() const override { return false; }

  base::ManualClock clock;
  std::string dialled;
  Connected connected;

 private:
  test::TestReactor reactor_{clock};
  const std::string nowhere_;
};

constexpr transport::StreamToken kFirstToken = {std::byte{1}};
constexpr transport::StreamToken kNextToken = {std::byte{2}};

/// Node 2 has dialled node 1, and this side of their link, which is one of them, has said READY.
class LinkThatIsNearlyUp : public testing::TestWithParam<bool>, private Link::Owner {
 protected:
  LinkThatIsNearlyUp() {
    transport::LinkContext context;
    context.peer_node = peer_number_;
    context.peer_name = "the peer";
    context.initiator = has_dialled_;
    context.reactor = &network_.reactor();
    context.mending = {.limit = 3'600'000'000'000, .address = "there:7000", .number = 9};
    wire::Hello hello = peer_.identity.hello;
    hello.head.features = wire::kMends;
    link_ = &links_.add(std::make_unique<Link>(static_cast<Link::Owner&>(*this), std::move(context),
                                               std::make_unique<HandConnection>(first_), hello));
    link_->start();
    const wire::LinkChoice choice{"fake", kFirstToken, std::nullopt, 9};
    if (has_dialled_) {
      first_->handler->on_message(wire::encode(choice));
      link_->begin(transport_, {});
    } else {
      link_->choose(transport_, kFirstToken, {});
    }
    EXPECT_TRUE(link_->state().is(LinkState::setting_up));
  }
  void breaks() {
    first_->handler->on_closed(Status(Code::peer_lost, "a switch has started again"));
    mender_.advance(network_.reactor().clock().now_ns());
  }
  // A process there takes the connection and goes through the handshake.
  void is_answered() {
    const auto wire = std::make_shared<HandWire>();
    last_ = wire;
    peer_.handshake.reset();
    peer_.kept.reset();
    peer_.admitted.reset();
    peer_.wire = std::make_shared<HandWire>();
    network_.connected(std::unique_ptr<ControlConnection>(new HandConnection(wire)));
    peer_.begin();
    for (bool moved = true; moved;) {
      moved = false;
      HandWire& theirs = *peer_.wire;
      for (auto [from, to] : {std::pair{wire.get(), &theirs}, std::pair{&theirs, wire.get()}}) {
        while (!(to == &theirs && peer_.admitted) && !from->sent.empty() &&
               to->handler != nullptr) {
          const wire::ControlMessage message = std::move(from->sent.front());
          from->sent.pop_front();
          to->handler->on_message(message);
          moved = true;
        }
      }
    }
  }

  const bool has_dialled_ = GetParam();
  const uint32_t peer_number_ = has_dialled_ ? 1 : 2;
  HandshakeSide ours_{3 - peer_number_, std::nullopt};
  HandshakeSide peer_{peer_number_, std::nullopt};
  HandNetwork network_;
  MendingTransport transport_;
  const std::shared_ptr<HandWire> first_ = std::make_shared<HandWire>();
  std::shared_ptr<HandWire> last_;  // that was answered
  LinkTable links_{3, 4096};
  LinkMender mender_{network_, ours_.identity, links_};
  Link* link_ = nullptr;
  bool is_told_first_ = false;  // of its rings, before others can have them
  bool has_come_up_ = false;
  Status loss_;

 private:
  void on_detached(Link&, const Status&, bool) override {}
  void on_made(Link& link, transport::DataLink& data) override {
    is_told_first_ = link.data() == nullptr && links_.data(peer_number_).get() != &data;
  }
  void on_up(Link&) override { has_come_up_ = true; }
  void on_lost(Link&, const Status& cause) override { loss_ = cause; }
  void on_left(Link&) override {}
  void on_heartbeat(Link&) override {}
  void on_members(Link&, std::span<const std::byte>) override {}
  void on_application(Link&, std::span<const std::byte>) override {}
};

std::string side_of(const testing::TestParamInfo<bool>& each) {
  return each.param ? "dialled" : "accepted";
}

INSTANTIATE_TEST_SUITE_P(BySideThat, LinkThatIsNearlyUp, testing::Bool(), side_of);

// Workers that begin to use them would not be counted where the owner counts.
TEST_P(LinkThatIsNearlyUp, tells_its_owner_of_its_rings_before_other_threads_have_them) {
  EXPECT_FALSE(is_told_first_);
  first_->handler->on_message(wire::encode_plain(wire::ControlKind::ready));
  ASSERT_TRUE(has_come_up_);
  EXPECT_TRUE(is_told_first_);
}

// To the peer it may be up.
TEST_P(LinkThatIsNearlyUp, comes_up_if_the_peer_mends_it) {
  breaks();
  EXPECT_FALSE(link_->state().connected());
  EXPECT_FALSE(has_come_up_);
  EXPECT_EQ(network_.dialled, "there:7000");
  EXPECT_EQ(links_.watch().mending(), 1);
  if (has_dialled_) {
    is_answered();
  } else {
    wire::Hello hello = peer_.identity.hello;
    hello.mends = wire::LinkName{ours_.identity.hello.incarnation, 9};
    ASSERT_EQ(links_.find_to_mend(hello, ours_.identity), link_);
    last_ = std::make_shared<HandWire>();
    link_->resume(std::make_unique<HandConnection>(last_), {});
  }
  EXPECT_TRUE(link_->state().is(LinkState::mending));
  EXPECT_TRUE(has_come_up_);
  EXPECT_TRUE(is_told_first_);
  EXPECT_NE(links_.data(peer_number_).get(), nullptr);
  last_->handler->on_message(wire::encode_resume({}));
  if (has_dialled_)
    last_->handler->on_message(wire::encode(wire::LinkChoice{"fake", {}, std::nullopt, 9}));
  last_->handler->on_message(wire::encode_plain(wire::ControlKind::ready));
  EXPECT_TRUE(link_->state().is(LinkState::up)) << loss_.to_string();
  EXPECT_EQ(links_.watch().mending(), 0);
}

TEST_P(LinkThatIsNearlyUp, is_mended_though_this_side_does_not_know_yet_that_it_has_broken) {
  wire::Hello hello = peer_.identity.hello;
  hello.mends = wire::LinkName{ours_.identity.hello.incarnation, 9};
  ASSERT_EQ(links_.find_to_mend(hello, ours_.identity), link_);
  last_ = std::make_shared<HandWire>();
  link_->resume(std::make_unique<HandConnection>(last_), {});
  EXPECT_TRUE(link_->state().is(LinkState::mending));
  EXPECT_TRUE(has_come_up_);
}

TEST_P(LinkThatIsNearlyUp, has_failed_if_the_peer_does_not_have_it) {
  breaks();
  network_.connected(Status(Code::peer_lost, "refused"));
  EXPECT_FALSE(has_come_up_);
  EXPECT_EQ(loss_.message(), "a switch has started again; refused: its process has died");
  EXPECT_EQ(links_.watch().mending(), 0);
  EXPECT_FALSE(links_.linked().contains(peer_number_));
}

/// It is up.
class LinkThatIsMended : public LinkThatIsNearlyUp {
 protected:
  LinkThatIsMended() {
    first_->handler->on_message(wire::encode_plain(wire::ControlKind::ready));
    EXPECT_TRUE(link_->state().is(LinkState::up));
  }
};

INSTANTIATE_TEST_SUITE_P(BySideThat, LinkThatIsMended, testing::Bool(), side_of);

TEST_P(LinkThatIsMended, is_counted_as_long_as_it_is_mended) {
  EXPECT_EQ(mender_.next_deadline(), base::kForever);
  breaks();
  EXPECT_EQ(links_.watch().mending(), 1);
  EXPECT_EQ(network_.dialled, "there:7000");
  network_.connected(Status(Code::peer_lost, "refused"));
  EXPECT_EQ(loss_.code(), Code::peer_lost);
  EXPECT_EQ(links_.watch().mending(), 0);
  EXPECT_EQ(mender_.next_deadline(), base::kForever);
}

// So nothing late can land: a peer that dials by the old token, or writes by what was told with it,
// is not heard any more.
TEST_P(LinkThatIsMended, gives_its_data_connection_up_before_another_token_is_told_or_used) {
  breaks();
  const auto has_told = [this](wire::ControlKind kind) {
    return std::ranges::any_of(last_->sent,
                               [&](const auto& sent) { return wire::kind_of(sent) == kind; });
  };
  int given_up = 0;
  transport_.on_mend = [&] {
    ++given_up;
    EXPECT_FALSE(has_told(wire::ControlKind::link));
    EXPECT_FALSE(has_told(wire::ControlKind::setup));
    EXPECT_FALSE(has_told(wire::ControlKind::ready));
    EXPECT_EQ(link_->context().stream_token, kFirstToken) << "the one to dial with";
    EXPECT_FALSE(link_->takes(kFirstToken));
    EXPECT_FALSE(link_->takes(kNextToken));
  };
  if (has_dialled_) {
    is_answered();
  } else {
    last_ = std::make_shared<HandWire>();
    link_->resume(std::make_unique<HandConnection>(last_), kNextToken);
  }
  last_->handler->on_message(wire::encode_resume({}));
  if (has_dialled_) {
    EXPECT_EQ(given_up, 0);
    last_->handler->on_message(wire::encode(wire::LinkChoice{"fake", kNextToken, std::nullopt, 9}));
  }
  EXPECT_EQ(given_up, 1);
  EXPECT_TRUE(has_told(wire::ControlKind::ready));
  EXPECT_EQ(link_->context().stream_token, kNextToken);
  EXPECT_EQ(link_->takes(kNextToken), !has_dialled_);
  EXPECT_FALSE(link_->takes(kFirstToken));
  if (has_dialled_) return;
  const auto is_link = [](const auto& sent) {
    return wire::kind_of(sent) == wire::ControlKind::link;
  };
  const auto told = std::ranges::find_if(last_->sent, is_link);
  ASSERT_NE(told, last_->sent.end());
  EXPECT_EQ(test::value_of(wire::decode_link_choice(*told)).token, kNextToken);
}

// The side that has accepted it dials to ask only. A peer that takes that for more does not get the
// link, for which no token was drawn.
TEST_P(LinkThatIsMended, goes_on_over_a_connection_that_the_dialling_side_has_made) {
  breaks();
  is_answered();
  EXPECT_TRUE(peer_.admitted);
  EXPECT_EQ(link_->control().attached(), has_dialled_);
  EXPECT_EQ(links_.watch().mending(), 1);
  EXPECT_TRUE(test::is_ok(loss_));
}

TEST_P(LinkThatIsMended, is_lost_if_another_process_answers_the_side_that_has_dialled) {
  breaks();
  ++peer_.identity.hello.incarnation;
  is_answered();
  EXPECT_EQ(loss_.code(), has_dialled_ ? Code::peer_lost : Code::ok);
}

// A connection that breaks again as soon as it has been made, for instance behind something that lets short messages pass only.
TEST_P(LinkThatIsMended, is_dialled_after_longer_and_longer_pauses_if_each_connection_breaks) {
  breaks();
  for (const base::Nanoseconds pause : {1, 2, 4, 8, 16, 32, 64, 128, 250, 250}) {
    is_answered();
    EXPECT_TRUE(peer_.admitted);
    EXPECT_EQ(link_->control().attached(), has_dialled_);
    mender_.advance(network_.clock.now_ns());  // as each round does
    if (has_dialled_) last_->handler->on_closed(Status(Code::peer_lost, "it has broken again"));
    ASSERT_TRUE(link_->state().is(LinkState::mending));
    ASSERT_FALSE(link_->control().attached());
    network_.connected = nullptr;
    mender_.advance(network_.clock.now_ns());
    ASSERT_FALSE(network_.connected) << "at once";
    ASSERT_EQ(mender_.next_deadline() - network_.clock.now_ns(), pause * base::kMillisecond);
    network_.clock.advance(pause * base::kMillisecond);
    mender_.advance(network_.clock.now_ns());
    ASSERT_TRUE(network_.connected);
  }
}

// The first cause says why it broke, the last one why it stayed so.
TEST_P(LinkThatIsMended, is_lost_with_the_last_cause_for_which_it_was_not_mended) {
  breaks();
  network_.connected(Status(Code::connect_failed, "no route to host"));
  network_.clock.advance(1'000'000'000);
  mender_.advance(network_.clock.now_ns());
  network_.connected(Status(Code::authentication_failed, "its certificate has expired"));
  link_->on_waited();
  EXPECT_EQ(loss_.to_string(),
            "peer_lost: a switch has started again; the link was not mended within link.mend_ms = "
            "3600000: its certificate has expired");
}

TEST_P(LinkThatIsMended, is_lost_with_why_its_further_connection_broke) {
  breaks();
  last_ = std::make_shared<HandWire>();
  link_->resume(std::make_unique<HandConnection>(last_), kNextToken);
  last_->handler->on_closed(Status(Code::peer_lost, "a bad alert"));
  link_->on_waited();
  EXPECT_EQ(loss_.message(),
            "a switch has started again; the link was not mended within link.mend_ms = 3600000: a "
            "bad alert");
}

// The pauses of one mending are not those of the next.
TEST_P(LinkThatIsMended, is_dialled_at_once_if_it_breaks_when_it_had_been_mended) {
  breaks();
  if (has_dialled_) {
    is_answered();
  } else {
    last_ = std::make_shared<HandWire>();
    link_->resume(std::make_unique<HandConnection>(last_), {});
  }
  last_->handler->on_message(wire::encode_resume({}));
  if (has_dialled_)
    last_->handler->on_message(wire::encode(wire::LinkChoice{"fake", {}, std::nullopt, 9}));
  last_->handler->on_message(wire::encode_plain(wire::ControlKind::ready));
  ASSERT_TRUE(link_->state().is(LinkState::up)) << loss_.to_string();
  mender_.advance(network_.clock.now_ns());  // as each round does
  network_.connected = nullptr;
  last_->handler->on_closed(Status(Code::peer_lost, "a switch has started again"));
  mender_.advance(network_.clock.now_ns());
  EXPECT_TRUE(network_.connected);
}

// The peer has mended the link, and then given it up, when it answers one that had asked before
// whether it lives. What this side notices last is that the connection has broken.
TEST_P(LinkThatIsMended, is_lost_though_the_peer_has_said_so_while_there_was_a_connection) {
  if (has_dialled_) return;  // its own connections are the only ones
  breaks();
  ASSERT_TRUE(network_.connected);
  last_ = std::make_shared<HandWire>();
  const auto resumed = last_;
  link_->resume(std::make_unique<HandConnection>(resumed), {});
  const Status gone(Code::peer_lost, "the peer does not have that link (any more)");
  peer_.judgement = Refusal{gone, false, false, true, true};
  is_answered();
  EXPECT_TRUE(link_->control().attached());
  resumed->handler->on_closed(Status(Code::peer_lost, "the peer closed the connection"));
  network_.connected = nullptr;
  network_.clock.advance(1'000'000'000);
  mender_.advance(network_.clock.now_ns());
  ASSERT_TRUE(network_.connected) << "it is not asked again";
  is_answered();
  EXPECT_EQ(loss_.code(), Code::peer_lost);
}

TEST_P(LinkThatIsMended, is_that_of_the_very_peer_and_number) {
  wire::Hello hello = peer_.identity.hello;
  hello.mends = wire::LinkName{ours_.identity.hello.incarnation, 9};
  EXPECT_EQ(links_.find_to_mend(hello, ours_.identity), link_);
  const auto is_found = [this, hello](const std::function<void(wire::Hello&)>& change) {
    wire::Hello other = hello;
    change(other);
    return links_.find_to_mend(other, ours_.identity) != nullptr;
  };
  EXPECT_FALSE(is_found([](wire::Hello& other) { ++other.incarnation; }));
  EXPECT_FALSE(is_found([](wire::Hello& other) { ++other.mends->number; }));
  EXPECT_FALSE(is_found([](wire::Hello& other) { ++other.head.node; }));
  EXPECT_FALSE(is_found([](wire::Hello& other) { other.address = "elsewhere:7000"; }));
}

}  // namespace
}  // namespace faro::links
