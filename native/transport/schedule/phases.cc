#include "transport/schedule/phases.h"

#include <algorithm>

#include "base/error.h"
#include "base/planted.h"

namespace faro::transport::schedule {
namespace {

// A node that is not at rest tells of its turn this often within `turn_ns`.
constexpr base::Nanoseconds kTellings = 2;

// A node is silent after this many `turn_ns` without a message. It may miss a few: its network thread waits for a processor now
// and then.
constexpr base::Nanoseconds kSilentTurns = 2;

// What one call has to tell at most, about: then no memory is asked for.
constexpr uint32_t kTellingsPerCall = 4;

// A node takes turns from this round on, of those that it begins with the others. In the ones before it lets its turns pass, so
// that the node whose turns come after its own has learned to wait for it.
constexpr uint32_t kRoundsOfNewcomer = 2;

}  // namespace

Status PhaseSettings::check() const {
  if (turn_bytes == 0) return Status(Code::config_invalid, "network.turn_bytes is 0");
  if (turn_ns == 0) return Status(Code::config_invalid, "network.turn_ms is 0");
  if (from_bytes > turn_bytes) {
    return base::error(Code::config_invalid,
                       "network.schedule_from is {}, more than a turn of {} bytes", from_bytes,
                       turn_bytes);
  }
  return Status::Ok();
}

Phases::Phases(const PhaseSettings& settings, uint32_t self, uint32_t node_count)
    : settings_(settings), self_(self), peers_(node_count), followed_(self) {
  listeners_.reserve(node_count);
  tellings_.reserve(size_t{kTellingsPerCall} * node_count);
}

// ------------------------------------------------------------------------------------- what came

void Phases::add(uint32_t peer, base::Nanoseconds now) {
  if (peers_[peer].is_there) return;
  peers_[peer].is_there = true;
  peers_[peer].heard_ns = now;
  ++there_;
  may_follow_another_ = true;
  advance(now);
}

void Phases::remove(uint32_t peer, base::Nanoseconds now) {
  if (!peers_[peer].is_there) return;
  if (peer == followed_ && base::planted(base::Plant::turn_lost)) return;
  const bool had_turn = target() == peer;
  sendable_ -= peers_[peer].sendable;
  peers_[peer] = Peer{};
  --there_;
  update_listener(peer);
  if (peer == followed_) followed_ = self_;
  may_follow_another_ = true;
  const auto untaken = tellings_.begin() + static_cast<ptrdiff_t>(taken_);
  tellings_.erase(std::remove_if(untaken, tellings_.end(),
                                 [&](const Telling& telling) { return telling.peer == peer; }),
                  tellings_.end());
  if (had_turn) pass(now);
  advance(now);
}

Status Phases::hear(uint32_t peer, const TurnMessage& message, base::Nanoseconds now) {
  if (message.turn > kTurnLimit || message.quiet_nodes > node_count() ||
      message.kind > TurnMessage::Kind::leave) {
    return base::error(Code::protocol_error, "node {} told of turn {}, {} quiet nodes, kind {}",
                       peer, message.turn, message.quiet_nodes,
                       static_cast<uint32_t>(message.kind));
  }
  if (peer == self_ || peer >= node_count() || !peers_[peer].is_there) {
    return base::error(Code::protocol_error, "node {} has no turns, and told of one", peer);
  }
  Peer& from = peers_[peer];
  from.heard_ns = now;
  may_follow_another_ |= from.is_silent;
  from.is_silent = false;
  if (message.kind != TurnMessage::Kind::turn)
    from.follows = message.kind == TurnMessage::Kind::follow;
  update_listener(peer);
  if (base::planted(base::Plant::turn_believed_twice) && message.turn == from.turn &&
      from.turn != 0)
    ++from.turn;
  if (message.turn > from.turn) {
    from.turn = message.turn;
    from.quiet_nodes = message.quiet_nodes;
  }
  const uint64_t begun = message.turn + (message.has_begun ? 1 : 0);
  const bool is_late = begun < turn_.number;
  const bool is_ahead = begun > turn_.number;
  const uint32_t numbers = distance(peer, self_);
  if (begun > numbers && turn_.number < begun - numbers) skip_to(begun - numbers, now);
  if (message.kind == TurnMessage::Kind::follow || (is_late && is_at_rest())) tell(peer);
  if (is_ahead && is_at_rest()) wake(now);
  advance(now);
  return Status::Ok();
}

void Phases::set_sendable(uint32_t peer, uint64_t bytes, base::Nanoseconds now) {
  if (!peers_[peer].is_there) return;
  forget_what_was_sent(now);
  sendable_ = sendable_ - peers_[peer].sendable + bytes;
  peers_[peer].sendable = bytes;
  if (bytes == 0 && target() == peer) pass(now);
  advance(now);
}

void Phases::note_without_turn(uint64_t bytes, base::Nanoseconds now) {
  forget_what_was_sent(now);
  without_turn_ += bytes;
  sent_ns_ = now;
}

void Phases::forget_what_was_sent(base::Nanoseconds now) noexcept {
  if (now - sent_ns_ >= settings_.turn_ns) without_turn_ = 0;
}

void Phases::sent(uint32_t peer, uint64_t bytes, uint64_t left, base::Nanoseconds now) {
  if (target() == peer) {
    turn_.sent += bytes;
    turn_.moved_ns = sent_ns_ = now;
    round_.has_sent = true;
    if (turn_.sent >= settings_.turn_bytes) pass(now);
  }
  set_sendable(peer, left, now);
}

void Phases::on_time(base::Nanoseconds now) {
  forget_what_was_sent(now);
  if (turn_.has_begun && now - turn_.moved_ns >= settings_.turn_ns) pass(now);
  if (is_waiting() && followed_ != self_) {
    Peer& followed = peers_[followed_];
    if (now - std::max(turn_.moved_ns, followed.heard_ns) >= silent_ns()) {
      followed.is_silent = may_follow_another_ = true;
      update_listener(followed_);
    }
  }
  advance(now);
  if (round_.is_on && now - told_.at_ns >= settings_.turn_ns / kTellings) tell_listeners(now);
}

// ----------------------------------------------------------------------------------- who may send

uint64_t Phases::allowance(uint32_t peer, base::Nanoseconds now) const noexcept {
  if (!holds_rows() || !peers_[peer].is_there) return kUnlimited;
  if (target() != peer) return 0;
  // This process was stopped, and may have been passed over meanwhile.
  if (now - turn_.moved_ns >= settings_.turn_ns) return 0;
  return settings_.turn_bytes - turn_.sent;
}

uint32_t Phases::target() const noexcept { return turn_.has_begun ? target_of_phase() : self_; }

// ---------------------------------------------------------------------------------- what to tell

bool Phases::take(Telling& telling) {
  if (taken_ == tellings_.size()) {
    tellings_.clear();
    taken_ = 0;
    return false;
  }
  telling = tellings_[taken_++];
  return true;
}

base::Nanoseconds Phases::deadline() const noexcept {
  if (!round_.is_on) return base::kForever;
  base::Nanoseconds deadline = told_.at_ns + settings_.turn_ns / kTellings;
  if (turn_.has_begun) deadline = std::min(deadline, turn_.moved_ns + settings_.turn_ns);
  if (is_waiting() && followed_ != self_) {
    deadline =
        std::min(deadline, std::max(turn_.moved_ns, peers_[followed_].heard_ns) + silent_ns());
  }
  return deadline;
}

base::Nanoseconds Phases::silent_ns() const noexcept { return kSilentTurns * settings_.turn_ns; }

void Phases::tell(uint32_t peer, TurnMessage::Kind kind) {
  tellings_.push_back({peer, {kind, turn_.has_begun, quiet_nodes_, turn_.number}});
}

void Phases::tell_listeners(base::Nanoseconds now) {
  told_ = {turn_.number, now};
  for (const uint32_t peer : listeners_) tell(peer);
}

// To all, if it was begun here. Else to the node that this one follows: it may be at rest, and have nobody else to hear it from.
void Phases::tell_of_round() {
  if (round_.is_mine) {
    for (uint32_t peer = 0; peer < node_count(); ++peer) {
      if (peers_[peer].is_there) tell(peer);
    }
  } else if (followed_ != self_) {
    tell(followed_);
  }
  round_.is_mine = false;
}

void Phases::update_listener(uint32_t peer) {
  const auto found = std::find(listeners_.begin(), listeners_.end(), peer);
  const bool listens = peers_[peer].follows || peers_[peer].is_silent;
  if (listens && found == listeners_.end()) listeners_.push_back(peer);
  if (!listens && found != listeners_.end()) listeners_.erase(found);
}

// ------------------------------------------------------------------------------------------ turns

uint32_t Phases::distance(uint32_t from, uint32_t to) const noexcept {
  return to >= from ? to - from : node_count() - (from - to);
}

bool Phases::is_due() const noexcept {
  return followed_ == self_ || peers_[followed_].turn + distance(self_, followed_) > turn_.number;
}

void Phases::advance(base::Nanoseconds now) {
  if (!is_scheduled()) {
    round_ = Round{};
    turn_.has_begun = false;
    return;
  }
  do {
    if (is_at_rest()) {
      if (!has_much()) break;
      wake(now);
      round_.is_mine = true;
    }
    if (may_follow_another_) follow_next(now);
    pass_turns(now);
  } while (is_at_rest());
  if (turn_.number != told_.turn) tell_listeners(now);
}

// Until a turn has begun or is not due yet, or the round was the last.
void Phases::pass_turns(base::Nanoseconds now) {
  while (is_waiting()) {
    if (phase() == 0 && quiet_nodes_ == node_count()) {
      round_.is_on = false;
    } else if (!is_due()) {
      return;
    } else if (phase() == 0) {
      enter_round();
      rounds_ = std::min(rounds_ + 1, kRoundsOfNewcomer);
      pass(now);
      tell_of_round();
    } else if (rounds_ < kRoundsOfNewcomer || peers_[target_of_phase()].sendable == 0) {
      pass(now);
    } else {
      begin(now);
    }
  }
}

void Phases::wake(base::Nanoseconds now) {
  round_.is_on = true;
  quiet_nodes_ = 0;
  turn_.moved_ns = told_.at_ns = now;
}

void Phases::enter_round() {
  round_.was_quiet = !round_.has_sent && !has_much();
  round_.has_sent = false;
}

void Phases::begin(base::Nanoseconds now) {
  turn_.has_begun = true;
  turn_.moved_ns = now;
  // The others need not know: this node waited for theirs.
  for (const uint32_t peer : listeners_) {
    if (peers_[peer].is_silent) tell(peer);
  }
}

void Phases::pass(base::Nanoseconds now) {
  quiet_nodes_ = quiet_nodes();
  turn_ = {.number = turn_.number + 1, .moved_ns = now};
}

// The turns between are over: others have had theirs, which come after them.
void Phases::skip_to(uint64_t turn, base::Nanoseconds now) {
  const uint64_t last_round = (turn - 1) / node_count() * node_count();
  if (last_round >= turn_.number) enter_round();
  quiet_nodes_ = 0;
  turn_ = {.number = turn, .moved_ns = now};
}

uint32_t Phases::quiet_nodes() const noexcept {
  if (!round_.was_quiet) return 0;
  if (followed_ == self_) return node_count();
  if (base::planted(base::Plant::round_without_end)) return 0;
  const uint32_t to_followed = distance(self_, followed_);
  // The nodes between are not there, or silent.
  if (phase() < to_followed) return phase() + 1;
  const Peer& followed = peers_[followed_];
  const bool is_same_round =
      followed.turn != 0 && (followed.turn - 1) / node_count() == turn_.number / node_count();
  return is_same_round ? std::min(node_count(), to_followed + followed.quiet_nodes) : 0;
}

void Phases::follow_next(base::Nanoseconds now) {
  may_follow_another_ = false;
  uint32_t next = (self_ + 1) % node_count();
  while (next != self_ && (!peers_[next].is_there || peers_[next].is_silent))
    next = (next + 1) % node_count();
  if (next == followed_) return;
  // A node that is silent still tells this one when it goes on.
  if (followed_ != self_ && !peers_[followed_].is_silent) tell(followed_, TurnMessage::Kind::leave);
  followed_ = next;
  if (next == self_) return;
  tell(next, TurnMessage::Kind::follow);
  peers_[next].heard_ns = now;
}

}  // namespace faro::transport::schedule
