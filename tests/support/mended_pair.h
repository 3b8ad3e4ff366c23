// MendedPair: two nodes, in one process, whose connections a test breaks while queries run.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "support/cutting_proxy.h"
#include "support/expect.h"
#include "support/query_end.h"
#include "support/session_cluster.h"
#include "support/test_network.h"

namespace faro::test {

/// Two nodes of one worker each. Node 1 dials node 0 through a proxy, by loopback; over verbs rows take the addresses of
/// test_network.h.
class MendedPair {
 public:
  /// `own`: what one of them has beside that. `disturb`: what happens to their connections before they open, which may fail
  /// then (answers).
  explicit MendedPair(const SettingList& settings, const std::array<SettingList, 2>& own = {},
                      const std::function<void(CuttingProxy&)>& disturb = {}) {
    std::vector<ListeningSocket> listeners;
    for (int node = 0; node < 2; ++node) listeners.push_back(*ListeningSocket::bind("127.0.0.1:0"));
    const std::string last = listeners[1].address();
    proxy_.emplace(listeners[0].address());
    EXPECT_TRUE(proxy_->is_ready());
    const std::string addresses[2] = {listeners[0].address() + "," + last,
                                      proxy_->address() + "," + last};
    SettingList all = small_rings(settings);
    all.emplace_back("cluster.id", last);
    if (disturb) disturb(*proxy_);
    both([&](uint32_t node) {
      SettingList some = all;
      some.insert(some.end(), own[node].begin(), own[node].end());
      if (names_addresses()) some.emplace_back("verbs.address", node_host(node));
      const auto config = config_of(node, addresses[node], some);
      ASSERT_TRUE(is_ok(config));
      auto session = Session::open(*config, std::move(listeners[node]));
      answers[node] = session.status();
      EXPECT_TRUE(disturb || is_ok(session));
      if (session.ok()) sessions_[node] = std::move(*session);
    });
  }
  ~MendedPair() {
    both([&](uint32_t node) { sessions_[node].reset(); });
  }

  /// What opening answered.
  std::array<Status, 2> answers;

  CuttingProxy& proxy() { return *proxy_; }
  Session& session(uint32_t node) { return *sessions_[node]; }
  std::unique_ptr<Session>& held(uint32_t node) { return sessions_[node]; }

  /// Is called before a worker sends a row, with its number; set it while no query runs.
  std::function<void(uint64_t row)> before_row;
  /// The width of a row, which begins with its number; set it while no query runs.
  uint32_t row_bytes = sizeof(uint64_t);

  /// A query in which each worker sends that many rows to each; what its end says at either node.
  std::vector<Status> query(uint64_t rows) {
    const QueryId id = session(0).begin_query();
    std::vector<Status> ends(2);
    both([&](uint32_t node) { ends[node] = run_part(node, id, rows); });
    return ends;
  }
  /// A worker's part of one.
  Status run_part(uint32_t node, const QueryId& id, uint64_t rows) {
    Worker& worker = session(node).worker(0);
    Status failure;
    {
      auto opened = worker.open_shuffle({id, 0, row_bytes, {}, {}});
      failure = opened.ok() ? exchange(*opened, rows) : opened.status();
    }
    Status cause;
    (void)end_query(worker, id, failure, cause);
    worker.release_ownership();
    return cause;
  }
  void expect_complete(uint64_t rows) {
    for (const Status& end : query(rows)) EXPECT_TRUE(is_ok(end));
  }

 private:
  template <typename Body>
  static void both(Body&& body) {
    std::thread other([&body] { body(1u); });
    body(0u);
    other.join();
  }

  /// Takes rows while it sends, so that neither of the workers waits for the other.
  Status exchange(Shuffle& shuffle, uint64_t rows) {
    uint64_t sum = 0;
    uint64_t count = 0;
    const auto take = [&](Wait wait) {
      Batch batch;
      const Outcome outcome = shuffle.receiver()->receive(batch, wait);
      if (outcome != Outcome::done) return outcome;
      for (const std::span<const std::byte> row : batch.each_row()) {
        uint64_t number = 0;
        std::memcpy(&number, row.data(), sizeof number);
        sum += number;
        ++count;
      }
      return outcome;
    };
    const auto until_done = [&](const auto& attempt) {
      Outcome outcome = attempt();
      while (outcome != Outcome::done && outcome != Outcome::failed) {
        if (take(Wait::none()) == Outcome::failed) return false;
        outcome = attempt();
      }
      return outcome == Outcome::done;
    };
    std::vector<std::byte> bytes(row_bytes);
    for (uint64_t row = 0; row < rows; ++row) {
      if (before_row) before_row(row);
      std::memcpy(bytes.data(), &row, sizeof row);
      for (uint32_t to = 0; to < 2; ++to) {
        if (!until_done([&] { return shuffle.sender()->send(to, bytes, Wait::none()); }))
          return shuffle.status();
      }
    }
    if (!until_done([&] { return shuffle.sender()->finish(Wait::none()); }))
      return shuffle.status();
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done) outcome = take(Wait::forever());
    if (outcome == Outcome::failed) return shuffle.status();
    EXPECT_EQ(count, 2 * rows);
    EXPECT_EQ(sum, rows * (rows - 1));
    return Status::Ok();
  }

  std::optional<CuttingProxy> proxy_;
  std::unique_ptr<Session> sessions_[2];
};

}  // namespace faro::test
