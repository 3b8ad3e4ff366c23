#include "shuffle/stage/wait_loop.h"

#include "base/planted.h"

namespace faro::shuffle {
namespace {

using counters::count;

// Without progress for so long, a worker that only ever polls flushes. Longer than a turn of an
// engine's loop over several shuffles takes, or every turn would cut its frames short; short against
// what anyone notices.
constexpr base::Nanoseconds kFlushDelay = 300'000;

// A call that waits flushes after that many yields: mostly one is enough for others to make room or
// bring rows, and every flush cuts the open frames of all lanes short, to half their size on average.
constexpr uint32_t kYieldsBeforeFlush = 2;

// A wait that follows one that took longer than this, since it last got on, yields no more than that. Twenty yields take some ten microseconds: they
// had not brought what that wait was for, and take processor time from those who bring it.
constexpr base::Nanoseconds kLongWait = 500'000;

// A worker with nothing to do looks at the sockets again after so long (a system call each time); one that has moved rows
// since it last looked in vain, and has others to move, need not look so often.
constexpr base::Nanoseconds kNetworkPollInterval = 4'000;
constexpr base::Nanoseconds kBusyNetworkPollInterval = 20'000;

}  // namespace

// `would_wait`: and so the run answers, unless something has arrived.
bool WaitLoop::look_for_others(bool would_wait) {
  const base::Nanoseconds now = worker_.now();
  const bool is_busy = operation_.stalled_since() == 0;
  const base::Nanoseconds interval = is_busy ? kBusyNetworkPollInterval : kNetworkPollInterval;
  bool is_read = false;
  if (network_had_data_ || now - network_polled_at_ >= interval) {
    network_polled_at_ = now;
    is_read = network_had_data_ = worker_.network.poll();
  }
  // An attempt that wants rows has looked at the rings itself, and found none of its own.
  const bool arrived = (is_read || !receive_side_.has_polled()) && receive_side_.poll();
  send_queued();
  const base::Nanoseconds since = operation_.stalled_since();
  if (since == 0) {
    begin_stall(now);
    return receive_side_.spill_blocked(Haste::at_once) || arrived;
  }
  Inboxes& inboxes = receive_side_.inboxes();
  if (now >= inboxes.ask_at(since)) inboxes.ask(now);
  if (!operation_.call_waits() && now - since >= kFlushDelay) {
    flush_all();
    if (would_wait) publish(0);
  }
  return spill_if_due(now, since) || arrived;
}

// What came for queries that are over meanwhile is dropped, before it could be spilled.
void WaitLoop::send_queued() {
  if (!lanes_.has_queued()) return;
  lanes_.send_queued();
  receive_side_.inboxes().sweep();
}

void WaitLoop::begin_stall(base::Nanoseconds now) noexcept {
  operation_.stall(now);
  // A wait that gets on, as that of a large row does frame by frame, begins anew.
  waits_since_ = now;
  yields_left_ = yields_;
  drain_delay_ = worker_.settings.drain_delay_us * 1000;
  spill_at_ = now + drain_delay_;
}

bool WaitLoop::spill_if_due(base::Nanoseconds now, base::Nanoseconds stalled_since) {
  if (now < spill_at_) return receive_side_.spill_blocked(Haste::at_once);
  const bool is_late = now >= late_at(stalled_since);
  const bool spilled = receive_side_.spill_blocked(is_late ? Haste::late : Haste::soon);
  if (spilled) drain_delay_ = std::min(2 * drain_delay_, longest_drain_delay(worker_.settings));
  spill_at_ = now + drain_delay_;
  if (!is_late) spill_at_ = std::min(spill_at_, late_at(stalled_since));
  return spilled;
}

// When frames are spilled that are to be late.
base::Nanoseconds WaitLoop::late_at(base::Nanoseconds stalled_since) const noexcept {
  return stalled_since + longest_drain_delay(worker_.settings);
}

// What has reached its threshold, and all read positions.
void WaitLoop::start_transfers() {
  receive_side_.tell_releases();
  worker_.network.flush();
}

void WaitLoop::flush_all() noexcept {
  try {
    lanes_.post_open_frames();
    start_transfers();
  } catch (const std::bad_alloc&) {
    (void)operation_.lack_memory();  // whoever waits sees it at its next attempt
  }
}

base::Nanoseconds WaitLoop::begin_wait(Wait wait) {
  const base::Nanoseconds begin = worker_.now();
  count(worker_.counters.waits);
  deadline_ = wait.is_forever()
                  ? base::kForever
                  : base::deadline_after(begin, static_cast<uint64_t>(wait.limit().count()));
  yields_ = static_cast<uint32_t>(worker_.settings.wait_yields);
  if (last_wait_ > kLongWait) yields_ = std::min(yields_, kYieldsBeforeFlush);
  yields_left_ = yields_;
  waits_since_ = begin;
  operation_.begin_wait(begin);
  return begin;
}

WaitLoop::Step WaitLoop::next_step() {
  const bool is_expired = deadline_ != base::kForever && worker_.now() >= deadline_;
  if (yields_left_ > 0 && !is_expired) {
    if (--yields_left_ + kYieldsBeforeFlush < yields_) {
      flush_all();
    } else {
      start_transfers();
    }
    waiter_->yield();
    return Step::yield;
  }
  flush_all();  // others may be waiting for just that
  if (is_expired) return Step::expired;
  arm();
  return Step::sleep;
}

void WaitLoop::arm() noexcept {
  worker_.network.worker_sleeps();
  doorbell_.arm();
  ownership_.see_wakes();
}

void WaitLoop::arm_for_event_loop() noexcept {
  count(worker_.counters.waits);
  deadline_ = base::kForever;
  flush_all();
  arm();
}

// Since `arm` the attempt has looked at alerts, rings and its condition: whatever came later rings the
// doorbell, and the sleep is over at once. Returns how long it may be.
base::Nanoseconds WaitLoop::prepare_sleep() {
  // The look since `arm` may have queued, committed or released something.
  flush_all();
  if (base::planted(base::Plant::lost_notification))
    worker_.membership.ready_set(worker_.local_index).take([](uint32_t) {});
  const base::Nanoseconds now = worker_.now();
  base::Nanoseconds at_most = worker_.settings.wait_sleep_ms * 1'000'000;
  const auto not_after = [&](base::Nanoseconds due, base::Nanoseconds if_past) {
    if (due != base::kForever) at_most = std::min(at_most, due > now ? due - now : if_past);
  };
  not_after(deadline_, 0);
  if (receive_side_.has_blocked_sender(Haste::soon)) {
    not_after(spill_at_, 1);
  } else if (receive_side_.has_blocked_sender(Haste::late)) {
    not_after(std::max(spill_at_, late_at(operation_.stalled_since())), 1);
  }
  const base::Nanoseconds since = operation_.stalled_since();
  not_after(receive_side_.inboxes().ask_at(since != 0 ? since : now), 1);
  count(worker_.counters.sleeps);
  publish(now + at_most);
  return at_most;
}

void WaitLoop::woken() noexcept {
  worker_.network.worker_wakes();
  NodeShare* const share = receive_side_.at_node();
  if (share != nullptr && !base::planted(base::Plant::rung_does_not_look)) share->look();
}

void WaitLoop::sleep() { waiter_->sleep(doorbell_, prepare_sleep()); }

void WaitLoop::end_wait(base::Nanoseconds begin) {
  doorbell_.disarm();
  const base::Nanoseconds now = worker_.now();
  last_wait_ = now - waits_since_;
  count(worker_.counters.blocked_ns, now - begin);
  operation_.end_wait();
}

void WaitLoop::publish(base::Nanoseconds due) noexcept {
  // Not stalled: just now a queue moved on.
  const base::Nanoseconds since = operation_.stalled_since();
  operation_.blocked_on().publish(since != 0 ? since : worker_.now(), due);
}

}  // namespace faro::shuffle
