#include "links/resumable_control.h"

#include <utility>

#include "base/planted.h"

namespace faro::links {
namespace {

using wire::ControlKind;

// The others, about liveness, setup and the end, concern one connection.
bool has_to_arrive(std::span<const std::byte> message) {
  const ControlKind kind = wire::kind_of(message);
  return kind == ControlKind::application || kind == ControlKind::members;
}

}  // namespace

bool ResumableControl::send(const wire::ControlMessage& message) {
  if (wire::kind_of(message) == ControlKind::heartbeat) {
    beat();
    return true;
  }
  const bool is_kept = log_ && has_to_arrive(message);
  if (is_kept && !log_->keep(message)) return false;
  if (attached() && (resumed_ || !is_kept)) connection_->send(message);
  return true;
}

void ResumableControl::beat() {
  if (!attached()) return;
  connection_->send(log_ ? wire::encode_heartbeat(log_->say_received())
                         : wire::encode_plain(ControlKind::heartbeat));
}

void ResumableControl::resume(std::unique_ptr<ControlConnection> connection,
                              ControlConnection::Handler& handler) {
  connection_ = std::move(connection);
  resumed_ = false;
  connection_->send(wire::encode_resume(log_->say_received()));
  connection_->set_handler(&handler);
}

ResumableControl::Verdict ResumableControl::on_message(std::span<const std::byte> message) {
  const ControlKind kind = wire::kind_of(message);
  if (kind == ControlKind::resume) {
    const auto received = wire::decode_resume(message);
    if (!log_ || resumed_ || !received.ok()) return Verdict::broken;
    if (!base::planted(base::Plant::resent_twice) && !log_->acknowledge(*received))
      return Verdict::broken;
    resumed_ = true;
    for (const wire::ControlMessage& kept : log_->kept()) connection_->send(kept);
    return Verdict::taken;
  }
  if (!resumed_ && kind != ControlKind::refuse && !wire::may_skip(kind)) return Verdict::broken;
  if (kind == ControlKind::heartbeat) {
    const auto received = wire::decode_heartbeat(message);
    const bool fits = received.ok() && (!log_ || !*received || log_->acknowledge(**received));
    return fits ? Verdict::passes : Verdict::broken;
  }
  if (log_ && has_to_arrive(message) && log_->note_received(message.size())) beat();
  return Verdict::passes;
}

}  // namespace faro::links
