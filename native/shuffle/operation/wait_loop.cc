#include "shuffle/operation/wait_loop.h"

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

// The drain delay doubles within one wait up to that many times drain.delay_us: without an end to it the
// time that a plan needs whose rows must be spilled would double with each ring's worth of them.
// With the defaults a ring then moves on by 2 MiB a second.
constexpr base::Nanoseconds kDrainDelayGrowth = 16;

// A worker with nothing to do looks at the sockets again after so long (a system call each time).
constexpr base::Nanoseconds kNetworkPollInterval = 4'000;

}  // namespace

// `would_wait`: and so the run answers, unless something has arrived.
bool WaitLoop::look_for_others(bool would_wait) {
  const base::Nanoseconds now = worker_.now();
  if (network_had_data_ || now - network_polled_at_ >= kNetworkPollInterval) {
    network_polled_at_ = now;
    network_had_data_ = worker_.membership.poll_network();
  }
  const bool arrived = others_.poll_rings();
  others_.send_queued();
  if (stalled_since_ == 0) {
    begin_stall(now);
    return arrived;
  }
  if (now >= others_.ask_at(stalled_since_)) others_.ask(now);
  if (!call_waits_ && now - stalled_since_ >= kFlushDelay) {
    flush_all();
    if (would_wait) publish(0);
  }
  return spill_if_due(now) || arrived;
}

void WaitLoop::begin_stall(base::Nanoseconds now) noexcept {
  stalled_since_ = now;
  drain_delay_ = worker_.settings.drain_delay_us * 1000;
  spill_at_ = now + drain_delay_;
}

bool WaitLoop::spill_if_due(base::Nanoseconds now) {
  if (now < spill_at_) return false;
  const bool spilled = others_.spill();
  if (spilled) {
    drain_delay_ =
        std::min(2 * drain_delay_, kDrainDelayGrowth * worker_.settings.drain_delay_us * 1000);
  }
  spill_at_ = now + drain_delay_;
  return spilled;
}

// What has reached its threshold, and all read positions.
void WaitLoop::start_transfers() {
  others_.tell_releases();
  worker_.membership.flush_network();
}

void WaitLoop::flush_all() noexcept {
  try {
    others_.post_open_frames();
    start_transfers();
  } catch (const std::bad_alloc&) {
    (void)operation_.lack_memory();  // whoever waits sees it at its next attempt
  }
}

base::Nanoseconds WaitLoop::begin_wait(Wait wait) {
  const base::Nanoseconds begin = worker_.now();
  count(worker_.counters.waits);
  waiting_.store(true, std::memory_order_relaxed);
  deadline_ = wait.is_forever()
                  ? base::kForever
                  : base::deadline_after(begin, static_cast<uint64_t>(wait.limit().count()));
  yields_left_ = static_cast<uint32_t>(worker_.settings.wait_yields);
  begin_blocked(begin);
  return begin;
}

WaitLoop::Step WaitLoop::next_step() {
  const bool is_expired = deadline_ != base::kForever && worker_.now() >= deadline_;
  if (yields_left_ > 0 && !is_expired) {
    if (--yields_left_ + kYieldsBeforeFlush < worker_.settings.wait_yields) {
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
  worker_.membership.worker_sleeps();
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
  if (others_.has_blocked_sender()) not_after(spill_at_, 1);
  not_after(others_.ask_at(stalled_since_ != 0 ? stalled_since_ : now), 1);
  count(worker_.counters.sleeps);
  publish(now + at_most);
  return at_most;
}

void WaitLoop::sleep() { waiter_->sleep(doorbell_, prepare_sleep()); }

void WaitLoop::end_wait(base::Nanoseconds begin) {
  doorbell_.disarm();
  if (operation_.blocked_on().is_published()) operation_.blocked_on().withdraw();
  count(worker_.counters.blocked_ns, worker_.now() - begin);
  end_blocked();
  waiting_.store(false, std::memory_order_release);
}

// A call that is armed again without progress still waits for the same.
void WaitLoop::go_on_blocked(base::Nanoseconds now) noexcept {
  if (blocked_ == nullptr || operation_.blocked_on().counts() != blocked_.get()) begin_blocked(now);
}

void WaitLoop::begin_blocked(base::Nanoseconds now) noexcept {
  end_blocked();
  blocked_ = operation_.blocked_on().count();
  blocked_since_ = now;
}

void WaitLoop::end_blocked() noexcept {
  if (blocked_ == nullptr) return;
  count(blocked_->ns, worker_.now() - blocked_since_);
  blocked_ = nullptr;
}

// There was progress. A call that waits may have to go on; one that was armed is done.
void WaitLoop::end_sleep() noexcept {
  operation_.blocked_on().withdraw();
  if (!waiting_.load(std::memory_order_relaxed)) end_blocked();
}

void WaitLoop::publish(base::Nanoseconds due) noexcept {
  // Not stalled: just now a queue moved on.
  operation_.blocked_on().publish(stalled_since_ != 0 ? stalled_since_ : worker_.now(), due);
}

}  // namespace faro::shuffle
