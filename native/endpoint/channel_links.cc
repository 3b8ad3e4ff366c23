#include "endpoint/channel_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/each.h"
#include "base/error.h"
#include "base/log.h"
#include "base/planted.h"

namespace faro::endpoint {
namespace {

// The only message over the control connection of a channel: the peer's END was taken.
constexpr std::array<std::byte, 1> kTaken = {std::byte{1}};

// That were committed here or taken here.
uint64_t frames_over(const links::Link& link) {
  transport::DataLink& data = *link.data();
  return data.outgoing(0).counters().frames_sent.load(std::memory_order_relaxed) +
         data.incoming(0).counters().frames_received.load(std::memory_order_relaxed);
}

// The peer does not know yet that its END was taken, and will: its link can be mended.
bool owes(const links::Link& link) {
  if (base::planted(base::Plant::left_unacknowledged)) return false;
  return link.can_mend() && link.control().kept_bytes() != 0;
}

// A link that is mended to tell the peer something is waited for, too.
bool have_all_left(const links::LinkTable& links) {
  return links.all_detached() && links.watch().mending() == 0;
}

// Behind a text that says how long it took.
std::string why_it_waits(const links::Link& link) {
  const auto* const suspension = link.state().suspension();
  return suspension == nullptr ? "" : fmt::format("; {}", suspension->cause.message());
}

uint32_t number_of(const std::vector<std::unique_ptr<PollerCore>>& pollers,
                   const PollerCore& poller) {
  const auto found = std::ranges::find(pollers, &poller, &std::unique_ptr<PollerCore>::get);
  return static_cast<uint32_t>(found - pollers.begin());
}

Status closed_by(const std::string& who) {
  return base::error(Code::closed, "{} has closed the channel", who);
}

links::Refusal closed_refusal(const std::string& name) {
  return {base::error(Code::closed, "{} has closed its endpoint", name), false, false};
}

}  // namespace

ChannelLinks::ChannelLinks(const base::Settings& settings, const EndpointSpec& spec,
                           links::Network& network, ChannelIds& ids, EndpointCounts& counts,
                           const std::vector<std::unique_ptr<PollerCore>>& pollers)
    : settings_(settings),
      spec_(spec),
      network_(network),
      ids_(ids),
      counts_(counts),
      pollers_(pollers),
      links_(spec.channel_limit, wire::ChannelRings::kLeastBytes),
      factory_(static_cast<links::Link::Owner&>(*this), settings, identity_, network,
               spec.channel_limit),
      monitor_(settings, links_, network.local_address(), network.reactor().clock().now_ns()),
      admission_(static_cast<links::Admission::Host&>(*this), network, identity_, links_),
      mender_(network, identity_, links_),
      entries_(spec.channel_limit),
      idle_(settings.channel_idle_ms * base::kMillisecond) {
  // So that it never allocates. In a round one that was idle may be added again before it was taken out.
  attended_.reserve(2 * size_t{spec.channel_limit});
}

Status ChannelLinks::open() {
  FARO_ASSIGN_OR_RETURN(identity_, make_channel_identity(settings_, spec_, network_));
  const links::Transports& transports = pollers_.front()->transports();  // all have the same
  FARO_RETURN_IF_ERROR(factory_.open(transports));
  identity_.hello.transports = transports.names();
  identity_.hello.rendezvous = transports.rendezvous();
  admission_.start();
  counts_.listens(identity_.hello.incarnation);
  return Status::Ok();
}

ChannelLinks::Entry* ChannelLinks::find(ChannelId id) {
  Entry& entry = entries_[id.index];
  return entry.poller != nullptr && entry.id == id ? &entry : nullptr;
}

// ------------------------------------------------------------------------------------ what pollers ask

void ChannelLinks::connect(ChannelId id, PollerCore& poller, std::string address,
                           ChannelSpec spec) {
  Entry& entry = entries_[id.index];
  const base::Nanoseconds now = network_.reactor().clock().now_ns();
  entry.id = id;
  entry.poller = &poller;
  attend(entry);
  entry.address = std::move(address);
  entry.greeting = spec.greeting;
  counts_.begin(id, number_of(pollers_, poller), "", entry.address, true);
  if (phase_ != Phase::open) return end(entry, closed_refusal(identity_.name).status);
  identity_.asked[id.index] = factory_.rings().asked(std::move(spec));
  entry.deadline = base::deadline_after(now, settings_.connect_timeout_ms * base::kMillisecond);
  entry.dialler = std::make_unique<links::Dialler>(static_cast<links::Dialler::Owner&>(*this),
                                                   network_, identity_, id.index, entry.address);
  entry.dialler->advance(now);
}

void ChannelLinks::close(ChannelId id, Closing closing) {
  Entry* const entry = find(id);
  if (entry == nullptr || entry->is_told) return;
  links::Link* const link = links_.find(id.index);
  const bool is_up = link != nullptr && link->state().connected();
  if (is_up && closing == Closing::drain) {
    attend(*entry);
    entry->deadline = base::deadline_after(network_.reactor().clock().now_ns(),
                                           settings_.close_timeout_ms * base::kMillisecond);
    counts_.note_draining(id);
    return;
  }
  const Status cause = closed_by(identity_.name);
  if (link != nullptr && is_up) {
    link->leave();
  } else if (link != nullptr) {
    link->refuse(cause, false);
  }
  end(*entry, cause);
}

void ChannelLinks::end_taken(ChannelId id) {
  Entry* const entry = find(id);
  links::Link* const link = entry == nullptr || entry->is_told ? nullptr : links_.find(id.index);
  if (link == nullptr) return;
  entry->took_end = true;
  if (entry->deadline == base::kForever) close(id, Closing::drain);
  link->send(wire::encode_payload(wire::ControlKind::application, kTaken));
  leave_if_drained(*entry);
}

void ChannelLinks::leave_if_drained(Entry& entry) {
  const bool has_peer_taken = entry.peer_took_end || base::planted(base::Plant::left_too_early);
  if (entry.took_end && has_peer_taken) end(entry, Status::Ok());
}

void ChannelLinks::fail(ChannelId id, const Status& cause) {
  links::Link* const link = find(id) == nullptr ? nullptr : links_.find(id.index);
  if (link != nullptr) link->fail(links::protocol_violation(cause.message()));
}

void ChannelLinks::forget(ChannelId id) {
  Entry* const entry = find(id);
  if (entry == nullptr) return;
  entry->is_forgotten = true;
  reap(*entry);
}

// Tells the poller, once; a link that has to leave yet, or is leaving, goes on.
void ChannelLinks::end(Entry& entry, const Status& cause) {
  attend(entry);
  entry.dialler.reset();
  entry.deadline = base::deadline_after(network_.reactor().clock().now_ns(),
                                        settings_.close_timeout_ms * base::kMillisecond);
  if (entry.is_told) return;
  entry.poller->tell({.id = entry.id, .cause = cause});
  entry.is_told = true;
  counts_.note_ended(entry.id, cause);
}

// The index can be given again when the link has gone, and the poller holds nothing of the channel.
void ChannelLinks::reap(Entry& entry) {
  const bool is_forgotten = entry.is_forgotten || base::planted(base::Plant::index_given_again);
  if (links_.find(entry.id.index) != nullptr || !entry.is_told || !is_forgotten) return;
  const ChannelId id = entry.id;
  identity_.asked[id.index] = {};
  const bool is_attended = entry.is_attended;
  entry = {};
  entry.is_attended = is_attended;
  counts_.forget(id);
  ids_.give_back(id);
}

// -------------------------------------------------------------------------------------------- rounds

bool ChannelLinks::round(base::Nanoseconds until) {
  base::Each each;
  bool worked = true;
  each.run([&] { worked = network_.run_once(std::min(until, next_deadline())); });
  each.run([&] { look_at_times(); });
  links_.destroy_retired();
  counts_.note_round(monitor_.beat(), memory_taken_bytes());
  each.rethrow();
  return worked;
}

base::Nanoseconds ChannelLinks::next_deadline() const {
  base::Nanoseconds next = std::min({monitor_.next_deadline(true), admission_.next_deadline(),
                                     mender_.next_deadline(), idle_.next_look()});
  if (phase_ == Phase::closing)
    next = std::min(next, have_all_left(links_) ? 0 : closing_deadline_);
  for (const Entry* const entry : attended_) {
    if (entry->poller == nullptr) continue;
    const bool has_link = links_.find(entry->id.index) != nullptr;
    if (has_link || entry->dialler != nullptr) next = std::min(next, entry->deadline);
    if (entry->dialler != nullptr && !has_link)
      next = std::min(next, entry->dialler->next_deadline());
  }
  return next;
}

// Call it only when all connections have been read.
void ChannelLinks::look_at_times() {
  const base::Nanoseconds now = network_.reactor().clock().now_ns();
  base::Each each;
  each.run([&] { monitor_.check(now, true); });
  each.run([&] { admission_.check_deadlines(now); });
  each.run([&] { mender_.advance(now); });
  if (now >= idle_.next_look()) each.run([&] { look_for_idle(now); });
  size_t kept = 0;
  for (size_t i = 0; i < attended_.size(); ++i) {  // a look may add more
    Entry* const entry = attended_[i];
    if (!is_at_rest(*entry)) each.run([&] { look_at(*entry, now); });
    entry->is_attended = !is_at_rest(*entry);
    if (entry->is_attended) attended_[kept++] = entry;
  }
  attended_.resize(kept);
  if (phase_ == Phase::closing && (have_all_left(links_) || now >= closing_deadline_))
    finish_closing();
  each.rethrow();
}

// Frames are counted by the poller's thread, over any transport.
void ChannelLinks::look_for_idle(base::Nanoseconds now) {
  idle_.begin_look();
  base::Each each;
  for (Entry& entry : entries_) {
    if (entry.poller == nullptr || !is_at_rest(entry)) continue;
    const links::Link* const link = links_.find(entry.id.index);
    if (link == nullptr) continue;
    if (link->state().is(links::LinkState::mending)) {
      idle_.note_opened(entry.seen, now);  // its time begins anew
      continue;
    }
    if (!idle_.is_idle(entry.seen, frames_over(*link), now)) continue;
    each.run([&] {
      entry.poller->tell(
          {.id = entry.id,
           .cause = base::error(Code::closed,
                                "no frame came or went for channel.idle_ms = {}: {} has drained it",
                                settings_.channel_idle_ms, identity_.name),
           .is_idle = true});
    });
  }
  each.rethrow();
}

void ChannelLinks::attend(Entry& entry) noexcept {
  if (!std::exchange(entry.is_attended, true)) attended_.push_back(&entry);
}

// Nothing is to be done for it before a message comes, or its poller asks for something: there is no channel, or it is open
// and stays so, or it has ended and its poller holds frames of it.
bool ChannelLinks::is_at_rest(const Entry& entry) const {
  if (entry.poller == nullptr) return true;
  const links::Link* const link = links_.find(entry.id.index);
  if (link == nullptr) return entry.is_told && !entry.is_forgotten;
  return !entry.is_told && entry.deadline == base::kForever && link->state().connected();
}

void ChannelLinks::look_at(Entry& entry, base::Nanoseconds now) {
  links::Link* const link = links_.find(entry.id.index);
  if (link == nullptr) {
    if (entry.dialler != nullptr && now >= entry.deadline) {
      entry.dialler->stop({Status(Code::deadline_exceeded, "it took too long"), true, false});
      return end(
          entry,
          base::error(Code::connect_failed, "no channel with {} within connect.timeout_ms = {}: {}",
                      entry.address, settings_.connect_timeout_ms, entry.last_failure.message()));
    }
    if (entry.dialler != nullptr) return entry.dialler->advance(now);
    // There was no memory to tell, or to make its link.
    if (!entry.is_told) end(entry, monitor_.no_memory());
    return reap(entry);
  }
  if (entry.is_told) {
    if (link->state().connected() && !owes(*link)) link->leave();  // was drained
    if (!link->state().has_ended() && now < entry.deadline) return;
    link->end();
    links_.retire(link->place());
    return reap(entry);
  }
  if (now >= entry.deadline) {
    return link->fail(
        link->state().connected()
            ? base::error(Code::deadline_exceeded,
                          "the channel was not drained within close.timeout_ms = {}{}",
                          settings_.close_timeout_ms, why_it_waits(*link))
            : base::error(Code::connect_failed, "it was not set up within connect.timeout_ms = {}",
                          settings_.connect_timeout_ms));
  }
  const bool has_choice = link->context().initiator && link->choice();
  if (has_choice && link->state().is(links::LinkState::admitted)) {
    const Status status = factory_.set_up(links_, *link, *entry.poller, entry.greeting.size());
    if (!status.ok()) link->fail(status);
    return;
  }
  link->advance();
}

void ChannelLinks::begin_closing() {
  if (phase_ != Phase::open) return;
  phase_ = Phase::closing;
  closing_deadline_ = base::deadline_after(network_.reactor().clock().now_ns(),
                                           settings_.close_timeout_ms * base::kMillisecond);
  base::Each each;
  // Handshakes go on until it is known what they are for: a peer that mends a link may only ask whether this process lives.
  admission_.expect_closing();
  for (Entry& entry : entries_) {
    if (entry.poller == nullptr) continue;
    each.run([&] {
      if (entry.dialler != nullptr) entry.dialler->stop(closed_refusal(identity_.name));
      close(entry.id, Closing::now);
    });
  }
}

void ChannelLinks::finish_closing() {
  phase_ = Phase::closed;
  links_.for_each([](links::Link& link) { link.end(); });
  admission_.stop();
  for (const auto& poller : pollers_) poller->shut();
  links_.for_each([this](const links::Link& link) { links_.retire(link.place()); });
  links_.destroy_retired();
  counts_.note_round(false, memory_taken_bytes());
}

// --------------------------------------------------------------------------------------------- peers

std::optional<links::Refusal> ChannelLinks::judge(const wire::Hello& hello,
                                                  const std::string& from) {
  if (phase_ != Phase::open) return closed_refusal(identity_.name);
  if (is_ring(hello.rings.to_acceptor_bytes) && is_ring(hello.rings.to_dialler_bytes))
    return std::nullopt;
  return links::Refusal{base::error(Code::protocol_error, "{} asks for rings of {} and {} bytes",
                                    identity_.name_of(hello, from), hello.rings.to_acceptor_bytes,
                                    hello.rings.to_dialler_bytes),
                        false, false};
}

void ChannelLinks::on_admitted(std::unique_ptr<links::ControlConnection> connection,
                               const wire::Hello& peer) {
  const std::string& from = connection->peer_address();
  const ChannelRequest request{.peer = peer.name,
                               .address = from,
                               .greeting = peer.greeting,
                               .send_bytes = peer.rings.to_dialler_bytes,
                               .receive_bytes = peer.rings.to_acceptor_bytes};
  ChannelAcceptance answer;
  const auto ask = [&] {
    if (phase_ != Phase::open) return closed_refusal(identity_.name).status;
    if (spec_.accept) answer = spec_.accept(request);
    if (!answer.refusal.empty()) return Status(Code::cancelled, answer.refusal);
    if (answer.poller < pollers_.size()) return Status::Ok();
    return base::error(Code::internal_error, "{} has no poller {}", identity_.name, answer.poller);
  };
  Status refused = ask();
  const auto id = refused.ok() ? ids_.take() : std::nullopt;
  if (refused.ok() && !id) {
    refused =
        base::error(Code::limit_exceeded, "{} has {} channels, as many as channel_limit allows",
                    identity_.name, spec_.channel_limit);
  }
  if (!refused.ok()) {
    counts_.note_refused();
    base::log(LogLevel::debug, "{}: refused a channel to {}: {}", identity_.name,
              identity_.name_of(peer, from), refused.to_string());
    connection->send(wire::encode_refuse({refused.code(), false, std::string(refused.message())}));
    return;
  }
  Entry& entry = entries_[id->index];
  entry.id = *id;
  entry.poller = pollers_[answer.poller].get();
  attend(entry);
  entry.greeting = peer.greeting;
  entry.is_forgotten = true;  // the poller does not know of it yet
  counts_.begin(*id, answer.poller, peer.name, peer.address.empty() ? from : peer.address, false);
  entry.deadline = base::deadline_after(network_.reactor().clock().now_ns(),
                                        settings_.connect_timeout_ms * base::kMillisecond);
  const ChannelSpec wanted{
      .send_bytes = factory_.rings().allowed(request.send_bytes, answer.send_bytes),
      .receive_bytes = factory_.rings().allowed(request.receive_bytes, answer.receive_bytes),
      .ends_when_broken = answer.ends_when_broken};
  add_link(entry, wanted, std::move(connection), peer);
}

void ChannelLinks::on_dialled(links::Dialler& dialler,
                              std::unique_ptr<links::ControlConnection> connection,
                              const wire::Hello& peer) {
  add_link(entries_[dialler.peer()], identity_.asked[dialler.peer()], std::move(connection), peer);
}

void ChannelLinks::on_dial_failed(links::Dialler& dialler, const Status& cause) {
  Entry& entry = entries_[dialler.peer()];
  entry.last_failure = cause;
  counts_.note_failure(entry.id, cause);
  // Nobody listens there: the process that was setting the channel up has died.
  if (!entry.broke.ok() && cause.code() == Code::peer_lost)
    end_later(entry,
              base::error(Code::peer_lost, "{}; {}", entry.broke.message(), cause.message()));
}

void ChannelLinks::on_dial_refused(links::Dialler& dialler, const links::Refusal& refusal) {
  Entry& entry = entries_[dialler.peer()];
  entry.last_failure = refusal.status;
  counts_.note_failure(entry.id, refusal.status);
  if (refusal.retry) return dialler.retry(refusal.status);
  end_later(entry, refusal.status);
}

// For a caller that is inside the dialler.
void ChannelLinks::end_later(const Entry& entry, const Status& cause) {
  network_.reactor().defer([this, id = entry.id, cause] {
    Entry* const ended = find(id);
    if (ended != nullptr && !ended->is_told) end(*ended, cause);
  });
}

void ChannelLinks::add_link(Entry& entry, const ChannelSpec& wanted,
                            std::unique_ptr<links::ControlConnection> connection,
                            const wire::Hello& hello) {
  const uint32_t index = entry.id.index;
  links::Link& link = links_.add(
      factory_.make(index, *entry.poller, entry.address, wanted, std::move(connection), hello));
  link.start();
  if (link.context().initiator || links_.find(index) != &link) return;
  const Status status = factory_.set_up(links_, link, *entry.poller, entry.greeting.size());
  if (!status.ok()) link.fail(status);
}

// --------------------------------------------------------------------------------------------- links

// A peer that refuses has said why; a connection that broke before there were rings is dialled again.
void ChannelLinks::on_detached(links::Link& link, const Status& cause, bool final) {
  Entry& entry = entry_of(link);
  attend(entry);
  links_.retire(link.place());
  if (entry.is_told) return;
  entry.last_failure = cause;
  counts_.note_failure(entry.id, cause);
  if (!final && entry.dialler != nullptr && cause.code() != Code::resource_limit)
    return entry.dialler->retry(cause);
  end(entry, base::error(cause.code(), "{}: {}", link.name(), cause.message()));
}

void ChannelLinks::on_up(links::Link& link) {
  Entry& entry = entry_of(link);
  const bool dialled = link.context().initiator;
  entry.deadline = base::kForever;
  entry.dialler.reset();
  if (dialled) identity_.asked[entry.id.index].greeting = {};  // the poller keeps it
  ChannelInfo info{.peer = link.peer().name,
                   .address = dialled ? entry.address : link.context().peer_address,
                   .transport = std::string(links::transport_name(link)),
                   .dialled = dialled,
                   .greeting = std::exchange(entry.greeting, {}),
                   .send_bytes = link.context().outgoing.ring_bytes,
                   .receive_bytes = link.context().incoming.ring_bytes,
                   .ends_when_broken = !link.can_mend()};
  auto* const record = counts_.note_opened(entry.id, links_, info);
  entry.poller->tell({.id = entry.id,
                      .link = links_.data(link.place()),
                      .info = std::move(info),
                      .record = record});
  entry.is_forgotten = false;
  idle_.note_opened(entry.seen, network_.reactor().clock().now_ns());
}

void ChannelLinks::on_lost(links::Link& link, const Status& cause) {
  Entry& entry = entry_of(link);
  attend(entry);
  const bool was_up = link.data() != nullptr;
  const bool may_have_opened = link.history().may_be_up_to_peer();
  const bool keeps_code =
      !was_up || cause.code() == Code::protocol_error || cause.code() == Code::deadline_exceeded;
  links_.retire(link.place());
  if (entry.is_told) return;
  // A connection was not made, or broke, as where too many come at once: that may succeed later. Where the peer may have
  // opened the channel it is not dialled again, for it would open twice there.
  const bool has_broken =
      cause.code() == Code::connect_failed || (cause.code() == Code::peer_lost && !may_have_opened);
  if (!was_up && entry.dialler != nullptr && has_broken) {
    entry.last_failure = cause;
    entry.broke = base::error(cause.code(), "{}: {}", link.name(), cause.message());
    counts_.note_failure(entry.id, cause);
    return entry.dialler->retry(cause);
  }
  end(entry, base::error(keeps_code ? cause.code() : Code::peer_lost, "{}{}: {}", link.name(),
                         was_up ? " is lost" : "", cause.message()));
}

void ChannelLinks::on_left(links::Link& link) {
  Entry& entry = entry_of(link);
  attend(entry);
  const bool is_drained = entry.took_end && entry.peer_took_end;
  links_.retire(link.place());
  end(entry, is_drained ? Status::Ok() : closed_by(link.name()));
}

void ChannelLinks::on_heartbeat(links::Link&) {
  monitor_.beat_along(network_.reactor().clock().now_ns());
}

void ChannelLinks::on_members(links::Link& link, std::span<const std::byte>) {
  link.fail(links::protocol_violation("MEMBERS on a channel"));
}

void ChannelLinks::on_application(links::Link& link, std::span<const std::byte> payload) {
  Entry& entry = entry_of(link);
  if (!std::ranges::equal(payload, kTaken) || entry.peer_took_end)
    return link.fail(links::protocol_violation("a message that channels do not have"));
  entry.peer_took_end = true;
  // Acknowledges it: the peer does not leave before.
  if (link.can_mend()) link.send(wire::encode_plain(wire::ControlKind::heartbeat));
  leave_if_drained(entry);
}

}  // namespace faro::endpoint
