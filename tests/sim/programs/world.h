// World: nodes in one thread, where nothing happens but by a call: time passes, bytes arrive and a
// network thread runs only when the program says so. What a node does inside a call, how often it
// looks at the clock or asks for room, moves nothing else. Nothing depends on addresses, real time,
// or how often somebody draws a random number.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "links/network.h"
#include "ring/doorbell.h"
#include "ring/waiter.h"

namespace faro::programs {

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

/// Sees control connections.
class ControlWatcher {
 public:
  virtual ~ControlWatcher() = default;
  virtual void on_dial(const ManualNetwork& by, const std::string& address, bool is_answered) = 0;
  /// A message leaves. `connection`: its number between these two, odd if the higher node has dialled.
  virtual void on_message(const ManualNetwork& by, const ManualNetwork& to, uint32_t connection,
                          std::span<const std::byte> message) = 0;
  /// One side closes its end.
  virtual void on_close(const ManualNetwork& by, const ManualNetwork& to, uint32_t connection) = 0;
};

/// Threads: one.
class World {
 public:
  /// Both watchers outlive it; null: nobody watches control connections.
  World(Delivery delivery, RingWatcher& watcher, ControlWatcher* control_watcher = nullptr)
      : delivery_(delivery), watcher_(watcher), control_watcher_(control_watcher) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Delivery delivery() const noexcept { return delivery_; }
  RingWatcher& watcher() noexcept { return watcher_; }
  ControlWatcher* control_watcher() noexcept { return control_watcher_; }
  const base::Clock& clock() const noexcept { return clock_; }
  /// Time passes. What post_soon was asked for leaves after a while, whatever workers do.
  void pass(base::Nanoseconds time);

  // --- networks

  void add(ManualNetwork& network) { networks_.push_back(&network); }
  void remove(const ManualNetwork& network) { std::erase(networks_, &network); }
  /// Who listens there.
  ManualNetwork* find(const std::string& address) const;
  /// From now on nothing gets from one node to another, which nobody is told; it arrives when the
  /// path is light again, unless its connection has ended. Not for rings that are shared.
  void darken(uint32_t from, uint32_t to, bool is_dark) {
    is_dark ? (void)dark_.insert({from, to}) : (void)dark_.erase({from, to});
  }
  bool is_dark(uint32_t from, uint32_t to) const { return dark_.contains({from, to}); }
  /// A round of every network thread, until none has anything to do.
  void pump();
  /// Rounds of one network thread, until it has nothing to do.
  void run(uint32_t key);
  /// The round of a network thread, which must not call this; `key`: the order in which they run.
  void on_round(uint32_t key, std::function<bool()> round) { rounds_[key] = std::move(round); }
  void end_rounds(uint32_t key) { rounds_.erase(key); }

  // --- rings between nodes

  uint64_t add(const std::shared_ptr<Port>& port);
  std::shared_ptr<Port> find_port(uint64_t key) const;
  /// Those that there are, in the order in which they were made.
  std::vector<std::shared_ptr<Port>> ports() const;
  /// Everything that was posted or told arrives.
  void deliver_all();

 private:
  template <typename Round>
  static void repeat_until_quiet(const Round& round);

  const Delivery delivery_;
  RingWatcher& watcher_;
  ControlWatcher* const control_watcher_;
  base::ManualClock clock_;
  base::Nanoseconds flushed_at_ = 0;
  std::vector<ManualNetwork*> networks_;
  std::set<std::pair<uint32_t, uint32_t>> dark_;
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
  /// `number`: of the connection.
  static void join(const std::shared_ptr<Stream>& a, const std::shared_ptr<Stream>& b,
                   uint32_t number) {
    a->peer_ = b;
    b->peer_ = a;
    a->number_ = b->number_ = number;
  }

  void set_handler(links::ControlConnection::Handler* handler) { handler_ = handler; }
  void send(std::span<const std::byte> message);
  void detach();
  /// The connection breaks. `loses`: what has not been read is lost, on both sides.
  void cut(bool loses = true);
  /// The network is gone.
  void forget_network() { network_ = nullptr; }
  bool deliver();
  const std::string& peer_address() const { return peer_address_; }
  /// It stands, and leads there.
  bool leads_to(const ManualNetwork& network) const;

 private:
  void end(const char* cause, bool loses);
  bool has_news() const;
  bool is_watched(const Stream* peer) const;

  ManualNetwork* network_;
  const std::string peer_address_;
  std::weak_ptr<Stream> peer_;
  links::ControlConnection::Handler* handler_ = nullptr;
  uint32_t number_ = 0;
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

  /// The process dies, as others see it. `loses`: what it has said and they have not read is lost.
  void die(bool loses = true);
  /// All its control connections end.
  void hang_up(bool loses);
  /// The control connections to another node break.
  void cut(const ManualNetwork& peer);
  uint32_t node() const noexcept { return node_; }
  bool is_dead() const noexcept { return dead_; }
  bool listens() const noexcept { return !dead_ && acceptor_ != nullptr; }
  /// How often there was something to do.
  uint64_t work_count() const noexcept { return work_count_; }
  /// Called where run_once has nothing to do, instead of returning: whoever opens or closes a
  /// session by itself waits there. Empty: it returns.
  void on_wait(std::function<void()> wait) { wait_ = std::move(wait); }
  World& world() noexcept { return world_; }

  transport::Reactor& reactor() override { return *this; }
  const std::string& local_address() const override { return address_; }
  const std::string& host_identity() const override { return host_; }
  void set_acceptor(Acceptor* acceptor) override;
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
  bool work();

  World& world_;
  const uint32_t node_;
  const uint32_t life_;
  const std::string address_;
  const std::string host_ = "host";
  std::unique_ptr<transport::Transport> transport_;
  Acceptor* acceptor_ = nullptr;
  bool dead_ = false;
  bool woken_ = false;
  std::function<void()> wait_;
  uint64_t work_count_ = 0;
  std::map<uint32_t, uint32_t> dialled_;  // connections, by peer
  std::deque<std::function<void()>> tasks_;
  std::deque<std::unique_ptr<links::ControlConnection>> arrived_;
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

}  // namespace faro::programs
