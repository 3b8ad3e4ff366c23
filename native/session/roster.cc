#include "session/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/each.h"
#include "base/error.h"
#include "base/log.h"
#include "base/on_cancel.h"
#include "session/turns_of.h"
#include "transport/tcp/node_turns.h"

namespace faro::session {
namespace {

// How long a failed open waits for the reason to reach the peers.
constexpr base::Nanoseconds kFarewell = 300 * base::kMillisecond;

links::Refusal closed_refusal(const links::Identity& identity) {
  return {base::error(Code::session_closed, "{} has closed its session", identity.name), true,
          false};
}

Status check_dialled_addresses(const Peers& peers) {
  const Topology& topology = peers.topology();
  Status status;
  peers.for_each_peer([&](uint32_t node) {
    if (!status.ok() || !topology.dials(node) || !has_any_port(peers.address(node))) return;
    status = base::error(
        Code::config_invalid,
        "cluster.nodes: node {} has the address {}, but node {} has to dial it and needs its port",
        node, peers.address(node), topology.self());
  });
  return status;
}

// The turns of this node; null: rows over tcp are sent without.
std::shared_ptr<transport::tcp::NodeTurns> make_turns(const base::Settings& settings) {
  const auto phases = turns_of(settings);
  if (!phases) return nullptr;
  return std::make_shared<transport::tcp::NodeTurns>(*phases, static_cast<uint32_t>(settings.node),
                                                     settings.node_count());
}

// What of network.schedule is not as its user may think.
void log_schedule(const base::Settings& settings, const Topology& topology) {
  if (settings.schedule == "off") return;
  const std::string& name = topology.own().name;
  if (topology.size() < transport::schedule::kLeastNodes) {
    base::log(LogLevel::info, "{}: network.schedule = {} has no effect with {} nodes", name,
              settings.schedule, topology.size());
    return;
  }
  uint64_t most_bytes = 0;
  for (const Node& node : topology.nodes()) {
    if (node.number == topology.self()) continue;
    const ring::Layout rings = topology.outgoing(node.number);
    most_bytes = std::max(most_bytes, uint64_t{rings.ring_count()} * rings.ring_bytes);
  }
  if (settings.turn_bytes <= most_bytes) return;
  base::log(LogLevel::info,
            "{}: network.turn_bytes = {}, but the rings to a node hold {}: a turn ends sooner",
            name, settings.turn_bytes, most_bytes);
}

void log_opened(const Peers& peers, const links::LinkTable& links, const Resources& resources,
                base::Nanoseconds took) {
  if (!base::log_enabled(LogLevel::info)) return;
  std::map<std::string_view, int> kinds;
  uint32_t missing = 0;
  peers.for_each_peer([&](uint32_t peer) {
    if (links.connected(peer)) {
      ++kinds[links::transport_name(*links.find(peer))];
    } else {
      ++missing;
    }
  });
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", count, kind);
  if (missing > 0) text += fmt::format("{}{} not there yet", text.empty() ? "" : ", ", missing);
  base::log(LogLevel::info, "{} of {} with {} workers: {} links ({}), {}, connected in {:.1f} ms",
            peers.topology().own().name, peers.peer_count() + 1,
            peers.topology().own().worker_count, peers.peer_count(), text.empty() ? "none" : text,
            resources.describe(), static_cast<double>(took) / 1e6);
}

void count_mendings(links::LinkTable& links, Resources& resources, uint32_t peer) {
  counters::PeerCounters& counted = resources.counters().peer(peer);
  links.count_mendings(peer, counted.mended, counted.mending_ns);
}

// Says that a node has started again, and could not be linked. Not too often.
void log_failure_to_join(links::LogLimiter& limiter, base::Nanoseconds now,
                         const Topology& topology, uint32_t peer, const Status& cause) {
  if (cause.code() == Code::session_closed) return;  // its old process is still closing
  const std::string& name = topology.node(peer).name;
  uint64_t suppressed = 0;
  if (!limiter.allows(name, now, suppressed)) return;
  base::log(LogLevel::warning, "{}: {} starts again, but is not linked: {}", topology.own().name,
            name, cause.to_string());
}

// The peer's session is open, and linked with this one. It is told of if it is linked here, too.
void tell_opened(Peers& peers, Observer& observer, uint32_t peer) {
  const Peers::Return returned = peers.on(peer, Peers::Event::opened).returned;
  if (returned != Peers::Return::none) observer.on_peer_returned(peer, returned);
}

}  // namespace

Roster::Roster(const base::Settings& settings, Observer& observer, Topology& topology, Peers& peers,
               links::Network& network, links::Transports& transports, Resources& resources,
               links::LinkTable& links)
    : settings_(settings),
      observer_(observer),
      topology_(topology),
      peers_(peers),
      network_(network),
      transports_(transports),
      resources_(resources),
      links_(links),
      factory_(static_cast<links::Link::Owner&>(*this), settings, peers, network, transports,
               resources),
      monitor_(settings, links, topology.own().name, network.reactor().clock().now_ns()),
      admission_(static_cast<links::Admission::Host&>(*this), network, identity_, links),
      wants_(static_cast<links::Dialler::Owner&>(*this), settings, peers, network, identity_,
             links),
      mender_(network, identity_, links) {}

// Links refer to this object, so they are destroyed first.
Roster::~Roster() { links_.clear(); }

// ----------------------------------------------------------------------------------------- opening

Status Roster::open(const Cancellation& cancellation) {
  try {
    return open_cluster(cancellation);
  } catch (const std::bad_alloc&) {
    base::Each each;
    each.run([&] { end_opening({monitor_.no_memory(), true}); });
    return monitor_.no_memory();
  }
}

Status Roster::open_cluster(const Cancellation& cancellation) {
  opening_ = std::make_unique<ClusterOpening>(settings_, peers_, network_, links_);
  FARO_RETURN_IF_ERROR(prepare());
  admission_.start();
  look_at_times();
  const detail::OnCancel wakes(cancellation, [this] { network_.wake(); });
  while (opening_->failed() || !resources_.allocated() || !opening_->all_linked()) {
    const base::Nanoseconds now = network_.reactor().clock().now_ns();
    if (const auto failure = opening_->check(now, cancellation)) {
      end_opening(*failure);
      return failure->status;
    }
    round(opening_->next_deadline());
  }
  finish_opening();
  return Status::Ok();
}

Status Roster::prepare() {
  FARO_ASSIGN_OR_RETURN(identity_, make_identity(settings_, peers_, network_));
  (void)peers_.on(topology_.self(), Peers::Event::up, identity_.hello.incarnation);
  (void)peers_.on(topology_.self(), Peers::Event::opened);
  FARO_RETURN_IF_ERROR(transports_.make(settings_, make_turns(settings_)));
  identity_.hello.transports = transports_.names();
  identity_.hello.rendezvous = transports_.rendezvous();
  FARO_RETURN_IF_ERROR(check_dialled_addresses(peers_));
  FARO_RETURN_IF_ERROR(resources_.check_least_need(transports_));
  wants_.begin_opening();
  return Status::Ok();
}

void Roster::finish_opening() {
  // A peer that was admitted and then lost, while this node returned, is missing.
  peers_.for_each_peer([&](uint32_t peer) {
    if (!links_.connected(peer)) return;
    (void)peers_.on(peer, Peers::Event::up, links_.find(peer)->peer().incarnation);
    (void)peers_.on(peer, Peers::Event::opened);
  });
  peers_.begin();
  for (const Node& node : topology_.nodes()) {
    const bool is_own = node.number == topology_.self();
    if (!is_own && peers_.address(node.number).empty()) continue;
    const auto data = is_own ? resources_.local_link() : links_.data(node.number);
    resources_.count_rings(node.number, *data);
    resources_.show_link(node.number, *data, peers_.incarnation(node.number),
                         is_own || links_.connected(node.number));
    count_mendings(links_, resources_, node.number);
  }
  resources_.counters().opened();
  phase_ = Phase::open;
  wants_.end_opening();
  announce_members(links_, topology_);
  log_opened(peers_, links_, resources_, network_.reactor().clock().now_ns() - opening_->since());
  log_schedule(settings_, topology_);
  opening_.reset();
}

// Tells every peer that knows us why, and those that connect before the network has sent it all.
void Roster::end_opening(const ClusterOpening::Failure& failure) {
  bool some_may_come = false;
  peers_.for_each_peer([&](uint32_t peer) {
    some_may_come =
        some_may_come || (!failure.retry && !topology_.dials(peer) && links_.find(peer) == nullptr);
  });
  const links::Refusal refusal{failure.status, failure.retry, false};
  admission_.refuse_all(refusal);
  wants_.stop(refusal);
  links_.for_each([&](links::Link& link) { link.refuse(failure.status, failure.retry); });
  phase_ = Phase::closing;
  admission_.expect_closing();
  const base::Clock& clock = network_.reactor().clock();
  const base::Nanoseconds until = clock.now_ns() + kFarewell;
  while ((network_.lingering() || some_may_come) && clock.now_ns() < until)
    network_.run_once(until);
}

// ------------------------------------------------------------------------------------------ rounds

bool Roster::round(base::Nanoseconds until) {
  base::Each each;
  bool worked = true;
  each.run([&] { worked = network_.run_once(std::min(until, next_deadline())); });
  each.run([&] { look_at_times(); });
  links_.destroy_retired();
  each.rethrow();
  return worked;
}

base::Nanoseconds Roster::next_deadline() const {
  const bool is_closing = phase_ == Phase::closing;
  const bool sets_up = linking() && resources_.allocated() && !(opening_ && opening_->failed());
  if (sets_up && LinkFactory::is_awaited(links_)) return 0;
  if (is_closing && links_.all_detached()) return 0;
  base::Nanoseconds next =
      std::min(monitor_.next_deadline(phase_ == Phase::open), admission_.next_deadline());
  if (is_closing) next = std::min(next, closing_deadline_);
  if (!linking()) return next;
  return std::min({next, wants_.next_deadline(), mender_.next_deadline(), observer_.next_due()});
}

// Call it only when all connections have been read.
void Roster::look_at_times() {
  const base::Nanoseconds now = network_.reactor().clock().now_ns();
  base::Each each;
  each.run([&] { monitor_.check(now, phase_ == Phase::open); });
  each.run([&] { admission_.check_deadlines(now); });
  if (monitor_.beat() && linking()) each.run([&] { observer_.on_tick(now); });
  if (linking() && now >= observer_.next_due()) each.run([&] { observer_.on_due(now); });
  if (linking() && !(opening_ && opening_->failed())) {
    each.run([&] { wants_.advance(now); });
    each.run([&] { mender_.advance(now); });
    each.run([&] { set_up_links(); });
  }
  if (phase_ == Phase::closing && (links_.all_detached() || now >= closing_deadline_))
    finish_closing();
  each.rethrow();
}

// Begins when every peer is known, and runs again for links that come later because their connection broke or
// their node starts again. Begins one link per round: allocating may take long, and heartbeats have to go out
// in between.
void Roster::set_up_links() {
  if (!resources_.allocated()) {
    if (!opening_->all_known()) return;
    const auto need = factory_.need(links_);
    const Status status =
        need.ok() ? resources_.allocate(*need, static_cast<transport::LinkEvents&>(*this))
                  : need.status();
    if (!status.ok()) return opening_->fail(status);
  }
  bool begun = false;
  links_.for_each([&](links::Link& link) {
    if (opening_ != nullptr && opening_->failed()) return;
    link.advance();
    if (!LinkFactory::can_set_up(link) || std::exchange(begun, true)) return;
    const Status status = factory_.set_up(link, phase_ == Phase::open);
    if (status.ok()) return;
    // There can be no link with this admitted peer: that ends our open, or the peer's.
    if (phase_ == Phase::opening) return opening_->fail(status);
    link.fail(status);
  });
}

void Roster::begin_closing() {
  if (phase_ == Phase::closing || phase_ == Phase::closed) return;
  phase_ = Phase::closing;
  closing_deadline_ = base::deadline_after(network_.reactor().clock().now_ns(),
                                           settings_.close_timeout_ms * base::kMillisecond);
  base::Each each;
  each.run([&] {
    const links::Refusal closing = closed_refusal(identity_);
    admission_.refuse_all(closing);
    admission_.expect_closing();
    wants_.stop(closing);
  });
  links_.for_each([&](links::Link& link) { each.run([&] { link.leave(); }); });
}

void Roster::finish_closing() {
  phase_ = Phase::closed;
  links_.for_each([](links::Link& link) { link.end(); });
  admission_.stop();
  resources_.close();
}

// ------------------------------------------------------------------------------------------- peers

std::optional<links::Refusal> Roster::judge(const wire::Hello& hello, const std::string& from) {
  const auto refuse = [](std::string text, bool retry) {
    return links::Refusal{Status(Code::configuration_mismatch, std::move(text)), retry, false};
  };
  if (opening_ != nullptr && opening_->failed()) return opening_->refusal();
  if (!linking()) return closed_refusal(identity_);
  const uint32_t number = hello.head.node;
  if (topology_.dials(number) && topology_.node(number).wanted_for_good) {
    return refuse(fmt::format("{} at {} dials {}: a node dials those with lower numbers only",
                              number, from, identity_.name),
                  false);
  }
  const std::string& name = topology_.node(number).name;
  if (!peers_.is_member(number)) {
    // It dials again, and is admitted when it was added here.
    const char* const why = peers_.has(number) ? "has drained" : "was not told of";
    return links::Refusal{base::error(Code::connect_failed, "{} {} {}", identity_.name, why, name),
                          true, false};
  }
  const Status lost = peers_.check_process(number, hello.incarnation);
  if (!lost.ok()) return links::Refusal{lost, false, false};
  if (topology_.dials(number)) {  // it needs the link, and cannot make it
    want_link(number);
    const std::string why = peers_.noted_unlinked(number);
    const Status dials =
        base::error(Code::connect_failed, "{} dials that link itself{}{}", identity_.name,
                    why.empty() ? "" : "; what it met last: ", why);
    return links::Refusal{dials, true, false, true, true};
  }
  links::Link* link = links_.find(number);
  if (link != nullptr && link->state().awaits_connection()) {
    const bool is_another = link->peer().incarnation != hello.incarnation;
    if (is_another) {
      link->fail(Status(Code::peer_lost, "its process has died: it has started again"));
    } else if (!link->state().connected()) {
      link->fail(Status(Code::peer_lost, "its setup has failed there: it dials again"));
    }
    link = links_.find(number);
  }
  if (link == nullptr) return std::nullopt;
  // It gave up its first connection before this node noticed.
  if (link->state().is(links::LinkState::admitted) && link->peer().incarnation == hello.incarnation)
    return std::nullopt;
  // It may be a restarted node, and this node has not yet noticed that its old connection is closed. So it may
  // try again.
  return refuse(
      fmt::format("node number {} is taken: {} has joined with it from {}, now {} wants it too",
                  number, name, link->context().peer_address, from),
      true);
}

void Roster::on_admitted(std::unique_ptr<links::ControlConnection> connection,
                         const wire::Hello& peer) {
  add_link(peer.head.node, false, peer.address, std::move(connection), peer);
}

void Roster::on_refused(const std::string& from, const links::Refusal& refusal) {
  if (phase_ == Phase::opening && !refusal.expected) opening_->note_refused(from, refusal);
}

void Roster::on_dialled(links::Dialler& dialler,
                        std::unique_ptr<links::ControlConnection> connection,
                        const wire::Hello& peer) {
  const uint32_t number = dialler.peer();
  Status refused = peers_.check_process(number, peer.incarnation);
  if (refused.ok() && !topology_.dials(number))
    refused = base::error(Code::connect_failed, "{} has the higher number, and dials", number);
  if (!refused.ok()) {
    connection->send(wire::encode_refuse({refused.code(), true, std::string(refused.message())}));
    return retry(number, refused);
  }
  std::string address = connection->peer_address();
  add_link(number, true, std::move(address), std::move(connection), peer);
}

void Roster::on_dial_failed(links::Dialler& dialler, const Status& cause) {
  note_unlinked(dialler.peer(), cause);
}

void Roster::on_dial_refused(links::Dialler& dialler, const links::Refusal& refusal) {
  const uint32_t peer = dialler.peer();
  if (!refusal.verified && refusal.status.message() != dialler.last_failure().message()) {
    if (phase_ == Phase::opening) opening_->note_claim(peer, refusal.status);
    base::log(LogLevel::warning, "{}: keeps dialling node {}: {}", identity_.name, peer,
              refusal.status.to_string());
  }
  if (phase_ == Phase::open) {
    if (refusal.verified && refusal.status.code() != Code::connect_failed)
      log_failure_to_join(limiter_, network_.reactor().clock().now_ns(), topology_, peer,
                          refusal.status);
    // This node had agreed to let the link go, and the peer has not heard that: to it, this process is lost. Or the peer is
    // another process by now.
    if (refusal.is_final() && peers_.view(peer).state == PeerState::parted) {
      const PeerView now = peers_.on(peer, Peers::Event::refused).now;
      const Status lost = base::error(Code::peer_lost, "{} is lost: it refuses this process: {}",
                                      peers_.full_name(peer), refusal.status.message());
      base::log(LogLevel::warning, "{}: {}", identity_.name, lost.message());
      observer_.on_peer_lost(peer, now, lost);
    }
    retry(peer, refusal.status);
  } else if (phase_ == Phase::opening && opening_->on_dial_refused(peer, refusal)) {
    retry(peer, refusal.status);
  }
}

void Roster::add_link(uint32_t peer, bool initiator, std::string address,
                      std::unique_ptr<links::ControlConnection> connection,
                      const wire::Hello& hello) {
  if (phase_ == Phase::opening) topology_.describe(peer, hello.address);
  if (links::Link* former = links_.find(peer)) {  // which the peer has given up
    former->end();
    links_.retire(peer);
  }
  links::Link& link =
      links_.add(factory_.make(peer, initiator, std::move(address), std::move(connection), hello));
  if (phase_ == Phase::opening) opening_->on_admitted(link);
  (void)peers_.on(peer, Peers::Event::admitted);
  link.start();
  if (phase_ == Phase::open) send_members(link, links_, topology_);
}

// If the peer connects again it gets another link. `rests`: it need not start again before.
void Roster::drop_link(const links::Link& link, bool rests) {
  const uint32_t peer = link.place();
  if (rests) {
    wants_.forget(peer);  // whoever wants it now says so after this
    note_unlinked(peer, Status(Code::connect_failed, "no query needed the link: it was let go"));
  } else {
    retry(peer, Status(Code::connect_failed, "it was lost"));
  }
  const bool came_up = links_.retire(peer);
  if (phase_ == Phase::opening)
    (void)peers_.on(peer, Peers::Event::lost, came_up ? link.peer().incarnation : 0);
  if (phase_ != Phase::open) return;
  resources_.count_lost(peer);
  if (came_up) observer_.on_links_changed();
}

void Roster::retry(uint32_t peer, const Status& cause) {
  note_unlinked(peer, cause);
  wants_.retry(peer, cause);
}

void Roster::note_unlinked(uint32_t peer, const Status& cause) {
  if (phase_ == Phase::opening) return opening_->note_disconnected(peer, cause);
  peers_.note_unlinked(peer, fmt::format("{}: {}", peers_.full_name(peer), cause.message()));
}

// ------------------------------------------------------------------------------------------- links

void Roster::send(uint32_t node, std::span<const std::byte> message) {
  if (node == topology_.self()) {
    if (linking()) observer_.on_message(node, message);
    return;
  }
  links::Link* link = links_.find(node);
  if (link == nullptr || !link->state().connected()) return;
  const links::Link::Doing doing(*link);
  link->send(wire::encode_payload(wire::ControlKind::application, message));
}

void Roster::add_node(uint32_t node) {
  if (phase_ != Phase::open) return;
  (void)peers_.on(node, Peers::Event::added);
  resources_.show_link(node, *links_.data(node), 0, false);
}

// A node may be in the list already and its address still be on the way here; whoever needs it then wants it again.
void Roster::want_link(uint32_t node) {
  const bool is_known = peers_.is_member(node) && !peers_.address(node).empty();
  if (phase_ != Phase::open || !is_known) return;
  if (node != topology_.self()) wants_.want(node);
}

void Roster::remove_node(uint32_t node) {
  if (phase_ != Phase::open) return;
  wants_.forget(node);
  if (links::Link* const link = links_.find(node)) {
    link->fail(base::error(Code::peer_lost, "{} was removed from the session of {}",
                           topology_.node(node).name, identity_.name));
  }
  const PeerView now = peers_.on(node, Peers::Event::removed).now;
  resources_.count_removed(node);
  observer_.on_node_removed(node, now);
  (void)peers_.on(node, Peers::Event::freed);
  observer_.on_number_free(node);
}

// All that the link had to carry has arrived, or nobody waits for it any more. A link may rest and its node be drained: then
// this is asked for twice.
void Roster::let_go(uint32_t node) {
  const auto end_link = [&](Peers::Event why) {
    const PeerView now = peers_.on(node, why).now;
    observer_.on_let_go(node, now);
    const bool rests = now.state == PeerState::parted;
    if (!rests) wants_.forget(node);
    links::Link* const link = links_.find(node);
    if (link == nullptr) return;
    link->leave();
    link->end();
    drop_link(*link, rests);
    announce_members(links_, topology_);
  };
  if (phase_ != Phase::open || peers_.is_drained(node)) return;
  // The node with the lower number ends a link that is to rest.
  const bool rests = peers_.view(node).state == PeerState::agreed && !topology_.dials(node);
  if (rests) end_link(Peers::Event::ends);
  if (!observer_.is_drained(node)) return;
  // The own node has no link: the others have ended theirs.
  if (node != topology_.self()) end_link(Peers::Event::drained);
  observer_.on_drained(node);
}

void Roster::fail_link(uint32_t node, const transport::DataLink* link, const Status& cause) {
  if (phase_ != Phase::open || node == topology_.self()) return;
  links::Link* current = links_.find(node);
  if (current != nullptr && current->data() == link) current->fail(cause);
}

void Roster::on_detached(links::Link& link, const Status& cause, bool final) {
  const uint32_t peer = link.place();
  if (!linking()) return;
  links_.retire(peer);
  if (phase_ == Phase::open && cause.code() != Code::peer_lost)
    log_failure_to_join(limiter_, network_.reactor().clock().now_ns(), topology_, link.place(),
                        cause);
  if (phase_ == Phase::open || opening_->on_detached(link, cause, final)) retry(peer, cause);
}

void Roster::on_made(links::Link& link, transport::DataLink& data) {
  if (phase_ == Phase::open) resources_.count_rings(link.place(), data);
}

void Roster::on_up(links::Link& link) {
  if (phase_ != Phase::open) return;
  const uint32_t peer = link.place();
  base::log(LogLevel::info, "{}: {} has joined and is linked by {}", identity_.name, link.name(),
            links::transport_name(link));
  resources_.show_link(peer, *link.data(), link.peer().incarnation, true);
  count_mendings(links_, resources_, peer);
  links_.note_up();
  const PeerView now = peers_.on(peer, Peers::Event::up, link.peer().incarnation).now;
  observer_.on_links_changed();
  observer_.on_peer_joined(peer, now);
  announce_members(links_, topology_);
  if (peers_.is_open(peer)) tell_opened(peers_, observer_, peer);
}

void Roster::on_lost(links::Link& link, const Status& cause) {
  if (phase_ == Phase::opening) {
    if (opening_->on_lost(link, cause)) drop_link(link, false);
    return;
  }
  if (phase_ != Phase::open) return;
  if (link.data() == nullptr) {
    drop_link(link, false);
    note_unlinked(link.place(), cause);
    return log_failure_to_join(limiter_, network_.reactor().clock().now_ns(), topology_,
                               link.place(), cause);
  }
  const Code code = cause.code() == Code::protocol_error ? Code::protocol_error : Code::peer_lost;
  const Status lost = base::error(code, "{} is lost: {}", link.name(), cause.message());
  const PeerView now = peers_.on(link.place(), Peers::Event::ends).now;
  const bool rests = now.state == PeerState::parted;
  // The line comes before whoever is told looks for it.
  base::log(rests ? LogLevel::debug : LogLevel::warning, "{}: {}", identity_.name, lost.message());
  observer_.on_peer_lost(link.place(), now, lost);
  drop_link(link, rests);
  announce_members(links_, topology_);
}

void Roster::on_left(links::Link& link) {
  if (phase_ == Phase::opening && opening_->on_left(link)) return drop_link(link, false);
  if (phase_ != Phase::open) return;
  base::log(LogLevel::debug, "{}: {} has left", identity_.name, link.name());
  const PeerView now = peers_.on(link.place(), Peers::Event::ends).now;
  observer_.on_peer_left(link.place(), now);
  drop_link(link, now.state == PeerState::parted);
  announce_members(links_, topology_);
}

void Roster::on_heartbeat(links::Link&) {
  monitor_.beat_along(network_.reactor().clock().now_ns());
}

void Roster::on_members(links::Link& link, std::span<const std::byte> message) {
  auto members = wire::decode_members(message, topology_.size());
  if (!members.ok()) return link.fail(links::protocol_violation("a malformed MEMBERS"));
  if (phase_ == Phase::opening) return opening_->on_members(link, std::move(*members));
  // Once our own session is open only the news that a peer's session has opened matters. It may come before the link
  // is up here, too.
  if (phase_ != Phase::open || !members->linked) return;
  tell_opened(peers_, observer_, link.place());
}

void Roster::on_application(links::Link& link, std::span<const std::byte> payload) {
  observer_.on_message(link.place(), payload);
}

void Roster::on_link_failed(const Status& cause) {
  // The local link: something in this process has overwritten its rings.
  network_.reactor().defer([this, cause] {
    if (phase_ != Phase::open) return;
    const Status lost = base::error(Code::internal_error, "{}: its own rings are broken: {}",
                                    identity_.name, cause.message());
    base::log(LogLevel::error, "{}", lost.message());
    resources_.local_link()->stop();
    const PeerView now = peers_.on(topology_.self(), Peers::Event::ends).now;
    observer_.on_peer_lost(topology_.self(), now, lost);
  });
}

}  // namespace faro::session
