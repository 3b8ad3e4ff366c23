// Membership: this node's part in a cluster. Owns the links, what all queries use, and the network
// thread. Knows nothing of queries: the layer above hands it opaque control
// messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "counters/counter_file.h"
#include "faro/cancellation.h"
#include "faro/status.h"
#include "ring/doorbell.h"
#include "ring/layout.h"
#include "ring/ready_set.h"
#include "session/peers.h"
#include "session/topology.h"
#include "transport/transport.h"

namespace faro::links {
class Network;  // control connections and waiting: sockets, or the simulation (links/network.h)
}

namespace faro::session {

/// What a membership tells the layer above, which says so (Peers::Event::told) when its queries
/// know that a link has ended.
/// Threads: every call comes from the network thread (or from the caller of do_work). Must not
/// block.
class Observer {
 public:
  virtual ~Observer() = default;
  /// A whole control message of a peer; messages come in the order they were sent. Untrusted: check every byte.
  virtual void on_message(uint32_t from_node, std::span<const std::byte> message) = 0;
  /// A link is lost, which is no loss of the peer if both sides had agreed that it rests: `now` is parted then. Once per link;
  /// and once more if the peer of a link that rests refuses this process for good: then it is a loss. `cause` is a peer_lost (or
  /// protocol_error) status that names the peer and the first cause. Called before any later message of that peer would be.
  virtual void on_peer_lost(uint32_t node, const PeerView& now, const Status& cause) = 0;
  /// A peer has closed its session regularly (BYE), or has let the link rest, which both had agreed: `now` is parted then. The
  /// observer fails the queries that still need it. Once per link; no on_peer_lost follows.
  virtual void on_peer_left(uint32_t node, const PeerView& now) = 0;
  /// This node lets the link go, because it rests (`now` is parted) or because its node is drained. Once per link; no
  /// on_peer_lost follows. Also for a node that is drained while it is not linked.
  virtual void on_let_go(uint32_t node, const PeerView& now) = 0;
  /// A node is linked that was not, by the process of that incarnation. Called before its first message. It may still be
  /// linking with others.
  virtual void on_peer_joined(uint32_t node, const PeerView& now) = 0;
  /// A node of which on_peer_joined was told has opened its session: it is linked with every node
  /// that is present, and each of these was told on_peer_joined. Peers have it as present.
  virtual void on_peer_returned(uint32_t node, Peers::Return how) = 0;
  /// Whether no query needs a node that is drained, which may have been removed since Membership::let_go was called.
  virtual bool is_drained(uint32_t node) const = 0;
  /// Membership::let_go of a drained node is done: the link has ended. Called after
  /// on_links_changed.
  virtual void on_drained(uint32_t node) = 0;
  /// Membership::remove_node takes place: the node is to be forgotten. Called after on_peer_lost.
  virtual void on_node_removed(uint32_t node, const PeerView& now) = 0;
  /// Membership::remove_node is done: Membership::add_node may give the number again.
  virtual void on_number_free(uint32_t node) = 0;
  /// Membership::link_changes has increased. Called after on_peer_lost, and before on_peer_joined.
  virtual void on_links_changed() = 0;
  /// Called at least once per heartbeat interval, for time limits.
  virtual void on_tick(base::Nanoseconds now) = 0;
  /// When on_due is to be called next. Whoever makes it sooner sends a message to the own node, so that the network thread
  /// looks again.
  virtual base::Nanoseconds next_due() const noexcept { return base::kForever; }
  virtual void on_due(base::Nanoseconds now) { (void)now; }
};

class Membership {
 public:
  /// Connects to all peers, or to none yet (connect.wait_for): retries until connect.timeout_ms, checks limits, allocates, starts
  /// the network thread (unless the network is simulated). If the other nodes' sessions are already open, it connects to those
  /// that are present.
  ///
  /// Blocks: until all of these are connected, the deadline, or `cancellation`. Owns: `network`; `observer`
  /// must outlive the membership. Calls of `observer` can come before open returns. Errors:
  /// config_invalid, resource_limit (need and limit, before anything is allocated), address_in_use,
  /// transport_unavailable, configuration_mismatch (key and both values), authentication_failed,
  /// connect_failed (which nodes are missing, and the last cause for each), cancelled.
  static Result<std::unique_ptr<Membership>> open(const base::Settings& settings,
                                                  std::unique_ptr<links::Network> network,
                                                  Observer& observer,
                                                  const Cancellation& cancellation = {});

  virtual ~Membership() = default;

  virtual const base::Settings& settings() const = 0;
  virtual const base::Clock& clock() const = 0;
  virtual uint32_t node() const = 0;
  /// By number. Constant after open: also of nodes that have come back or were added since.
  virtual const std::vector<Node>& nodes() const = 0;
  virtual uint32_t worker_count() const = 0;  // of all of these
  /// What is known of each node. Whoever is told of a node by Observer finds there what it is told.
  virtual Peers& peers() = 0;

  /// They do what Nodes::add and remove say. Threads: any. Blocks: never.
  virtual Status add_node(uint32_t node, const std::string& address) = 0;
  virtual Status remove_node(uint32_t node) = 0;
  /// Ends the link to a node that no query needs any more, if both have agreed that it rests or if Observer::is_drained says so;
  /// on_let_go follows. The process of a drained node is refused from then on. Threads: any. Blocks: never.
  virtual void let_go(uint32_t node) = 0;
  /// Has a link made with a node that is not wanted for good, for connect.timeout_ms from now on, if
  /// there is none. The one of both with the higher number dials; the other one asks it to.
  /// on_peer_joined follows. Threads: any. Blocks: never.
  virtual void want_link(uint32_t node) = 0;
  /// Whether the link to a peer is up and the peer knows, as this node does, how links are let go. Threads: the network
  /// thread.
  virtual bool may_rest(uint32_t node) const = 0;

  /// The current data link to a node. The link to this node itself has its rings in private memory; the rings of
  /// a link to a missing node carry nothing. Never null after open. Valid as long as the caller keeps it, but not
  /// longer than the membership. A caller that keeps the link of a lost node keeps its memory allocated.
  /// Threads: any. Blocks: never for long.
  virtual std::shared_ptr<transport::DataLink> link(uint32_t node) = 0;
  /// The nodes to which there is a link that is up, and the own one. Threads: any. Blocks: never for long.
  virtual std::set<uint32_t> linked() const = 0;
  /// The first node, from that number on, whose link has counted something: there is one, or there was. Threads: any.
  /// Blocks: never for long.
  virtual std::optional<uint32_t> next_counting(uint32_t from) const noexcept = 0;
  /// Increases whenever link(node) changes for some node. Threads: any; acquire.
  virtual uint64_t link_changes() const noexcept = 0;
  /// First ready number at local worker w, and at the node's end, of the rings from `node` (see ring/ready_set.h): ring r
  /// from there is marked as this + layout.index_at_receiver(r). Whoever takes from them attaches to the link's
  /// own ready words itself (DataLink::attach_ready).
  virtual uint32_t first_ready(uint32_t node, uint32_t local_worker) const = 0;
  virtual ring::ReadySet& ready_set(uint32_t local_worker) = 0;
  /// What is marked of rings that end at the node; null: all end at workers (lane.ends).
  virtual ring::ReadySet* node_ready_set() = 0;
  virtual ring::DoorbellLine& doorbell(uint32_t local_worker) = 0;

  /// Rings from this node to `node`, and back.
  virtual ring::Layout outgoing_layout(uint32_t node) const = 0;
  virtual ring::Layout incoming_layout(uint32_t node) const = 0;

  /// Queues a control message (at most kMessageLimit bytes) to a peer. Dropped silently if the peer is
  /// lost, which on_peer_lost reports. A message to this node itself is delivered by on_message as well.
  /// Threads: any. Blocks: never. Order: per peer, that of the calls of one thread.
  virtual void send(uint32_t node, std::span<const std::byte> message) = 0;
  static constexpr size_t kMessageLimit = 4096;

  /// What workers do for the transports in use, all of them at once. Threads: any.
  virtual transport::IdleWork& idle_work() noexcept = 0;

  /// Fails the link to a peer that broke a rule of the layer above (a frame with a stream id that was never
  /// announced). Tells the peer; on_peer_lost follows. No effect if the link is already lost.
  /// Threads: any. Blocks: never.
  virtual void fail_link(uint32_t node, std::shared_ptr<transport::DataLink> link,
                         const Status& cause) = 0;

  /// Whether the link to a peer is up. Threads: any. Blocks: never for long.
  virtual bool connected(uint32_t node) const = 0;
  /// Number of links to lost nodes whose memory is still in use. Threads: any.
  virtual uint32_t retired_link_count() const = 0;

  /// The file with this node's counters, valid after open. All links count their rings there.
  virtual counters::CounterFile& counters() = 0;

  /// Says BYE to the peers, waits until queued messages are sent, and stops the network thread and all links.
  /// The links' memory stays until destruction. Idempotent. Blocks: at most close.timeout_ms.
  virtual void close() = 0;

  /// One round of the network thread, for the simulation and for tests. Returns whether it did
  /// anything. Must not be called while a network thread runs.
  virtual bool do_work() = 0;
};

}  // namespace faro::session
