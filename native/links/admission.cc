#include "links/admission.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace faro::links {
namespace {

constexpr base::Nanoseconds kHandshakeTime = 5'000'000'000;
// A peer that has shown a certificate has more time: it may be one of many that begin at once, and
// share their processors.
constexpr base::Nanoseconds kTlsHandshakeTime = 30'000'000'000;
constexpr size_t kPendingLimit = 256;

using transport::tcp::host_of;

}  // namespace

void Admission::refuse_all(const Refusal& refusal) {
  for (Pending& each : pending_) each.handshake->refuse(refusal);
}

base::Nanoseconds Admission::next_deadline() const {
  base::Nanoseconds next = pending_.empty() ? base::kForever : pending_.front().deadline;
  for (const Pending& each : pending_) {
    if (each.queues) next = std::min(next, attempts_.next(host_of(each.from())));
  }
  return next;
}

void Admission::check_deadlines(base::Nanoseconds now) {
  while (!pending_.empty() && now >= pending_.front().deadline) {
    refuse(pending_.begin(),
           base::error(Code::deadline_exceeded, "no complete handshake within {} s",
                       handshake_time() / 1'000'000'000));
  }
  start_queued(now);
}

// One connection of each address at a time, first come, first served. If it fails, the others of its address wait
// longer.
void Admission::start_queued(base::Nanoseconds now) {
  for (Place next = pending_.begin(); next != pending_.end();) {
    const Place pending = next++;
    if (!pending->queues) continue;
    const std::string host = host_of(pending->from());
    if (!may_start(host, now)) continue;
    attempts_.spend(host, now);
    pending->queues = false;
    pending->deadline = now + handshake_time();
    pending_.splice(pending_.end(), pending_, pending);  // by deadline
    pending->handshake->start();
    if (next == pending_.end()) break;
  }
}

base::Nanoseconds Admission::handshake_time() const {
  return network_.credentials() == nullptr ? kHandshakeTime : kTlsHandshakeTime;
}

// ----------------------------------------------------------------------------------- connections

// With TLS the SocketAcceptor has done this already.
bool Admission::may_start(const std::string& host, base::Nanoseconds now) const {
  if (network_.credentials() != nullptr) return true;
  if (!attempts_.allows(host, now)) return false;
  const auto under_way =
      static_cast<size_t>(std::count_if(pending_.begin(), pending_.end(), [&](const Pending& each) {
        return !each.queues && host_of(each.from()) == host;
      }));
  return under_way < attempts_.may_be_under_way(host, now);
}

size_t Admission::queued_from(const std::string& host) const {
  return static_cast<size_t>(std::count_if(
      pending_.begin(), pending_.end(),
      [&](const Pending& each) { return each.queues && host_of(each.from()) == host; }));
}

void Admission::on_connection(std::unique_ptr<ControlConnection> connection) {
  const std::string host = host_of(connection->peer_address());
  const bool queues = !may_start(host, now());
  const size_t queued = queues ? queued_from(host) : 0;
  if (queued >= AttemptLimiter::kWaitingPerAddress) {
    const Status cause = base::error(Code::authentication_failed,
                                     "too many attempts from {} have failed, and {} of its "
                                     "connections wait for their turn already",
                                     host, queued);
    connection->send(wire::encode_refuse({cause.code(), true, std::string(cause.message())}));
    return note_refused(connection->peer_address(), {cause, true, false});
  }
  if (pending_.size() >= kPendingLimit) make_room_for(host);
  Pending pending;
  pending.deadline = now() + handshake_time();
  pending.handshake = std::make_unique<Handshake>(static_cast<Handshake::Owner&>(*this), identity_,
                                                  std::move(connection), std::nullopt);
  pending.queues = queues;
  pending_.push_back(std::move(pending));
  if (!queues) pending_.back().handshake->start();
}

// A flood pushes out connections of its own address, as in SocketAcceptor: this drops the oldest
// connection of the address that has most.
void Admission::make_room_for(const std::string& newcomer_host) {
  std::map<std::string, size_t> count = {{newcomer_host, 1}};
  for (const Pending& each : pending_) ++count[host_of(each.from())];
  refuse(std::max_element(pending_.begin(), pending_.end(),
                          [&](const Pending& a, const Pending& b) {
                            return count[host_of(a.from())] < count[host_of(b.from())];
                          }),
         Status(Code::limit_exceeded, "too many connections have not finished the handshake"));
}

void Admission::on_data_stream(const StreamToken& token, transport::DataStream stream) {
  if (Link* link = links_.find(token)) return link->on_stream(std::move(stream));
  ::close(stream.fd);
  const Status cause(Code::protocol_error, "a data connection that belongs to no link");
  note_refused("an unknown peer", {cause, false, false});
}

base::Nanoseconds Admission::may_try_at(const std::string& peer_address) {
  const std::string host = host_of(peer_address);
  // An admitted node is about to dial its data connection, so its address must not be turned away.
  return links_.expects_stream_from(host) ? 0 : attempts_.next(host);
}

size_t Admission::may_try_together(const std::string& peer_address) {
  const std::string host = host_of(peer_address);
  return links_.expects_stream_from(host) ? SIZE_MAX : attempts_.may_be_under_way(host, now());
}

void Admission::on_turn(const std::string& peer_address) {
  attempts_.spend(host_of(peer_address), now());
}

void Admission::on_unauthenticated(const std::string& peer_address, const Status& cause) {
  if (cause.code() == Code::authentication_failed) attempts_.spend(host_of(peer_address), now());
  note_refused(peer_address, {cause, false, false});
}

// -------------------------------------------------------------------------------------- handshakes

std::optional<Refusal> Admission::judge(const wire::Hello& hello, const std::string& from) {
  return hello.mends ? judge_mending(hello) : host_.judge(hello, from);
}

std::optional<Refusal> Admission::judge_mending(const wire::Hello& hello) {
  const bool is_own = hello.mends->incarnation == identity_.incarnation();
  const Link* link = is_own ? links_.find_to_mend(hello, identity_) : nullptr;
  if (link == nullptr && is_own && links_.end_unopened(hello, identity_)) {
    const Status unopened =
        base::error(Code::connect_failed, "{} has not set that link up", identity_.name);
    return Refusal{unopened, false, false, true, true};
  }
  if (link == nullptr) {
    const Status gone =
        base::error(Code::peer_lost, "{} does not have that link (any more)", identity_.name);
    return Refusal{gone, false, false, true, true};
  }
  if (!link->context().initiator) return std::nullopt;
  const Status lives =
      base::error(Code::connect_failed, "{} lives, and dials that link itself", identity_.name);
  return Refusal{lives, true, false, true, true};
}

void Admission::mend(std::unique_ptr<ControlConnection> connection, const wire::Hello& peer) {
  StreamToken token;
  if (!network_.draw_random(token)) return;  // as if the connection had broken
  links_.find_to_mend(peer, identity_)->resume(std::move(connection), token);
}

void Admission::on_admitted(Handshake& handshake, std::unique_ptr<ControlConnection> connection,
                            const wire::Hello& peer) {
  const std::unique_ptr<Handshake> done = take(handshake);  // keeps `peer`
  // Another process may have joined with the same number since HELLO.
  if (const auto refusal = judge(peer, connection->peer_address())) {
    connection->send(wire::encode_refuse(
        {refusal->status.code(), refusal->retry, std::string(refusal->status.message())}));
    return note_refused(connection->peer_address(), {refusal->status, refusal->retry, false});
  }
  if (peer.mends) return mend(std::move(connection), peer);
  host_.on_admitted(std::move(connection), peer);
}

void Admission::on_refused(Handshake& handshake, const Refusal& refusal) {
  const std::unique_ptr<Handshake> done = take(handshake);
  if (refusal.status.code() == Code::authentication_failed)
    attempts_.spend(host_of(done->peer_address()), now());
  note_refused(done->peer_address(), refusal);
}

std::unique_ptr<Handshake> Admission::take(const Handshake& handshake) {
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& each) {
    return each.handshake.get() == &handshake;
  });
  std::unique_ptr<Handshake> taken = std::move(found->handshake);
  pending_.erase(found);
  return taken;
}

void Admission::refuse(Place pending, const Status& cause) {
  const std::unique_ptr<Handshake> refused = take(*pending->handshake);
  note_refused(refused->peer_address(), {cause, true, false});
  refused->refuse({cause, true, false});
}

void Admission::note_refused(const std::string& from, const Refusal& refusal) {
  const Status& cause = refusal.status;
  uint64_t suppressed = 0;
  if (limiter_.allows(std::string(code_name(cause.code())), now(), suppressed)) {
    // Peers whose sessions are still open keep dialling a node that has closed, until they close as well.
    const bool is_usual = refusal.expected || cause.code() == Code::session_closed;
    base::log(is_usual ? LogLevel::debug : log_level_, "{}: refused a connection from {}: {}{}",
              identity_.name, from, cause.to_string(),
              suppressed == 0 ? "" : fmt::format(" ({} more like this before)", suppressed));
  }
  host_.on_refused(from, refusal);
}

}  // namespace faro::links
