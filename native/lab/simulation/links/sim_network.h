// SimNetwork: control connections and waiting of one simulated node.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faro/status.h"
#include "lab/simulation/links/sim_internet.h"
#include "lab/simulation/links/sim_stream.h"
#include "lab/simulation/transport/sim_transport.h"
#include "lab/simulation/transport/sim_turns.h"
#include "lab/simulation/transport/sim_world.h"
#include "links/network.h"

namespace faro::sim {

/// What a node's membership is opened with in a simulation. Where the node's network thread is an
/// agent of the world (do_work), run_once never waits. While Membership::open or close runs in a
/// fiber, run_once suspends that fiber; outside fibers it drives the world until there is something
/// to do. Agent and fiber must not be inside one membership at the same time: it has one network
/// thread.
///
/// Threads: its world's. Blocks: run_once, in simulated time. Owns: its end of every connection, in
/// the sense that they end with it.
class SimNetwork final : public links::Network, private transport::Reactor {
 public:
  /// By what its node sends rows in turns.
  struct Schedule {
    transport::schedule::PhaseSettings phases;
    uint32_t node_count = 0;
  };

  /// `number`: its place in the fabric. Listens on `address`. Those with equal `host` could share memory. `schedule`: none,
  /// if rows are sent without turns. Errors: address_in_use, config_invalid.
  static Result<std::unique_ptr<SimNetwork>> create(
      SimInternet& internet, uint32_t number, const std::string& address, std::string host,
      const std::optional<Schedule>& schedule = std::nullopt);
  ~SimNetwork() override;

  /// From now on this agent is woken when there is something to do; it calls the membership's
  /// do_work.
  void set_agent(World::AgentId agent) { agent_ = agent; }
  void clear_agent() { agent_.reset(); }

  /// The process dies as the others see it: what it sent and has not left is lost, every connection
  /// is reset, nobody listens, and its data links carry nothing. Its own code is not stopped: it finds
  /// itself alone, ends with errors, and can be destroyed in order. Another network can then be made
  /// in its place.
  void die();

  transport::Reactor& reactor() override { return *this; }
  const std::string& local_address() const override { return local_address_; }
  const std::string& host_identity() const override { return host_; }
  void set_acceptor(Acceptor* acceptor) override;
  void connect(
      const std::string& address,
      std::function<void(Result<std::unique_ptr<links::ControlConnection>>)> done) override;
  bool run_once(base::Nanoseconds until) override;
  bool lingering() const override;
  void wake() override;
  bool wants_thread() const override { return false; }
  transport::Transport* own_transport() override { return &transport_; }
  bool draw_random(std::span<std::byte> bytes) override;

 private:
  friend class SimStream;
  using Task = std::function<void()>;
  using Connected = std::function<void(Result<std::unique_ptr<links::ControlConnection>>)>;

  SimNetwork(SimInternet& internet, uint32_t node, std::string address, std::string host,
             const std::optional<Schedule>& schedule);

  // Reactor: there are no descriptors in a simulation.
  Status add(int fd, uint32_t epoll_events, Handler handler) override;
  void change(int fd, uint32_t epoll_events) override;
  void remove(int fd) noexcept override;
  void defer(std::function<void()> task) override;
  const base::Clock& clock() const override { return world_.clock(); }

  void establish(const std::string& address, Connected done);
  std::shared_ptr<SimStream> make_stream(uint32_t peer, std::string peer_address);
  bool has_work() const;
  bool handle_some();

  SimInternet& internet_;
  World& world_;
  const uint32_t node_;
  const std::string local_address_;
  const std::string host_;
  const std::shared_ptr<SimTurns> turns_;  // null: it has none
  SimTransport transport_;
  Random secrets_;
  Acceptor* acceptor_ = nullptr;
  std::optional<World::AgentId> agent_;
  bool dead_ = false;
  bool woken_ = false;
  bool waiting_ = false;    // a fiber is suspended in run_once
  std::deque<Task> tasks_;  // of the network thread, in order
  std::vector<std::weak_ptr<SimStream>> streams_;
  std::shared_ptr<SimNetwork*> self_;  // what events under way hold weakly
};

}  // namespace faro::sim
