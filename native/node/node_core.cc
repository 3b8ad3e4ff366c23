#include "node/node_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/each.h"
#include "base/error.h"
#include "base/log.h"
#include "links/limits.h"
#include "ring/doorbell.h"
#include "transport/absent_link.h"

namespace faro::node {

using session::PeerState;

namespace {

// How often close looks whether the workers are done. They do not tell: a release of a batch, which
// is on the data path, would have to look whether somebody closes.
constexpr base::Nanoseconds kCloseLookInterval = 1'000'000;

// Whether a worker holds frames of a node that no query needs: it could not bind to another link. Each worker has ended its part
// of the queries that did need the node under their lock, which the caller holds: what the counters say is what the
// worker held then, or less by now (transport::Incoming::unreleased_bytes). None has a claim in a ring to that node, which would
// be of an open shuffle.
bool is_holding_frames_of(session::Membership& membership, uint32_t node) noexcept {
  const session::Node& peer = membership.nodes()[node];
  const uint32_t rings = session::counted_rings_per_lane(membership.settings());
  const uint32_t local_workers = membership.nodes()[membership.node()].worker_count;
  for (uint32_t i = 0; i < local_workers * peer.worker_count * rings; ++i) {
    const uint32_t local = i / rings / peer.worker_count;
    const uint32_t remote = i / rings % peer.worker_count;
    const counters::IncomingCounters& received =
        membership.counters().incoming(local, peer.first_worker + remote, i % rings);
    if (received.unreleased_bytes.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

// A BYE does not say which of the two it is: whoever lets a drained node go ends the link as one that closes its session does.
Status why_left(const session::Membership& membership, const shuffle::QueryTable& queries,
                uint32_t node) {
  const std::string& peer = membership.nodes()[node].name;
  if (!queries.is_own_node_released_by(node))
    return base::error(Code::peer_lost, "{} closed its session", peer);
  return base::error(Code::peer_lost, "{} let go of {}, which is drained, or closed its session",
                     peer, membership.nodes()[membership.node()].name);
}

// What links have asked of their devices is counted in pieces; here it is added up for the file.
void count_network(session::Membership& membership) noexcept {
  counters::CounterFile& file = membership.counters();
  counters::count(file.node().ticks);
  // Links that are gone are added, too, with what they have counted since the last time.
  for (std::optional<uint32_t> node = membership.next_counting(0); node;
       node = membership.next_counting(*node + 1)) {
    transport::LinkCounters sum;
    membership.link(*node)->add_counters(sum);
    counters::PeerCounters& shown = file.peer(*node);
#define FARO_NETWORK_COUNTER(id, name, kind, help) \
  counters::set(shown.name, sum.name.load(std::memory_order_relaxed));
#include "counters/counters.def"
  }
}

void put(const counters::OperatorValues& values, OperatorCounts& counts) {
#define FARO_OPERATOR_COUNTER(id, name, kind, help) counts.name = values.name;
#include "counters/counters.def"
}

/// The operators of a worker, and what all that it had have done.
void add_operators(const counters::OperatorSlots& slots, uint32_t worker, SessionMetrics& metrics) {
  slots.each([&](const counters::OperatorState& state, const counters::OperatorValues& values) {
    OperatorMetrics& one = metrics.operators.emplace_back();
    put(values, one);
    one.query = state.query;
    one.stage = static_cast<uint32_t>(state.stage);
    one.worker = worker;
    one.kind = static_cast<OperatorKind>(state.kind);
  });
  for (uint32_t kind = 1; kind <= counters::kOperatorKinds; ++kind) {
    OperatorTotals& total = metrics.operator_totals.emplace_back();
    put(slots.total(kind), total);
    total.worker = worker;
    total.kind = static_cast<OperatorKind>(kind);
  }
}

std::string who_is_busy(const std::vector<std::unique_ptr<shuffle::LocalWorker>>& workers,
                        const ring::ReadyWatch& ready_watch) {
  const auto busy =
      std::find_if(workers.begin(), workers.end(), [](const auto& w) { return w->is_busy(); });
  if (busy != workers.end())
    return fmt::format("worker {} is still inside a call or holds batches", (*busy)->number());
  return ready_watch.is_busy() ? "a callback of on_ready() has still not returned" : "";
}

}  // namespace

NodeCore::NodeCore(const base::Settings& settings, std::unique_ptr<shuffle::SpillFile> spill_file,
                   bool is_simulated)
    : settings_(settings),
      overflow_({settings.overflow_memory_bytes, settings.overflow_file_bytes,
                 settings.overflow_query_limit_bytes},
                std::move(spill_file)),
      operator_memory_(settings.operator_memory_bytes, overflow_,
                       [this, is_simulated] {
                         return links::check_operators(
                             settings_.operator_memory_bytes, settings_.memory_limit_bytes,
                             is_simulated ? links::MachineLimits{} : links::machine_limits());
                       }),
      ready_watch_({.keep_alive = [this] { return life_.keep_alive(); },
                    .closed_status = [this] { return life_.closed_status(); }}) {}

NodeCore::~NodeCore() {
  if (membership_ != nullptr) membership_->close();
}

Result<std::shared_ptr<NodeCore>> NodeCore::open(const base::Settings& settings,
                                                 NodeEnvironment environment) {
  if (environment.spill_file == nullptr) {
    if (settings.overflow_file_bytes > 0)
      FARO_RETURN_IF_ERROR(shuffle::check_spill_folder(settings.overflow_folder));
    environment.spill_file =
        shuffle::make_spill_file(settings.overflow_folder, settings.overflow_file_bytes);
  }
  // In a forked child nothing is destroyed: it would close its parent's connections.
  // The simulation does not depend on the machine it runs on.
  const bool is_simulated = !environment.network->wants_thread();
  std::shared_ptr<NodeCore> core(
      new NodeCore(settings, std::move(environment.spill_file), is_simulated), [](NodeCore* node) {
        if (!node->life_.forked()) delete node;
      });
  FARO_ASSIGN_OR_RETURN(core->membership_,
                        session::Membership::open(settings, std::move(environment.network), *core,
                                                  environment.cancellation));
  core->start(environment);
  return core;
}

void NodeCore::start(const NodeEnvironment& environment) {
  shuffle::QueryTable::Shape shape;
  shape.node = membership_->node();
  for (const session::Node& node : membership_->nodes()) {
    // What has happened since the session opened is told when this node is complete.
    const uint64_t incarnation = membership_->peers().incarnation(node.number);
    const PeerState state = incarnation != 0                        ? PeerState::linked
                            : membership_->peers().has(node.number) ? PeerState::apart
                                                                    : PeerState::none;
    shape.nodes.push_back({node.name,
                           node.first_worker,
                           node.worker_count,
                           node.wanted_for_good,
                           {state, incarnation, 0}});
  }
  shape.default_workers = membership_->peers().topology().default_workers();
  const session::Node& self = membership_->nodes()[shape.node];
  left_ = base::error(Code::peer_lost, "{} closed its session", self.name);
  overflow_.show_in(membership_->counters().node());
  const shuffle::QueryTimeouts timeouts{.unopened_ns = settings_.unopened_timeout_ms * 1'000'000,
                                        .link_ns = settings_.connect_timeout_ms * 1'000'000,
                                        .idle_ns = settings_.link_idle_ms * 1'000'000};
  queries_ = std::make_unique<shuffle::QueryTable>(std::move(shape), *this, timeouts);
  queries_->show_in(membership_->counters(), membership_->clock().now_ns());
  life_.begin(weak_from_this(), self.name);
  if (membership_->node_ready_set() != nullptr)
    node_end_ = std::make_unique<shuffle::NodeEnd>(*membership_, *queries_, overflow_);
  for (uint32_t w = 0; w < self.worker_count; ++w) {
    workers_.push_back(std::make_unique<shuffle::LocalWorker>(
        shuffle::WorkerContext::of(w, life_, *membership_, *queries_, overflow_, operator_memory_,
                                   settings_),
        node_end_.get(), ready_watch_, environment.make_waiter()));
  }
  close_waiter_ = environment.make_waiter();
  early_.end();
}

void NodeCore::on_message(uint32_t from_node, std::span<const std::byte> bytes) {
  if (early_.is_over()) return take_message(from_node, bytes);
  early_.arrives(
      from_node, bytes.size(),
      [this, from_node, copy = std::vector<std::byte>(bytes.begin(), bytes.end())] {
        take_message(from_node, copy);
      },
      [this, from_node] {
        fail_peer(from_node,
                  base::error(Code::protocol_error,
                              "over {} bytes of query messages before this node was open",
                              EarlyEvents::kPeerBytes));
      });
}

void NodeCore::take_message(uint32_t from_node, std::span<const std::byte> bytes) {
  if (bytes.empty() && from_node == membership_->node()) return events_.tell_failed_queries();
  if (const std::optional<wire::QueryMessage> message = wire::decode_query_message(bytes)) {
    queries_->on_message(from_node, *message);
  } else if (!wire::may_skip_query_message(bytes)) {
    fail_peer(from_node, base::error(Code::protocol_error, "a malformed query message of {} bytes",
                                     bytes.size()));
  }
}

// The cause is asked for when this node is complete. Nobody is told of a link that rests.
template <typename Cause, typename Tell>
void NodeCore::end_peer(uint32_t node, const session::PeerView& now, Cause cause, Tell tell) {
  early_.loses(node, [this, node, now, cause, tell] {
    queries_->on_peer_lost(node, now, cause());
    if (now.state != PeerState::parted) tell();
  });
}

void NodeCore::on_peer_lost(uint32_t node, const session::PeerView& now, const Status& cause) {
  end_peer(
      node, now, [cause] { return cause; },
      [this, node, cause] { events_.tell_lost(node, cause.of_node(node)); });
}

void NodeCore::on_peer_left(uint32_t node, const session::PeerView& now) {
  end_peer(
      node, now, [this, node] { return why_left(*membership_, *queries_, node); },
      [this, node] { events_.tell_left(node); });
}

// Before this node is complete no link is let go. The cause is that of a drained node; one whose link rests is not lost.
void NodeCore::on_let_go(uint32_t node, const session::PeerView& now) {
  queries_->on_peer_lost(
      node, now, base::error(Code::peer_lost, "{} was drained", membership_->nodes()[node].name));
}

void NodeCore::on_peer_joined(uint32_t node, const session::PeerView& now) {
  early_.happens([this, node, now] { queries_->on_peer_joined(node, now); });
}

// Nobody is told of a node whose link was let go: it is a member as before.
void NodeCore::on_peer_returned(uint32_t node, session::Peers::Return how) {
  early_.happens([this, node, how] {
    if (how == session::Peers::Return::first) events_.tell_added(node);
    if (how == session::Peers::Return::again) events_.tell_returned(node);
  });
}

// What begins these is called when this node is complete.
bool NodeCore::is_drained(uint32_t node) const { return queries_->is_drained(node); }

void NodeCore::on_drained(uint32_t node) { events_.tell_drained(node); }

void NodeCore::on_node_removed(uint32_t node, const session::PeerView& now) {
  queries_->on_node_removed(node, now);
}

void NodeCore::on_number_free(uint32_t node) { events_.tell_removed(node); }

// Before the start no worker is bound to any link.
void NodeCore::on_links_changed() {
  if (!early_.is_over()) return;
  alert_workers();
  if (node_end_ != nullptr) node_end_->tend();  // it keeps no link that is lost
  for (const auto& worker : workers_) worker->at_rest().let_go_of_lost_links();
}

void NodeCore::on_tick(base::Nanoseconds now) {
  if (!early_.is_over()) return;
  queries_->on_tick(now);
  if (node_end_ != nullptr) node_end_->tend();  // all workers may be idle
  nodes().on_tick();
  events_.tell_failed_queries();
  count_network(*membership_);
}

base::Nanoseconds NodeCore::next_due() const noexcept {
  return early_.is_over() ? queries_->next_due() : base::kForever;
}

void NodeCore::on_due(base::Nanoseconds now) { queries_->on_due(now); }

void NodeCore::send(uint32_t node, const wire::QueryMessage& message) {
  membership_->send(node, wire::encode(message));
}

void NodeCore::fail_peer(uint32_t node, const Status& cause) {
  membership_->fail_link(node, membership_->link(node), cause);
}

// The network thread comes for it by a message of no bytes, or, if there is no memory for that, at its next tick.
void NodeCore::query_failed(const QueryId& query, const Status& cause) {
  if (events_.query_failed(query, cause)) membership_->send(membership_->node(), {});
}

// A message of no bytes, or, if there is no memory for that, the next tick.
void NodeCore::look_soon() {
  try {
    membership_->send(membership_->node(), {});
  } catch (const std::bad_alloc&) {
  }
}

void NodeCore::alert_workers() {
  if (node_end_ != nullptr) node_end_->sweep_later();
  for (const auto& worker : workers_) worker->ownership().alert();
}

void NodeCore::let_go(uint32_t node) { membership_->let_go(node); }

void NodeCore::want_link(uint32_t node) { membership_->want_link(node); }

// Until this node is complete, its own thread takes the messages.
std::optional<session::PeerView> NodeCore::rest(uint32_t node,
                                                session::Peers::Event step) noexcept {
  const std::shared_ptr<transport::DataLink> link = membership_->link(node);
  const bool is_held = link->held().load(std::memory_order_relaxed);
  const bool holds = step != session::Peers::Event::stays;
  const auto may_rest = [&] {
    return early_.is_over() && membership_->may_rest(node) &&
           !membership_->peers().is_asked_for(node) && !is_holding_frames_of(*membership_, node);
  };
  if (holds && !is_held && !may_rest()) return std::nullopt;
  link->hold(holds);
  return membership_->peers().on(node, step).now;
}

void NodeCore::link_has_ended(uint32_t node) noexcept {
  (void)membership_->peers().on(node, session::Peers::Event::told);
}

Status NodeCore::why_unlinked(uint32_t node) const {
  const std::string why = membership_->connected(node)
                              ? "the link was idle, and it has not answered whether it stays"
                              : membership_->peers().why_unlinked(node);
  return base::error(Code::peer_lost, "{} was not linked within connect.timeout_ms = {}: {}",
                     membership_->nodes()[node].name, settings_.connect_timeout_ms, why)
      .of_node(node);
}

Status NodeCore::close() {
  if (life_.forked() || !life_.close()) return Status::Ok();
  const base::Nanoseconds deadline =
      base::deadline_after(membership_->clock().now_ns(), settings_.close_timeout_ms * 1'000'000);
  events_.close();
  // Where memory lacks for telling of a query, the end of the links tells.
  base::Each each;
  each.run([&] { queries_->close(left_); });
  alert_workers();
  if (node_end_ != nullptr) node_end_->sweep_if_due();  // a worker may never look again
  membership_->peers().close();
  ready_watch_.stop();
  membership_->close();
  FARO_RETURN_IF_ERROR(wait_for_workers(deadline));
  ready_watch_.join();
  return Status::Ok();
}

// Waits end by themselves now; held batches are the engine's. Memory stays until both are gone.
Status NodeCore::wait_for_workers(base::Nanoseconds deadline) {
  ring::DoorbellLine line{};  // nobody rings it
  ring::Doorbell doorbell(&line);
  for (;;) {
    const std::string who = who_is_busy(workers_, ready_watch_);
    if (who.empty()) return Status::Ok();
    if (membership_->clock().now_ns() >= deadline) {
      Status status = base::error(
          Code::deadline_exceeded,
          "{} after close.timeout_ms = {}; the session's memory stays mapped until it is done", who,
          settings_.close_timeout_ms);
      base::log(LogLevel::warning, "{}", status.message());
      return status;
    }
    doorbell.arm();
    close_waiter_->sleep(doorbell, kCloseLookInterval);
  }
}

// --- metrics

SessionMetrics NodeCore::metrics(const QueryId& query) const {
  auto read = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  SessionMetrics metrics;
  counters::CounterFile& file = membership_->counters();
  for (uint32_t w = 0; w < workers_.size(); ++w) metrics.workers.push_back(workers_[w]->metrics());
  const session::Node& self = membership_->nodes()[membership_->node()];
  const uint32_t rings = session::counted_rings_per_lane(settings_);
  for (const session::Node& peer : membership_->nodes()) {
    if (!membership_->peers().has(peer.number)) continue;
    const std::shared_ptr<transport::DataLink> data = membership_->link(peer.number);
    LinkMetrics link;
    link.node = peer.number;
    link.transport = peer.number == self.number ? "local" : std::string(data->capabilities().name);
    link.connected = membership_->connected(peer.number);
    transport::LinkCounters network;
    data->add_counters(network);
#define FARO_NETWORK_COUNTER(id, name, kind, help) link.name = read(network.name);
#include "counters/counters.def"
    const bool was_linked = data->capabilities().name != transport::AbsentLink::kNeverLinked;
    for (uint32_t local = 0; was_linked && local < self.worker_count; ++local) {
      for (uint32_t remote = 0; remote < peer.worker_count; ++remote) {
        LaneMetrics to;
        LaneMetrics from;
        to.sender = from.receiver = self.first_worker + local;
        to.receiver = from.sender = peer.first_worker + remote;
        for (uint32_t k = 0; k < rings; ++k) {
          const counters::OutgoingCounters& sent = file.outgoing(local, to.receiver, k);
          const counters::IncomingCounters& received = file.incoming(local, from.sender, k);
          // What ends at a node is told of its first worker.
#define FARO_OUTGOING_COUNTER(id, name, kind, help) \
  if (remote == 0 || settings_.lanes_end_at_workers()) to.name += read(sent.name);
#define FARO_INCOMING_COUNTER(id, name, kind, help) from.name += read(received.name);
#include "counters/counters.def"
        }
#define FARO_OUTGOING_COUNTER(id, name, kind, help) link.name += to.name;
#define FARO_INCOMING_COUNTER(id, name, kind, help) link.name += from.name;
#include "counters/counters.def"
        metrics.lanes.push_back(to);
        metrics.lanes.push_back(from);
      }
    }
    metrics.links.push_back(std::move(link));
  }
  metrics.overflow_memory_bytes = overflow_.memory_bytes();
  metrics.overflow_memory_peak_bytes = overflow_.memory_peak_bytes();
  metrics.overflow_file_bytes = overflow_.file().used_bytes();
  metrics.overflow_file_peak_bytes = overflow_.file().peak_bytes();
  metrics.queries_running = queries_->running_count();
  metrics.queries_failed = queries_->failed_count();
  if (node_end_ != nullptr) {
    const counters::NodeEndCounters& at_end = file.node_end();
#define FARO_NODE_END_COUNTER(id, name, kind, help) metrics.name = read(at_end.name);
#include "counters/counters.def"
  }
  for (uint32_t local = 0; local < self.worker_count; ++local)
    add_operators(file.operators(local), self.first_worker + local, metrics);
  if (const std::shared_ptr<shuffle::Query> known = queries_->find(query))
    metrics.shuffles = known->shuffles.metrics();
  return metrics;
}

}  // namespace faro::node
