// ClusterMembership: the Membership of a static cluster. All nodes are known, all links come up at
// once or open fails.
//
// Everything here happens in rounds: wait for events, let them reach the links, then look at times.
// The thread that opens the membership runs the rounds until all links are up, then the network
// thread does (or, in the simulation, whoever calls do_work).
//
//   1. every link is dialled (the node with the higher number dials the lower one, with retries)
//      and admitted: handshake.h. Nothing is allocated; whatever breaks is tried again until
//      connect.timeout_ms.
//   2. when all links of this node are admitted, its need is known: checked against the limits,
//      then allocated.
//   3. every link is set up by its transport: link.h. From here on a loss ends open, on every node.
//
// A node that was lost, or has left, may start again while the others go on: README.md, "Return". Its
// link is another one, for which the same steps are taken, by the others in their network threads.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "session/attempt_limiter.h"
#include "session/former_links.h"
#include "session/handshake.h"
#include "session/limits.h"
#include "session/link.h"
#include "session/liveness.h"
#include "session/log_limiter.h"
#include "session/membership.h"
#include "session/metrics_endpoint.h"
#include "session/network.h"
#include "session/resolution.h"
#include "transport/absent_link.h"
#include "transport/shm/node_doorbells.h"

namespace faro::session {

/// Threads: as membership.h says; everything private is the network thread's, or before that the
/// opening thread's.
class ClusterMembership final : public Membership,
                                private Network::Acceptor,
                                private Handshake::Owner,
                                private Link::Owner,
                                private transport::LinkEvents {
 public:
  ClusterMembership(const base::Settings& settings, std::unique_ptr<Network> network,
                    Observer& observer);
  ~ClusterMembership() override;

  /// What Membership::open does, once.
  Status open(const Cancellation& cancellation);

  const base::Settings& settings() const override { return settings_; }
  const base::Clock& clock() const override { return network_->reactor().clock(); }
  uint32_t node() const override { return self_; }
  const std::vector<Node>& nodes() const override { return nodes_; }
  uint32_t worker_count() const override { return worker_count_; }
  std::shared_ptr<transport::DataLink> link(uint32_t node) override;
  uint64_t link_changes() const noexcept override {
    return link_changes_.load(std::memory_order_acquire);
  }
  uint32_t first_ready(uint32_t node, uint32_t local_worker) const override {
    return ready_groups_[node][local_worker] * ring::ReadySet::kRingsPerGroup;
  }
  ring::ReadySet& ready_set(uint32_t local_worker) override { return *ready_sets_[local_worker]; }
  ring::DoorbellLine& doorbell(uint32_t local_worker) override {
    return doorbells_.line(local_worker);
  }
  ring::Layout outgoing_layout(uint32_t node) const override { return layout(self_, node); }
  ring::Layout incoming_layout(uint32_t node) const override { return layout(node, self_); }
  void send(uint32_t node, std::span<const std::byte> message) override;
  bool poll_network() noexcept override {
    bool any = false;
    for (const auto& transport : transports_) any |= transport->poll();
    return any;
  }
  void flush_network() noexcept override {
    for (const auto& transport : transports_) transport->flush();
  }
  void worker_sleeps() noexcept override {
    for (const auto& transport : transports_) transport->worker_sleeps();
  }
  void worker_wakes() noexcept override {
    for (const auto& transport : transports_) transport->worker_wakes();
  }
  void fail_link(uint32_t node, std::shared_ptr<transport::DataLink> link,
                 const Status& cause) override;
  bool connected(uint32_t node) const override;
  uint32_t former_link_count() const override {
    return former_links_->count() - static_cast<uint32_t>(links_.size() - 1);
  }
  counters::CounterFile& counters() override { return *counters_; }
  void close() override;
  bool do_work() override;

 private:
  // What belongs to a link while it is apart and has to be dialled.
  struct Dialling {
    bool under_way = false;
    uint64_t attempt = 0;  // tells the answer to an attempt that was given up
    std::unique_ptr<Handshake> handshake;
    base::Nanoseconds next = 0;   // when to dial, or to give the attempt up
    base::Nanoseconds pause = 0;  // before the next attempt
    int number_taken = 0;         // refusals in a row
    Status last;                  // why the link is apart
    Status
        ending;  // what it said when it gave up, or would not begin; the first time, which tells most
  };
  // What belongs to a node that was lost, or has left.
  struct Absence {
    uint64_t former_incarnation = 0;  // 0: none was lost
    bool is_joining = false;          // linked again; its own session is not open yet
  };
  struct Stranger {
    std::unique_ptr<Handshake> handshake;
    base::Nanoseconds deadline = 0;
    bool queues = false;  // its handshake has not started: too many of its address have failed
  };
  enum class Phase { opening, open, closing, closed };

  // Opening: cluster_opening.cc.
  Status prepare();
  Status start_thread();
  void make_nodes();
  void make_identity();
  Status load_secret();
  Status make_transports();
  Result<std::unique_ptr<transport::Transport>> make_transport(std::string_view name) const;
  Status check_dialled_addresses() const;
  void make_links();
  std::shared_ptr<Link> make_link(uint32_t node);
  void advance_links(base::Nanoseconds now);
  bool dials(const Link& link) const { return link.node() < self_; }
  void look_up_missing();
  void dial(Link& link, base::Nanoseconds now);
  void on_dialled(uint32_t node, uint64_t attempt,
                  Result<std::unique_ptr<ControlConnection>> connection);
  void retry_later(uint32_t node, const Status& cause);
  void fail_open(const Status& status);
  Status missing() const;
  /// Every node that is not linked yet, with the last cause.
  std::string missing_peers() const;
  void end_opening(const Status& status, bool retry);

  // Return: cluster_return.cc.
  bool returning() const;
  bool returns_without(const Link& gone) const;
  bool missing_for_all(const Link& link) const;
  bool all_known() const;
  bool all_linked() const;
  std::vector<bool> missing_nodes() const;
  void tell_members() const;
  bool welcome(Link& link, const transport::Transport& transport);
  void replace_link(Link& link);
  void give_up(Link& link, const Status& cause);
  void log_no_return(const Link& link, const Status& cause);

  // What the links need: cluster_resources.cc.
  Status check_least_need() const;
  uint64_t fixed_memory_bytes() const;
  Status check_need(const Need& need) const;
  uint32_t session_descriptors() const;
  Result<transport::Transport*> choose_transport(const Link& link) const;
  const char* why_not(const transport::Transport& transport, const wire::Hello& peer) const;
  transport::Transport* find_transport(std::string_view name) const;
  Status allocate();
  counters::Shape counter_shape() const;
  Status make_counters();
  Status start_metrics();
  void count_link(uint32_t node);
  void set_up_links();
  void set_up(Link& link);
  void log_opened(base::Nanoseconds since) const;

  // Rounds.
  bool round(base::Nanoseconds until);
  base::Nanoseconds next_deadline() const;
  base::Nanoseconds expiry(const Link& link) const;
  /// Links may come up.
  bool linking() const { return phase_ == Phase::opening || phase_ == Phase::open; }
  void look_at_times();
  void check_liveness(Link& link, base::Nanoseconds now);
  void check_strangers(base::Nanoseconds now);
  void start_queued(base::Nanoseconds now);
  void run() noexcept;
  void begin_closing();
  void finish_closing();
  bool all_gone() const;

  // Network::Acceptor
  void on_connection(std::unique_ptr<ControlConnection> connection) override;
  void on_data_stream(const StreamToken& token, transport::DataStream stream) override;
  base::Nanoseconds may_try_at(const std::string& peer_address) override;
  void on_turn(const std::string& peer_address) override;
  void on_stranger(const std::string& peer_address, const Status& cause) override;
  // Handshake::Owner
  bool draw_random(std::span<std::byte> bytes) override { return network_->draw_random(bytes); }
  std::optional<Refusal> judge(const wire::Hello& hello, const std::string& from) override;
  void on_admitted(Handshake& handshake, std::unique_ptr<ControlConnection> connection,
                   const wire::Hello& peer) override;
  void on_refused(Handshake& handshake, const Refusal& refusal) override;
  // Link::Owner
  void on_detached(Link& link, const Status& cause, bool final) override;
  void on_up(Link& link) override;
  void on_lost(Link& link, const Status& cause) override;
  void on_left(Link& link) override;
  void on_heartbeat(Link& link) override;
  void on_members(Link& link) override;
  void on_application(Link& link, std::span<const std::byte> payload) override;
  // LinkEvents of the local link
  void on_link_failed(const Status& cause) override;

  std::optional<uint32_t> dialled_node(const Handshake& handshake) const;
  void retire(Handshake& handshake);
  Handshake& crowding_stranger(const std::string& newcomer_address);
  void refuse_stranger(const std::string& from, const Status& cause);
  void describe_peer(Link& link, const wire::Hello& peer);
  ring::Layout layout(uint32_t from, uint32_t to) const;
  template <typename Visit>
  void for_each_link(Visit&& visit) const {
    for (const auto& link : links_) {
      if (link != nullptr) visit(*link);
    }
  }

  // Constant after open.
  const base::Settings settings_;
  const uint32_t self_;
  Observer& observer_;
  uint32_t worker_count_ = 0;
  std::vector<Node> nodes_;
  LocalIdentity identity_;

  // Destroyed last to first: links use all that stands before them.
  const std::unique_ptr<Network> network_;
  std::unique_ptr<counters::CounterFile> counters_;
  std::unique_ptr<MetricsEndpoint> metrics_;                       // null: none is wanted
  std::vector<std::unique_ptr<transport::Transport>> transports_;  // preferred first
  transport::shm::NodeDoorbells doorbells_;
  std::vector<std::unique_ptr<ring::ReadySet>> ready_sets_;
  std::vector<transport::WorkerEnd> workers_;
  std::vector<std::vector<uint32_t>> ready_groups_;  // by node: the first one at each local worker
  std::shared_ptr<transport::DataLink> local_link_;
  const std::shared_ptr<FormerLinks> former_links_ = std::make_shared<FormerLinks>();
  // By node; null for this one. Replaced by the network thread, under the mutex; other threads look
  // under the mutex.
  mutable std::mutex links_mutex_;
  std::vector<std::shared_ptr<Link>> links_;
  std::vector<std::shared_ptr<transport::DataLink>>
      absent_links_;                       // while links_ has none that is up
  std::atomic<uint64_t> link_changes_{0};  // network thread: release, after the change

  // Network thread.
  std::vector<Dialling> dialling_;                     // by node
  std::vector<std::unique_ptr<Resolution>> look_ups_;  // of hosts of missing nodes, while opening
  std::vector<Absence> absences_;                      // by node
  std::list<Stranger> strangers_;                      // accepted, and not yet known
  std::vector<std::unique_ptr<Handshake>> retired_;    // destroyed at the end of the round
  Liveness liveness_;
  LogLimiter limiter_;
  AttemptLimiter attempts_;  // of those who dial in
  Phase phase_ = Phase::opening;
  bool allocated_ = false;
  bool more_to_begin_ = false;  // links that could be set up now
  Status fatal_;                // why open has failed
  bool spreads_ = true;         // fatal_ concerns the whole cluster, not this node only
  Status last_stranger_;        // who was refused last while opening: often the missing node
  uint64_t memory_bytes_ = 0;
  uint64_t pinned_bytes_ = 0;  // of these
  base::Nanoseconds closing_deadline_ = base::kForever;

  // Shared.
  std::mutex close_mutex_;
  bool closed_ = false;  // guarded by close_mutex_
  std::thread thread_;   // opening thread, then guarded by close_mutex_
  std::atomic<std::thread::id>
      network_thread_{};  // relaxed: only ever compared with the caller's own id
};

}  // namespace faro::session
