// SessionCluster: several sessions in one process, by the public API.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "faro/session.h"
#include "support/expect.h"
#include "support/held_address.h"
#include "support/test_network.h"

namespace faro::test {

using SettingList = std::vector<std::pair<std::string, std::string>>;

/// Settings of node `node`, whose listeners are bound already. The cluster's id tells it from those of tests that run
/// beside this one: a port that one of them gives back may be another's next.
inline Result<Config> config_of(uint32_t node, const std::string& addresses,
                                const SettingList& settings) {
  Config config;
  FARO_RETURN_IF_ERROR(config.set("cluster.nodes", addresses));
  FARO_RETURN_IF_ERROR(config.set("cluster.node", uint64_t{node}));
  FARO_RETURN_IF_ERROR(
      config.set("cluster.id", fmt::format("{:x}", std::hash<std::string>{}(addresses))));
  FARO_RETURN_IF_ERROR(config.set("lane.ends", lane_ends_to_test()));
  if (names_addresses()) FARO_RETURN_IF_ERROR(config.set("security.open", 1));
  for (const auto& [name, value] : schedule_to_test())
    FARO_RETURN_IF_ERROR(config.set(name, value));
  for (const auto& [name, value] : settings) FARO_RETURN_IF_ERROR(config.set(name, value));
  return config;
}

/// Rings of 4 KiB and a threshold that goes with them; `more` wins.
inline SettingList small_rings(SettingList more = {}) {
  SettingList settings = {{"ring.bytes", "4 KiB"}, {"transfer.threshold_bytes", "1 KiB"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

/// Threads: one. Opening and closing take a thread per node.
class SessionCluster {
 public:
  SessionCluster(uint32_t node_count, const SettingList& settings)
      : settings_(settings), sessions_(node_count) {
    std::vector<ListeningSocket> listeners;
    for (uint32_t n = 0; n < node_count; ++n) {
      held_.emplace_back(listen_address(n));
      Result<ListeningSocket> listener = ListeningSocket::bind(held_.back().address());
      if (!listener.ok()) {
        status_ = listener.status();
        return;
      }
      addresses_ += (n == 0 ? "" : ",") + listener->address();
      listeners.push_back(std::move(*listener));
    }
    std::vector<Status> statuses(node_count);
    for_each_node([&](uint32_t n) { statuses[n] = open(n, std::move(listeners[n])); });
    for (const Status& status : statuses) {
      if (!status.ok() && status_.ok()) status_ = status;
    }
  }
  ~SessionCluster() { close(); }

  const Status& status() const { return status_; }
  Session& operator[](uint32_t node) { return *sessions_[node]; }
  std::unique_ptr<Session>& session(uint32_t node) { return sessions_[node]; }
  uint32_t size() const { return static_cast<uint32_t>(sessions_.size()); }
  /// A worker by its number in the cluster.
  Worker& worker(uint32_t number) {
    for (uint32_t n = size(); n-- > 0;) {
      const uint32_t first = sessions_[n]->first_worker(n);
      if (number >= first) return sessions_[n]->worker(number - first);
    }
    std::abort();
  }
  uint32_t node_of(uint32_t worker) {
    uint32_t node = size() - 1;
    while (sessions_[0]->first_worker(node) > worker) --node;
    return node;
  }
  uint32_t worker_count() { return sessions_[0]->worker_count(); }

  /// Runs body(worker number) in a thread per worker and joins them.
  template <typename Body>
  void run_workers(Body&& body) {
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < worker_count(); ++w) {
      threads.emplace_back([this, &body, w] {
        body(w);
        worker(w).release_ownership();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  /// A node leaves, if it is there, and returns.
  Status restart(uint32_t node) {
    sessions_[node].reset();
    return open(node);
  }

  /// All at the same time: an orderly close waits for the others.
  void close() {
    for_each_node([this](uint32_t n) { sessions_[n].reset(); });
  }

 private:
  /// With its listener, or by binding one.
  template <typename... OwnListener>
  Status open(uint32_t node, OwnListener&&... listener) {
    FARO_ASSIGN_OR_RETURN(const Config config, config_of(node, addresses_, settings_));
    FARO_ASSIGN_OR_RETURN(sessions_[node],
                          Session::open(config, std::forward<OwnListener>(listener)...));
    return Status::Ok();
  }
  template <typename Body>
  void for_each_node(Body&& body) {
    std::vector<std::thread> threads;
    for (uint32_t n = 0; n < size(); ++n) threads.emplace_back([&body, n] { body(n); });
    for (std::thread& thread : threads) thread.join();
  }

  const SettingList settings_;
  std::string addresses_;
  std::vector<HeldAddress> held_;
  std::vector<std::unique_ptr<Session>> sessions_;
  Status status_;
};

}  // namespace faro::test
