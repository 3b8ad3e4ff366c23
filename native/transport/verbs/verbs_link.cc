#include "transport/verbs/verbs_link.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "wire/control.h"

namespace faro::transport::verbs {

const Capabilities kVerbsCapabilities = {.name = "verbs",
                                         .mends = wire::kMends | wire::kMendsVerbs};

VerbsLink::VerbsLink(LinkContext& context, const std::shared_ptr<CompletionPoller>& poller,
                     const std::shared_ptr<DeferredSends>& deferred, LinkParts parts)
    : context_(context),
      poller_(poller),
      deferred_(deferred),
      parts_(std::move(parts)),
      outgoing_code_(context.outgoing),
      incoming_code_(context.incoming),
      outgoing_(context.outgoing.ring_count()),
      incoming_(context.incoming.ring_count()) {
  for (PathParts& path : std::exchange(parts_.paths, {}))
    paths_.emplace_back(*this, static_cast<uint32_t>(paths_.size()), std::move(path));
  const ring::Layout& out = context.outgoing;
  const ring::Layout& in = context.incoming;
  const PathMap map(parts_.sharing, out, in);
  for (uint32_t r = 0; r < out.ring_count(); ++r) {
    outgoing_.emplace_back(*this, paths_[map.of_outgoing(r)], r,
                           parts_.outgoing.base() + out.base_offset(r), out.ring_bytes);
  }
  for (uint32_t r = 0; r < in.ring_count(); ++r) {
    incoming_.emplace_back(*this, paths_[map.of_incoming(r)], r,
                           parts_.incoming.base() + in.base_offset(r), in.ring_bytes,
                           ready_set_of(context, r), ready_ring_of(context, r));
  }
}

uint64_t VerbsLink::bytes(const ring::Layout& outgoing, const ring::Layout& incoming,
                          uint64_t paths) noexcept {
  // What the verbs library keeps of a path's queue pair and connection.
  constexpr uint64_t kQueuePairBytes = 2048;
  return sizeof(VerbsLink) + paths * (sizeof(VerbsPath) + kQueuePairBytes) +
         outgoing.ring_count() * sizeof(VerbsOutgoing) +
         incoming.ring_count() * sizeof(VerbsIncoming);
}

VerbsLink::~VerbsLink() { stop(); }

Status VerbsLink::start() {
  for (VerbsPath& path : paths_) FARO_RETURN_IF_ERROR(path.start());
  return {};
}

void VerbsLink::add_counters(LinkCounters& sum) const {
  for (const VerbsPath& path : paths_) path.counters().add_to(sum);
}

Pulse VerbsLink::take_pulse() noexcept {
  Pulse pulse = halted() ? Pulse::none : Pulse::heard;
  for (VerbsPath& path : paths_) {
    // What one of them lacks, the link does.
    if (!halted()) pulse = std::min(pulse, path.take_pulse());
  }
  tally_.beat(pulse == Pulse::heard);
  return tally_.is_stuck() ? Pulse::stuck : pulse;
}

void VerbsLink::fail(const Status& cause) {
  if (halt(cause.code() == Code::peer_lost ? kBroken : kStopped, cause))
    context_.events->on_link_failed(cause);
}

// True: it ran until now, so the events are to be told.
bool VerbsLink::halt(State to, const Status& why) noexcept {
  const std::lock_guard lock(mutex_);
  const State was = state_.load(std::memory_order_relaxed);
  if (was >= to) return false;
  state_.store(to, std::memory_order_release);
  if (to == kStopped) failure_ = why;
  if (was != kRunning) return false;
  for (VerbsPath& path : paths_) path.disconnect();
  return true;
}

// ----------------------------------------------------------------------------------------- mending

void VerbsLink::give_up_connections() noexcept {
  halt(kBroken);
  if (std::exchange(progress_.is_connected, false)) tally_.broke();
  progress_.delivered = 0;
  progress_.owes = false;
  for (VerbsPath& path : paths_) {
    while (!path.give_up_queue_pair()) sched_yield();
  }
}

bool VerbsLink::close_connections() noexcept {
  stop();
  bool all = true;
  for (VerbsPath& path : paths_) all = path.give_up_queue_pair() && all;
  return all;
}

Status VerbsLink::accept_progress(uint32_t ring, const wire::VerbsProgress& progress) {
  VerbsOutgoing& outgoing = outgoing_[ring];
  const wire::Position sent = outgoing.sent();
  FARO_RETURN_IF_ERROR(outgoing.resume(progress));
  progress_.delivered += progress.arrived;
  progress_.owes = progress_.owes || progress.arrived != sent;
  if (outgoing.update_free())
    ring::ring_doorbell(*context_.workers[context_.outgoing.sender_of(ring)].doorbell);
  return {};
}

Status VerbsLink::take_connections(std::vector<PathParts> connections,
                                   const wire::VerbsMemory& peer) {
  if (peer.receives != parts_.peer_receives || (parts_.immediates && peer.takes_immediates == 0)) {
    return base::error(Code::protocol_error,
                       "MEMORY with {} receives, {} immediates, of a link that had {} and {}",
                       peer.receives, peer.takes_immediates != 0 ? "with" : "without",
                       parts_.peer_receives, parts_.immediates ? "with" : "without");
  }
  {
    const std::lock_guard lock(mutex_);
    if (state_.load(std::memory_order_relaxed) != kBroken)
      return failure_.ok() ? Status(Code::internal_error, "the link has stopped") : failure_;
    parts_.peer_address = peer.address;
    parts_.peer_key = peer.key;
    for (size_t path = 0; path < paths_.size(); ++path)
      paths_[path].take_queue_pair(std::move(connections[path]));
    state_.store(kRunning, std::memory_order_release);
  }
  uint64_t arrived = 0;
  for (uint32_t ring = 0; ring != incoming_.size(); ++ring) arrived += incoming_[ring].position();
  tally_.resumed(progress_.delivered, arrived, progress_.owes);
  progress_.is_connected = true;
  for (VerbsPath& path : paths_) FARO_RETURN_IF_ERROR(path.start());
  return {};
}

}  // namespace faro::transport::verbs
