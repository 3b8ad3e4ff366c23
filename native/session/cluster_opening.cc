#include "session/cluster_opening.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

namespace faro::session {
namespace {

// When to log which nodes are still missing: long after an ordinary start, and before a user wonders.
constexpr base::Nanoseconds kNoticeAfter = 5'000 * base::kMillisecond;

}  // namespace

ClusterOpening::ClusterOpening(const base::Settings& settings, const Peers& nodes,
                               links::Network& network, const links::LinkTable& links)
    : settings_(settings),
      nodes_(nodes),
      network_(network),
      links_(links),
      since_(network.reactor().clock().now_ns()),
      deadline_(base::deadline_after(since_, settings.connect_timeout_ms * base::kMillisecond)),
      notice_(since_ + std::min(kNoticeAfter, (deadline_ - since_) / 2)),
      waits_(settings.wait_for == "all"),
      rejoin_(links),
      peers_(nodes.topology().size()) {
  nodes.for_each_peer([&](uint32_t peer) {
    note_disconnected(peer,
                      Status(Code::connect_failed,
                             nodes.topology().dials(peer)
                                 ? "it was not reached"
                                 : "it has not connected (a node dials those with lower numbers)"));
  });
}

std::optional<ClusterOpening::Failure> ClusterOpening::check(base::Nanoseconds now,
                                                             const Cancellation& cancellation) {
  if (failed()) return Failure{fatal_, fatal_.code() == Code::connect_failed || !spreads_};
  if (cancellation.cancelled()) {
    return Failure{
        base::error(Code::cancelled,
                    "opening the session of {} was cancelled; it was still waiting for {}",
                    nodes_.topology().own().name, missing_peers()),
        true};
  }
  if (now >= deadline_) return Failure{missing(), true};
  if (now >= notice_) {
    notice_ = base::kForever;
    base::log(LogLevel::warning, "{}: still waits for {}", nodes_.topology().own().name,
              missing_peers());
    look_up_missing();
  }
  return std::nullopt;
}

bool ClusterOpening::all_known() const {
  if (!waits_) return true;
  bool all = true;
  nodes_.for_each_peer([&](uint32_t peer) {
    all = all && (links_.find(peer) != nullptr || rejoin_.missing_for_all(peer));
  });
  return all;
}

bool ClusterOpening::all_linked() const {
  if (!waits_) return true;
  bool all = true;
  nodes_.for_each_peer([&](uint32_t peer) {
    const links::Link* link = links_.find(peer);
    all = all && (link != nullptr ? rejoin_.linked(*link) : rejoin_.missing_for_all(peer));
  });
  return all;
}

void ClusterOpening::fail(const Status& status, bool spreads) {
  if (failed()) return;
  fatal_ = status;
  spreads_ = spreads;
}

std::optional<links::Refusal> ClusterOpening::refusal() const {
  if (!failed()) return std::nullopt;
  return links::Refusal{fatal_, !spreads_, false};
}

// Looks up the names of missing nodes that have to dial this one. If a name does not resolve its entry is wrong,
// most likely on that node, too.
void ClusterOpening::look_up_missing() {
  if (!network_.wants_thread()) return;  // the names in a simulation do not resolve
  nodes_.for_each_peer([&](uint32_t peer) {
    if (nodes_.topology().dials(peer) || links_.find(peer) != nullptr) return;
    const auto told = [this, peer](links::Resolution::Addresses addresses) {
      if (addresses.ok()) return;
      note_disconnected(peer,
                        base::error(Code::connect_failed, "{}, and {}", peers_[peer].last.message(),
                                    addresses.status().message()));
    };
    look_ups_.push_back(
        std::make_unique<links::Resolution>(network_.reactor(), nodes_.address(peer), told));
    look_ups_.back()->start();
  });
}

// ----------------------------------------------------------------------------------- missing nodes

Status ClusterOpening::missing() const {
  uint32_t up = 0;
  bool refused = false;
  const auto is_refusal = [](const Status& status) {
    return status.code() == Code::authentication_failed;
  };
  nodes_.for_each_peer([&](uint32_t peer) {
    const links::Link* link = links_.find(peer);
    if (link != nullptr) {
      up += link->state().connected();
    } else if (!rejoin_.missing_for_all(peer)) {
      refused = refused || is_refusal(peers_[peer].last) || is_refusal(peers_[peer].ending);
    }
  });
  return Status(refused ? Code::authentication_failed : Code::connect_failed,
                fmt::format("{} of {} peers linked within connect.timeout_ms = {}: {}", up,
                            nodes_.peer_count(), settings_.connect_timeout_ms, missing_peers()));
}

// Every node that is not linked yet, with the last cause.
std::string ClusterOpening::missing_peers() const {
  std::string text;
  nodes_.for_each_peer([&](uint32_t peer) {
    const links::Link* link = links_.find(peer);
    if ((link != nullptr && link->state().connected()) || rejoin_.missing_for_all(peer)) return;
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", nodes_.full_name(peer), why_missing(peer));
  });
  if (!last_refused_.ok()) text += fmt::format("; refused last: {}", last_refused_.message());
  return text;
}

std::string ClusterOpening::why_missing(uint32_t number) const {
  const Peer& peer = peers_[number];
  const links::Link* link = links_.find(number);
  if (link == nullptr) {
    if (peer.ending.ok() || peer.ending.message() == peer.last.message())
      return std::string(peer.last.message());
    return fmt::format("{} (before that: {})", peer.last.message(), peer.ending.message());
  }
  if (link->state().is(links::LinkState::admitted)) return "connected, waits for others";
  std::string text = fmt::format("its {} link was not ready", links::transport_name(*link));
  if (const auto* suspension = link->state().suspension())
    text += fmt::format(": {}", suspension->cause.message());
  return text;
}

// ------------------------------------------------------------------------------ what happens to peers

void ClusterOpening::note_claim(uint32_t peer, const Status& claim) {
  if (peers_[peer].ending.ok()) peers_[peer].ending = claim;
}

void ClusterOpening::note_refused(const std::string& from, const links::Refusal& refusal) {
  const Status& cause = refusal.status;
  last_refused_ = base::error(cause.code(), "{}: {}", from, cause.message());
  if (refusal.ends_open) fail(cause);
}

void ClusterOpening::on_admitted(const links::Link& link) {
  rejoin_.begin(link);
  peers_[link.place()].number_taken = 0;
}

bool ClusterOpening::on_dial_refused(uint32_t number, const links::Refusal& refusal) {
  // At first "taken" may mean an old connection from our own address. After several refusals it is final.
  constexpr int kNumberTakenLimit = 6;
  Peer& peer = peers_[number];
  const bool taken =
      refusal.verified && refusal.retry && refusal.status.code() == Code::configuration_mismatch;
  peer.number_taken = taken ? peer.number_taken + 1 : 0;
  if (peer.number_taken >= kNumberTakenLimit) {
    // This process is the extra one; the others can continue with the first.
    fail(refusal.status, false);
    return false;
  }
  if (refusal.is_final()) fail(refusal.status);
  return !refusal.is_final();
}

bool ClusterOpening::on_detached(const links::Link& link, const Status& cause, bool final) {
  if (cause.code() != Code::peer_lost) note_claim(link.place(), cause);
  if (!final) return true;
  // A limit of the other process is not our fault, but a disagreement concerns both sides.
  const Code code = cause.category() == Category::session ? cause.code() : Code::connect_failed;
  fail(base::error(code, "{}: {}", link.name(), cause.message()));
  return false;
}

bool ClusterOpening::on_lost(const links::Link& link, const Status& cause) {
  if (rejoin_.goes_on_without(link) && cause.code() == Code::peer_lost) return true;
  const bool ours = cause.category() == Category::process || cause.category() == Category::session;
  fail(Status(ours ? cause.code() : Code::connect_failed,
              fmt::format("{} was lost while the cluster was connecting: {}", link.name(),
                          cause.message())));
  return false;
}

bool ClusterOpening::on_left(const links::Link& link) {
  if (rejoin_.goes_on_without(link)) return true;
  fail(base::error(Code::connect_failed, "{} closed its session while the cluster was connecting",
                   link.name()));
  return false;
}

}  // namespace faro::session
