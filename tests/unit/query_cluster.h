// QueryCluster: the query tables of several nodes, whose messages a test delivers by hand.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "session/peers.h"
#include "session/topology.h"
#include "shuffle/query/query_table.h"
#include "support/expect.h"

namespace faro::shuffle {

using wire::QueryMessage;
using wire::QueryMessageKind;

inline constexpr base::Nanoseconds kUnopened = 1'000'000'000;
inline constexpr QueryTimeouts kTimeouts{.unopened_ns = kUnopened, .link_ns = 2 * kUnopened};

/// A table that is told of nodes as a session tells it.
class Table final : public QueryTable {
 public:
  Table(Shape shape, QueryEnvironment& environment, const QueryTimeouts& timeouts,
        session::Peers& peers)
      : QueryTable(std::move(shape), environment, timeouts), peers_(peers) {}

  /// Whether it is a loss.
  bool on_peer_lost(uint32_t node, const Status& cause) {
    const session::PeerView now = peers_.on(node, Event::ends).now;
    QueryTable::on_peer_lost(node, now, cause);
    return now.state != PeerState::parted;
  }
  void on_peer_joined(uint32_t node, uint64_t incarnation) {
    (void)peers_.on(node, Event::admitted);
    QueryTable::on_peer_joined(node, peers_.on(node, Event::up, incarnation).now);
  }
  void on_node_added(uint32_t node) {
    QueryTable::on_node_added(node, peers_.on(node, Event::added).now);
  }
  void on_node_removed(uint32_t node) {
    QueryTable::on_node_removed(node, peers_.on(node, Event::removed).now);
  }

 private:
  using Event = session::Peers::Event;
  session::Peers& peers_;
};

class QueryCluster {
 public:
  struct Node final : QueryEnvironment {
    void send(uint32_t node, const QueryMessage& message) override {
      if (sending) std::exchange(sending, nullptr)();
      cluster->wires[number][node].push_back(message);
    }
    void alert_workers() override { ++alerts; }
    void look_soon() override { ++looks; }
    void let_go(uint32_t node) override { released.push_back(node); }
    void want_link(uint32_t node) override { wanted.push_back(node); }
    std::optional<session::PeerView> rest(uint32_t node,
                                          session::Peers::Event step) noexcept override {
      if (step == session::Peers::Event::stays) {
        held.erase(node);
      } else if (!held.contains(node)) {
        if (keeps_links) return std::nullopt;
        held.insert(node);
      }
      return peers->on(node, step).now;
    }
    void link_has_ended(uint32_t node) noexcept override {
      (void)peers->on(node, session::Peers::Event::told);
    }
    Status why_unlinked(uint32_t node) const override {
      return Status(Code::peer_lost, "node " + std::to_string(node) + " was not linked");
    }
    void fail_peer(uint32_t node, const Status& cause) override {
      offenders.emplace_back(node, cause);
    }
    void query_failed(const QueryId& query, const Status& cause) override {
      told_failed.emplace_back(query, cause);
    }

    QueryCluster* cluster = nullptr;
    uint32_t number = 0;
    std::function<void()> sending;  // what happens before the next message is queued
    std::atomic<int> alerts = 0;    // outside the table's lock
    std::atomic<int> looks = 0;     // that the network thread is to take
    std::vector<uint32_t> released;
    std::vector<uint32_t> wanted;
    std::set<uint32_t> held;   // whose links are held
    bool keeps_links = false;  // for a reason of its own
    std::vector<std::pair<uint32_t, Status>> offenders;
    std::vector<std::pair<QueryId, Status>> told_failed;
    base::Settings settings;
    std::optional<session::Topology> topology;
    std::optional<session::Peers> peers;
    std::unique_ptr<Table> table;
  };

  explicit QueryCluster(uint32_t count, bool nodes_change = false,
                        const QueryTimeouts& timeouts = kTimeouts)
      : nodes(count), wires(count, std::vector<std::deque<QueryMessage>>(count)) {
    QueryTable::Shape shape;
    for (uint32_t n = 0; n < count; ++n) {
      shape.nodes.push_back({"node " + std::to_string(n), 2 * n, 2, !nodes_change, {}});
      if (!nodes_change)
        shape.default_workers.insert(shape.default_workers.end(), {2 * n, 2 * n + 1});
    }
    for (uint32_t n = 0; n < count; ++n) {
      shape.node = n;
      nodes[n].cluster = this;
      nodes[n].number = n;
      nodes[n].settings = settings_of(n, nodes_change);
      session::Topology& topology = nodes[n].topology.emplace(nodes[n].settings, "h:1");
      session::Peers& peers = nodes[n].peers.emplace(nodes[n].settings, topology, clock_);
      for (uint32_t peer = 0; peer < count; ++peer)
        shape.nodes[peer].peer = peers.on(peer, session::Peers::Event::up, 1000 + peer).now;
      nodes[n].table = std::make_unique<Table>(shape, nodes[n], timeouts, peers);
    }
  }

  Table& operator[](uint32_t node) { return *nodes[node].table; }

  /// Everything from one node to another.
  void deliver(uint32_t from, uint32_t to) {
    while (!wires[from][to].empty()) {
      const QueryMessage message = wires[from][to].front();
      wires[from][to].pop_front();
      // It is decoded as it would come over a control connection.
      const auto decoded = wire::decode_query_message(wire::encode(message));
      ASSERT_TRUE(decoded.has_value());
      nodes[to].table->on_message(from, *decoded);
    }
  }
  void deliver_all() {
    for (int round = 0; round < 10; ++round) {
      for (uint32_t from = 0; from < nodes.size(); ++from) {
        for (uint32_t to = 0; to < nodes.size(); ++to) deliver(from, to);
      }
    }
  }

  std::shared_ptr<Query> use(uint32_t node, const QueryId& id) {
    Result<std::shared_ptr<Query>> query = (*this)[node].use(id);
    EXPECT_TRUE(test::is_ok(query));
    return query.ok() ? *query : nullptr;
  }
  /// A query of `issuer` which node `user` uses. Its id, and what it is there.
  std::pair<QueryId, std::shared_ptr<Query>> begin_at(uint32_t user, uint32_t issuer = 0) {
    const QueryId id = (*this)[issuer].begin();
    return {id, use(user, id)};
  }
  /// Begins a query, which every node uses. Its id, and what it is at each of them.
  std::pair<QueryId, std::vector<std::shared_ptr<Query>>> begin_everywhere(uint32_t issuer = 0) {
    const QueryId id = (*this)[issuer].begin();
    std::vector<std::shared_ptr<Query>> queries;
    for (uint32_t n = 0; n < nodes.size(); ++n) queries.push_back(use(n, id));
    return {id, queries};
  }
  /// Both workers of a node.
  void end(uint32_t node, Query& query) {
    (*this)[node].end(query, 2 * node);
    (*this)[node].end(query, 2 * node + 1);
  }
  void end_everywhere(const std::vector<std::shared_ptr<Query>>& queries) {
    for (uint32_t n = 0; n < nodes.size(); ++n) end(n, *queries[n]);
  }

  std::vector<Node> nodes;
  std::vector<std::vector<std::deque<QueryMessage>>> wires;  // [from][to]

 private:
  base::Settings settings_of(uint32_t node, bool nodes_change) const {
    std::string addresses;
    for (uint32_t n = 0; n < nodes.size(); ++n)
      addresses += (n == 0 ? "h:" : ",h:") + std::to_string(n + 1);
    Config config;
    EXPECT_TRUE(test::is_ok(config.set("cluster.nodes", addresses)));
    EXPECT_TRUE(test::is_ok(config.set("cluster.node", std::to_string(node))));
    const std::string limit = std::to_string(nodes_change ? nodes.size() : 0);
    EXPECT_TRUE(test::is_ok(config.set("cluster.node_limit", limit)));
    return base::Settings::resolve(config).value();
  }

  const base::ManualClock clock_;
};

inline QueryMessage message_of(QueryMessageKind kind, const QueryId& id) {
  return {.kind = kind, .query = to_key(id), .stage = {}, .text = {}};
}
/// FAIL or OUTCOME, and why.
inline QueryMessage message_of(QueryMessageKind kind, const QueryId& id, Code code,
                               const char* text = "") {
  const auto second = static_cast<int32_t>(code);
  return {.kind = kind, .query = to_key(id), .second = second, .stage = {}, .text = text};
}
inline QueryMessage stop_of(const QueryId& id, uint32_t stage, int32_t receiver) {
  QueryMessage message = message_of(QueryMessageKind::stop, id);
  message.first = stage;
  message.second = receiver;
  return message;
}

inline const Status kLost(Code::peer_lost, "node 1 (host:7): connection reset");
inline const Status kCancelled(Code::query_cancelled, "enough");

}  // namespace faro::shuffle
