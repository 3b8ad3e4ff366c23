// ChangingCluster: sessions in one process whose nodes come and go, by the public API.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faro/nodes.h"
#include "faro/session.h"
#include "support/expect.h"
#include "support/held_address.h"
#include "support/query_end.h"
#include "support/recorded_events.h"
#include "support/session_cluster.h"
#include "support/test_network.h"

namespace faro::test {

/// Threads: one. Opening and closing take a thread per node.
class ChangingCluster {
 public:
  static constexpr uint32_t kWorkers = 2;  // of each node

  /// `nodes` have addresses, `node_limit` may have numbers.
  explicit ChangingCluster(SettingList settings, uint32_t nodes = 8, uint32_t node_limit = 8)
      : settings_(small_rings(std::move(settings))) {
    settings_.emplace_back("cluster.node_limit", std::to_string(node_limit));
    settings_.emplace_back("cluster.workers", std::to_string(kWorkers));
    for (uint32_t n = 0; n < nodes; ++n)
      held_.push_back(std::make_unique<HeldAddress>(listen_address(n)));
    id_ = held_[0]->address();
  }
  ~ChangingCluster() { close(); }

  const std::string& address(uint32_t node) const { return held_[node]->address(); }
  /// A number gets another address.
  void move(uint32_t node) { held_[node] = std::make_unique<HeldAddress>(listen_address(node)); }

  /// cluster.nodes with these.
  std::string list_of(const std::set<uint32_t>& nodes) const {
    std::string text;
    for (uint32_t n = 0; n <= *nodes.rbegin(); ++n)
      text += (n == 0 ? "" : ",") + (nodes.contains(n) ? address(n) : "-");
    return text;
  }
  /// What a node opens its session with that knows these, itself included.
  Result<Config> config(uint32_t node, const std::set<uint32_t>& list,
                        const SettingList& more = {}) const {
    SettingList settings = settings_;
    settings.insert(settings.end(), more.begin(), more.end());
    settings.emplace_back("cluster.id", id_);
    return config_of(node, list_of(list), settings);
  }
  Result<std::unique_ptr<Session>> try_open(uint32_t node, const std::set<uint32_t>& list,
                                            const SettingList& more = {}) const {
    FARO_ASSIGN_OR_RETURN(const Config own, config(node, list, more));
    return Session::open(own);
  }
  /// The session of a node that knows these, itself included.
  void open(uint32_t node, const std::set<uint32_t>& list, const SettingList& more = {}) {
    adopt(node, value_of(try_open(node, list, more)));
  }
  void adopt(uint32_t node, std::unique_ptr<Session> session) {
    sessions_[node] = std::move(session);
    listen(node);
  }
  /// All at once, each with all.
  void open_all(const std::set<uint32_t>& nodes) {
    std::map<uint32_t, std::unique_ptr<Session>> opened;
    for (const uint32_t n : nodes) opened[n] = nullptr;
    for_each_of(nodes, [&](uint32_t n) { opened[n] = value_of(try_open(n, nodes)); });
    for (auto& [n, session] : opened) adopt(n, std::move(session));
  }

  Session& operator[](uint32_t node) { return *sessions_.at(node); }
  RecordedEvents& events(uint32_t node) { return *events_.at(node); }
  Worker& worker(uint32_t number) {
    return sessions_.at(number / kWorkers)->worker(number % kWorkers);
  }

  /// `others` are told of a node.
  void add(uint32_t node, const std::set<uint32_t>& others) {
    for (const uint32_t n : others)
      EXPECT_TRUE(is_ok(Nodes(*sessions_.at(n)).add({node, address(node)})));
  }
  void drain(uint32_t node, const std::set<uint32_t>& at) {
    for (const uint32_t n : at) EXPECT_TRUE(is_ok(Nodes(*sessions_.at(n)).drain(node)));
  }
  /// Until it is done.
  void remove(uint32_t node, const std::set<uint32_t>& at) {
    const std::string removed = fmt::format("removed {}", node);
    for (const uint32_t n : at) {
      const size_t before = events(n).count(removed);
      EXPECT_TRUE(is_ok(Nodes(*sessions_.at(n)).remove(node)));
      events(n).await(removed, before + 1);
    }
  }
  /// Until each has each.
  void await_all(const std::set<uint32_t>& nodes) {
    for (const uint32_t n : nodes) {
      for (const uint32_t other : nodes) EXPECT_TRUE(is_ok(sessions_.at(n)->await_node(other)));
    }
  }

  static std::vector<uint32_t> workers_of(const std::set<uint32_t>& nodes) {
    std::vector<uint32_t> workers;
    for (const uint32_t n : nodes) {
      for (uint32_t w = 0; w < kWorkers; ++w) workers.push_back(n * kWorkers + w);
    }
    return workers;
  }
  /// Declared for these nodes, on all of them.
  QueryId begin_query(const std::set<uint32_t>& nodes) {
    const QueryId id = sessions_.at(*nodes.begin())->begin_query();
    for (const uint32_t n : nodes)
      EXPECT_TRUE(is_ok(sessions_.at(n)->declare_query(id, workers_of(nodes))));
    return id;
  }
  /// Each worker of a query sends `rows` rows to each, and takes what comes.
  void run(const QueryId& id, const std::set<uint32_t>& nodes, uint64_t rows = 1) {
    std::vector<std::thread> threads;
    for (const uint32_t number : workers_of(nodes)) {
      threads.emplace_back([&, number] {
        run_worker(id, open_shuffle(number, id), number, rows, nodes.size() * kWorkers);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  /// The part of a worker that has opened its shuffle: it sends `rows` rows to each of `members` receivers, takes those of
  /// all, and ends.
  void run_worker(const QueryId& id, Shuffle shuffle, uint32_t number, uint64_t rows,
                  uint64_t members) {
    for (uint64_t i = 0; i < rows; ++i) {
      for (uint32_t r = 0; r < members; ++r) {
        const uint64_t row = number;
        EXPECT_EQ(shuffle.sender()->send(r, std::as_bytes(std::span(&row, 1))), Outcome::done)
            << shuffle.status().to_string();
      }
    }
    EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
    uint64_t taken = 0;
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) taken += batch.row_count();
    EXPECT_EQ(taken, rows * members) << shuffle.status().to_string();
    shuffle.close();
    Status cause;
    EXPECT_EQ(end_query(worker(number), id, cause), Outcome::done) << cause.to_string();
    worker(number).release_ownership();
  }
  Shuffle open_shuffle(uint32_t number, const QueryId& id) {
    return value_of(worker(number).open_shuffle({id, 0, sizeof(uint64_t), {}, {}}));
  }
  /// A query over these nodes is complete.
  void expect_working(const std::set<uint32_t>& nodes, uint64_t rows = 1) {
    run(begin_query(nodes), nodes, rows);
  }

  void close(uint32_t node) { sessions_.erase(node); }
  /// All at the same time: an orderly close waits for the others.
  void close() {
    std::set<uint32_t> nodes;
    for (const auto& [n, session] : sessions_) nodes.insert(n);
    for_each_of(nodes, [this](uint32_t n) { sessions_.at(n).reset(); });
    sessions_.clear();
  }

 private:
  void listen(uint32_t node) {
    events_[node] = std::make_shared<RecordedEvents>();
    sessions_[node]->listen(events_[node]->listener());
  }
  template <typename Body>
  static void for_each_of(const std::set<uint32_t>& nodes, Body&& body) {
    std::vector<std::thread> threads;
    for (const uint32_t n : nodes) threads.emplace_back([&body, n] { body(n); });
    for (std::thread& thread : threads) thread.join();
  }

  SettingList settings_;
  std::string id_;
  std::vector<std::unique_ptr<HeldAddress>> held_;
  std::map<uint32_t, std::unique_ptr<Session>> sessions_;
  std::map<uint32_t, std::shared_ptr<RecordedEvents>> events_;
};

}  // namespace faro::test
