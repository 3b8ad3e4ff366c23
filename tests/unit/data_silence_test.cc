// A data connection that shows no sign of life while the control connection does, by a clock that is set by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "links/link.h"
#include "links/link_monitor.h"
#include "links/link_table.h"
#include "support/expect.h"
#include "support/handshake_pair.h"
#include "support/test_reactor.h"
#include "transport/absent_link.h"
#include "transport/standing_rings.h"

namespace faro::links {
namespace {

using transport::Pulse;

constexpr base::Nanoseconds kLimit = 2000 * base::kMillisecond;
constexpr base::Nanoseconds kBeat = kLimit / Liveness::kBeatsPerLimit;

/// Its data connection shows what the test says.
class ShownLink final : public transport::DataLink {
 public:
  explicit ShownLink(const std::function<Pulse()>& shows) : shows_(shows) {}
  const transport::Capabilities& capabilities() const override { return rings_.capabilities(); }
  transport::Outgoing& outgoing(uint32_t ring) override { return rings_.outgoing(ring); }
  transport::Incoming& incoming(uint32_t ring) override { return rings_.incoming(ring); }
  Pulse take_pulse() noexcept override { return shows_(); }
  void stop() noexcept override {}

 private:
  transport::AbsentLink rings_{4096};
  const std::function<Pulse()>& shows_;
};

class ShownTransport final : public transport::Transport {
 public:
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Status available() const override { return Status::Ok(); }
  uint64_t memory_bytes(const ring::Layout&, const ring::Layout&) const override { return 0; }
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext&) override {
    return std::make_unique<Setup>(*this);
  }
  std::unique_ptr<transport::LinkMending> mend(transport::LinkContext&,
                                               transport::DataLink&) override {
    return std::make_unique<transport::StandingRings>();
  }

  std::function<Pulse()> shows = [] { return Pulse::heard; };
  bool is_ready = true;

 private:
  class Setup final : public transport::LinkSetup {
   public:
    explicit Setup(const ShownTransport& transport) : transport_(transport) {}
    Status start() override { return Status::Ok(); }
    Status on_message(std::span<const std::byte>) override { return Status::Ok(); }
    Status on_stream(transport::DataStream) override { return Status::Ok(); }
    Status status() const override { return Status::Ok(); }
    bool ready() const override { return transport_.is_ready; }
    std::unique_ptr<transport::DataLink> take() override {
      return std::make_unique<ShownLink>(transport_.shows);
    }

   private:
    const ShownTransport& transport_;
  };

  const transport::Capabilities capabilities_{.name = "shown", .mends = wire::kMends};
};

class DataConnection : public testing::Test, private Link::Owner {
 protected:
  std::unique_ptr<Link> make_link(uint32_t peer, const std::shared_ptr<test::HandWire>& wire,
                                  bool mends, bool dials) {
    transport::LinkContext context;
    context.peer_node = peer;
    context.peer_name = "node 2 (10.0.0.2:7000)";
    context.initiator = dials;
    context.reactor = &reactor_;
    context.mending = {.limit = mends ? 5000 * base::kMillisecond : 0, .address = "", .number = 9};
    wire::Hello hello;
    hello.head.features = wire::kMends | wire::kSigns;
    return std::make_unique<Link>(static_cast<Link::Owner&>(*this), std::move(context),
                                  std::make_unique<test::HandConnection>(wire), hello);
  }
  /// `mends`: a connection that breaks is replaced.
  void link(bool mends, bool dials = false) {
    link_ = &links_.add(make_link(2, peer_, mends, dials));
    link_->start();
    if (dials) {
      hear(wire::encode(wire::LinkChoice{"shown", {}, std::nullopt, mends ? 9u : 0u}));
      link_->begin(transport_, {});
    } else {
      link_->choose(transport_, {}, {});
    }
  }
  void link_up(bool mends = true) {
    link(mends);
    hear(wire::encode_plain(wire::ControlKind::ready));
    ASSERT_TRUE(link_->state().is(LinkState::up));
  }
  void hear(const wire::ControlMessage& message) {
    if (peer_->handler != nullptr) peer_->handler->on_message(message);
  }
  /// Time passes as it does for a network thread that has nothing else to do. `lives`: the peer's heartbeats come.
  void pass(base::Nanoseconds time, bool lives = true) {
    const base::Nanoseconds end = now() + time;
    while (now() < end) {
      const base::Nanoseconds next = std::clamp(monitor_.next_deadline(true), now() + 1, end);
      clock_.advance(next - now());
      if (lives) hear(wire::encode_plain(wire::ControlKind::heartbeat));
      monitor_.check(now(), true);
    }
  }
  base::Nanoseconds now() const { return clock_.now_ns(); }
  bool has_said(wire::ControlKind kind) const {
    return std::ranges::any_of(peer_->said, [&](const wire::ControlMessage& message) {
      return wire::kind_of(message) == kind;
    });
  }

  base::ManualClock clock_;
  test::TestReactor reactor_{clock_};
  ShownTransport transport_;
  const std::shared_ptr<test::HandWire> peer_ = std::make_shared<test::HandWire>();
  LinkTable links_{502, 4096};
  const base::Settings settings_ = [] {
    base::Settings settings;
    settings.liveness_timeout_ms = kLimit / base::kMillisecond;
    settings.connect_timeout_ms = 30'000;
    return settings;
  }();
  LinkMonitor monitor_{settings_, links_, "node 1", clock_.now_ns()};
  Link* link_ = nullptr;
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

constexpr auto kShowsNothing = [] { return Pulse::none; };

TEST_F(DataConnection, that_goes_dark_is_noticed_within_the_limit_and_a_heartbeat_and_mended) {
  link_up();
  pass(10 * kBeat);
  transport_.shows = kShowsNothing;
  pass(kLimit - 1);
  EXPECT_TRUE(link_->state().is(LinkState::up));
  EXPECT_FALSE(has_said(wire::ControlKind::broken));
  pass(kBeat + 1);
  EXPECT_TRUE(has_said(wire::ControlKind::broken));
  pass(kBeat);
  EXPECT_TRUE(link_->state().is(LinkState::mending));
  ASSERT_NE(link_->state().suspension(), nullptr);
  test::expect_contains(
      link_->state().suspension()->cause.message(),
      "node 1 heard nothing from node 2 (10.0.0.2:7000) on the data connection for "
      "liveness.timeout_ms = 2000");
  EXPECT_TRUE(losses_.empty());
}

TEST_F(DataConnection, that_goes_dark_after_an_hour_of_silence_is_noticed_as_soon) {
  link_up();
  pass(3600 * 1000 * base::kMillisecond);
  EXPECT_TRUE(link_->state().is(LinkState::up));
  transport_.shows = kShowsNothing;
  pass(kLimit + kBeat);
  EXPECT_TRUE(has_said(wire::ControlKind::broken));
}

TEST_F(DataConnection, that_goes_dark_from_the_beginning_is_noticed) {
  transport_.shows = kShowsNothing;
  link_up();
  pass(kLimit + kBeat);
  EXPECT_TRUE(has_said(wire::ControlKind::broken));
}

TEST_F(DataConnection, that_goes_dark_fails_by_name_where_it_is_not_mended) {
  link_up(false);
  transport_.shows = kShowsNothing;
  pass(kLimit + 2 * kBeat);
  ASSERT_EQ(losses_.size(), 1u);
  test::expect_contains(losses_[0], "peer_lost: node 1 heard nothing from node 2 (10.0.0.2:7000)");
  test::expect_contains(losses_[0], "on the data connection");
}

// To mend it would be in vain, and take link.mend_ms more.
TEST_F(DataConnection, that_goes_dark_with_the_control_connection_fails_by_name_at_once) {
  link_up();
  pass(10 * kBeat);
  transport_.shows = kShowsNothing;
  pass(kLimit, false);
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_EQ(losses_[0],
            "peer_lost: node 1 heard nothing from node 2 (10.0.0.2:7000) for liveness.timeout_ms = "
            "2000");
  EXPECT_FALSE(has_said(wire::ControlKind::broken));
}

TEST_F(DataConnection, of_a_peer_that_is_stopped_for_less_than_the_limit_is_not_given_up) {
  link_up();
  for (int i = 0; i < 20; ++i) {
    transport_.shows = kShowsNothing;
    pass(kLimit - 1, false);
    transport_.shows = [] { return Pulse::heard; };
    pass(kBeat);
    EXPECT_TRUE(link_->state().is(LinkState::up));
  }
  EXPECT_FALSE(has_said(wire::ControlKind::broken));
}

// Its control connection may be read before its data connection.
TEST_F(DataConnection, whose_peer_was_stopped_is_given_up_if_it_stays_dark_when_the_peer_is_back) {
  link_up();
  transport_.shows = kShowsNothing;
  pass(kLimit - 1, false);
  pass(2 * kBeat);
  EXPECT_TRUE(has_said(wire::ControlKind::broken));
}

TEST_F(DataConnection, is_given_the_time_again_after_this_process_was_stopped) {
  link_up();
  pass(10 * kBeat);
  transport_.shows = kShowsNothing;
  clock_.advance(3600 * 1000 * base::kMillisecond);
  hear(wire::encode_plain(wire::ControlKind::heartbeat));
  monitor_.check(now(), true);
  EXPECT_TRUE(link_->state().is(LinkState::up));
  transport_.shows = [] { return Pulse::heard; };
  pass(10 * kLimit);
  EXPECT_TRUE(link_->state().is(LinkState::up));
  EXPECT_FALSE(has_said(wire::ControlKind::broken));
}

// Each round of the network thread comes late, at any time that is not taken for a stop; what has come meanwhile is read first.
TEST_F(DataConnection, of_five_hundred_peers_are_not_given_up_by_a_busy_processor) {
  std::vector<std::shared_ptr<test::HandWire>> wires;
  for (uint32_t peer = 3; peer < 502; ++peer) {
    wires.push_back(std::make_shared<test::HandWire>());
    Link& other = links_.add(make_link(peer, wires.back(), true, false));
    other.start();
    other.choose(transport_, {}, {});
    wires.back()->handler->on_message(wire::encode_plain(wire::ControlKind::ready));
  }
  link_up();
  uint64_t lateness = 1;
  for (int round = 0; round < 2000; ++round) {
    lateness = lateness * 6364136223846793005u + 1442695040888963407u;
    clock_.advance(std::max<base::Nanoseconds>(monitor_.next_deadline(true), now()) - now() +
                   lateness % kBeat);
    for (const auto& wire : wires)
      wire->handler->on_message(wire::encode_plain(wire::ControlKind::heartbeat));
    hear(wire::encode_plain(wire::ControlKind::heartbeat));
    monitor_.check(now(), true);
  }
  links_.for_each([](const Link& link) { EXPECT_TRUE(link.state().is(LinkState::up)); });
  EXPECT_TRUE(losses_.empty());
}

TEST_F(DataConnection, of_which_nobody_can_tell_is_not_judged) {
  transport_.shows = [] { return Pulse::unknown; };
  link_up();
  pass(100 * kLimit);
  EXPECT_TRUE(link_->state().is(LinkState::up));
  EXPECT_FALSE(has_said(wire::ControlKind::broken));
}

TEST_F(DataConnection, that_breaks_again_and_again_is_lost_with_the_last_cause) {
  link_up();
  hear(wire::encode_plain(wire::ControlKind::broken));
  ASSERT_TRUE(link_->state().is(LinkState::mending));
  transport_.shows = [] { return Pulse::stuck; };
  pass(kBeat);
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_EQ(losses_[0],
            "peer_lost: the data connection has broken on its side; it has broken 3 times although "
            "it was mended, and nothing has got further");
}

// The peer is heard, but what it still has to send, or the connection to it, does not come.
TEST_F(DataConnection, that_is_not_made_in_time_fails_the_link_of_a_running_session) {
  transport_.is_ready = false;
  link(true, true);
  ASSERT_TRUE(link_->state().is(LinkState::setting_up));
  pass(30'000 * base::kMillisecond - 1);
  EXPECT_TRUE(losses_.empty());
  pass(1);
  EXPECT_EQ(losses_, std::vector<std::string>{
                         "connect_failed: it was not set up within connect.timeout_ms = 30000"});
}

}  // namespace
}  // namespace faro::links
