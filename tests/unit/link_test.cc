// A link that is being set up, and what its owner is told when that fails.
#include "links/link.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "links/link_monitor.h"
#include "links/link_table.h"
#include "support/expect.h"
#include "support/handshake_pair.h"
#include "support/test_reactor.h"

namespace faro::links {
namespace {

constexpr base::Nanoseconds kLong = 10'000'000'000;

class FakeTransport final : public transport::Transport {
 public:
  explicit FakeTransport(uint64_t mends = 0) : capabilities_{.name = "fake", .mends = mends} {}
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Status available() const override { return Status::Ok(); }
  uint64_t memory_bytes(const ring::Layout&, const ring::Layout&) const override { return 0; }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext&) override {
    return std::make_unique<Setup>(*this);
  }

  Status setup_status;
  bool is_ready = false;
  bool has_no_memory = false;

 private:
  class Setup final : public transport::LinkSetup {
   public:
    explicit Setup(const FakeTransport& transport) : transport_(transport) {}
    Status start() override { return Status::Ok(); }
    Status on_message(std::span<const std::byte>) override { return transport_.setup_status; }
    Status on_stream(transport::DataStream) override { return transport_.setup_status; }
    Status status() const override {
      if (transport_.has_no_memory) throw std::bad_alloc();
      return transport_.setup_status;
    }
    bool ready() const override { return transport_.is_ready; }
    std::unique_ptr<transport::DataLink> take() override { return nullptr; }

   private:
    const FakeTransport& transport_;
  };

  const transport::Capabilities capabilities_;
};

class LinkThatIsSetUp : public testing::Test, private Link::Owner {
 protected:
  LinkThatIsSetUp() {
    transport::LinkContext context;
    context.peer_node = 2;
    context.peer_name = "node 2 (10.0.0.2:7000)";
    context.reactor = &reactor_;
    link_ = &links_.add(std::make_unique<Link>(static_cast<Link::Owner&>(*this), std::move(context),
                                               std::make_unique<test::HandConnection>(peer_),
                                               wire::Hello{}));
    link_->start();
    link_->choose(transport_, {}, {});
  }
  void setup_fails(const Status& cause) {
    transport_.setup_status = cause;
    link_->advance();
    link_->advance();  // in each round
  }

  void pass(base::Nanoseconds later = 0) {
    monitor_.check(reactor_.clock().now_ns() + later, false);
  }

  test::TestReactor reactor_;
  FakeTransport transport_;
  const std::shared_ptr<test::HandWire> peer_ = std::make_shared<test::HandWire>();
  LinkTable links_{3, 4096};
  const base::Settings settings_ = [] {
    base::Settings settings;
    settings.liveness_timeout_ms = 4000;
    settings.connect_timeout_ms = 600;  // sooner than the next heartbeat
    return settings;
  }();
  LinkMonitor monitor_{settings_, links_, "node 1", reactor_.clock().now_ns()};
  Link* link_ = nullptr;
  std::vector<std::string> losses_;
  bool owner_throws_ = false;

 private:
  void on_detached(Link&, const Status&, bool) override { losses_.push_back("detached"); }
  void on_up(Link&) override {}
  void on_lost(Link&, const Status& cause) override {
    if (owner_throws_) throw std::bad_alloc();
    losses_.push_back(cause.to_string());
  }
  void on_left(Link&) override {}
  void on_heartbeat(Link&) override {}
  void on_members(Link&, std::span<const std::byte>) override {}
  void on_application(Link&, std::span<const std::byte>) override {}
};

// An older node mends other transports than a newer one; both have to know that of each other.
TEST(ALinkThatIsChosen,
     has_a_number_by_which_it_is_mended_if_both_sides_offer_all_that_its_transport_takes) {
  struct Owner final : Link::Owner {
    void on_detached(Link&, const Status&, bool) override {}
    void on_up(Link&) override {}
    void on_lost(Link&, const Status&) override {}
    void on_left(Link&) override {}
    void on_heartbeat(Link&) override {}
    void on_members(Link&, std::span<const std::byte>) override {}
    void on_application(Link&, std::span<const std::byte>) override {}
  };
  struct Case {
    uint64_t takes;
    uint64_t offered;
    uint64_t number;
  };
  constexpr uint64_t kBoth = wire::kMends | wire::kMendsVerbs;
  for (const Case& each :
       {Case{wire::kMends, wire::kMends, 9}, Case{wire::kMends, kBoth, 9}, Case{kBoth, kBoth, 9},
        Case{kBoth, wire::kMends, 0}, Case{kBoth, wire::kMendsVerbs, 0}, Case{0, kBoth, 0}}) {
    SCOPED_TRACE(testing::Message() << each.takes << " of " << each.offered);
    Owner owner;
    test::TestReactor reactor;
    FakeTransport transport(each.takes);
    transport::LinkContext context;
    context.reactor = &reactor;
    context.mending = {.limit = kLong, .address = "", .number = 9};
    wire::Hello peer;
    peer.head.features = each.offered;
    const auto link = std::make_shared<Link>(
        static_cast<Link::Owner&>(owner), std::move(context),
        std::make_unique<test::HandConnection>(std::make_shared<test::HandWire>()), peer);
    link->start();
    link->choose(transport, {}, {});
    EXPECT_EQ(link->choice()->number, each.number);
  }
}

// It closes its data connection after it has said why it gives up; this side may see that first.
TEST_F(LinkThatIsSetUp, fails_by_what_the_peer_says_rather_than_by_what_it_closes) {
  setup_fails(Status(Code::connect_failed, "data connection closed by the peer"));
  ASSERT_TRUE(link_->state().suspension());
  pass();
  EXPECT_TRUE(losses_.empty());
  peer_->handler->on_message(
      wire::encode_refuse({Code::connect_failed, true, "node 1 (10.0.0.1:7000) was lost"}));
  ASSERT_EQ(losses_.size(), 1u);
  test::expect_contains(losses_[0], "it gave up: node 1 (10.0.0.1:7000) was lost");
  EXPECT_FALSE(link_->state().suspension());
}

TEST_F(LinkThatIsSetUp, is_looked_at_with_heartbeats_and_when_something_is_due) {
  pass();
  EXPECT_GT(monitor_.next_deadline(false), reactor_.clock().now_ns());
  setup_fails(Status(Code::peer_lost, "data connection closed by the peer"));
  ASSERT_TRUE(link_->state().suspension());
  const base::Nanoseconds until = link_->state().suspension()->until;
  EXPECT_EQ(monitor_.next_deadline(false), until);
  monitor_.check(until - 1, false);
  EXPECT_TRUE(losses_.empty());
  monitor_.check(until, false);
  ASSERT_EQ(losses_.size(), 1u);
  test::expect_contains(losses_[0], "data connection closed by the peer");
}

// Before the first heartbeat there may be many rounds.
TEST_F(LinkThatIsSetUp, whose_peer_is_silent_from_the_beginning_is_lost_in_time) {
  const base::Nanoseconds limit = settings_.connect_timeout_ms * 1'000'000;
  const base::Nanoseconds lost_at = link_->history().control().heard + limit;
  for (base::Nanoseconds now = monitor_.next_deadline(true); now < lost_at;
       now = monitor_.next_deadline(true)) {
    monitor_.check(std::max(now, link_->history().control().heard), true);
    ASSERT_TRUE(losses_.empty());
  }
  EXPECT_EQ(monitor_.next_deadline(true), lost_at);
  monitor_.check(lost_at, true);
  ASSERT_EQ(losses_.size(), 1u);
  test::expect_contains(losses_[0], "connect.timeout_ms");
}

TEST_F(LinkThatIsSetUp, takes_nothing_but_the_peers_last_word_once_it_has_failed) {
  setup_fails(Status(Code::peer_lost, "RDMA connection closed by the peer"));
  EXPECT_FALSE(link_->expects_stream());
  // Its own side was up.
  peer_->handler->on_message(wire::encode_plain(wire::ControlKind::ready));
  peer_->handler->on_message(wire::encode_payload(wire::ControlKind::setup, {}));
  peer_->handler->on_message(wire::encode_payload(wire::ControlKind::application, {}));
  EXPECT_TRUE(losses_.empty());
  peer_->handler->on_message(wire::encode_fail({Code::peer_lost, false, "it heard nothing"}));
  EXPECT_EQ(losses_, std::vector<std::string>{"peer_lost: it gave up: it heard nothing"});
}

TEST_F(LinkThatIsSetUp, fails_by_what_the_peer_says_if_its_message_is_of_no_use_any_more) {
  transport_.setup_status = Status(Code::peer_lost, "its socket is gone");
  peer_->handler->on_message(wire::encode_payload(wire::ControlKind::setup, {}));
  EXPECT_TRUE(losses_.empty());
  peer_->handler->on_message(
      wire::encode_refuse({Code::connect_failed, true, "another node was lost"}));
  EXPECT_EQ(losses_, std::vector<std::string>{"connect_failed: it gave up: another node was lost"});
}

TEST_F(LinkThatIsSetUp, skips_messages_of_unknown_kinds_that_may_be_skipped_and_fails_by_others) {
  for (const uint8_t kind : {0x80, 0xa5, 0xff})
    peer_->handler->on_message(wire::ControlMessage{static_cast<std::byte>(kind), std::byte{1}});
  EXPECT_TRUE(losses_.empty());
  EXPECT_TRUE(link_->control().attached());
  peer_->handler->on_message(wire::ControlMessage{std::byte{0x7f}});
  ASSERT_EQ(losses_.size(), 1u);
  test::expect_contains(losses_[0], "message of unknown kind on an established connection");
}

// A peer is up, and may leave, once it has this side's READY, which has not been sent.
TEST_F(LinkThatIsSetUp, fails_by_a_peer_that_leaves_before_it_is_up) {
  peer_->handler->on_message(wire::encode_plain(wire::ControlKind::bye));
  ASSERT_EQ(losses_.size(), 1u);
  test::expect_contains(losses_[0], "a BYE out of place");
  EXPECT_FALSE(link_->expects_stream());
}

TEST_F(LinkThatIsSetUp, takes_nothing_once_this_side_leaves) {
  EXPECT_TRUE(link_->expects_stream());
  link_->leave();
  EXPECT_FALSE(link_->expects_stream());
  transport_.is_ready = true;
  link_->advance();
  EXPECT_TRUE(losses_.empty());
}

TEST_F(LinkThatIsSetUp, fails_by_what_the_peer_closes_if_it_says_nothing) {
  setup_fails(Status(Code::peer_lost, "data connection closed by the peer"));
  pass(kLong);
  EXPECT_EQ(losses_, std::vector<std::string>{"peer_lost: data connection closed by the peer"});
  EXPECT_FALSE(link_->state().suspension());
}

TEST_F(LinkThatIsSetUp, fails_at_once_by_what_is_wrong_on_this_side) {
  setup_fails(Status(Code::system_error, "no memory"));
  EXPECT_EQ(losses_, std::vector<std::string>{"system_error: no memory"});
}

TEST_F(LinkThatIsSetUp, is_not_looked_at_again_once_this_side_has_given_up) {
  setup_fails(Status(Code::peer_lost, "data connection closed by the peer"));
  link_->refuse(Status(Code::connect_failed, "another node was lost"), true);
  EXPECT_FALSE(link_->state().suspension());
  EXPECT_TRUE(losses_.empty());
}

TEST_F(LinkThatIsSetUp, is_lost_in_the_next_round_when_an_exception_interrupts_its_work) {
  transport_.has_no_memory = true;
  EXPECT_THROW(link_->advance(), std::bad_alloc);
  EXPECT_TRUE(losses_.empty());
  peer_->handler->on_message(
      wire::encode_plain(wire::ControlKind::ready));  // is not looked at any more
  EXPECT_TRUE(link_->control().attached());
  pass();
  EXPECT_EQ(losses_,
            std::vector<std::string>{"resource_limit: the process of node 1 has no memory left"});
  EXPECT_FALSE(link_->control().attached());
  pass();
  EXPECT_EQ(losses_.size(), 1u);
}

TEST_F(LinkThatIsSetUp, tells_its_owner_again_in_the_next_round_when_the_owner_was_interrupted) {
  owner_throws_ = true;
  EXPECT_THROW(link_->fail(Status(Code::system_error, "broken")), std::bad_alloc);
  EXPECT_THROW(pass(), std::bad_alloc);
  owner_throws_ = false;
  pass();
  pass();
  EXPECT_EQ(losses_.size(), 1u);
}

TEST_F(LinkThatIsSetUp, tells_nobody_of_an_interrupted_end_once_this_side_has_given_up) {
  owner_throws_ = true;
  EXPECT_THROW(link_->fail(Status(Code::system_error, "broken")), std::bad_alloc);
  owner_throws_ = false;
  link_->refuse(Status(Code::connect_failed, "another node was lost"), true);
  pass();
  EXPECT_TRUE(losses_.empty());
}

Status silent() { return Status(Code::peer_lost, "silent"); }

TEST(LinkStates, a_link_that_is_up_counts_as_connected_while_it_is_suspended) {
  LinkState state;
  EXPECT_FALSE(state.connected());
  state.advance(LinkState::setting_up);
  EXPECT_FALSE(state.connected());
  state.advance(LinkState::up);
  EXPECT_TRUE(state.connected());
  EXPECT_EQ(state.suspension(), nullptr);
  state.suspend(7, silent());
  EXPECT_TRUE(state.connected());
  ASSERT_NE(state.suspension(), nullptr);
  EXPECT_EQ(state.suspension()->until, 7u);
  state.lose();
  EXPECT_FALSE(state.connected());
  EXPECT_EQ(state.suspension(), nullptr);
}

TEST(LinkStates, a_link_whose_setup_is_suspended_is_not_connected) {
  LinkState state;
  state.advance(LinkState::setting_up);
  state.suspend(7, silent());
  EXPECT_TRUE(state.is(LinkState::setup_suspended));
  EXPECT_FALSE(state.connected());
}

TEST(LinkStates, losing_a_link_that_is_only_admitted_detaches_it) {
  LinkState state;
  state.lose();
  EXPECT_TRUE(state.is(LinkState::detaching));
}

TEST(LinkStates, a_link_that_has_ended_stays_ended) {
  for (const auto end : {LinkState::parting, LinkState::left, LinkState::lost}) {
    LinkState state;
    state.advance(LinkState::up);
    state.advance(end);
    EXPECT_TRUE(state.has_ended());
    state.lose();
    state.suspend(7, silent());
    state.lose_from_any_thread();
    EXPECT_TRUE(state.is(end));
  }
}

TEST(LinkStates, only_a_link_that_is_up_can_be_lost_from_any_thread) {
  for (const auto phase : {LinkState::admitted, LinkState::setting_up, LinkState::leaving}) {
    LinkState state;
    state.advance(phase);
    state.lose_from_any_thread();
    EXPECT_TRUE(state.is(phase));
  }
  LinkState state;
  state.advance(LinkState::up);
  state.lose_from_any_thread();
  EXPECT_TRUE(state.is(LinkState::losing));
}

}  // namespace
}  // namespace faro::links
