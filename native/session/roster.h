// Roster: the numbered nodes of the cluster and which of them this node is linked with. All nodes are
// known; all links come up at once or open fails; afterwards nodes are lost, leave and return. Where nodes are not wanted for good, links
// come up when they are needed (link_wants.h).
//
// Everything here happens in rounds: wait for events, pass them to the links, then check time limits. The
// thread that opens the session runs the rounds until all links are up. After that the network thread does,
// or in the simulation the caller of Membership::do_work.
//
//   1. Every node is dialled (the one with the higher number dials the lower one, with retries) and
//      admitted: dialler.h, admission.h, handshake.h. Nothing is allocated. Connections that break are
//      dialled again until connect.timeout_ms.
//   2. When all nodes are admitted this node knows how much memory it needs. It checks that against the
//      limits, then allocates: resources.h.
//   3. The transports set up all links: link.h. From here on a loss ends open, on every node.
//
// A node that was lost, or has left, may start again while the others continue: README.md, "Return". It gets
// a new link, which takes the same steps, on the others in their network threads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "links/admission.h"
#include "links/link_mender.h"
#include "links/link_monitor.h"
#include "links/link_table.h"
#include "links/log_limiter.h"
#include "links/network_thread.h"
#include "links/transports.h"
#include "session/cluster_identity.h"
#include "session/cluster_opening.h"
#include "session/link_factory.h"
#include "session/link_wants.h"
#include "session/membership.h"
#include "session/peers.h"
#include "session/rejoin.h"
#include "session/resources.h"
#include "session/topology.h"

namespace faro::session {

/// Threads: the network thread, or before that the opening thread. Blocks: open and round.
class Roster final : public links::Rounds,
                     private links::Admission::Host,
                     private links::Dialler::Owner,
                     private links::Link::Owner,
                     private transport::LinkEvents {
 public:
  /// All outlive it.
  Roster(const base::Settings& settings, Observer& observer, Topology& topology, Peers& peers,
         links::Network& network, links::Transports& transports, Resources& resources,
         links::LinkTable& links);
  ~Roster() override;

  /// What Membership::open does, once, except for the thread.
  Status open(const Cancellation& cancellation);
  bool round(base::Nanoseconds until) override;

  void send(uint32_t node, std::span<const std::byte> message);
  /// Peers have the order to add a node, or to remove one.
  void add_node(uint32_t node);
  void remove_node(uint32_t node);
  /// Does what Membership::let_go says.
  void let_go(uint32_t node);
  /// Does what Membership::want_link says.
  void want_link(uint32_t node);
  /// Fails the node's link, if it still is this one.
  void fail_link(uint32_t node, const transport::DataLink* link, const Status& cause);

  /// Says BYE to all peers, for close.timeout_ms at most.
  void begin_closing() override;
  void finish_closing() override;
  bool closed() const override { return phase_ == Phase::closed; }
  base::Nanoseconds closing_deadline() const override { return closing_deadline_; }

 private:
  enum class Phase { opening, open, closing, closed };

  Status open_cluster(const Cancellation& cancellation);
  Status prepare();
  void end_opening(const ClusterOpening::Failure& failure);
  void finish_opening();

  base::Nanoseconds next_deadline() const;
  void look_at_times();
  /// Links may still come up.
  bool linking() const { return phase_ == Phase::opening || phase_ == Phase::open; }
  void set_up_links();

  void add_link(uint32_t peer, bool initiator, std::string address,
                std::unique_ptr<links::ControlConnection> connection, const wire::Hello& hello);
  void drop_link(const links::Link& link, bool rests);
  void retry(uint32_t peer, const Status& cause);
  void note_unlinked(uint32_t peer, const Status& cause);

  // Admission::Host
  std::optional<links::Refusal> judge(const wire::Hello& hello, const std::string& from) override;
  void on_admitted(std::unique_ptr<links::ControlConnection> connection,
                   const wire::Hello& peer) override;
  void on_refused(const std::string& from, const links::Refusal& refusal) override;
  // Dialler::Owner
  void on_dialled(links::Dialler& dialler, std::unique_ptr<links::ControlConnection> connection,
                  const wire::Hello& peer) override;
  void on_dial_failed(links::Dialler& dialler, const Status& cause) override;
  void on_dial_refused(links::Dialler& dialler, const links::Refusal& refusal) override;
  // Link::Owner
  void on_detached(links::Link& link, const Status& cause, bool final) override;
  void on_made(links::Link& link, transport::DataLink& data) override;
  void on_up(links::Link& link) override;
  void on_lost(links::Link& link, const Status& cause) override;
  void on_left(links::Link& link) override;
  void on_heartbeat(links::Link& link) override;
  void on_members(links::Link& link, std::span<const std::byte> message) override;
  void on_application(links::Link& link, std::span<const std::byte> payload) override;
  // LinkEvents of the local link
  void on_link_failed(const Status& cause) override;

  const base::Settings& settings_;
  Observer& observer_;
  Topology& topology_;
  Peers& peers_;
  links::Network& network_;
  links::Transports& transports_;
  Resources& resources_;
  links::LinkTable& links_;
  ClusterIdentity identity_;
  LinkFactory factory_;
  links::LinkMonitor monitor_;
  links::Admission admission_;
  LinkWants wants_;
  links::LinkMender mender_;
  links::LogLimiter limiter_;
  std::unique_ptr<ClusterOpening> opening_;  // until open has succeeded
  Phase phase_ = Phase::opening;
  base::Nanoseconds closing_deadline_ = base::kForever;
};

}  // namespace faro::session
