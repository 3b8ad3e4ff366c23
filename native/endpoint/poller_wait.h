// PollerWait: how a poller waits, and how another thread takes its place meanwhile.
//
// It yields wait.yields times, and then sleeps on its doorbell. A yield lets another thread run, which may have something for this
// poller. Where no other wants the processor, a yield comes back at once, and four count as one: they take as long as a sleep and
// a wake-up, and what arrives meanwhile is seen sooner. While the poller sleeps, or others run, another thread may be inside and
// send, without a switch to this one. A poller that has a processor for itself looks again before another thread could enter.
// native/DESIGN.md#memory-orders has the steps of the doorbell.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "counters/records.h"
#include "faro/outcome.h"
#include "faro/wait.h"
#include "ring/doorbell.h"
#include "ring/ready_watch.h"
#include "ring/waiter.h"
#include "transport/shm/node_doorbells.h"
#include "transport/transport.h"

namespace faro::endpoint {

/// Threads: the poller's, except where said.
class PollerWait {
 public:
  struct Limits {
    uint32_t yields = 0;             // wait.yields
    base::Nanoseconds sleep_ns = 0;  // wait.sleep_ms
  };

  /// `network`: of the transports of its links. All outlive it.
  PollerWait(transport::IdleWork& network, const base::Clock& clock,
             std::unique_ptr<ring::Waiter> waiter, const Limits& limits,
             transport::shm::NodeDoorbells doorbells, ring::ReadyWatch& ready_watch)
      : network_(network),
        clock_(clock),
        waiter_(std::move(waiter)),
        limits_(limits),
        doorbells_(std::move(doorbells)),
        doorbell_(&doorbells_.line(0)),
        readiness_(ready_watch, line(), [this] {
          counters::set(counters_->asleep_ns, 0);
          network_.worker_wakes();
        }) {}

  /// Once, before it waits. The counters outlive it.
  void count_in(counters::PollerCounters& counters) noexcept { counters_ = &counters; }
  counters::PollerCounters& counters() const noexcept { return *counters_; }
  base::Nanoseconds now() const { return clock_.now_ns(); }

  ring::DoorbellLine& line() noexcept { return doorbells_.line(0); }
  transport::DoorbellMemory memory() const noexcept { return doorbells_.memory(); }

  /// Call it once what it should see is published. Threads: any.
  void ring() noexcept { ring::ring_doorbell(line()); }
  /// Ends a wait, or else the next one. Threads: any.
  void wake() noexcept {
    woken_.store(true, std::memory_order_seq_cst);
    ring();
  }

  /// Faro's Poller::try_enter and leave. Threads: any.
  bool try_enter() noexcept {
    bool owned = false;
    return is_owned_.compare_exchange_strong(owned, true, std::memory_order_acquire,
                                             std::memory_order_relaxed);
  }
  void leave() noexcept { is_owned_.store(false, std::memory_order_release); }

  /// What faro::Poller::descriptor answers.
  Result<int> descriptor() {
    FARO_ASSIGN_OR_RETURN(const int descriptor, readiness_.descriptor());
    FARO_RETURN_IF_ERROR(readiness_.start());
    has_descriptor_ = true;
    return descriptor;
  }

  /// Waits until look() is true, for wake(), or until the limit has passed. What the poller has to send was sent. `what`:
  /// the doorbell is to ring for.
  template <typename Look>
  Outcome wait(Wait limit, ring::WokenFor what, Look&& look) noexcept {
    if (is_armed_) take_back();
    const auto found = [&] { return look() || is_woken(); };
    if (found()) return poll_network_if_due(), Outcome::done;
    poll_network(clock_.now_ns());
    if (found()) return Outcome::done;
    counters::count(counters_->waits);
    if (limit.is_none()) return Outcome::would_wait;
    const base::Nanoseconds deadline =
        limit.is_forever()
            ? base::kForever
            : base::deadline_after(polled_at_, static_cast<uint64_t>(limit.limit().count()));
    if (yield_until(found, deadline)) return Outcome::done;
    for (;;) {
      network_.worker_sleeps();
      doorbell_.arm(what);  // S1
      const base::Nanoseconds now = clock_.now_ns();
      const bool has_found = found();  // S2
      if (has_found || now >= deadline) {
        doorbell_.disarm();
        network_.worker_wakes();
        return has_found ? Outcome::done : Outcome::deadline;
      }
      counters::count(counters_->sleeps);
      counters::set(counters_->asleep_ns, now);
      sleep(std::min(limits_.sleep_ns, deadline - now));
      counters::set(counters_->asleep_ns, 0);
      network_.worker_wakes();
    }
  }

  /// Looks once, for an event loop, and arms the poller if there is nothing: would_wait if somebody
  /// sleeps in its place now. `what`: the doorbell is to ring for.
  template <typename Look>
  Outcome arm(ring::WokenFor what, Look&& look) noexcept {
    if (!has_descriptor_) return Outcome::failed;
    if (is_armed_) take_back();
    const auto found = [&] { return look() || is_woken(); };
    if (found()) return poll_network_if_due(), Outcome::done;
    poll_network(clock_.now_ns());
    if (found()) return Outcome::done;
    network_.worker_sleeps();
    doorbell_.arm(what);  // S1
    if (found()) {        // S2
      doorbell_.disarm();
      network_.worker_wakes();
      return Outcome::done;
    }
    counters::count(counters_->waits);
    counters::count(counters_->sleeps);
    counters::set(counters_->asleep_ns,
                  clock_.now_ns());  // whoever sleeps in its place may end that at once
    is_armed_ = is_watched();
    return is_armed_ ? Outcome::would_wait : Outcome::failed;
  }

 private:
  // A poller that always finds something reads the sockets this often: other channels may be waiting for that.
  static constexpr base::Nanoseconds kNetworkPollInterval = 100'000;
  // A yield that takes longer has let somebody run. Of those that have not, as many count as one: together they
  // take as long as a sleep and its end.
  static constexpr base::Nanoseconds kOthersRan = 4'000;
  static constexpr uint64_t kBriefYields = 4;

  bool is_woken() noexcept {
    return woken_.load(std::memory_order_seq_cst) &&
           woken_.exchange(false, std::memory_order_seq_cst);
  }

  void poll_network(base::Nanoseconds now) noexcept {
    polled_at_ = now;
    network_.poll();
  }
  void poll_network_if_due() noexcept {
    const base::Nanoseconds now = clock_.now_ns();
    if (now - polled_at_ >= kNetworkPollInterval) poll_network(now);
  }

  template <typename Found>
  bool yield_until(Found& found, base::Nanoseconds deadline) noexcept {
    for (uint64_t left = uint64_t{limits_.yields} * kBriefYields;
         left > 0 && polled_at_ < deadline;) {
      const base::Nanoseconds before = polled_at_;
      if (others_run_) {
        let_others_in([&] { waiter_->yield(); });
      } else {
        waiter_->yield();
      }
      poll_network(clock_.now_ns());
      others_run_ = polled_at_ - before >= kOthersRan;
      left -= std::min(left, others_run_ ? kBriefYields : uint64_t{1});
      if (found()) return true;
    }
    return false;
  }

  // S3, by another thread; none if the endpoint was closed.
  bool is_watched() noexcept {
    try {
      return readiness_.watch(limits_.sleep_ns).ok();
    } catch (const std::bad_alloc&) {  // for the text
      return false;
    }
  }

  // Nobody sleeps in place of the poller any more, and the descriptor is not readable.
  void take_back() noexcept {
    (void)readiness_.reset();  // there is a descriptor
    doorbell_.disarm();
    is_armed_ = false;
  }

  // S3
  void sleep(base::Nanoseconds at_most) noexcept {
    let_others_in([&] { waiter_->sleep(doorbell_, at_most); });
  }

  // Whoever has entered meanwhile leaves soon.
  template <typename Pause>
  void let_others_in(Pause&& pause) noexcept {
    leave();
    pause();
    while (is_owned_.exchange(true, std::memory_order_acquire)) waiter_->yield();
  }

  transport::IdleWork& network_;
  const base::Clock& clock_;
  const std::unique_ptr<ring::Waiter> waiter_;
  const Limits limits_;
  transport::shm::NodeDoorbells doorbells_;
  ring::Doorbell doorbell_;
  counters::PollerCounters own_counters_;  // until count_in
  counters::PollerCounters* counters_ = &own_counters_;
  ring::Readiness readiness_;
  bool has_descriptor_ = false;
  bool is_armed_ = false;            // for the descriptor
  base::Nanoseconds polled_at_ = 0;  // when the sockets were read
  bool others_run_ = true;           // during yields, as the last one has shown
  std::atomic<bool> woken_{false};
  std::atomic<bool> is_owned_{
      true};  // acquire, release: what whoever was inside has done; false while nobody is
};

}  // namespace faro::endpoint
