// World: nodes in one thread, where nothing happens but by a call: time passes, bytes arrive and a
// network thread runs only when the program says so. What a node does inside a call, how often it
// looks at the clock or asks for room, moves nothing else.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "links/network.h"
#include "ring/doorbell.h"
#include "ring/waiter.h"

namespace faro::send_path {

class ManualNetwork;
class Port;
class RingWatcher;

/// How rows get from one node to another.
enum class Delivery : uint8_t {
  shared,  // as in shared memory: a post shows everything at once, and so does a release
  told,    // bytes and read positions arrive when the program says so
  // So they do; what post_soon was asked for waits for Transport::flush, or the next post of its node.
  batched,
};

/// Threads: one.
class World {
 public:
  World(Delivery delivery, RingWatcher& watcher) : delivery_(delivery), watcher_(watcher) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Delivery delivery() const noexcept { return delivery_; }
  RingWatcher& watcher() noexcept { return watcher_; }
  const base::Clock& clock() const noexcept { return clock_; }
  /// Time passes. What post_soon was asked for leaves after a while, whatever workers do.
  void pass(base::Nanoseconds time);

  // --- networks

  void add(ManualNetwork& network) { networks_.push_back(&network); }
  void remove(const ManualNetwork& network) { std::erase(networks_, &network); }
  ManualNetwork* find(const std::string& address) const;
  /// A round of every node's network thread, until none has anything to do.
  void pump();
  /// One node's round.
  void on_round(uint32_t node, std::function<bool()> round) { rounds_[node] = std::move(round); }
  void end_rounds(uint32_t node) { rounds_.erase(node); }

  // --- rings between nodes

  uint64_t add(const std::shared_ptr<Port>& port);
  std::shared_ptr<Port> find_port(uint64_t key) const;
  /// Those that there are, in the order in which they were made.
  std::vector<std::shared_ptr<Port>> ports() const;
  /// Everything that was posted or told arrives.
  void deliver_all();

 private:
  const Delivery delivery_;
  RingWatcher& watcher_;
  base::ManualClock clock_;
  base::Nanoseconds flushed_at_ = 0;
  std::vector<ManualNetwork*> networks_;
  std::map<uint32_t, std::function<bool()>> rounds_;
  std::map<uint64_t, std::weak_ptr<Port>> ports_;
  uint64_t last_port_ = 0;
};

/// One end of a control connection. What is sent lies at the other end at once, and is read in its
/// round.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(ManualNetwork& network, std::string peer_address)
      : network_(&network), peer_address_(std::move(peer_address)) {}
  static void join(const std::shared_ptr<Stream>& a, const std::shared_ptr<Stream>& b) {
    a->peer_ = b;
    b->peer_ = a;
  }

  void set_handler(links::ControlConnection::Handler* handler) { handler_ = handler; }
  void send(std::span<const std::byte> message);
  void detach();
  /// What has not been read is lost, on both sides.
  void cut();
  /// The network is gone.
  void forget_network() { network_ = nullptr; }
  bool deliver();
  const std::string& peer_address() const { return peer_address_; }
  /// It stands, and leads there.
  bool leads_to(const ManualNetwork& network) const;

 private:
  void end(const char* cause, bool loses);
  bool has_news() const { return handler_ != nullptr && !told_ && (!arrived_.empty() || ended_); }

  ManualNetwork* network_;
  const std::string peer_address_;
  std::weak_ptr<Stream> peer_;
  links::ControlConnection::Handler* handler_ = nullptr;
  std::deque<std::vector<std::byte>> arrived_;
  bool detached_ = false;
  bool ended_ = false;
  bool told_ = false;
  Status cause_;
};

/// The control connections of one node.
class ManualNetwork final : public links::Network, private transport::Reactor {
 public:
  ManualNetwork(World& world, uint32_t node, uint32_t life, std::string address);
  ~ManualNetwork() override;

  /// The process dies, as others see it.
  void die();
  /// The control connections to another node break.
  void cut(const ManualNetwork& peer);
  uint32_t node() const noexcept { return node_; }

  transport::Reactor& reactor() override { return *this; }
  const std::string& local_address() const override { return address_; }
  const std::string& host_identity() const override { return host_; }
  void set_acceptor(Acceptor* acceptor) override { acceptor_ = acceptor; }
  void connect(
      const std::string& address,
      std::function<void(Result<std::unique_ptr<links::ControlConnection>>)> done) override;
  bool run_once(base::Nanoseconds until) override;
  void wake() override { woken_ = true; }
  bool wants_thread() const override { return false; }
  transport::Transport* own_transport() override { return transport_.get(); }
  /// Always the same: how often somebody draws decides nothing.
  bool draw_random(std::span<std::byte> bytes) override;

 private:
  friend class Stream;

  Status add(int, uint32_t, Handler) override {
    return {Code::internal_error, "there are no descriptors here"};
  }
  void change(int, uint32_t) override {}
  void remove(int) noexcept override {}
  void defer(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  const base::Clock& clock() const override { return world_.clock(); }
  std::shared_ptr<Stream> make_stream(std::string peer_address);

  World& world_;
  const uint32_t node_;
  const uint32_t life_;
  const std::string address_;
  const std::string host_ = "host";
  std::unique_ptr<transport::Transport> transport_;
  Acceptor* acceptor_ = nullptr;
  bool dead_ = false;
  bool woken_ = false;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::weak_ptr<Stream>> streams_;
};

/// Where a worker waits, everything arrives, and time passes.
class ManualWaiter final : public ring::Waiter {
 public:
  explicit ManualWaiter(World& world) : world_(world) {}
  void yield() noexcept override { pass(2'000); }
  void sleep(ring::Doorbell& doorbell, uint64_t at_most_ns) noexcept override {
    pass(at_most_ns);
    doorbell.disarm();
  }

 private:
  void pass(uint64_t ns) noexcept;

  World& world_;
};

}  // namespace faro::send_path
