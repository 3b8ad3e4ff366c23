#include "transport/schedule/turns.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/planted.h"

namespace faro::transport::schedule {

Turns::Turns(const PhaseSettings& settings, uint32_t self, uint32_t node_count, Alarm& alarm)
    : alarm_(alarm), self_(self), phases_(settings, self, node_count), peers_(node_count) {
  due_.reserve(node_count);
  taken_.reserve(node_count);
}

// ----------------------------------------------------------------------------------------- links

void Turns::enter(uint32_t peer, Path& path, base::Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (peers_[peer].is_there) phases_.remove(peer, now);
  Peer& entered = peers_[peer];
  if (std::exchange(entered.path, &path) != &path) entered.counts = {};
  entered.is_there = true;
  entered.has_message = false;
  phases_.add(peer, now);
  follow_up(now);
}

void Turns::leave(uint32_t peer, const Path& path, base::Nanoseconds now) noexcept {
  const std::lock_guard lock(mutex_);
  if (peers_[peer].path != &path || !peers_[peer].is_there) return;
  peers_[peer].is_there = peers_[peer].has_message = false;
  phases_.remove(peer, now);
  follow_up(now);
  if (!due_.empty()) {  // whoever leaves may be inside a path
    alarm_at_ = now;
    alarm_.set(now, now);
  }
}

void Turns::remove(uint32_t peer, const Path& path, base::Nanoseconds now) noexcept {
  leave(peer, path, now);
  {
    const std::lock_guard lock(mutex_);
    if (peers_[peer].path == &path) peers_[peer].path = nullptr;
  }
  // Also where another path has entered: whoever sends may have found this one before.
  while (sending_.load(std::memory_order_seq_cst)) sched_yield();
}

// ------------------------------------------------------------------------------------- what came

Status Turns::hear(uint32_t peer, const TurnMessage& message, base::Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (!peers_[peer].is_there) return Status::Ok();
  const Status heard = phases_.hear(peer, message, now);
  follow_up(now);
  return heard;
}

void Turns::on_alarm(base::Nanoseconds now) {
  {
    const std::lock_guard lock(mutex_);
    alarm_at_ = base::kForever;
    if (now >= phases_.deadline()) phases_.on_time(now);
    follow_up(now);
  }
  send_due();
}

// -------------------------------------------------------------------------------------- who sends

bool Turns::take_message(uint32_t peer, TurnMessage& message) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(peers_[peer].has_message, false)) return false;
  message = peers_[peer].message;
  return true;
}

Turns::Allowance Turns::ask(uint32_t peer, uint64_t pending, base::Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  phases_.set_sendable(peer, pending, now);
  follow_up(now);
  return {phases_.allowance(peer, now), phases_.target() == peer};
}

void Turns::sent(uint32_t peer, const Allowance& rows, uint64_t left, base::Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  if (rows.is_turn) {
    peers_[peer].counts.bytes += rows.bytes;
  } else {
    phases_.note_without_turn(rows.bytes, now);
  }
  phases_.sent(peer, rows.bytes, left, now);
  follow_up(now);
}

bool Turns::is_at_rest() const {
  const std::lock_guard lock(mutex_);
  return phases_.is_at_rest();
}

uint32_t Turns::target() const {
  const std::lock_guard lock(mutex_);
  return phases_.target();
}

Turns::Counts Turns::counts(uint32_t peer) const {
  const std::lock_guard lock(mutex_);
  return peers_[peer].counts;
}

// ------------------------------------------------------------------------------------- what is due

void Turns::follow_up(base::Nanoseconds now) {
  Telling telling;
  while (phases_.take(telling)) note_message(telling);
  note_what_may_go();
  if (const base::Nanoseconds deadline = phases_.deadline(); deadline < alarm_at_) {
    alarm_at_ = deadline;
    alarm_.set(deadline, now);
  }
  if (!due_.empty()) any_due_.store(true, std::memory_order_seq_cst);  // D1
}

// One message for each peer waits: a later one says all that an earlier one does, except whom its sender follows.
void Turns::note_message(const Telling& telling) {
  Peer& peer = peers_[telling.peer];
  if (!peer.is_there) return;
  const TurnMessage::Kind waits = peer.message.kind;
  peer.message = telling.message;
  if (peer.has_message && telling.message.kind == TurnMessage::Kind::turn)
    peer.message.kind = waits;
  peer.has_message = true;
  note_due(telling.peer);
}

// Rows that were held: of whom a turn has begun for, or of all, as none are held any more. Their workers may sleep.
void Turns::note_what_may_go() {
  if (const uint32_t target = phases_.target(); target != self_ && turn_ != phases_.turn()) {
    turn_ = phases_.turn();
    ++peers_[target].counts.turns;
    if (!base::planted(base::Plant::sleeper_forgotten)) note_due(target);
  }
  if (!std::exchange(holds_rows_, phases_.holds_rows()) || holds_rows_) return;
  for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peers_[peer].is_there) note_due(peer);
  }
}

void Turns::note_due(uint32_t peer) {
  if (std::exchange(peers_[peer].is_due, true)) return;
  due_.push_back(peer);
}

bool Turns::take_due(std::vector<uint32_t>& due) {
  const std::lock_guard lock(mutex_);
  due.swap(due_);
  for (const uint32_t peer : due) peers_[peer].is_due = false;
  return !due.empty();
}

void Turns::send_all_due() noexcept {
  while (any_due_.load(std::memory_order_seq_cst)) {
    if (sending_.exchange(true, std::memory_order_seq_cst)) return;  // D2
    any_due_.store(false, std::memory_order_seq_cst);                // D3
    taken_.clear();
    if (take_due(taken_)) {
      for (const uint32_t number : taken_) {
        Path* path = nullptr;
        {
          const std::lock_guard lock(mutex_);
          path = peers_[number].path;
        }
        if (path != nullptr) path->send_due();
      }
    }
    sending_.store(false, std::memory_order_seq_cst);  // D4
  }
}

}  // namespace faro::transport::schedule
