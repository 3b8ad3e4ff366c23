#include "session/cluster_membership.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <map>
#include <utility>

#include "base/log.h"

namespace faro::session {
namespace {

constexpr uint64_t kNanosecondsPerMs = 1'000'000;

// Accepted connections that have not finished the handshake.
constexpr base::Nanoseconds kStrangerTime = 5'000'000'000;
constexpr size_t kStrangerLimit = 256;

using transport::tcp::host_of;

}  // namespace

Result<std::unique_ptr<Membership>> Membership::open(const base::Settings& settings,
                                                     std::unique_ptr<Network> network,
                                                     Observer& observer,
                                                     const Cancellation& cancellation) {
  auto membership = std::make_unique<ClusterMembership>(settings, std::move(network), observer);
  FARO_RETURN_IF_ERROR(membership->open(cancellation));
  return std::unique_ptr<Membership>(std::move(membership));
}

ClusterMembership::ClusterMembership(const base::Settings& settings,
                                     std::unique_ptr<Network> network, Observer& observer)
    : settings_(settings),
      self_(static_cast<uint32_t>(settings.node)),
      observer_(observer),
      network_(std::move(network)),
      liveness_(settings.liveness_timeout_ms * kNanosecondsPerMs,
                network_->reactor().clock().now_ns()) {}

ClusterMembership::~ClusterMembership() {
  close();
  // Handlers of the network point here: they go before it.
  strangers_.clear();
  dialling_.clear();
  retired_.clear();
  links_.clear();
  former_links_->destroy();
}

// -------------------------------------------------------------------------------- the public calls

std::shared_ptr<transport::DataLink> ClusterMembership::link(uint32_t node) {
  if (node == self_) return local_link_;
  const std::lock_guard lock(links_mutex_);
  const std::shared_ptr<Link>& link = links_[node];
  if (!link->came_up()) return absent_links_[node];
  return {link, link->data()};
}

ring::Layout ClusterMembership::layout(uint32_t from, uint32_t to) const {
  ring::Layout rings;
  rings.sender_workers = settings_.workers_per_node[from];
  rings.receiver_workers = settings_.workers_per_node[to];
  rings.rings_per_lane = static_cast<uint32_t>(settings_.rings_per_lane);
  rings.ring_bytes = static_cast<uint32_t>(settings_.ring_bytes);
  return rings;
}

void ClusterMembership::send(uint32_t node, std::span<const std::byte> message) {
  assert(node < nodes_.size() && message.size() <= kMessageLimit);
  network_->reactor().defer(
      [this, node, bytes = std::vector<std::byte>(message.begin(), message.end())] {
        if (node == self_) {
          if (phase_ == Phase::open || phase_ == Phase::opening) observer_.on_message(self_, bytes);
        } else {
          links_[node]->send_application(bytes);
        }
      });
}

void ClusterMembership::fail_link(uint32_t node, std::shared_ptr<transport::DataLink> link,
                                  const Status& cause) {
  network_->reactor().defer([this, node, link = std::move(link), cause] {
    if (phase_ == Phase::open && node != self_ && links_[node]->data() == link.get())
      links_[node]->fail(cause);
  });
}

bool ClusterMembership::connected(uint32_t node) const {
  if (node == self_) return true;
  const std::lock_guard lock(links_mutex_);
  return links_[node]->connected();
}

void ClusterMembership::close() {
  if (network_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    // From a callback: waiting for this thread would never end. The destructor waits.
    network_->reactor().defer([this] { begin_closing(); });
    return;
  }
  std::lock_guard lock(close_mutex_);
  if (closed_) return;
  if (thread_.joinable()) {
    network_->reactor().defer([this] { begin_closing(); });
    thread_.join();
  } else {
    begin_closing();
    while (phase_ != Phase::closed) {
      const base::Nanoseconds before = clock().now_ns();
      const bool worked = round(closing_deadline_);
      // A simulated network that nobody drives any more: no time passes, so nothing can arrive.
      if (!worked && !network_->wants_thread() && clock().now_ns() == before) finish_closing();
    }
  }
  closed_ = true;
}

// ------------------------------------------------------------------------------------------ rounds

bool ClusterMembership::do_work() {
  // A simulated network never waits outside of open and close; it is told when it has to be called
  // again.
  return round(network_->wants_thread() ? clock().now_ns() : base::kForever);
}

void ClusterMembership::run() noexcept {
  network_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (phase_ != Phase::closed) {
    try {
      round(base::kForever);
    } catch (const std::exception& error) {
      // Out of memory, or an observer that throws. Peers must go on hearing from this node, or be
      // told.
      base::log(LogLevel::error, "{}: the network thread met an exception: {}", identity_.name,
                error.what());
    } catch (...) {
      // One of a transport that was loaded with a C++ runtime of its own: what is a std::exception
      // there is none here.
      base::log(LogLevel::error, "{}: the network thread met an exception of an unknown type",
                identity_.name);
    }
  }
}

bool ClusterMembership::round(base::Nanoseconds until) {
  const bool worked = network_->run_once(std::min(until, next_deadline()));
  look_at_times();
  retired_.clear();
  former_links_->destroy();
  return worked;
}

base::Nanoseconds ClusterMembership::next_deadline() const {
  if (more_to_begin_ || (phase_ == Phase::closing && all_gone())) return 0;
  base::Nanoseconds next = liveness_.next_beat();
  if (phase_ == Phase::closing) next = std::min(next, closing_deadline_);
  if (!strangers_.empty()) next = std::min(next, strangers_.front().deadline);
  for (const Stranger& stranger : strangers_) {
    if (stranger.queues)
      next = std::min(next, attempts_.next(host_of(stranger.handshake->peer_address())));
  }
  for_each_link([&](const Link& link) {
    if (phase_ == Phase::open && link.attached()) next = std::min(next, expiry(link));
    if (link.suspended_until()) next = std::min(next, *link.suspended_until());
    if (linking() && link.state() == LinkState::apart && dials(link)) {
      next = std::min(next, dialling_[link.node()].next);
    }
  });
  return next;
}

// When a silent peer is lost. While it joins it may be clearing gigabytes of rings.
base::Nanoseconds ClusterMembership::expiry(const Link& link) const {
  if (link.state() == LinkState::up) return liveness_.expiry(link.liveness());
  return base::deadline_after(link.liveness().heard,
                              settings_.connect_timeout_ms * kNanosecondsPerMs);
}

// All connections have been read when this is called.
void ClusterMembership::look_at_times() {
  const base::Nanoseconds now = clock().now_ns();
  liveness_.begin_pass(now);
  for_each_link([&](Link& link) { check_liveness(link, now); });
  check_strangers(now);
  if (liveness_.beat() && (phase_ == Phase::opening || phase_ == Phase::open))
    observer_.on_tick(now);
  if (linking()) advance_links(now);
  if (phase_ == Phase::closing && (all_gone() || now >= closing_deadline_)) finish_closing();
}

void ClusterMembership::check_liveness(Link& link, base::Nanoseconds now) {
  link.judge_suspended(now);
  if (!link.attached() || link.leaving()) return;
  // While the cluster forms nobody is judged: connect.timeout_ms bounds that.
  if (phase_ == Phase::open && now >= expiry(link)) {
    const bool is_up = link.state() == LinkState::up;
    return link.fail(
        Status(Code::peer_lost,
               fmt::format("{} heard nothing from {} for {} = {}", identity_.name, link.name(),
                           is_up ? "liveness.timeout_ms" : "connect.timeout_ms",
                           is_up ? settings_.liveness_timeout_ms : settings_.connect_timeout_ms)));
  }
  if (liveness_.beat()) link.heartbeat();
}

void ClusterMembership::check_strangers(base::Nanoseconds now) {
  while (!strangers_.empty() && now >= strangers_.front().deadline) {
    Handshake& late = *strangers_.front().handshake;
    const Status cause(Code::deadline_exceeded, fmt::format("no complete handshake within {} s",
                                                            kStrangerTime / 1'000'000'000));
    refuse_stranger(late.peer_address(), cause);
    late.refuse({cause, true, false});
    retire(late);
  }
  start_queued(now);
}

void ClusterMembership::begin_closing() {
  if (phase_ == Phase::closing || phase_ == Phase::closed) return;
  phase_ = Phase::closing;
  closing_deadline_ =
      base::deadline_after(clock().now_ns(), settings_.close_timeout_ms * kNanosecondsPerMs);
  const Refusal closing{
      Status(Code::session_closed, fmt::format("{} has closed its session", identity_.name)), true,
      false};
  for (Stranger& stranger : strangers_) stranger.handshake->refuse(closing);
  for (Dialling& dialling : dialling_) {
    if (dialling.handshake != nullptr) dialling.handshake->refuse(closing);
  }
  for_each_link([](Link& link) { link.leave(); });
}

bool ClusterMembership::all_gone() const {
  bool gone = true;
  for_each_link([&](const Link& link) { gone = gone && !link.attached(); });
  return gone;
}

void ClusterMembership::finish_closing() {
  phase_ = Phase::closed;
  for_each_link([](Link& link) { link.end(); });
  if (local_link_ != nullptr) local_link_->stop();
  network_->set_acceptor(nullptr);
  metrics_.reset();
  if (counters_ != nullptr) counters_->remove_name();
}

// --------------------------------------------------------------------------------------- strangers

base::Nanoseconds ClusterMembership::may_try_at(const std::string& peer_address) {
  const std::string host = host_of(peer_address);
  base::Nanoseconds at = attempts_.next(host);
  // Of a node that has been admitted a data connection is to come, whoever else is there.
  for_each_link([&](const Link& link) {
    if (link.expects_stream() && host_of(link.peer_address()) == host) at = 0;
  });
  return at;
}

void ClusterMembership::on_turn(const std::string& peer_address) {
  attempts_.spend(host_of(peer_address), clock().now_ns());
}

void ClusterMembership::on_stranger(const std::string& peer_address, const Status& cause) {
  if (cause.code() == Code::authentication_failed) {
    attempts_.spend(host_of(peer_address), clock().now_ns());
  }
  refuse_stranger(peer_address, cause);
}

void ClusterMembership::on_connection(std::unique_ptr<ControlConnection> connection) {
  const std::string host = host_of(connection->peer_address());
  // With TLS the door has seen to that.
  const bool queues =
      network_->credentials() == nullptr && !attempts_.allows(host, clock().now_ns());
  const auto queue = std::count_if(strangers_.begin(), strangers_.end(), [&](const Stranger& each) {
    return each.queues && host_of(each.handshake->peer_address()) == host;
  });
  if (queues && static_cast<size_t>(queue) >= AttemptLimiter::kWaitingPerAddress) {
    const Status cause(Code::authentication_failed,
                       fmt::format("too many attempts from {} have failed, and {} of its "
                                   "connections wait for their turn already",
                                   host, queue));
    connection->send(wire::encode_refuse({cause.code(), true, std::string(cause.message())}));
    return refuse_stranger(connection->peer_address(), cause);
  }
  if (strangers_.size() >= kStrangerLimit) {
    Handshake& crowding = crowding_stranger(connection->peer_address());
    const Status cause(Code::limit_exceeded,
                       "too many connections have not finished the handshake");
    refuse_stranger(crowding.peer_address(), cause);
    crowding.refuse({cause, true, false});
    retire(crowding);
  }
  Stranger& stranger = strangers_.emplace_back();
  stranger.deadline = clock().now_ns() + kStrangerTime;
  stranger.handshake = std::make_unique<Handshake>(static_cast<Handshake::Owner&>(*this), identity_,
                                                   std::move(connection), std::nullopt);
  stranger.queues = queues;
  if (!queues) stranger.handshake->start();
}

// One of each address at a time, first come, first served: what it does then counts against those
// behind it.
void ClusterMembership::start_queued(base::Nanoseconds now) {
  for (auto next = strangers_.begin(); next != strangers_.end();) {
    const auto stranger = next++;
    if (!stranger->queues) continue;
    const std::string& from = stranger->handshake->peer_address();
    if (!attempts_.allows(host_of(from), now)) continue;
    attempts_.spend(host_of(from), now);
    stranger->queues = false;
    stranger->deadline = now + kStrangerTime;
    strangers_.splice(strangers_.end(), strangers_, stranger);  // by deadline
    stranger->handshake->start();
    if (next == strangers_.end()) break;
  }
}

// A flood pushes out its own, as at the door: the oldest of the address that has most.
Handshake& ClusterMembership::crowding_stranger(const std::string& newcomer_address) {
  std::map<std::string, size_t> count = {{host_of(newcomer_address), 1}};
  const auto host = [](const Stranger& stranger) {
    return host_of(stranger.handshake->peer_address());
  };
  for (const Stranger& stranger : strangers_) ++count[host(stranger)];
  return *std::max_element(
              strangers_.begin(), strangers_.end(),
              [&](const Stranger& a, const Stranger& b) { return count[host(a)] < count[host(b)]; })
              ->handshake;
}

void ClusterMembership::on_data_stream(const StreamToken& token, transport::DataStream stream) {
  for (const auto& link : links_) {
    if (link != nullptr && link->takes(token)) return link->on_stream(std::move(stream));
  }
  ::close(stream.fd);
  refuse_stranger("somebody",
                  Status(Code::protocol_error, "a data connection that belongs to no link"));
}

std::optional<Refusal> ClusterMembership::judge(const wire::Hello& hello, const std::string& from) {
  const auto refuse = [](std::string text, bool retry) {
    return Refusal{Status(Code::configuration_mismatch, std::move(text)), retry, false};
  };
  if (!fatal_.ok()) return Refusal{fatal_, !spreads_, false};
  if (phase_ == Phase::closing || phase_ == Phase::closed) {
    return Refusal{
        Status(Code::session_closed, fmt::format("{} has closed its session", identity_.name)),
        true, false};
  }
  const uint32_t number = hello.head.node;
  const Link& link = *links_[number];
  if (dials(link)) {
    return refuse(fmt::format("{} at {} dials {}: a node dials those with lower numbers only",
                              number, from, identity_.name),
                  false);
  }
  if (hello.incarnation == absences_[number].former_incarnation) {
    return refuse(
        fmt::format("{} was lost to {}, and does not come back by itself: it has to start "
                    "again",
                    link.name(), identity_.name),
        false);
  }
  switch (link.state()) {
    case LinkState::apart:
      return std::nullopt;
    case LinkState::admitted:
      // It gave its first connection up before we noticed.
      if (link.peer().incarnation == hello.incarnation) return std::nullopt;
      break;
    case LinkState::setting_up:
    case LinkState::up:
    case LinkState::left:
    case LinkState::lost:
      break;
  }
  // It may be a node that was restarted, whose old connection is not noticed as closed yet: it may
  // try again.
  return refuse(
      fmt::format("node number {} is taken: {} has joined with it from {}, now {} wants it too",
                  number, link.name(), link.peer_address(), from),
      true);
}

void ClusterMembership::on_admitted(Handshake& handshake,
                                    std::unique_ptr<ControlConnection> connection,
                                    const wire::Hello& peer) {
  const auto dialled = dialled_node(handshake);
  Link& link = *links_[dialled ? *dialled : peer.head.node];
  if (!dialled) {
    // Somebody else may have taken the number since HELLO.
    if (const auto refusal = judge(peer, connection->peer_address())) {
      connection->send(wire::encode_refuse(
          {refusal->status.code(), refusal->retry, std::string(refusal->status.message())}));
      refuse_stranger(connection->peer_address(), refusal->status);
      retire(handshake);
      return;
    }
  }
  if (dialled && peer.incarnation == absences_[*dialled].former_incarnation) {
    const Status lost(Code::configuration_mismatch,
                      fmt::format("{} was lost to {}, and does not come back by itself: it has to "
                                  "start again",
                                  link.name(), identity_.name));
    connection->send(wire::encode_refuse({lost.code(), true, std::string(lost.message())}));
    retry_later(*dialled, lost);
    return retire(handshake);
  }
  if (phase_ == Phase::opening) describe_peer(link, peer);
  std::string address = dialled ? connection->peer_address() : peer.address;
  link.admit(std::move(connection), peer, dialled.has_value(), std::move(address),
             clock().now_ns());
  if (dialled) {
    Dialling& dialling = dialling_[*dialled];
    dialling.under_way = false;
    dialling.pause = dialling.next = 0;
    dialling.number_taken = 0;
  }
  if (phase_ == Phase::open) link.send_members(missing_nodes());
  retire(handshake);
}

void ClusterMembership::on_refused(Handshake& handshake, const Refusal& refusal) {
  const auto dialled = dialled_node(handshake);
  if (dialled) {
    Dialling& dialling = dialling_[*dialled];
    // "Taken" is final once it has had the time to be an old connection of our own address.
    constexpr int kNumberTakenLimit = 6;
    const bool taken =
        refusal.verified && refusal.retry && refusal.status.code() == Code::configuration_mismatch;
    dialling.number_taken = taken ? dialling.number_taken + 1 : 0;
    if (!refusal.verified && refusal.status.message() != dialling.last.message()) {
      if (dialling.ending.ok()) dialling.ending = refusal.status;
      base::log(LogLevel::warning, "{}: goes on dialling node {}: {}", identity_.name, *dialled,
                refusal.status.to_string());
    }
    if (phase_ == Phase::open) {
      if (refusal.verified && refusal.status.code() != Code::connect_failed)
        log_no_return(*links_[*dialled], refusal.status);
      retry_later(*dialled, refusal.status);
    } else if (dialling.number_taken >= kNumberTakenLimit) {
      // We are one too many; the others can go on with the node that was first.
      if (fatal_.ok()) spreads_ = false;
      fail_open(refusal.status);
    } else if (!refusal.retry) {
      fail_open(refusal.status);
    } else {
      retry_later(*dialled, refusal.status);
    }
  } else {
    on_stranger(handshake.peer_address(), refusal.status);
    if (refusal.ends_open) fail_open(refusal.status);
  }
  retire(handshake);
}

std::optional<uint32_t> ClusterMembership::dialled_node(const Handshake& handshake) const {
  for (uint32_t node = 0; node < dialling_.size(); ++node) {
    if (dialling_[node].handshake.get() == &handshake) return node;
  }
  return std::nullopt;
}

// It may be on the stack: it goes at the end of the round.
void ClusterMembership::retire(Handshake& handshake) {
  if (const auto node = dialled_node(handshake)) {
    retired_.push_back(std::move(dialling_[*node].handshake));
    return;
  }
  const auto found = std::find_if(strangers_.begin(), strangers_.end(), [&](const Stranger& each) {
    return each.handshake.get() == &handshake;
  });
  if (found == strangers_.end()) return;
  retired_.push_back(std::move(found->handshake));
  strangers_.erase(found);
}

void ClusterMembership::refuse_stranger(const std::string& from, const Status& cause) {
  if (phase_ == Phase::opening)
    last_stranger_ = Status(cause.code(), fmt::format("{}: {}", from, cause.message()));
  uint64_t suppressed = 0;
  if (!limiter_.allows(std::string(code_name(cause.code())), clock().now_ns(), suppressed)) return;
  // Those who have not closed yet look for who has, and give up when they close themselves.
  const bool closes = phase_ == Phase::closing || cause.code() == Code::session_closed;
  base::log(closes ? LogLevel::debug : LogLevel::warning, "{}: refused a connection from {}: {}{}",
            identity_.name, from, cause.to_string(),
            suppressed == 0 ? "" : fmt::format(" ({} more like this before)", suppressed));
}

// ------------------------------------------------------------------------------------------- links

void ClusterMembership::on_detached(Link& link, const Status& cause, bool final) {
  if (phase_ == Phase::open) {
    if (cause.code() != Code::peer_lost) log_no_return(link, cause);
    return retry_later(link.node(), cause);
  }
  if (phase_ != Phase::opening) return;
  Dialling& dialling = dialling_[link.node()];
  if (cause.code() != Code::peer_lost && dialling.ending.ok()) dialling.ending = cause;
  if (final) {
    // A limit of the other process is none of ours; disagreement concerns both.
    const Code code = cause.category() == Category::session ? cause.code() : Code::connect_failed;
    return fail_open(Status(code, fmt::format("{}: {}", link.name(), cause.message())));
  }
  retry_later(link.node(), cause);
}

void ClusterMembership::on_up(Link& link) {
  if (phase_ != Phase::open) return;
  const uint32_t node = link.node();
  base::log(LogLevel::info, "{}: {} has started again and is linked by {}", identity_.name,
            link.name(), link.transport_name());
  count_link(node);
  link_changes_.fetch_add(1, std::memory_order_release);
  observer_.on_links_changed();
  absences_[node].is_joining = true;
  observer_.on_peer_joined(node, link.peer().incarnation);
  tell_members();
}

void ClusterMembership::on_lost(Link& link, const Status& cause) {
  if (returns_without(link) && cause.code() == Code::peer_lost) return replace_link(link);
  if (phase_ == Phase::opening) {
    const bool ours =
        cause.category() == Category::process || cause.category() == Category::session;
    return fail_open(Status(ours ? cause.code() : Code::connect_failed,
                            fmt::format("{} was lost while the cluster was connecting: {}",
                                        link.name(), cause.message())));
  }
  if (phase_ != Phase::open) return;
  if (link.data() == nullptr) {
    replace_link(link);
    return log_no_return(link, cause);
  }
  const Code code = cause.code() == Code::protocol_error ? Code::protocol_error : Code::peer_lost;
  const Status lost(code, fmt::format("{} is lost: {}", link.name(), cause.message()));
  base::log(LogLevel::warning, "{}: {}", identity_.name, lost.message());
  observer_.on_peer_lost(link.node(), lost);
  replace_link(link);
  tell_members();
}

void ClusterMembership::on_left(Link& link) {
  if (returns_without(link)) return replace_link(link);
  if (phase_ == Phase::opening) {
    return fail_open(
        Status(Code::connect_failed,
               fmt::format("{} closed its session while the cluster was connecting", link.name())));
  }
  if (phase_ != Phase::open) return;
  base::log(LogLevel::debug, "{}: {} has closed its session", identity_.name, link.name());
  observer_.on_peer_left(link.node());
  replace_link(link);
  tell_members();
}

void ClusterMembership::on_heartbeat(Link&) { liveness_.beat_along(clock().now_ns()); }

// In phase open only what a peer says when its session has opened matters.
void ClusterMembership::on_members(Link& link) {
  if (phase_ != Phase::open || link.state() != LinkState::up) return;
  if (!std::exchange(absences_[link.node()].is_joining, false)) return;
  observer_.on_peer_returned(link.node());
}

void ClusterMembership::on_application(Link& link, std::span<const std::byte> payload) {
  observer_.on_message(link.node(), payload);
}

void ClusterMembership::on_link_failed(const Status& cause) {
  // Of the local link: somebody in this process has overwritten its rings.
  network_->reactor().defer([this, cause] {
    if (phase_ != Phase::open) return;
    const Status lost(Code::internal_error, fmt::format("{}: its own rings are broken: {}",
                                                        identity_.name, cause.message()));
    base::log(LogLevel::error, "{}", lost.message());
    local_link_->stop();
    observer_.on_peer_lost(self_, lost);
  });
}

void ClusterMembership::describe_peer(Link& link, const wire::Hello& peer) {
  Node& node = nodes_[link.node()];
  node.incarnation = peer.incarnation;
  const std::string& configured = settings_.node_addresses[link.node()];
  const bool any_port =
      configured.size() > 2 && configured.compare(configured.size() - 2, 2, ":0") == 0;
  if (any_port && !peer.address.empty()) {
    node.name = fmt::format("node {} ({})", node.number, peer.address);
    link.rename(node.name);
  }
}

}  // namespace faro::session
