// A link that is being set up, and what its owner is told when that fails.
#include "links/link.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/test_reactor.h"

namespace faro::links {
namespace {

constexpr base::Nanoseconds kLong = 10'000'000'000;

class FakeConnection final : public ControlConnection {
 public:
  explicit FakeConnection(Handler*& handler) : handler_(handler) {}
  void set_handler(Handler* handler) override { handler_ = handler; }
  void send(std::span<const std::byte>) override {}
  bool flushed() const override { return true; }
  const std::string& peer_address() const override { return address_; }

 private:
  Handler*& handler_;
  const std::string address_ = "10.0.0.2:7000";
};

class FakeSetup final : public transport::LinkSetup {
 public:
  FakeSetup(const Status& status, const bool& ready) : status_(status), ready_(ready) {}
  Status start() override { return Status::Ok(); }
  Status on_message(std::span<const std::byte>) override { return status_; }
  Status on_stream(transport::DataStream) override { return status_; }
  Status status() const override { return status_; }
  bool ready() const override { return ready_; }
  std::unique_ptr<transport::DataLink> take() override { return nullptr; }

 private:
  const Status& status_;
  const bool& ready_;
};

class FakeTransport final : public transport::Transport {
 public:
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Status available() const override { return Status::Ok(); }
  uint64_t memory_bytes(const ring::Layout&, const ring::Layout&) const override { return 0; }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext&) override {
    return std::make_unique<FakeSetup>(setup_status, is_ready);
  }

  Status setup_status;
  bool is_ready = false;

 private:
  const transport::Capabilities capabilities_{.name = "fake"};
};

class LinkThatIsSetUp : public testing::Test, private Link::Owner {
 protected:
  LinkThatIsSetUp() {
    transport::LinkContext context;
    context.peer_node = 2;
    context.peer_name = "node 2 (10.0.0.2:7000)";
    context.reactor = &reactor_;
    link_ = std::shared_ptr<Link>(
        new Link(*this, std::move(context), std::make_unique<FakeConnection>(peer_), {}));
    link_->start();
    link_->choose(transport_, {}, {});
  }
  void setup_fails(const Status& cause) {
    transport_.setup_status = cause;
    link_->advance();
    link_->advance();  // in each round
  }

  test::TestReactor reactor_;
  FakeTransport transport_;
  ControlConnection::Handler* peer_ = nullptr;
  std::shared_ptr<Link> link_;
  std::vector<std::string> losses_;

 private:
  void on_detached(Link&, const Status&, bool) override { losses_.push_back("detached"); }
  void on_up(Link&) override {}
  void on_lost(Link&, const Status& cause) override { losses_.push_back(cause.to_string()); }
  void on_left(Link&) override {}
  void on_heartbeat(Link&) override {}
  void on_members(Link&, std::span<const std::byte>) override {}
  void on_application(Link&, std::span<const std::byte>) override {}
};

// It closes its data connection after it has said why it gives up; this side may see that first.
TEST_F(LinkThatIsSetUp, fails_by_what_the_peer_says_rather_than_by_what_it_closes) {
  setup_fails(Status(Code::connect_failed, "data connection closed by the peer"));
  ASSERT_TRUE(link_->suspension());
  link_->judge_suspended(reactor_.clock().now_ns());
  EXPECT_TRUE(losses_.empty());
  peer_->on_message(
      wire::encode_refuse({Code::connect_failed, true, "node 1 (10.0.0.1:7000) was lost"}));
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_NE(losses_[0].find("it gave up: node 1 (10.0.0.1:7000) was lost"), std::string::npos)
      << losses_[0];
  EXPECT_FALSE(link_->suspension());
}

TEST_F(LinkThatIsSetUp, takes_nothing_but_the_peers_last_word_once_it_has_failed) {
  setup_fails(Status(Code::peer_lost, "RDMA connection closed by the peer"));
  EXPECT_FALSE(link_->expects_stream());
  // Its own side was up.
  peer_->on_message(wire::encode_plain(wire::ControlKind::ready));
  peer_->on_message(wire::encode_payload(wire::ControlKind::setup, {}));
  peer_->on_message(wire::encode_payload(wire::ControlKind::application, {}));
  EXPECT_TRUE(losses_.empty());
  peer_->on_message(wire::encode_fail({Code::peer_lost, false, "it heard nothing"}));
  EXPECT_EQ(losses_, std::vector<std::string>{"peer_lost: it gave up: it heard nothing"});
}

TEST_F(LinkThatIsSetUp, fails_by_what_the_peer_says_if_its_message_is_of_no_use_any_more) {
  transport_.setup_status = Status(Code::peer_lost, "its socket is gone");
  peer_->on_message(wire::encode_payload(wire::ControlKind::setup, {}));
  EXPECT_TRUE(losses_.empty());
  peer_->on_message(wire::encode_refuse({Code::connect_failed, true, "another node was lost"}));
  EXPECT_EQ(losses_, std::vector<std::string>{"connect_failed: it gave up: another node was lost"});
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
  link_->judge_suspended(reactor_.clock().now_ns() + kLong);
  EXPECT_EQ(losses_, std::vector<std::string>{"peer_lost: data connection closed by the peer"});
  EXPECT_FALSE(link_->suspension());
}

TEST_F(LinkThatIsSetUp, fails_at_once_by_what_is_wrong_on_this_side) {
  setup_fails(Status(Code::system_error, "no memory"));
  EXPECT_EQ(losses_, std::vector<std::string>{"system_error: no memory"});
}

TEST_F(LinkThatIsSetUp, is_not_looked_at_again_once_this_side_has_given_up) {
  setup_fails(Status(Code::peer_lost, "data connection closed by the peer"));
  link_->refuse(Status(Code::connect_failed, "another node was lost"), true);
  EXPECT_FALSE(link_->suspension());
  EXPECT_TRUE(losses_.empty());
}

}  // namespace
}  // namespace faro::links
