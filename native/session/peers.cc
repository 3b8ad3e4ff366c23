#include "session/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/on_cancel.h"
#include "base/return_if_error.h"
#include "transport/tcp/socket_address.h"

namespace faro::session {

Peers::Peers(const base::Settings& settings, const Topology& topology, const base::Clock& clock)
    : settings_(settings),
      topology_(topology),
      clock_(clock),
      keep_(settings.connect_timeout_ms * base::kMillisecond),
      peers_(topology.size()) {
  for (uint32_t node = 0; node < topology.size(); ++node) {
    Peer& peer = peers_[node];
    peer.address = settings.node_addresses[node];
    if (!peer.address.empty()) peer.view.state = PeerState::apart;
    peer.is_known = peer.view.state != PeerState::none;
  }
  peers_[topology.self()].lost.reserve(1);
}

// --------------------------------------------------------------------------------- what users order

Status Peers::check_changing() const {
  if (is_closed()) return Status(Code::session_closed, "the session was closed");
  if (topology_.has_numbers_to_give()) return Status::Ok();
  return Status(Code::wrong_state,
                "cluster.node_limit = 0: the nodes of this session are those of cluster.nodes");
}

// Whether the number is one that can be given and taken.
Status Peers::check_number(uint32_t node) const {
  FARO_RETURN_IF_ERROR(check_changing());
  if (node >= peers_.size()) {
    return base::error(Code::invalid_argument, "node {}: cluster.node_limit = {} allows 0 … {}",
                       node, settings_.node_limit, settings_.node_limit - 1);
  }
  if (node != topology_.self()) return Status::Ok();
  return base::error(Code::invalid_argument, "node {} is this node itself", node);
}

Status Peers::add(uint32_t node, const std::string& address) {
  FARO_RETURN_IF_ERROR(check_number(node));
  if (const Status status = base::check_address("address", address, ""); !status.ok())
    return Status(Code::invalid_argument, std::string(status.message()));
  if (topology_.dials(node) && has_any_port(address)) {
    return base::error(Code::invalid_argument,
                       "node {} has the address {}, but node {} has to dial it and needs its port",
                       node, address, topology_.self());
  }
  std::string own_copy = address;
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[node];
  if (peer.order == Order::remove)
    return base::error(Code::wrong_state, "node {} is being removed; wait for node_removed", node);
  if (has_locked(node))
    return base::error(Code::wrong_state, "node {} is there already; remove it first", node);
  peer.order = Order::add;
  ++peer.view.version;
  peer.new_address = std::move(own_copy);
  return Status::Ok();
}

Status Peers::remove(uint32_t node) {
  FARO_RETURN_IF_ERROR(check_number(node));
  const std::lock_guard lock(mutex_);
  if (!has_locked(node))
    return base::error(Code::invalid_argument, "no node has the number {}", node);
  peers_[node].order = Order::remove;
  return Status::Ok();
}

Status Peers::check_drain(uint32_t node) const {
  FARO_RETURN_IF_ERROR(check_changing());
  if (has(node)) return Status::Ok();
  return base::error(Code::invalid_argument, "no node has the number {}", node);
}

Status Peers::await(uint32_t node, Wait wait, const Cancellation& cancellation) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);  // added to a time
  if (!wait.is_none() && wait.limit() < std::chrono::nanoseconds::zero()) {
    return base::error(Code::invalid_argument, "a time limit of {} ns is negative",
                       wait.limit().count());
  }
  if (node >= peers_.size()) {
    return base::error(Code::invalid_argument, "node {} does not exist (0 … {})", node,
                       peers_.size() - 1);
  }
  const detail::OnCancel wakes(cancellation, [this] {
    { const std::lock_guard lock(mutex_); }  // whoever waits has not looked yet, or is asleep
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  Peer& peer = peers_[node];
  const auto over = [&] { return closed_ || peer.is_present || cancellation.cancelled(); };
  ++peer.waiting;
  if (wait.is_forever()) {
    changed_.wait(lock, over);
  } else if (!wait.is_none()) {
    changed_.wait_for(lock, std::min(wait.limit(), kLongest), over);
  }
  --peer.waiting;
  if (!closed_ && peer.is_present) {
    lock.unlock();
    ask_for(node);
    return Status::Ok();
  }
  if (closed_) return Status(Code::session_closed, "the session was closed");
  if (cancellation.cancelled())
    return base::error(Code::cancelled, "the wait for node {} was cancelled", node);
  return base::error(Code::deadline_exceeded, "node {} is not there", node).of_node(node);
}

void Peers::ask_for(uint32_t node) {
  const base::Nanoseconds until = base::deadline_after(clock_.now_ns(), keep_);
  const std::lock_guard lock(mutex_);
  if (node < peers_.size()) peers_[node].asked_until = until;
}

void Peers::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

// ------------------------------------------------------------------------------- what happens to them

Peers::Change Peers::on(uint32_t node, Event event, uint64_t incarnation) {
  Peer& peer = peers_[node];
  // For this process, and for one whose link was let go before.
  if (event == Event::admitted) peer.lost.reserve(std::min(kRemembered, peer.lost.size() + 2));
  if (event == Event::removed) forget_want(node);
  Change change;
  {
    const std::lock_guard lock(mutex_);
    change.returned = step(peer, event, incarnation);
    ++peer.view.version;
    change.now = view_locked(node);
  }
  if (change.returned != Return::none) changed_.notify_all();
  return change;
}

Peers::Return Peers::step(Peer& peer, Event event, uint64_t incarnation) {
  const PeerState before = peer.view.state;
  const bool was_up =
      before == PeerState::linked || before == PeerState::asked || before == PeerState::agreed;
  const auto end = [&](PeerState after) {
    if (before != PeerState::drained) peer.view.state = after;
    peer.is_open = peer.rested = false;
  };
  switch (event) {
    case Event::added:
      peer.address = std::move(peer.new_address);
      peer.order = Order::none;
      if (before == PeerState::none) peer.view.state = PeerState::apart;
      break;
    case Event::admitted:
      peer.is_open = false;
      peer.has_next_link = true;
      break;
    case Event::up:
      peer.rested = before == PeerState::parted && peer.view.incarnation == incarnation;
      if (before == PeerState::parted && !peer.rested) remember_lost(peer);
      peer.has_next_link = peer.is_present = false;
      peer.view.incarnation = incarnation;
      peer.view.state = PeerState::linked;
      peer.why_unlinked.clear();
      break;
    case Event::opened: {
      peer.is_open = true;
      if (!was_up || peer.is_present) break;
      peer.is_present = true;
      const bool was_known = std::exchange(peer.is_known, true);
      const bool rested = std::exchange(peer.rested, false);
      if (!was_known) return Return::first;
      return rested ? Return::from_rest : Return::again;
    }
    case Event::asked:
      if (before == PeerState::linked) peer.view.state = PeerState::asked;
      break;
    case Event::stays:
      if (before == PeerState::asked) peer.view.state = PeerState::linked;
      break;
    case Event::agreed:
      if (was_up) peer.view.state = PeerState::agreed;
      break;
    case Event::ends:
      if (before == PeerState::agreed) {
        end(PeerState::parted);
        break;
      }
      if (before == PeerState::parted && !peer.has_next_link) break;
      // The next link of one that was parted may end before it is up.
      if (was_up || before == PeerState::parted) remember_lost(peer);
      end(PeerState::lost);
      break;
    case Event::told:
      if (!was_up) peer.is_present = false;
      break;
    case Event::lost:
      if (incarnation == 0) break;
      peer.view.incarnation = incarnation;
      remember_lost(peer);
      end(PeerState::lost);
      break;
    case Event::refused:
      if (before != PeerState::parted) break;
      remember_lost(peer);
      end(PeerState::lost);
      break;
    case Event::drained:
      if (was_up || before == PeerState::parted) remember_lost(peer);
      end(PeerState::drained);
      break;
    case Event::removed:
      if (before == PeerState::parted) remember_lost(peer);
      end(PeerState::none);
      peer.view.state = PeerState::none;
      peer.is_known = peer.is_present = false;
      peer.asked_until = 0;
      peer.address.clear();
      peer.why_unlinked.clear();
      break;
    case Event::freed:
      peer.order = Order::none;
      break;
  }
  return Return::none;
}

// There is room for it since the process was admitted.
void Peers::remember_lost(Peer& peer) {
  if (peer.lost.size() >= kRemembered) peer.lost.erase(peer.lost.begin());
  peer.lost.push_back(peer.view.incarnation);
}

void Peers::begin() {
  const std::lock_guard lock(mutex_);
  for (Peer& peer : peers_) {
    if (peer.view.state != PeerState::linked) peer.view.incarnation = 0;
  }
}

void Peers::note_unlinked(uint32_t node, std::string why) {
  const std::lock_guard lock(mutex_);
  peers_[node].why_unlinked = std::move(why);
}

void Peers::want(uint32_t node, base::Nanoseconds until) {
  forget_want(node);
  peers_[node].wanted_until = until;
  first_wanted_until_ = std::min(first_wanted_until_, until);
}

void Peers::forget_want(uint32_t node) {
  if (std::exchange(peers_[node].wanted_until, 0) != first_wanted_until_) return;
  first_wanted_until_ = base::kForever;
  for (const Peer& peer : peers_) {
    if (peer.wanted_until != 0)
      first_wanted_until_ = std::min(first_wanted_until_, peer.wanted_until);
  }
}

// ------------------------------------------------------------------------------------ what they are

bool Peers::has_locked(uint32_t node) const {
  if (node >= peers_.size() || peers_[node].order == Order::remove) return false;
  return peers_[node].view.state != PeerState::none || peers_[node].order == Order::add;
}

PeerView Peers::view_locked(uint32_t node) const {
  PeerView view = peers_[node].view;
  const bool is_ordered = peers_[node].order == Order::add;
  if (is_ordered && view.state == PeerState::none) view.state = PeerState::apart;
  return view;
}

PeerView Peers::view(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return view_locked(node);
}

bool Peers::has(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return has_locked(node);
}

bool Peers::is_member(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return has_locked(node) && peers_[node].view.state != PeerState::drained;
}

bool Peers::is_drained(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return peers_[node].view.state == PeerState::drained;
}

bool Peers::is_present(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return node < peers_.size() && peers_[node].is_present;
}

bool Peers::is_asked_for(uint32_t node) const noexcept {
  const base::Nanoseconds now = clock_.now_ns();
  const std::lock_guard lock(mutex_);
  return now < peers_[node].asked_until;
}

std::vector<uint32_t> Peers::awaited() const {
  std::vector<uint32_t> awaited;
  const std::lock_guard lock(mutex_);
  for (uint32_t node = 0; node < peers_.size(); ++node) {
    if (peers_[node].waiting > 0) awaited.push_back(node);
  }
  return awaited;
}

bool Peers::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::string Peers::why_unlinked(uint32_t node) const {
  std::string why = noted_unlinked(node);
  return why.empty() ? fmt::format("node {}: it has not come", node) : why;
}

std::string Peers::noted_unlinked(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return peers_[node].why_unlinked;
}

uint64_t Peers::incarnation(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return peers_[node].view.incarnation;
}

Status Peers::check_process(uint32_t node, uint64_t incarnation) const {
  const std::vector<uint64_t>& lost = peers_[node].lost;
  if (std::ranges::find(lost, incarnation) == lost.end()) return Status::Ok();
  return base::error(Code::configuration_mismatch,
                     "{} was lost to {}, and does not come back by itself: it has to start again",
                     topology_.node(node).name, topology_.own().name);
}

std::string Peers::host(uint32_t node) const { return transport::tcp::host_of(address(node)); }

std::string Peers::full_name(uint32_t node) const {
  if (node == topology_.self() || topology_.node(node).wanted_for_good)
    return topology_.node(node).name;
  return fmt::format("node {} ({})", node, address(node));
}

}  // namespace faro::session
