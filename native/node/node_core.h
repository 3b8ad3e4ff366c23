// NodeCore: one node's session behind the public API: membership, queries, overflow and workers,
// tied together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/settings.h"
#include "faro/cancellation.h"
#include "faro/metrics.h"
#include "faro/session.h"
#include "links/network.h"
#include "node/early_events.h"
#include "node/node_changes.h"
#include "node/session_events.h"
#include "ring/waiter.h"
#include "session/membership.h"
#include "shuffle/local_worker.h"
#include "shuffle/overflow/operator_memory.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/query/query.h"
#include "shuffle/query/query_table.h"

namespace faro::node {

/// Everything about a node that is passed in, so that the simulation can.
struct NodeEnvironment {
  std::unique_ptr<links::Network> network;
  std::function<std::unique_ptr<ring::Waiter>()> make_waiter;  // one per worker, and one for close
  std::unique_ptr<shuffle::SpillFile> spill_file;              // null: a file as the settings say
  Cancellation cancellation;                                   // of open
};

class NodeCore final : public session::Observer,
                       public shuffle::QueryEnvironment,
                       public std::enable_shared_from_this<NodeCore> {
 public:
  /// Errors and blocking: as session::Membership::open.
  static Result<std::shared_ptr<NodeCore>> open(const base::Settings& settings,
                                                NodeEnvironment environment);
  ~NodeCore() override;

  session::Membership& membership() noexcept { return *membership_; }
  const base::Settings& settings() const noexcept { return settings_; }
  shuffle::QueryTable& queries() noexcept { return *queries_; }
  shuffle::Overflow& overflow() noexcept { return overflow_; }
  NodeChanges nodes() noexcept { return {*membership_, *queries_}; }
  SessionEvents& events() noexcept { return events_; }
  shuffle::LocalWorker& worker(uint32_t local_index) noexcept { return *workers_[local_index]; }
  uint32_t local_worker_count() const noexcept { return static_cast<uint32_t>(workers_.size()); }

  /// Does what Session::close says. It waits by the waiter and the clock that were passed in.
  Status close();

  /// The metrics of this node, with the shuffles of `query`, if it is known.
  SessionMetrics metrics(const QueryId& query) const;

  // session::Observer
  void on_message(uint32_t from_node, std::span<const std::byte> message) override;
  void on_peer_lost(uint32_t node, const session::PeerView& now, const Status& cause) override;
  void on_peer_left(uint32_t node, const session::PeerView& now) override;
  void on_let_go(uint32_t node, const session::PeerView& now) override;
  void on_peer_joined(uint32_t node, const session::PeerView& now) override;
  void on_peer_returned(uint32_t node, session::Peers::Return how) override;
  bool is_drained(uint32_t node) const override;
  void on_drained(uint32_t node) override;
  void on_node_removed(uint32_t node, const session::PeerView& now) override;
  void on_number_free(uint32_t node) override;
  void on_links_changed() override;
  void on_tick(base::Nanoseconds now) override;
  base::Nanoseconds next_due() const noexcept override;
  void on_due(base::Nanoseconds now) override;

  // shuffle::QueryEnvironment
  void send(uint32_t node, const wire::QueryMessage& message) override;
  void alert_workers() override;
  void look_soon() override;
  void fail_peer(uint32_t node, const Status& cause) override;
  void query_failed(const QueryId& query, const Status& cause) override;
  void let_go(uint32_t node) override;
  void want_link(uint32_t node) override;
  std::optional<session::PeerView> rest(uint32_t node,
                                        session::Peers::Event step) noexcept override;
  void link_has_ended(uint32_t node) noexcept override;
  Status why_unlinked(uint32_t node) const override;

 private:
  NodeCore(const base::Settings& settings, std::unique_ptr<shuffle::SpillFile> spill_file,
           bool is_simulated);
  void start(const NodeEnvironment& environment);
  void take_message(uint32_t from_node, std::span<const std::byte> bytes);
  template <typename Cause, typename Tell>
  void end_peer(uint32_t node, const session::PeerView& now, Cause cause, Tell tell);
  Status wait_for_workers(base::Nanoseconds deadline);

  shuffle::NodeLife life_;
  const base::Settings settings_;
  shuffle::Overflow overflow_;
  shuffle::OperatorMemory operator_memory_;
  Status left_;  // what peers are told of queries when this node closes; made beforehand
  SessionEvents events_;
  std::unique_ptr<session::Membership> membership_;
  std::unique_ptr<shuffle::QueryTable> queries_;
  std::unique_ptr<shuffle::NodeEnd> node_end_;  // null: lanes end at workers
  ring::ReadyWatch ready_watch_;
  std::vector<std::unique_ptr<shuffle::LocalWorker>> workers_;
  std::unique_ptr<ring::Waiter> close_waiter_;

  EarlyEvents early_;
};

}  // namespace faro::node
