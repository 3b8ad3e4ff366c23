// Sessions that let links go which no query needs, and make them again (native/session/README.md, "Links on demand"). Real sessions
// in one process, over sockets and shared memory; unit/query_idle_links_test.cc has every order of what can happen meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "counters/counter_file.h"
#include "links/listening_socket.h"
#include "links/socket_network.h"
#include "node/session_access.h"
#include "ring/futex_waiter.h"
#include "session/topology.h"
#include "support/certificates.h"
#include "support/changing_cluster.h"
#include "support/cluster.h"
#include "support/watchdog.h"
#include "wire/control.h"
#include "wire/query_message.h"

namespace faro::test {
namespace {

using std::chrono::seconds;

/// A network whose node does not say to those that it dials that it lets links go, as an earlier one would not.
class NetworkOfEarlierNode final : public ForwardingNetwork {
 public:
  using ForwardingNetwork::ForwardingNetwork;
  using Connected = Result<std::unique_ptr<links::ControlConnection>>;
  void connect(const std::string& address, std::function<void(Connected)> done) override {
    ForwardingNetwork::connect(address, [done = std::move(done)](Connected connected) {
      if (connected.ok())
        connected = std::unique_ptr<links::ControlConnection>(
            std::make_unique<Connection>(std::move(*connected)));
      done(std::move(connected));
    });
  }

 private:
  class Connection final : public links::ControlConnection {
   public:
    explicit Connection(std::unique_ptr<links::ControlConnection> inner)
        : inner_(std::move(inner)) {}
    void set_handler(Handler* handler) override { inner_->set_handler(handler); }
    void send(std::span<const std::byte> message) override {
      if (wire::kind_of(message) != wire::ControlKind::hello) return inner_->send(message);
      wire::Hello hello = value_of(wire::decode_hello(message));
      hello.head.features &= ~wire::kRests;
      inner_->send(wire::encode(hello));
    }
    bool flushed() const override { return inner_->flushed(); }
    const std::string& peer_address() const override { return inner_->peer_address(); }
    Status check_peer(const std::string& host) const override { return inner_->check_peer(host); }

   private:
    const std::unique_ptr<links::ControlConnection> inner_;
  };
};

/// Keeps back what a node answers about links that are to be let go.
struct Answers {
  std::atomic<bool> are_kept = true;
  std::atomic<bool> has_kept = false;
};

class NetworkOfSlowAnswers final : public ForwardingNetwork {
 public:
  NetworkOfSlowAnswers(std::unique_ptr<links::Network> inner, Answers& answers)
      : ForwardingNetwork(std::move(inner)), answers_(answers) {}
  using Connected = Result<std::unique_ptr<links::ControlConnection>>;
  void connect(const std::string& address, std::function<void(Connected)> done) override {
    ForwardingNetwork::connect(address, [this, done = std::move(done)](Connected connected) {
      if (connected.ok())
        connected = std::unique_ptr<links::ControlConnection>(
            std::make_unique<Connection>(std::move(*connected), answers_));
      done(std::move(connected));
    });
  }

 private:
  class Connection final : public links::ControlConnection {
   public:
    Connection(std::unique_ptr<links::ControlConnection> inner, Answers& answers)
        : inner_(std::move(inner)), answers_(answers) {}
    void set_handler(Handler* handler) override { inner_->set_handler(handler); }
    // What was kept goes before the next message, such as a heartbeat.
    void send(std::span<const std::byte> message) override {
      if (answers_.are_kept && is_answer(message)) {
        kept_.emplace_back(message.begin(), message.end());
        answers_.has_kept = true;
        return;
      }
      if (!answers_.are_kept) {
        for (const std::vector<std::byte>& kept : std::exchange(kept_, {})) inner_->send(kept);
      }
      inner_->send(message);
    }
    bool flushed() const override { return inner_->flushed(); }
    const std::string& peer_address() const override { return inner_->peer_address(); }
    Status check_peer(const std::string& host) const override { return inner_->check_peer(host); }

   private:
    static bool is_answer(std::span<const std::byte> message) {
      if (wire::kind_of(message) != wire::ControlKind::application) return false;
      const auto query_message =
          wire::decode_query_message(value_of(wire::decode_payload(message)));
      return query_message && query_message->kind == wire::QueryMessageKind::rest;
    }

    const std::unique_ptr<links::ControlConnection> inner_;
    Answers& answers_;
    std::vector<std::vector<std::byte>> kept_;
  };

  Answers& answers_;
};

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

/// "tls": tcp, with certificates.
class IdleLinks : public testing::TestWithParam<std::string> {
 protected:
  static SettingList settings() {
    SettingList settings = transport_settings(GetParam());
    settings.emplace_back("connect.wait_for", "none");
    settings.emplace_back("liveness.timeout_ms", "1000");  // four looks in that time
    settings.emplace_back("link.idle_ms", "1");
    return settings;
  }
  void open_all(const std::set<uint32_t>& nodes, const SettingList& more = {}) {
    nodes_ = nodes;
    for (const uint32_t n : nodes) cluster_.open(n, nodes, more);
  }
  /// Opens a node, as open_all does, whose network is a `Network`, made of the usual one and these.
  template <typename Network, typename... More>
  void open_by(uint32_t node, More&... more) {
    const base::Settings settings =
        value_of(base::Settings::resolve(value_of(cluster_.config(node, nodes_))));
    node::NodeEnvironment environment;
    environment.network = std::make_unique<Network>(
        value_of(links::SocketNetwork::create(
            settings, value_of(links::ListeningSocket::bind(cluster_.address(node))),
            session::own_address(settings))),
        more...);
    environment.make_waiter = [] { return std::make_unique<ring::FutexWaiter>(); };
    cluster_.adopt(node, value_of(SessionAccess::open(settings, std::move(environment))));
  }
  /// How often a node has looked which links are idle.
  uint64_t looks(uint32_t node) {
    counters::CounterFile& file = SessionAccess::core(cluster_[node]).membership().counters();
    return file.node().ticks.load(std::memory_order_relaxed);
  }
  /// The other nodes that a node is linked with.
  std::set<uint32_t> linked(uint32_t node) {
    std::set<uint32_t> linked;
    for (const LinkMetrics& link : cluster_[node].metrics().links) {
      if (link.connected && link.node != node) linked.insert(link.node);
    }
    return linked;
  }
  static void until(const char* what, const std::function<bool()>& reached) {
    const auto limit = std::chrono::steady_clock::now() + seconds(30);
    while (!reached()) {
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error(what);
      std::this_thread::yield();
    }
  }
  void await_idle() {
    until("some links are not let go", [&] {
      for (const uint32_t n : nodes_) {
        if (!linked(n).empty()) return false;
      }
      return true;
    });
  }
  void expect_nobody_gone() {
    for (const uint32_t n : nodes_) {
      EXPECT_EQ(cluster_.events(n).count("lost"), 0u);
      EXPECT_EQ(cluster_.events(n).count("left"), 0u);
      EXPECT_EQ(cluster_.events(n).count("failed"), 0u);
    }
  }

  Watchdog watchdog_{seconds(100), [] { return std::string("a session with idle links"); }};
  ChangingCluster cluster_{settings()};
  std::set<uint32_t> nodes_;
};

INSTANTIATE_TEST_SUITE_P(Transports, IdleLinks,
                         testing::ValuesIn(transports_to_test({"tcp", "shm"})),
                         [](const auto& each) { return each.param; });
INSTANTIATE_TEST_SUITE_P(Encrypted, IdleLinks, testing::Values("tls"),
                         [](const auto& each) { return each.param; });

TEST_P(IdleLinks, are_let_go_and_made_again_by_the_next_query) {
  open_all({0, 1, 2});
  cluster_.expect_working({0, 1, 2}, 1'000);
  await_idle();
  for (const uint32_t n : nodes_) EXPECT_EQ(cluster_.events(n).count("returned"), 2u);
  cluster_.expect_working({0, 1, 2}, 1'000);
  await_idle();
  EXPECT_FALSE(cluster_[0].has_node(1));
  cluster_.expect_working({1, 2}, 100);
  expect_nobody_gone();
  // They were there all the time.
  for (const uint32_t n : nodes_) EXPECT_EQ(cluster_.events(n).count("returned"), 2u);
}

TEST_P(IdleLinks, leave_descriptors_and_memory_as_they_were) {
  // A few links' worth of rings: what was not given back would soon be missed.
  open_all({0, 1, 2}, {{"memory.limit_bytes", "1 MiB"}});
  cluster_.expect_working({0, 1, 2});
  await_idle();
  size_t most = open_descriptors();
  for (int round = 0; round < 5; ++round) {
    cluster_.expect_working({0, 1, 2});
    await_idle();
    until("descriptors stay open", [&] { return open_descriptors() <= most; });
    most = open_descriptors();
  }
  expect_nobody_gone();
}

// Again and again a query begins while a link is being asked for, let go or made, at either side. Which of these a round meets is
// chance; the unit test has every order.
TEST_P(IdleLinks, carry_queries_whenever_they_begin) {
  open_all({0, 1});
  for (int round = 0; round < 16; ++round) {
    const uint32_t first = round / 2 % 2, second = 1 - first;
    // One side has let the link go just now, and the other one perhaps not yet.
    if (round % 2 == 0)
      until("the link is not let go", [&] { return linked(0).empty() || linked(1).empty(); });
    const QueryId id = cluster_[first].begin_query();
    const auto workers = ChangingCluster::workers_of({0, 1});
    EXPECT_TRUE(is_ok(cluster_[first].declare_query(id, workers)));
    for (int yields = 0; yields < 6 * round; ++yields) std::this_thread::yield();
    EXPECT_TRUE(is_ok(cluster_[second].declare_query(id, workers)));
    cluster_.run(id, {0, 1}, 10);
  }
  await_idle();
  cluster_.expect_working({0, 1});
  expect_nobody_gone();
}

TEST_P(IdleLinks, stay_for_a_while_if_somebody_has_asked_for_the_node) {
  open_all({0, 1, 2});
  EXPECT_TRUE(is_ok(cluster_[0].await_node(1)));
  cluster_.expect_working({0, 2});
  // The link that stays has been idle for longer than the one that does not.
  until("not just one link is let go",
        [&] { return linked(0) == std::set<uint32_t>{1} && linked(2).empty(); });
  // The side that does not ask is asked.
  EXPECT_TRUE(is_ok(cluster_[2].await_node(1)));
  cluster_.expect_working({0, 2});
  until("not just one link is let go",
        [&] { return linked(0) == std::set<uint32_t>{1} && linked(2) == std::set<uint32_t>{1}; });
}

// It is node 0 that would ask.
TEST_P(IdleLinks, stay_with_a_node_that_does_not_know_how_they_are_let_go) {
  open_all({0, 2});
  nodes_ = {0, 1, 2};
  open_by<NetworkOfEarlierNode>(1);
  cluster_.add(1, {0, 2});
  cluster_.expect_working({0, 1, 2});
  const uint64_t before = looks(0);
  until("the other link is not let go, or node 0 does not look",
        [&] { return !linked(2).contains(0) && looks(0) >= before + 8; });
  EXPECT_TRUE(linked(0).contains(1));
  EXPECT_TRUE(linked(1).contains(0));
  expect_nobody_gone();
}

// It was claimed in overflow, since a batch was held and the rings of such a link are as full ones.
TEST_P(IdleLinks, are_made_again_under_a_row_that_was_claimed_meanwhile) {
  open_all({0});
  nodes_ = {0, 1};
  Answers answers;
  open_by<NetworkOfSlowAnswers>(1, answers);
  cluster_.add(1, {0});
  cluster_.expect_working({0, 1});
  until("node 1 has not answered", [&] { return answers.has_kept.load(); });

  Worker& sender = cluster_.worker(0);
  Worker& receiver = cluster_.worker(2);
  const uint64_t row = 17;
  const auto row_bytes = std::as_bytes(std::span(&row, 1));
  const QueryId own = cluster_.begin_query({0});
  Shuffle to_self = value_of(sender.open_shuffle({own, 0, sizeof row, {0}, {0}}));
  EXPECT_EQ(to_self.sender()->send(0, row_bytes), Outcome::done);
  EXPECT_EQ(to_self.sender()->finish(), Outcome::done);
  Batch held;
  EXPECT_EQ(to_self.receiver()->receive(held), Outcome::done);

  const QueryId id = cluster_.begin_query({0, 1});
  const auto open = [&](Worker& worker, uint32_t stage) {
    return worker.open_shuffle({id, stage, sizeof row, {0}, {2}});
  };
  Shuffle out = value_of(open(sender, 0));
  RowClaim claim;
  EXPECT_EQ(out.sender()->claim(0, sizeof row, claim, Wait::none()), Outcome::done);
  const session::Membership& links = SessionAccess::core(cluster_[0]).membership();
  const uint64_t before = links.link_changes();
  answers.are_kept = false;
  until("the link is not made again",
        [&] { return links.link_changes() >= before + 2 && links.connected(1); });
  Shuffle more = value_of(open(sender, 1));
  std::ranges::copy(row_bytes, claim.data().begin());
  EXPECT_TRUE(is_ok(claim.commit()));
  held.release();
  for (Shuffle* shuffle : {&out, &more}) EXPECT_EQ(shuffle->sender()->finish(), Outcome::done);

  Shuffle in = value_of(open(receiver, 0));
  Shuffle none = value_of(open(receiver, 1));
  Batch got;
  EXPECT_EQ(in.receiver()->receive(got), Outcome::done);
  EXPECT_TRUE(std::ranges::equal(got.bytes(), row_bytes));
  got.release();
  for (Shuffle* shuffle : {&in, &none})
    EXPECT_EQ(shuffle->receiver()->receive(got), Outcome::end_of_stream);
  for (Shuffle* shuffle : {&in, &none, &out, &more}) shuffle->close();
  EXPECT_EQ(to_self.receiver()->receive(held), Outcome::end_of_stream);
  to_self.close();
  for (const QueryId& query : {own, id}) {
    std::vector<uint32_t> left =
        ChangingCluster::workers_of(query == own ? std::set<uint32_t>{0} : nodes_);
    until("a query has not ended", [&] {
      std::erase_if(left, [&](uint32_t w) {
        return cluster_.worker(w).end_query(query, Wait::none()) == Outcome::done;
      });
      return left.empty();
    });
  }
  expect_nobody_gone();
}

TEST_P(IdleLinks, are_no_reason_for_a_drain_to_wait) {
  open_all({0, 1});
  cluster_.expect_working({0, 1});
  await_idle();
  cluster_.drain(1, {0, 1});
  for (const uint32_t n : {0u, 1u}) EXPECT_EQ(cluster_.events(n).await("drained"), "drained 1");
  EXPECT_TRUE(is_ok(Nodes(cluster_[0]).remove(1)));
  EXPECT_EQ(cluster_.events(0).await("removed"), "removed 1");
  expect_nobody_gone();
}

}  // namespace
}  // namespace faro::test
