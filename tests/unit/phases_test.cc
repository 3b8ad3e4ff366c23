// The schedule in phases: whole clusters of it in one thread, with links that take a while, and nodes that stop, die and come.
#include "transport/schedule/phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace faro::transport::schedule {
namespace {

using base::kMillisecond;
using base::Nanoseconds;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMessage = 64 * kKiB;
constexpr Nanoseconds kStep = 50'000;  // in which a node sends one message
constexpr PhaseSettings kSettings{
    .turn_bytes = 256 * kKiB, .from_bytes = 64 * kKiB, .turn_ns = 2 * kMillisecond};

/// Nodes, links that keep the order of messages, and rows that wait. Every step each node reads, and sends a message if it may.
class Cluster {
 public:
  explicit Cluster(uint32_t node_count, uint64_t seed = 0, PhaseSettings settings = kSettings)
      : nodes_(node_count), seed_(seed), settings_(settings) {}

  uint64_t draw(uint64_t bound) {
    seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
    return (seed_ >> 33) % bound;
  }

  void start_all() {
    for (uint32_t node = 0; node < nodes_.size(); ++node) start(node);
  }
  /// Also again: as a process that knows nothing of what was.
  void start(uint32_t number) {
    Node& node = nodes_[number];
    node.phases = std::make_unique<Phases>(settings_, number, static_cast<uint32_t>(nodes_.size()));
    node.is_stopped = false;
    node.links.assign(nodes_.size(), Link{});
    for (uint32_t peer = 0; peer < nodes_.size(); ++peer) {
      if (peer == number || !nodes_[peer].phases) continue;
      node.links[peer] = Link{.is_up = true, .lost_at = {}, .arrivals = {}};
      nodes_[peer].links[number] = Link{.is_up = true, .lost_at = {}, .arrivals = {}};
      node.phases->add(peer, now_);
      nodes_[peer].phases->remove(number,
                                  now_);  // the process before, if it has not heard of its end
      nodes_[peer].phases->add(number, now_);
    }
  }
  /// Whoever is linked to it learns of that now or a little later.
  void kill(uint32_t number) {
    nodes_[number].phases.reset();
    for (Node& node : nodes_) {
      if (node.phases && node.links[number].is_up)
        node.links[number].lost_at = now_ + draw(3) * kMillisecond;
    }
  }
  /// Both live, and learn of it at once.
  void cut(uint32_t one, uint32_t other) {
    nodes_[one].links[other].lost_at = nodes_[other].links[one].lost_at = now_;
  }
  void stop(uint32_t node) { nodes_[node].is_stopped = true; }
  void go_on(uint32_t node) { nodes_[node].is_stopped = false; }
  bool is_alive(uint32_t node) const { return nodes_[node].phases != nullptr; }

  void add_rows(uint32_t node, uint32_t peer, uint64_t bytes) {
    Node& from = nodes_[node];
    if (!from.phases || !from.links[peer].is_up) return;
    from.links[peer].pending += bytes;
    from.phases->set_sendable(peer, from.links[peer].pending, now_);
  }
  void add_rows_for_all(uint64_t bytes) {
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      for (uint32_t peer = 0; peer < nodes_.size(); ++peer) {
        if (peer != node) add_rows(node, peer, bytes);
      }
    }
  }
  uint64_t pending() const {
    uint64_t bytes = 0;
    for (const Node& node : nodes_) {
      for (const Link& link : node.links) bytes += node.phases ? link.pending : 0;
    }
    return bytes;
  }
  bool is_at_rest() const {
    return std::ranges::all_of(
        nodes_, [](const Node& node) { return !node.phases || node.phases->is_at_rest(); });
  }

  void step() {
    now_ += kStep;
    for (uint32_t number = 0; number < nodes_.size(); ++number) {
      Node& node = nodes_[number];
      if (!node.phases || node.is_stopped) continue;
      lose_links(number);
      // Some send before they read what came while they were stopped.
      if (draw(2) == 0) read(number);
      if (now_ >= node.phases->deadline()) node.phases->on_time(now_);
      tell(number);
      send(number);
      read(number);
      tell(number);
    }
    count_senders();
  }
  /// Steps until everything is sent and all nodes are at rest; false: that does not come.
  bool run(int steps = 20'000) {
    for (int i = 0; i < steps; ++i) {
      if (pending() == 0 && is_at_rest() && messages_under_way() == 0) return true;
      step();
    }
    return false;
  }

  Phases& node(uint32_t number) { return *nodes_[number].phases; }
  Nanoseconds now() const { return now_; }
  uint64_t told() const { return told_; }
  /// To one target, at one time, within turns.
  uint32_t most_senders() const { return most_senders_; }
  /// The most steps in a row in which a target had more than one.
  uint32_t longest_overlap() const { return longest_overlap_; }
  uint64_t sent_in_turns() const { return sent_in_turns_; }
  bool room_for_all = true;

 private:
  struct Arrival {
    Nanoseconds at;
    TurnMessage message;
  };
  struct Link {
    bool is_up = false;
    std::optional<Nanoseconds> lost_at;
    uint64_t pending = 0;
    std::deque<Arrival> arrivals;  // from the peer
  };
  struct Node {
    std::unique_ptr<Phases> phases;
    bool is_stopped = false;
    std::vector<Link> links;
  };

  size_t messages_under_way() const {
    size_t count = 0;
    for (const Node& node : nodes_) {
      for (const Link& link : node.links) count += node.phases ? link.arrivals.size() : 0;
    }
    return count;
  }
  void lose_links(uint32_t number) {
    Node& node = nodes_[number];
    for (uint32_t peer = 0; peer < nodes_.size(); ++peer) {
      if (!node.links[peer].lost_at || *node.links[peer].lost_at > now_) continue;
      node.links[peer] = Link{};
      node.phases->remove(peer, now_);
    }
  }
  void read(uint32_t number) {
    Node& node = nodes_[number];
    for (uint32_t peer = 0; peer < nodes_.size(); ++peer) {
      std::deque<Arrival>& arrivals = node.links[peer].arrivals;
      while (!arrivals.empty() && arrivals.front().at <= now_) {
        EXPECT_TRUE(node.phases->hear(peer, arrivals.front().message, now_).ok());
        arrivals.pop_front();
      }
    }
  }
  void tell(uint32_t number) {
    Telling telling;
    while (nodes_[number].phases->take(telling)) {
      ++told_;
      Link& link = nodes_[telling.peer].links[number];
      if (!nodes_[telling.peer].phases || !link.is_up || link.lost_at) continue;
      Nanoseconds at = now_ + draw(4) * kStep / 2;
      if (!link.arrivals.empty()) at = std::max(at, link.arrivals.back().at);
      link.arrivals.push_back({at, telling.message});
    }
  }
  void count_senders() {
    std::vector<uint32_t> senders(nodes_.size(), 0);
    for (uint32_t number = 0; number < nodes_.size(); ++number) {
      const Node& node = nodes_[number];
      if (!node.phases || node.is_stopped || node.phases->target() == number) continue;
      const uint32_t target = node.phases->target();
      const uint64_t allowance = node.phases->allowance(target, now_);
      if (allowance != 0 && allowance != Phases::kUnlimited) ++senders[target];
    }
    const uint32_t most = *std::ranges::max_element(senders);
    most_senders_ = std::max(most_senders_, most);
    overlap_ = most > 1 ? overlap_ + 1 : 0;
    longest_overlap_ = std::max(longest_overlap_, overlap_);
  }
  void send(uint32_t number) {
    Node& node = nodes_[number];
    for (uint32_t peer = 0; peer < nodes_.size(); ++peer) {
      Link& link = node.links[peer];
      if (!link.is_up || link.pending == 0 || !room_for_all) continue;
      const uint64_t allowance = node.phases->allowance(peer, now_);
      if (allowance == 0) continue;
      const uint64_t bytes = std::min(link.pending, kMessage);
      link.pending -= bytes;
      node.phases->sent(peer, bytes, link.pending, now_);
      if (allowance == Phases::kUnlimited) continue;
      sent_in_turns_ += bytes;
      return;
    }
  }

  std::vector<Node> nodes_;
  uint64_t seed_;
  PhaseSettings settings_;
  Nanoseconds now_ = kMillisecond;
  uint64_t told_ = 0;
  uint64_t sent_in_turns_ = 0;
  uint32_t most_senders_ = 0;
  uint32_t overlap_ = 0;
  uint32_t longest_overlap_ = 0;
};

TEST(PhaseSettings, that_make_no_sense_are_refused_by_name) {
  const auto why = [](PhaseSettings settings) { return settings.check().to_string(); };
  EXPECT_TRUE(PhaseSettings{}.check().ok());
  EXPECT_NE(why({.turn_bytes = 0}).find("network.turn_bytes is 0"), std::string::npos);
  EXPECT_NE(why({.turn_ns = 0}).find("network.turn_ms is 0"), std::string::npos);
  EXPECT_NE(why({.turn_bytes = 10, .from_bytes = 11}).find("network.schedule_from is 11"),
            std::string::npos);
}

TEST(Phases, let_one_node_at_a_time_send_to_each_and_end_when_a_round_was_empty) {
  for (uint32_t nodes = 3; nodes <= 9; ++nodes) {
    Cluster cluster(nodes, nodes);
    cluster.start_all();
    cluster.add_rows_for_all(10 * kMessage);
    ASSERT_TRUE(cluster.run()) << nodes << " nodes";
    EXPECT_EQ(cluster.most_senders(), 1u);
    EXPECT_GE(cluster.sent_in_turns(), nodes * (nodes - 1) * 9 * kMessage);
    const uint64_t told = cluster.told();
    for (int i = 0; i < 1000; ++i) cluster.step();
    EXPECT_EQ(cluster.told(), told) << "nodes that have nothing to send";
    cluster.add_rows_for_all(3 * kMessage);
    ASSERT_TRUE(cluster.run());
    EXPECT_EQ(cluster.most_senders(), 1u);
  }
}

TEST(Phases, of_any_length_meet_at_no_target) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Cluster cluster(6, seed);
    cluster.start_all();
    for (uint32_t i = 0; i < 36; ++i) cluster.add_rows(i / 6, i % 6, cluster.draw(30) * kMessage);
    ASSERT_TRUE(cluster.run());
    EXPECT_EQ(cluster.most_senders(), 1u);
  }
}

TEST(Phases, begin_by_a_word_to_all) {
  Phases node(kSettings, 0, 4);
  for (uint32_t peer = 1; peer < 4; ++peer) node.add(peer, 1);
  node.set_sendable(2, kSettings.from_bytes, 1);
  std::vector<bool> is_told(4);
  Telling telling;
  while (node.take(telling)) {
    if (telling.message.turn == 1) is_told[telling.peer] = true;
  }
  EXPECT_TRUE(is_told[1] && is_told[2] && is_told[3]);
}

TEST(Phases, end_two_rounds_after_the_last_that_had_rows) {
  Cluster cluster(4);
  cluster.start_all();
  cluster.add_rows(0, 1, kMessage);
  ASSERT_TRUE(cluster.run());
  // Round 0 is that of newcomers, round 1 has the rows.
  for (uint32_t node = 0; node < 4; ++node) {
    TurnMessage last;
    ASSERT_TRUE(cluster.node(node).hear((node + 1) % 4, {}, cluster.now()).ok());
    Telling telling;
    while (cluster.node(node).take(telling)) last = telling.message;
    EXPECT_EQ(last.turn, 4 * 4u);
  }
}

TEST(Phases, tell_nobody_of_little_which_passes) {
  Cluster cluster(4);
  cluster.start_all();
  cluster.add_rows(0, 1, 30 * kKiB);
  cluster.add_rows(0, 2, 30 * kKiB);
  EXPECT_EQ(cluster.node(0).allowance(1, cluster.now()), Phases::kUnlimited);
  ASSERT_TRUE(cluster.run());
  EXPECT_EQ(cluster.told(), 0u);
}

TEST(Phases, begin_for_little_for_each_that_is_much_for_all) {
  Cluster cluster(4);
  cluster.start_all();
  for (uint32_t peer = 1; peer < 4; ++peer) cluster.add_rows(0, peer, 30 * kKiB);
  EXPECT_EQ(cluster.node(0).allowance(1, cluster.now()), 0u);
  ASSERT_TRUE(cluster.run());
}

TEST(Phases, of_two_nodes_never_wait) {
  Cluster cluster(5);
  cluster.start(1);
  cluster.start(3);
  cluster.add_rows(1, 3, 10 * kMessage);
  EXPECT_EQ(cluster.node(1).allowance(3, cluster.now()), Phases::kUnlimited);
  ASSERT_TRUE(cluster.run());
  EXPECT_EQ(cluster.told(), 0u);
}

TEST(Phases, rest_while_no_target_has_room) {
  Cluster cluster(4);
  cluster.start_all();
  cluster.add_rows_for_all(10 * kMessage);
  for (int i = 0; i < 50; ++i) cluster.step();
  for (uint32_t node = 0; node < 4; ++node) {
    for (uint32_t peer = 0; peer < 4; ++peer)
      cluster.node(node).set_sendable(peer, 0, cluster.now());
  }
  cluster.room_for_all = false;
  for (int i = 0; i < 1000; ++i) cluster.step();
  EXPECT_TRUE(cluster.is_at_rest());
  cluster.room_for_all = true;
  cluster.add_rows_for_all(0);
  ASSERT_TRUE(cluster.run());
  EXPECT_EQ(cluster.most_senders(), 1u);
}

TEST(Phases, pass_on_the_turn_of_a_node_that_is_lost) {
  PhaseSettings settings = kSettings;
  settings.turn_ns = 10'000 * kMillisecond;  // nobody is passed over for its silence
  for (uint32_t lost = 0; lost < 5; ++lost) {
    for (int after = 0; after < 60; after += 3) {
      Cluster cluster(5, lost, settings);
      cluster.start_all();
      cluster.add_rows_for_all(8 * kMessage);
      for (int i = 0; i < after; ++i) cluster.step();
      cluster.kill(lost);
      ASSERT_TRUE(cluster.run(2000)) << "node " << lost << " after " << after << " steps";
      EXPECT_EQ(cluster.most_senders(), 1u);
    }
  }
}

TEST(Phases, go_on_where_a_link_is_lost_between_two_that_live) {
  for (uint32_t node = 0; node < 4; ++node) {
    for (const uint32_t peer : {(node + 1) % 4, (node + 2) % 4}) {
      Cluster cluster(4, node);
      cluster.start_all();
      cluster.add_rows_for_all(8 * kMessage);
      for (int i = 0; i < 30; ++i) cluster.step();
      cluster.cut(node, peer);
      ASSERT_TRUE(cluster.run(500)) << node << " to " << peer;
      for (const uint32_t one : {node, peer}) {
        cluster.add_rows(one, (node + 3) % 4, 8 * kMessage);
        ASSERT_TRUE(cluster.run(60)) << "rows of " << one << " alone";
      }
    }
  }
}

// Those two have a link each, and no turns: they tell of none.
TEST(Phases, wait_for_nobody_where_all_others_have_lost_their_turns) {
  Cluster cluster(3);
  cluster.start_all();
  cluster.add_rows_for_all(1024 * kKiB);
  cluster.cut(0, 1);
  EXPECT_TRUE(cluster.run());
  for (const uint32_t peer : {0u, 1u}) cluster.add_rows(2, peer, 1024 * kKiB);
  EXPECT_FALSE(cluster.is_at_rest());
  EXPECT_TRUE(cluster.run());
}

TEST(Phases, pass_over_a_node_that_is_stopped_and_ignore_the_turns_that_it_missed) {
  for (int after = 0; after < 90; after += 3) {
    Cluster cluster(5, 7);
    cluster.start_all();
    cluster.add_rows_for_all(20 * kMessage);
    for (int i = 0; i < after; ++i) cluster.step();
    cluster.stop(2);
    const uint64_t before = cluster.pending();
    for (int i = 0; i < 400; ++i) cluster.step();
    EXPECT_LT(cluster.pending(), before) << "the others wait, after " << after << " steps";
    cluster.go_on(2);
    ASSERT_TRUE(cluster.run());
    EXPECT_EQ(cluster.most_senders(), 1u) << "after " << after << " steps";
  }
}

TEST(Phases, that_were_passed_over_do_not_send_beside_those_that_came_after_them) {
  PhaseSettings settings = kSettings;
  settings.turn_bytes = 20 * kMessage;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Cluster cluster(5, seed, settings);
    cluster.start_all();
    cluster.add_rows_for_all(400 * kMessage);
    for (uint64_t i = cluster.draw(300); i != 0; --i) cluster.step();
    cluster.stop(2);
    for (uint64_t i = 100 + cluster.draw(300); i != 0; --i) cluster.step();
    cluster.go_on(2);
    for (int i = 0; i < 300; ++i) cluster.step();
    // A message takes up to two steps, and is read in the next.
    EXPECT_LE(cluster.longest_overlap(), 3u) << "seed " << seed;
  }
}

TEST(Phases, end_a_turn_of_which_nothing_moves_and_none_that_is_only_slow) {
  Cluster cluster(3);
  cluster.start_all();
  cluster.add_rows_for_all(30 * kMessage);
  while (cluster.node(0).target() == 0) cluster.step();
  const uint32_t target = cluster.node(0).target();
  Nanoseconds now = cluster.now();
  uint64_t left = 30 * kMessage;
  for (int i = 0; i < 100; ++i) {
    now += kSettings.turn_ns - 1;
    cluster.node(0).on_time(now);
    ASSERT_GT(cluster.node(0).allowance(target, now), 0u);
    cluster.node(0).sent(target, 1, left -= 1, now);
  }
  EXPECT_EQ(cluster.node(0).allowance(target, now + kSettings.turn_ns), 0u);
  cluster.node(0).on_time(now + kSettings.turn_ns);
  EXPECT_NE(cluster.node(0).target(), target);
}

TEST(Phases, believe_no_turn_twice_and_none_that_is_late) {
  Phases node(kSettings, 0, 4);
  for (uint32_t peer = 1; peer < 4; ++peer) node.add(peer, 1);
  const auto say = [&](uint32_t peer, uint64_t turn) {
    ASSERT_TRUE(node.hear(peer, {.turn = turn}, 1).ok());
  };
  for (uint32_t peer = 1; peer < 4; ++peer) node.set_sendable(peer, 10 * kMessage, 1);
  say(1, 4);
  say(1, 5);
  EXPECT_EQ(node.target(), 1u);  // turn 5
  node.sent(1, kSettings.turn_bytes, 6 * kMessage, 1);
  EXPECT_EQ(node.target(), 0u);
  for (int i = 0; i < 3; ++i) say(1, 5);
  say(1, 4);
  say(1, 1);
  EXPECT_EQ(node.target(), 0u);
  say(1, 6);
  EXPECT_EQ(node.target(), 2u);
  say(1, 6);
  say(1, 7);
  say(1, 5);
  node.sent(2, kSettings.turn_bytes, 6 * kMessage, 1);
  EXPECT_EQ(node.target(), 3u);  // turn 7
  // Node 3 comes after this one: its turn 8 is for the same target.
  say(3, 8);
  EXPECT_EQ(node.target(), 3u) << "turn 8 of node 3 has not begun";
  ASSERT_TRUE(node.hear(3, {.has_begun = true, .turn = 8}, 1).ok());
  EXPECT_EQ(node.target(), 0u) << "turn 8 of node 3 has begun";
  EXPECT_EQ(node.allowance(3, 1), 0u);
}

TEST(Phases, tell_a_silent_node_at_once_that_a_turn_has_begun_which_comes_after_its_own) {
  Phases node(kSettings, 0, 4);
  for (uint32_t peer = 1; peer < 4; ++peer) node.add(peer, 1);
  for (uint32_t peer = 1; peer < 4; ++peer) node.set_sendable(peer, 10 * kMessage, 1);
  ASSERT_TRUE(node.hear(1, {.turn = 5}, 1).ok());
  ASSERT_EQ(node.target(), 1u);
  node.sent(1, kSettings.turn_bytes, 6 * kMessage, 1);
  ASSERT_EQ(node.target(), 0u);
  node.on_time(1 + 2 * kSettings.turn_ns);
  Telling telling;
  while (node.take(telling)) EXPECT_FALSE(telling.message.has_begun && telling.message.turn == 6);
  ASSERT_TRUE(node.hear(2, {.turn = 5}, 2 + 2 * kSettings.turn_ns).ok());
  ASSERT_EQ(node.target(), 2u);
  ASSERT_TRUE(node.take(telling));
  EXPECT_EQ(telling.peer, 1u);
  EXPECT_TRUE(telling.message.has_begun);
  EXPECT_EQ(telling.message.turn, 6u);
}

TEST(Phases, refuse_what_no_peer_can_mean_by_name) {
  Phases node(kSettings, 0, 4);
  node.add(1, 1);
  const auto why = [&](uint32_t peer, TurnMessage message) {
    return node.hear(peer, message, 1).to_string();
  };
  EXPECT_NE(why(1, {.turn = Phases::kTurnLimit + 1}).find("told of turn 4611686018427387905"),
            std::string::npos);
  EXPECT_NE(why(1, {.quiet_nodes = 5}).find("5 quiet nodes"), std::string::npos);
  EXPECT_NE(why(1, {.kind = static_cast<TurnMessage::Kind>(3)}).find("kind 3"), std::string::npos);
  for (const uint32_t peer : {0u, 2u, 4u})
    EXPECT_NE(why(peer, {}).find("has no turns"), std::string::npos);
}

TEST(Phases, of_which_a_peer_tells_what_is_not_true_end_at_worst) {
  Phases node(kSettings, 0, 5);
  for (uint32_t peer = 1; peer < 5; ++peer) node.add(peer, 1);
  uint64_t seed = 3;
  const auto draw = [&](uint64_t bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 20) % bound;
  };
  uint64_t told = 0;
  const uint64_t messages = 100'000;
  for (uint64_t now = 1; now < messages; ++now) {
    node.set_sendable(1 + static_cast<uint32_t>(draw(4)), draw(3) * kMessage, now);
    const TurnMessage message{static_cast<TurnMessage::Kind>(draw(3)), draw(2) == 0,
                              static_cast<uint32_t>(draw(6)), draw(uint64_t{1} << draw(40))};
    ASSERT_TRUE(node.hear(1 + static_cast<uint32_t>(draw(4)), message, now).ok());
    for (Telling telling; node.take(telling); ++told)
      ASSERT_LT(telling.message.turn, uint64_t{1} << 41);
  }
  EXPECT_LT(told, 20 * messages);
  node.set_sendable(3, 10 * kMessage, messages);
  ASSERT_TRUE(node.hear(1, {.turn = Phases::kTurnLimit}, messages).ok());
  EXPECT_TRUE(node.is_at_rest());
  EXPECT_EQ(node.allowance(3, messages), Phases::kUnlimited);
  EXPECT_EQ(node.deadline(), base::kForever);
}

TEST(Phases, send_everything_whoever_stops_dies_comes_and_returns) {
  uint32_t overlapping = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Cluster cluster(3 + static_cast<uint32_t>(seed % 9), seed);
    const uint32_t nodes = 3 + static_cast<uint32_t>(seed % 9);
    for (uint32_t node = 0; node < nodes; ++node) {
      if (cluster.draw(4) != 0) cluster.start(node);
    }
    for (int event = 0; event < 30; ++event) {
      const uint32_t node = static_cast<uint32_t>(cluster.draw(nodes));
      switch (cluster.draw(8)) {
        case 0:
          if (cluster.is_alive(node)) cluster.stop(node);
          break;
        case 1:
        case 2:
          cluster.go_on(node);
          break;
        case 3:
          if (cluster.is_alive(node)) cluster.kill(node);
          break;
        default:
          cluster.add_rows(node, static_cast<uint32_t>(cluster.draw(nodes)),
                           cluster.draw(20 * kMessage));
      }
      for (uint64_t i = cluster.draw(150); i != 0; --i) cluster.step();
      // When nobody remembers the process before.
      if (cluster.draw(3) == 0) {
        for (int i = 0; i < 60; ++i) cluster.step();
        if (!cluster.is_alive(node)) cluster.start(node);
      }
    }
    for (uint32_t node = 0; node < nodes; ++node) cluster.go_on(node);
    ASSERT_TRUE(cluster.run()) << "seed " << seed;
    // Nodes that go on at the same moment have passed over each other. A message takes up to two steps,
    // and is read in the next.
    EXPECT_LE(cluster.longest_overlap(), 3u) << "seed " << seed;
    overlapping += cluster.most_senders() > 1 ? 1 : 0;
  }
  EXPECT_LE(overlapping, 4u) << "of 400 runs";
}

}  // namespace
}  // namespace faro::transport::schedule
