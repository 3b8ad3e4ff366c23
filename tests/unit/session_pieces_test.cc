// Pieces of the session layer by hand, without sockets or threads: handshake, liveness, limits.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "links/handshake.h"
#include "links/limits.h"
#include "links/liveness.h"
#include "links/log_limiter.h"
#include "session/cluster_identity.h"
#include "session/peers.h"
#include "session/topology.h"
#include "support/expect.h"
#include "support/handshake_pair.h"
#include "support/temporary_folder.h"
#include "wire/fields.h"

namespace faro::links {
namespace {

// --------------------------------------------------------------------------------------- handshake

using Pair = test::HandshakePair;
using Side = test::HandshakeSide;

TEST(Handshakes, admit_both_sides_when_they_agree) {
  Pair pair;
  pair.run();
  EXPECT_EQ(pair.dialling.admitted, 1u);
  EXPECT_EQ(pair.accepting.admitted, 2u);
  EXPECT_FALSE(pair.dialling.refused || pair.accepting.refused);
}

struct Difference {
  const char* name;
  std::function<void(Pair&)> make;
  std::vector<std::string> named;  // on both sides
};

TEST(Handshakes, refuse_every_difference_and_name_it_on_both_sides) {
  const Difference differences[] = {
      {"cluster",
       [](Pair& p) { p.dialling.identity.hello.cluster_id = "other"; },
       {"cluster.id is faro", "other"}},
      {"setting",
       [](Pair& p) { p.dialling.identity.hello.settings = "ring.bytes=4096\n"; },
       {"ring.bytes is 65536 on node 1", "4096 on node 2", "all nodes must agree"}},
      {"setting that one side does not list",
       [](Pair& p) { p.dialling.identity.hello.settings = ""; },
       {"ring.bytes is 65536 on node 1", "32768 on node 2"}},
      {"setting that the other side does not list",
       [](Pair& p) { p.accepting.identity.hello.settings = ""; },
       {"ring.bytes is 32768 on node 1", "65536 on node 2"}},
      {"setting that only one side knows",
       [](Pair& p) { p.dialling.identity.hello.settings += "ring.colour=red\n"; },
       {"ring.colour is unknown, so its default, on node 1", "red on node 2"}},
      {"text that is free",
       [](Pair& p) { p.dialling.identity.hello.settings += "cluster.workers=1,1,1\n"; },
       {"cluster.workers is 1 on node 1", "1,1,1 on node 2"}},
      {"purpose",
       [](Pair& p) {
         p.dialling.identity.hello.purpose = wire::Purpose::channel;
         p.dialling.identity.hello.name = "reader";
       },
       {"reader (10.9.9.9:4242) opens a channel", "but node 1 (h1:7000) is a session"}},
      {"unknown purpose",
       [](Pair& p) { p.dialling.identity.hello.purpose = static_cast<wire::Purpose>(9); },
       {"10.9.9.9:4242 opens a link of the unknown purpose 9", "is a session"}},
      {"ability that one side requires",
       [](Pair& p) { p.dialling.identity.hello.head.features = uint64_t{5} << 32 | 1; },
       {"node 2 (10.9.9.9:4242) requires features 0x500000000", "which node 1 (h1:7000)"}},
      {"nodes",
       [](Pair& p) { p.dialling.identity.hello.node_count = 4; },
       {"has 3 entries on node 1", "4 on node 2"}},
      {"number",
       [](Pair& p) { p.dialling.dialled_node = 0; },
       {"is node 1, but", "node 0 is there"}},
      {"itself", [](Pair& p) { p.dialling.identity.hello.incarnation = 1001; }, {"reaches itself"}},
      {"same number",
       [](Pair& p) { p.dialling.identity.hello.head.node = 1; },
       {"both say that they are node 1"}},
      {"number out of range", [](Pair& p) { p.dialling.identity.hello.head.node = 3; }, {"node 3"}},
      {"version",
       [](Pair& p) { p.dialling.identity.hello.head.version = 9; },
       {"speaks protocol version 4", "speaks version 9"}},
      {"judged",
       [](Pair& p) {
         p.accepting.judgement =
             Refusal{Status(Code::configuration_mismatch, "taken"), true, false};
       },
       {"taken"}},
  };
  for (const Difference& difference : differences) {
    Pair pair;
    difference.make(pair);
    pair.run();
    for (const Side* side : {&pair.dialling, &pair.accepting}) {
      ASSERT_TRUE(side->refused) << difference.name;
      EXPECT_EQ(side->refused->status.code(), Code::configuration_mismatch) << difference.name;
      for (const std::string& part : difference.named)
        test::expect_contains(side->refused->status.message(), part);
      EXPECT_FALSE(side->admitted) << difference.name;
    }
    EXPECT_EQ(pair.dialling.refused->retry, pair.accepting.refused->retry);
  }
}

TEST(Handshakes, admit_both_sides_whatever_one_of_them_adds_that_may_be_skipped) {
  const std::vector<std::function<void(Side&)>> additions = {
      [](Side& side) { side.identity.hello.head.features = 0xffff'ffff; },
      [](Side& side) { side.identity.hello.settings += "transport=auto\n"; },  // the default
      [](Side& side) { side.identity.hello.name = "a name"; },
  };
  for (const auto& add : additions) {
    for (const bool dials : {false, true}) {
      Pair pair;
      add(dials ? pair.dialling : pair.accepting);
      pair.run();
      EXPECT_EQ(pair.dialling.admitted, 1u);
      EXPECT_EQ(pair.accepting.admitted, 2u);
    }
  }
}

TEST(Handshakes, skip_a_kind_of_message_that_may_be_skipped_at_any_time) {
  const wire::ControlMessage optional = {std::byte{0x80}, std::byte{1}};
  Pair pair;
  pair.accepting.begin();
  pair.dialling.begin();
  for (bool moved = true; moved;) {
    moved = false;
    for (auto [from, to] :
         {std::pair{&pair.dialling, &pair.accepting}, std::pair{&pair.accepting, &pair.dialling}}) {
      if (from->wire->sent.empty() || to->wire->handler == nullptr) continue;
      to->wire->handler->on_message(optional);
      to->wire->handler->on_message(wire::ControlMessage(from->wire->sent.front()));
      from->wire->sent.pop_front();
      moved = true;
    }
  }
  EXPECT_EQ(pair.dialling.admitted, 1u);
  EXPECT_EQ(pair.accepting.admitted, 2u);
}

TEST(Handshakes, a_hello_with_a_required_field_that_is_unknown_is_refused_by_its_number) {
  wire::ControlMessage hello = wire::encode(Side(2, 1).identity.hello);
  wire::FieldWriter(hello).number(wire::kRequiredField | 300, uint8_t{1});
  Side accepting(1, std::nullopt);
  accepting.begin();
  accepting.wire->handler->on_message(hello);
  ASSERT_TRUE(accepting.refused);
  EXPECT_EQ(accepting.refused->status.code(), Code::configuration_mismatch);
  for (const char* part : {"node 1 (h1:7000) refuses node 2", "required field 300"})
    test::expect_contains(accepting.refused->status.message(), part);
  EXPECT_FALSE(accepting.refused->retry);
  EXPECT_FALSE(accepting.refused->ends_open) << "it may be of another cluster";
  EXPECT_FALSE(wire::decode_ending(accepting.wire->sent.at(0)).value().retry);
}

TEST(Handshakes, a_channel_that_dials_a_session_does_not_end_its_open) {
  Pair pair;
  pair.dialling.identity.hello.purpose = wire::Purpose::channel;
  pair.run();
  ASSERT_TRUE(pair.accepting.refused && pair.dialling.refused);
  EXPECT_FALSE(pair.accepting.refused->ends_open);
  EXPECT_FALSE(pair.dialling.refused->retry);
}

TEST(Handshakes, list_the_settings_that_differ_from_their_default_and_no_others) {
  Config config;
  ASSERT_TRUE(config.set("cluster.nodes", "h0:1,h1:1").ok());
  const auto listed = [&config] {
    return session::hello_of(base::Settings::resolve(config).value()).settings;
  };
  EXPECT_EQ(listed(), "");
  ASSERT_TRUE(config.set("ring.bytes", "64 KiB").ok() && config.set("transport", "tcp").ok());
  ASSERT_TRUE(config.set("wait.yields", "3").ok());     // of this node alone
  ASSERT_TRUE(config.set("shuffle.limit", "64").ok());  // the default
  EXPECT_EQ(listed(), "transport=tcp\nring.bytes=65536\n");
}

TEST(Handshakes, the_dialling_side_checks_who_answers) {
  Pair pair;
  pair.accepting.identity.hello.head.node = 0;  // the address in cluster.nodes is another node's
  pair.run();
  ASSERT_TRUE(pair.dialling.refused && pair.accepting.refused);
  EXPECT_TRUE(pair.dialling.refused->ends_open);
}

TEST(Handshakes, anything_out_of_order_or_malformed_is_refused_and_does_not_end_open) {
  const wire::ControlMessage hello = wire::encode(Side(2, 1).identity.hello);
  wire::ControlMessage broken = hello;
  broken.pop_back();
  const std::vector<wire::ControlMessage> bad = {
      wire::encode_plain(wire::ControlKind::ready),
      wire::encode(wire::Auth{}),
      {std::byte{0x7f}},
      broken,
      wire::encode_payload(wire::ControlKind::application, hello)};
  for (const wire::ControlMessage& message : bad) {
    Side accepting(1, std::nullopt);
    accepting.begin();
    accepting.wire->handler->on_message(message);
    ASSERT_TRUE(accepting.refused);
    EXPECT_EQ(accepting.refused->status.code(), Code::protocol_error);
    EXPECT_FALSE(accepting.refused->ends_open);
    ASSERT_EQ(accepting.wire->sent.size(), 1u);
    EXPECT_EQ(wire::kind_of(accepting.wire->sent[0]), wire::ControlKind::refuse);
    EXPECT_TRUE(accepting.wire->closed);
  }
}

TEST(Handshakes, someone_elses_cluster_or_version_does_not_end_ours) {
  Pair pair;
  pair.dialling.identity.hello.cluster_id = "other";
  pair.dialling.identity.hello.head.cluster_hash = 78;
  pair.dialling.identity.hello.head.version = 9;
  pair.run();
  ASSERT_TRUE(pair.accepting.refused);
  EXPECT_FALSE(pair.accepting.refused->ends_open);
}

TEST(Handshakes, with_tls_need_the_certificate_of_the_number_that_is_claimed) {
  const struct {
    const char* certificate;
    uint32_t number;
    uint16_t version;
    bool admitted;
    bool ends_accepting;  // a member of ours, and no outsider
  } cases[] = {
      {"h2", 2, wire::kProtocolVersion, true, false},
      {"h2", 2, wire::kProtocolVersion + 1, false, true},
      {"h0", 2, wire::kProtocolVersion, false, false},
      {"h0", 2, wire::kProtocolVersion + 1, false, false},
      {"h0", 7, wire::kProtocolVersion, false, false},
  };
  for (const auto& each : cases) {
    Pair pair;
    pair.accepting.wire->certificate = each.certificate;
    pair.dialling.identity.hello.head.node = each.number;
    pair.dialling.identity.hello.head.version = each.version;
    pair.run();
    EXPECT_EQ(pair.accepting.admitted.has_value(), each.admitted) << each.number;
    ASSERT_EQ(pair.accepting.refused.has_value(), !each.admitted) << each.number;
    if (each.admitted) continue;
    EXPECT_EQ(pair.accepting.refused->ends_open, each.ends_accepting) << each.number;
    EXPECT_TRUE(pair.dialling.refused);
  }
}

TEST(Handshakes, a_closed_connection_may_be_tried_again) {
  Side dialling(2, 1);
  dialling.begin();
  dialling.wire->handler->on_closed(Status(Code::peer_lost, "gone"));
  ASSERT_TRUE(dialling.refused);
  EXPECT_TRUE(dialling.refused->retry);
  EXPECT_FALSE(dialling.refused->ends_open);
}

// ---------------------------------------------------------------------------------------- liveness

constexpr base::Nanoseconds kLimit = 1'000'000;
constexpr base::Nanoseconds kInterval = kLimit / 4;

TEST(LivenessRules, a_silent_peer_is_lost_after_the_limit) {
  Liveness liveness(kLimit, 0);
  Liveness::Peer peer{100};
  for (base::Nanoseconds now = 0; now < 100 + kLimit; now += kInterval / 2) {
    liveness.begin_pass(now);
    EXPECT_FALSE(liveness.silent(peer, now)) << now;
  }
  liveness.begin_pass(100 + kLimit);
  EXPECT_TRUE(liveness.silent(peer, 100 + kLimit));
  EXPECT_EQ(liveness.expiry(peer), 100 + kLimit);
}

TEST(LivenessRules, after_a_late_pass_everybody_gets_a_fresh_round) {
  Liveness liveness(kLimit, 0);
  const Liveness::Peer peer{0};
  const base::Nanoseconds woken = 100 * kLimit;
  liveness.begin_pass(woken);
  EXPECT_FALSE(liveness.silent(peer, woken));
  for (base::Nanoseconds now = woken; now < woken + kLimit; now += kInterval) {
    liveness.begin_pass(now);
    EXPECT_FALSE(liveness.silent(peer, now));
  }
  liveness.begin_pass(woken + kLimit);
  EXPECT_TRUE(liveness.silent(peer, woken + kLimit));
}

TEST(LivenessRules, beats_come_once_per_interval_and_along_with_those_of_others) {
  Liveness liveness(kLimit, 0);
  int beats = 0;
  for (base::Nanoseconds now = 0; now <= 4 * kLimit; now += kInterval / 10) {
    liveness.begin_pass(now);
    beats += liveness.beat();
  }
  EXPECT_EQ(beats, 16);
  // A peer that beats all the time makes this node beat twice per interval at most.
  beats = 0;
  for (base::Nanoseconds now = 4 * kLimit; now <= 8 * kLimit; now += kInterval / 10) {
    liveness.beat_along(now);
    liveness.begin_pass(now);
    beats += liveness.beat();
  }
  EXPECT_LE(beats, 33);
  EXPECT_GE(beats, 16);
}

// ------------------------------------------------------------------------------------------ limits

TEST(Limits, are_quoted_with_the_need) {
  const Need need{1'000'000, 50};
  EXPECT_TRUE(check_limits(need, 0, {}).ok());
  EXPECT_TRUE(check_limits(need, 1'000'000, {1'000'000, 1'000'000, 50}).ok());
  struct Case {
    uint64_t setting;
    MachineLimits machine;
    const char* named;
  };
  const Case cases[] = {
      {999'999, {}, "memory.limit_bytes is 999999 bytes"},
      {0,
       {999'998, UINT64_MAX, UINT64_MAX},
       "the available memory of this machine is 999998 bytes"},
      {0,
       {UINT64_MAX, 999'997, UINT64_MAX},
       "the memory control group of this process is 999997 bytes"},
  };
  for (const Case& each : cases) {
    test::expect_error(check_limits(need, each.setting, each.machine), Code::resource_limit,
                       {"need 1000000 bytes", each.named});
  }
  const Status descriptors = check_limits(need, 0, {UINT64_MAX, UINT64_MAX, 49});
  test::expect_error(descriptors, Code::resource_limit,
                     {"50 file descriptors, but RLIMIT_NOFILE leaves 49"});
}

TEST(Limits, of_locked_memory_bind_only_what_is_pinned) {
  MachineLimits machine;
  machine.pinned_bytes = 65'536;
  EXPECT_TRUE(check_limits({1'000'000, 50, 65'536}, 0, machine).ok());
  test::expect_error(check_limits({1'000'000, 50, 65'537}, 0, machine), Code::resource_limit,
                     {"pin 65537 bytes", "leaves 65536 bytes", "ulimit -l"});
}

TEST(Limits, of_this_machine_can_be_read) {
  const MachineLimits limits = machine_limits();
  EXPECT_GT(limits.available_bytes, uint64_t{1} << 20);
  EXPECT_GT(limits.descriptors, 0u);
}

TEST(Warnings, come_once_per_cause_and_time_span) {
  LogLimiter limiter;
  uint64_t suppressed = 0;
  EXPECT_TRUE(limiter.allows("a", 1, suppressed));
  EXPECT_FALSE(limiter.allows("a", 2, suppressed));
  EXPECT_TRUE(limiter.allows("b", 3, suppressed));
  EXPECT_EQ(suppressed, 0u);
  EXPECT_TRUE(limiter.allows("a", 1 + LogLimiter::kSpan, suppressed));
  EXPECT_EQ(suppressed, 1u);
}

}  // namespace
}  // namespace faro::links

namespace faro::session {
namespace {

class PeersTest : public testing::Test {
 protected:
  using Event = Peers::Event;

  static base::Settings settings() {
    Config config;
    EXPECT_TRUE(test::is_ok(config.set("cluster.nodes", "127.0.0.1:1,127.0.0.1:2")));
    EXPECT_TRUE(test::is_ok(config.set("cluster.node_limit", "3")));
    return base::Settings::resolve(config).value();
  }
  void joins(uint64_t incarnation) {
    (void)peers_.on(1, Event::admitted);
    (void)peers_.on(1, Event::up, incarnation);
  }
  void rests() {
    (void)peers_.on(1, Event::agreed);
    EXPECT_EQ(peers_.on(1, Event::ends).now.state, PeerState::parted);
  }
  Peers::Return opens() { return peers_.on(1, Event::opened).returned; }
  void expect_lost(uint64_t incarnation) {
    test::expect_error(peers_.check_process(1, incarnation), Code::configuration_mismatch,
                       {"has to start again"});
  }

  const base::Settings settings_ = settings();
  const Topology topology_{settings_, "127.0.0.1:1"};
  const base::ManualClock clock_;
  Peers peers_{settings_, topology_, clock_};
};

TEST_F(PeersTest, lose_a_process_whose_link_was_let_go_when_another_one_joins) {
  joins(7);
  rests();
  EXPECT_TRUE(test::is_ok(peers_.check_process(1, 7)));
  joins(8);
  expect_lost(7);
  rests();
  joins(8);
  EXPECT_TRUE(test::is_ok(peers_.check_process(1, 8))) << "it is the same one";
  EXPECT_EQ(peers_.on(1, Event::refused).now.state, PeerState::linked) << "it is linked";
}

TEST_F(PeersTest, tell_of_a_process_once_it_is_linked_on_both_sides) {
  (void)peers_.on(1, Event::admitted);
  EXPECT_EQ(opens(), Peers::Return::none) << "the news may come before the link is up here";
  (void)peers_.on(1, Event::up, 7);
  EXPECT_FALSE(peers_.is_present(1));
  EXPECT_EQ(opens(), Peers::Return::again);
  EXPECT_TRUE(peers_.is_present(1));
  EXPECT_EQ(opens(), Peers::Return::none);
}

// The session of a node is not complete yet: what has ended before is told when it is.
TEST_F(PeersTest, keep_a_process_present_that_has_come_before_the_end_of_the_former_one_is_told) {
  joins(7);
  (void)opens();
  (void)peers_.on(1, Event::ends);
  joins(8);
  EXPECT_EQ(opens(), Peers::Return::again);
  (void)peers_.on(1, Event::told);
  EXPECT_TRUE(peers_.is_present(1));
}

// Whoever ends a link may find no memory, and does it again.
TEST_F(PeersTest, keep_a_process_whose_link_rests_though_its_end_is_told_twice) {
  joins(7);
  rests();
  EXPECT_EQ(peers_.on(1, Event::ends).now.state, PeerState::parted);
  (void)peers_.on(1, Event::admitted);
  EXPECT_EQ(peers_.on(1, Event::ends).now.state, PeerState::lost) << "it is the next link";
  expect_lost(7);
}

TEST_F(PeersTest, tell_nothing_of_a_process_that_comes_back_from_rest) {
  joins(7);
  (void)opens();
  rests();
  EXPECT_TRUE(peers_.is_present(1)) << "queries do not know yet";
  (void)peers_.on(1, Event::told);
  EXPECT_FALSE(peers_.is_present(1));
  joins(7);
  EXPECT_EQ(opens(), Peers::Return::from_rest);
}

TEST_F(PeersTest, tell_of_a_node_that_was_lost_while_it_rested) {
  joins(7);
  rests();
  EXPECT_EQ(peers_.on(1, Event::refused).now.state, PeerState::lost);
  expect_lost(7);
  joins(8);
  EXPECT_EQ(opens(), Peers::Return::again);
}

TEST_F(PeersTest, lose_a_process_whose_link_ends_before_both_have_agreed_that_it_rests) {
  joins(7);
  EXPECT_EQ(peers_.on(1, Event::asked).now.state, PeerState::asked);
  EXPECT_EQ(peers_.on(1, Event::stays).now.state, PeerState::linked);
  (void)peers_.on(1, Event::asked);
  EXPECT_EQ(peers_.on(1, Event::ends).now.state, PeerState::lost);
  expect_lost(7);
  EXPECT_EQ(peers_.on(1, Event::agreed).now.state, PeerState::lost) << "it comes too late";
}

TEST_F(PeersTest, give_each_change_a_later_version) {
  const PeerView free = peers_.view(2);
  EXPECT_EQ(free.state, PeerState::none);
  EXPECT_TRUE(test::is_ok(peers_.add(2, "127.0.0.1:3")));
  const PeerView ordered = peers_.view(2);
  EXPECT_EQ(ordered.state, PeerState::apart) << "queries may contain it at once";
  EXPECT_GT(ordered.version, free.version);
  const PeerView added = peers_.on(2, Event::added).now;
  const PeerView linked = peers_.on(2, Event::up, 9).now;
  EXPECT_GT(added.version, ordered.version);
  EXPECT_GT(linked.version, added.version);
  EXPECT_EQ(linked.incarnation, 9u);
}

TEST_F(PeersTest, keep_a_drained_node_drained_until_it_is_removed) {
  joins(7);
  (void)peers_.on(1, Event::drained);
  EXPECT_EQ(peers_.on(1, Event::lost, 7).now.state, PeerState::drained);
  EXPECT_TRUE(peers_.has(1));
  EXPECT_FALSE(peers_.is_member(1));
  EXPECT_TRUE(test::is_ok(peers_.remove(1)));
  EXPECT_FALSE(peers_.has(1));
  EXPECT_EQ(peers_.on(1, Event::removed).now.state, PeerState::none);
  test::expect_error(peers_.add(1, "127.0.0.1:3"), Code::wrong_state, {"node_removed"});
  (void)peers_.on(1, Event::freed);
  EXPECT_TRUE(test::is_ok(peers_.add(1, "127.0.0.1:3")));
  EXPECT_EQ(peers_.address(1), "") << "the order has not come";
  EXPECT_EQ(peers_.on(1, Event::added).now.state, PeerState::apart);
  EXPECT_EQ(peers_.address(1), "127.0.0.1:3");
  expect_lost(7);
  joins(8);
  EXPECT_EQ(opens(), Peers::Return::first);
}

TEST_F(PeersTest, remember_the_last_processes_of_a_number) {
  for (uint64_t incarnation = 1; incarnation <= 65; ++incarnation) {
    joins(incarnation);
    (void)peers_.on(1, Event::lost, incarnation);
  }
  EXPECT_TRUE(test::is_ok(peers_.check_process(1, 1)));
  expect_lost(2);
  expect_lost(65);
}

TEST_F(PeersTest, know_which_want_ends_first) {
  EXPECT_EQ(peers_.first_wanted_until(), base::kForever);
  peers_.want(1, 20);
  peers_.want(2, 10);
  EXPECT_EQ(peers_.first_wanted_until(), 10u);
  peers_.want(2, 30);
  EXPECT_EQ(peers_.first_wanted_until(), 20u);
  peers_.forget_want(1);
  EXPECT_EQ(peers_.first_wanted_until(), 30u);
}

/// Files as a control group has them.
class GroupFiles {
 public:
  std::string root() const { return folder_.path(); }
  std::string member_of(const std::string& line) {
    write("self", line + "\n");
    return root() + "/self";
  }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  const test::TemporaryFolder folder_;
};

TEST(Limits, of_memory_are_those_of_all_groups_around_the_process) {
  constexpr uint64_t kMiB = 1 << 20;
  const auto mib = [](uint64_t count) { return std::to_string(count * kMiB) + "\n"; };
  {
    GroupFiles groups;
    const std::string own = groups.member_of("0::/pod/container/inner");
    EXPECT_EQ(links::left_in_groups(own, groups.root()), UINT64_MAX);
    groups.write("pod/container/inner/memory.max", "max\n");
    groups.write("pod/container/memory.max", mib(48));
    groups.write("pod/container/memory.current", mib(20));
    groups.write("pod/container/memory.stat", "anon 5\ninactive_file " + mib(4));
    EXPECT_EQ(links::left_in_groups(own, groups.root()), 32 * kMiB);
    groups.write("pod/memory.max", mib(30));
    groups.write("pod/memory.current", mib(31));
    EXPECT_EQ(links::left_in_groups(own, groups.root()), 0u);
  }
  {
    GroupFiles groups;
    const std::string own = groups.member_of("3:cpu,memory:/pod/container/inner");
    groups.write("memory/pod/container/inner/memory.limit_in_bytes", "9223372036854771712\n");
    groups.write("memory/pod/container/inner/memory.usage_in_bytes", mib(20));
    groups.write("memory/pod/container/memory.limit_in_bytes", mib(48));
    groups.write("memory/pod/container/memory.usage_in_bytes", mib(20));
    groups.write("memory/pod/container/memory.stat", "total_inactive_file " + mib(4));
    EXPECT_EQ(links::left_in_groups(own, groups.root()), 32 * kMiB);
    groups.write("memory/pod/memory.limit_in_bytes", mib(25));
    groups.write("memory/pod/memory.usage_in_bytes", mib(20));
    EXPECT_EQ(links::left_in_groups(own, groups.root()), 5 * kMiB);
  }
}

TEST(Limits, of_memory_that_overflow_exceeds_are_told_with_figures) {
  links::MachineLimits machine;
  EXPECT_TRUE(links::check_overflow(1000, UINT64_MAX / 2, machine).ok());
  machine.cgroup_bytes = 50'000'000;
  EXPECT_TRUE(links::check_overflow(10'000'000, 40'000'000, machine).ok());
  test::expect_error(links::check_overflow(10'000'001, 40'000'000, machine), Code::resource_limit,
                     {"overflow.memory_bytes", "40000000", "memory control group", "50000000"});
  machine.available_bytes = 30'000'000;
  test::expect_error(links::check_overflow(0, 40'000'000, machine), Code::resource_limit,
                     {"this machine", "30000000"});
  EXPECT_FALSE(links::check_overflow(UINT64_MAX, 1, machine).ok());
}

TEST(Limits, of_a_memory_group_that_the_budget_of_links_exceeds_are_told_with_figures) {
  links::MachineLimits machine;
  machine.available_bytes = 1000;  // what a machine has left is no limit that kills
  EXPECT_TRUE(links::check_budget(UINT64_MAX, machine).ok());
  machine.cgroup_bytes = 50'000'000;
  EXPECT_TRUE(links::check_budget(0, machine).ok());
  EXPECT_TRUE(links::check_budget(50'000'000, machine).ok());
  test::expect_error(links::check_budget(50'000'001, machine), Code::resource_limit,
                     {"memory.limit_bytes", "50000001", "memory control group", "50000000"});
}

}  // namespace
}  // namespace faro::session
