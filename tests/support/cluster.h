// Clusters for tests of the session layer: nodes of one process, each with a network and an observer of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "base/settings.h"
#include "links/listening_socket.h"
#include "links/socket_network.h"
#include "session/cluster_identity.h"
#include "session/membership.h"
#include "session/topology.h"
#include "support/expect.h"
#include "support/held_address.h"
#include "support/test_network.h"

namespace faro::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Keeps what a membership tells. Threads: any.
class RecordingObserver final : public session::Observer {
 public:
  struct Message {
    uint32_t from;
    std::string text;
  };
  struct Loss {
    uint32_t node;
    Status cause;
  };

  void on_message(uint32_t from, std::span<const std::byte> message) override {
    record([&] {
      messages_.push_back(
          {from, std::string(reinterpret_cast<const char*>(message.data()), message.size())});
    });
  }
  void on_peer_lost(uint32_t node, const session::PeerView&, const Status& cause) override {
    record([&] { losses_.push_back({node, cause}); });
  }
  void on_peer_left(uint32_t node, const session::PeerView&) override {
    record([&] { left_.push_back(node); });
  }
  void on_let_go(uint32_t, const session::PeerView&) override {}
  void on_peer_joined(uint32_t node, const session::PeerView&) override {
    record([&] { joined_.push_back(node); });
  }
  void on_peer_returned(uint32_t node, session::Peers::Return) override {
    record([&] { returned_.push_back(node); });
  }
  bool is_drained(uint32_t) const override { return true; }
  void on_drained(uint32_t) override {}
  void on_node_removed(uint32_t, const session::PeerView&) override {}
  void on_number_free(uint32_t) override {}
  void on_links_changed() override {}
  void on_tick(base::Nanoseconds) override {
    record([&] { ++ticks_; });
  }

  std::vector<Message> messages() const { return copy(messages_); }
  std::vector<Loss> losses() const { return copy(losses_); }
  std::vector<uint32_t> left() const { return copy(left_); }
  std::vector<uint32_t> joined() const { return copy(joined_); }
  std::vector<uint32_t> returned() const { return copy(returned_); }
  int ticks() const { return copy(ticks_); }

  /// Waits until `holds` is true, looked at after each event. False if it is not within the limit.
  bool wait(const std::function<bool()>& holds,
            std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::unique_lock lock(mutex_);
    for (;;) {
      const uint64_t seen = events_;
      lock.unlock();
      if (holds()) return true;
      lock.lock();
      if (!changed_.wait_until(lock, deadline, [&] { return events_ != seen; })) {
        lock.unlock();
        return holds();
      }
    }
  }

 private:
  template <typename Change>
  void record(Change&& change) {
    const std::lock_guard lock(mutex_);
    change();
    ++events_;
    changed_.notify_all();
  }
  template <typename T>
  T copy(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t events_ = 0;
  std::vector<Message> messages_;
  std::vector<Loss> losses_;
  std::vector<uint32_t> left_;
  std::vector<uint32_t> joined_;
  std::vector<uint32_t> returned_;
  int ticks_ = 0;
};

/// A network that does all as another one does; for those that differ in one thing.
class ForwardingNetwork : public links::Network {
 public:
  explicit ForwardingNetwork(std::unique_ptr<links::Network> inner) : inner_(std::move(inner)) {}
  transport::Reactor& reactor() override { return inner_->reactor(); }
  const std::string& local_address() const override { return inner_->local_address(); }
  bool open_to_others() const override { return inner_->open_to_others(); }
  std::optional<transport::tcp::SocketAddress> source() const override { return inner_->source(); }
  std::shared_ptr<tls::Credentials> credentials() const override { return inner_->credentials(); }
  const std::string& host_identity() const override { return inner_->host_identity(); }
  void set_acceptor(Acceptor* acceptor) override { inner_->set_acceptor(acceptor); }
  void connect(
      const std::string& address,
      std::function<void(Result<std::unique_ptr<links::ControlConnection>>)> done) override {
    inner_->connect(address, std::move(done));
  }
  bool run_once(base::Nanoseconds until) override { return inner_->run_once(until); }
  bool lingering() const override { return inner_->lingering(); }
  void wake() override { inner_->wake(); }
  bool wants_thread() const override { return inner_->wants_thread(); }

 private:
  const std::unique_ptr<links::Network> inner_;
};

/// A network that claims to be on another host, so that no memory can be shared.
class RemoteHostNetwork final : public ForwardingNetwork {
 public:
  RemoteHostNetwork(std::unique_ptr<links::Network> inner, std::string host)
      : ForwardingNetwork(std::move(inner)), host_(std::move(host)) {}
  const std::string& host_identity() const override { return host_; }

 private:
  const std::string host_;
};

/// Listeners of all nodes, with ports that the system chose, and the settings that go with them.
class ClusterPlan {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  /// `common`: settings of all nodes. `host`: where all listen; empty: on the addresses of test_network.h.
  explicit ClusterPlan(uint32_t node_count, Settings common = {}, const std::string& host = "")
      : common_(std::move(common)) {
    for (uint32_t node = 0; node < node_count; ++node) {
      held_.push_back(
          std::make_unique<HeldAddress>(host.empty() ? listen_address(node) : host + ":0"));
      auto listener = links::ListeningSocket::bind(held_.back()->address());
      EXPECT_TRUE(is_ok(listener));
      if (!addresses_.empty()) addresses_ += ",";
      addresses_ += listener.value().address();
      each_address_.push_back(listener.value().address());
      listeners_.push_back(std::make_unique<links::ListeningSocket>(std::move(listener.value())));
    }
  }

  void set_nodes(std::string addresses) { addresses_ = std::move(addresses); }
  const std::string& addresses() const { return addresses_; }
  const std::string& address(uint32_t node) const { return each_address_[node]; }
  uint32_t node_count() const { return static_cast<uint32_t>(listeners_.size()); }

  /// `more`: settings of this node only.
  Result<base::Settings> settings(uint32_t node, const Settings& more = {}) const {
    Config config;
    FARO_RETURN_IF_ERROR(config.set("cluster.nodes", addresses_));
    FARO_RETURN_IF_ERROR(config.set("cluster.node", uint64_t{node}));
    FARO_RETURN_IF_ERROR(config.set("ring.bytes", "4 KiB"));
    FARO_RETURN_IF_ERROR(config.set("transfer.threshold_bytes", "1 KiB"));
    if (names_addresses()) FARO_RETURN_IF_ERROR(config.set("security.open", 1));
    for (const auto& [name, value] : common_) FARO_RETURN_IF_ERROR(config.set(name, value));
    for (const auto& [name, value] : more) FARO_RETURN_IF_ERROR(config.set(name, value));
    if (amend_) amend_(node, config);
    return base::Settings::resolve(config);
  }
  /// What a node says to another one, for a peer that is made by hand.
  wire::Hello hello(uint32_t node, uint32_t to = 0) const {
    wire::Hello hello = session::hello_of(settings(node).value());
    hello.expected_node = to;
    hello.incarnation = 0x1234;
    hello.address = address(node);
    hello.transports = {"tcp"};
    return hello;
  }
  /// Changes what every node is opened with, in a way that no text says; before open.
  void amend(std::function<void(uint32_t node, Config&)> amend) { amend_ = std::move(amend); }

  /// The listener of a node; once.
  links::ListeningSocket take_listener(uint32_t node) { return std::move(*listeners_[node]); }
  /// For a node that starts again: one where it listened before, which must be closed.
  void listen_again(uint32_t node) {
    auto listener = links::ListeningSocket::bind(each_address_[node]);
    ASSERT_TRUE(is_ok(listener));
    *listeners_[node] = std::move(listener.value());
  }

  /// Changes what a node's network looks like to its membership; before open.
  using Wrap =
      std::function<std::unique_ptr<links::Network>(uint32_t, std::unique_ptr<links::Network>)>;
  void wrap_networks(Wrap wrap) { wrap_ = std::move(wrap); }

  /// Opens one node; blocks as Membership::open does.
  Result<std::unique_ptr<session::Membership>> open(uint32_t node, session::Observer& observer,
                                                    const Settings& more = {}) {
    FARO_ASSIGN_OR_RETURN(const base::Settings resolved, settings(node, more));
    FARO_ASSIGN_OR_RETURN(std::unique_ptr<links::Network> network,
                          links::SocketNetwork::create(resolved, take_listener(node),
                                                       session::own_address(resolved)));
    if (wrap_) network = wrap_(node, std::move(network));
    return session::Membership::open(resolved, std::move(network), observer);
  }

 private:
  const Settings common_;
  std::function<void(uint32_t, Config&)> amend_;
  Wrap wrap_;
  std::string addresses_;
  std::vector<std::string> each_address_;
  std::vector<std::unique_ptr<HeldAddress>> held_;
  std::vector<std::unique_ptr<links::ListeningSocket>> listeners_;
};

/// A node of a plan that opens in a thread of its own, and stays open as long as this exists.
class OpeningNode {
 public:
  using Opened = Result<std::unique_ptr<session::Membership>>;

  OpeningNode(ClusterPlan& plan, uint32_t node, const ClusterPlan::Settings& more = {})
      : opened_(std::async(std::launch::async, [this, &plan, node, more] {
                  return plan.open(node, observer_, more);
                }).share()) {}

  /// Blocks: until it is open, or cannot.
  const Opened& opened() const { return opened_.get(); }
  Status status() const { return opened().status(); }
  bool has_ended() const {
    return opened_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  RecordingObserver& observer() { return observer_; }

 private:
  RecordingObserver observer_;
  const std::shared_future<Opened> opened_;
};

inline void expect_open(std::initializer_list<const OpeningNode*> nodes) {
  for (const OpeningNode* node : nodes) EXPECT_TRUE(is_ok(node->opened()));
}

/// All nodes of a plan, opened by a thread each.
class ThreadCluster {
 public:
  using More = std::function<ClusterPlan::Settings(uint32_t)>;

  explicit ThreadCluster(ClusterPlan& plan, const More& more = {}) {
    const uint32_t count = plan.node_count();
    for (uint32_t node = 0; node < count; ++node)
      observers_.push_back(std::make_unique<RecordingObserver>());
    members_.resize(count);
    statuses_.resize(count);
    std::vector<std::thread> threads;
    for (uint32_t node = 0; node < count; ++node) {
      threads.emplace_back([&, node] {
        auto opened =
            plan.open(node, *observers_[node], more ? more(node) : ClusterPlan::Settings());
        statuses_[node] = opened.status();
        if (opened.ok()) members_[node] = std::move(opened.value());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  ~ThreadCluster() { close(); }

  /// All at the same time: an orderly close waits for the others.
  void close() {
    std::vector<std::thread> threads;
    for (auto& member : members_) {
      if (member != nullptr) threads.emplace_back([&member] { member.reset(); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  bool all_open() const {
    return std::ranges::all_of(members_, [](const auto& member) { return member != nullptr; });
  }
  std::string problems() const {
    std::string text;
    for (const Status& status : statuses_) text += status.to_string() + "\n";
    return text;
  }
  session::Membership& operator[](uint32_t node) { return *members_[node]; }
  std::unique_ptr<session::Membership>& member(uint32_t node) { return members_[node]; }
  RecordingObserver& observer(uint32_t node) { return *observers_[node]; }
  const Status& status(uint32_t node) const { return statuses_[node]; }
  uint32_t size() const { return static_cast<uint32_t>(members_.size()); }

 private:
  std::vector<std::unique_ptr<RecordingObserver>> observers_;
  std::vector<std::unique_ptr<session::Membership>> members_;
  std::vector<Status> statuses_;
};

/// One whose nodes have all opened; if not, the test ends as failed.
class OpenCluster : public ThreadCluster {
 public:
  explicit OpenCluster(ClusterPlan& plan, const More& more = {}) : ThreadCluster(plan, more) {
    if (!all_open()) throw std::runtime_error(problems());
  }
};

}  // namespace faro::test
