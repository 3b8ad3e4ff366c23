// LinkState: the states of a link, from the handshake that has admitted its peer to its end.
//
//                                setup_mending ──> mending
//                                        ▲          ▲  │
//                                        │          │  ▼
//   (handshake) ──> admitted ──> setting_up ──────────────> up ───> leaving ───┐
//                      │          │      │                │    │      ▲        │
//                      │          │   setup_suspended     │    │      │        │
//                      │          │      │        suspended    └──┐   │        │
//                      ▼          ▼      ▼            │           ▼   │        ▼
//                  detaching      └──> losing <───────┘        parting│      left
//                      │                  │                       │   │
//                      └─────> lost <─────┘                       └───┴──────> left
//
// Suspended: the data connection has failed, or its setup. The control connection usually knows better
// why, so it gets a moment to say so before the link is lost. Until then a link that was up still counts
// as connected.
//
// Mending: a connection of a link that was up has broken, and the link gets others (README.md, "Mending"). It counts as
// connected. It comes from up or suspended, and leads to up, or to an end like suspended.
//
// Setup mending: a connection has broken after this side had said READY. The peer may have heard that and count the link
// as up; or its setup has failed. It does not count as connected. If the peer mends the link, it is one that is up whose
// connection has broken; if the peer does not have it, its setup has failed. It comes from setting_up or setup_suspended.
//
// detaching, losing, parting: the link has ended, and its owner has to be told. Usually that happens at
// once. If an exception interrupts a link's work, or its ending, the link stays in one of these until the
// network thread's next round completes the ending (Link::finish_ending).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "counters/records.h"
#include "faro/status.h"
#include "links/link_watch.h"

namespace faro::links {

/// Threads: network thread, except for connected() and data_link_failed(). Blocks: never.
class LinkState {
 public:
  enum Phase : uint8_t {
    admitted,
    setting_up,
    setup_suspended,
    setup_mending,
    up,
    suspended,
    mending,
    leaving,
    detaching,
    losing,
    parting,
    left,
    lost,
  };
  struct Suspension {
    base::Nanoseconds until = 0;
    Status cause;
  };

  /// Counts how often the link was mended, and since when it is being mended. Both outlive it.
  void count_in(counters::Counter& mended, counters::Counter& mending_ns) noexcept {
    mended_ = &mended;
    mending_ns_ = &mending_ns;
  }
  /// Tells `watch` from now on, which outlives the link's place in a table, when the link has to be looked at.
  void set_watch(LinkWatch& watch) { watch_ = &watch; }

  Phase phase() const { return phase_.load(std::memory_order_relaxed); }
  bool is(Phase phase) const { return this->phase() == phase; }
  /// Up, suspended or mending: there is a data link. Threads: any.
  bool connected() const { return connected(phase_.load(std::memory_order_acquire)); }
  /// Its connection has broken, and it waits for another one: mending, or setup_mending.
  bool awaits_connection() const { return awaits_connection(phase()); }
  /// It takes no more messages; its owner may still have to be told.
  bool has_ended() const { return phase() >= detaching; }
  /// Until when it waits, and why; null unless it is suspended or being mended.
  const Suspension* suspension() const {
    return is(setup_suspended) || is(suspended) || awaits_connection() ? &suspension_ : nullptr;
  }

  /// admitted → setting_up → up; up → leaving. Release: what was stored before is seen by connected().
  void advance(Phase to) {
    if (watch_ != nullptr && awaits_connection() != awaits_connection(to))
      watch_->note_mending(awaits_connection(to));
    if (is(mending) && to != mending) {
      counters::set(*mending_ns_, 0);
      if (to == up) counters::count(*mended_);
    }
    phase_.store(to, std::memory_order_release);
  }
  void suspend(base::Nanoseconds until, const Status& cause) {
    if (has_ended()) return;
    suspension_ = {until, cause};
    if (watch_ != nullptr) watch_->note_due(until);
    advance(connected() ? suspended : setup_suspended);
  }
  /// up, suspended → mending; setting_up, setup_suspended → setup_mending: from `now` on and until then at most.
  void mend(base::Nanoseconds now, base::Nanoseconds until, const Status& cause) {
    if (connected()) counters::set(*mending_ns_, now);
    suspension_ = {until, cause};
    if (watch_ != nullptr) watch_->note_due(until);
    advance(connected() ? mending : setup_mending);
  }
  /// The link has failed; its owner is to be told. Has no effect on a link that has ended.
  void lose() noexcept {
    if (!has_ended()) advance(is(admitted) ? detaching : losing);
  }
  /// The link has failed, as by lose(), because an exception has interrupted its work: the next
  /// look at it completes that.
  void lose_interrupted() noexcept {
    lose();
    if (watch_ != nullptr) watch_->note_interrupted();
  }
  /// The peer has left; the owner is to be told.
  void part() { advance(parting); }
  /// The final state: the owner has been told, or need not be.
  void end(Phase as) {
    suspension_ = {};
    advance(as);
  }
  /// The link, which is up, has failed, as by lose(). Threads: any. The network thread may change
  /// the state at the same time; that also leads to an end.
  void lose_from_any_thread() noexcept {
    Phase expected = up;
    phase_.compare_exchange_strong(expected, losing, std::memory_order_acq_rel,
                                   std::memory_order_relaxed);
  }

 private:
  static bool connected(Phase phase) {
    return phase == up || phase == suspended || phase == mending;
  }
  static bool awaits_connection(Phase phase) { return phase == mending || phase == setup_mending; }

  std::atomic<Phase> phase_{admitted};  // network thread; from up to losing also any other
  LinkWatch* watch_ = nullptr;          // null: nobody looks
  Suspension suspension_;               // in the two suspended phases, and mending
  counters::Counter own_mended_{0}, own_mending_ns_{0};  // until count_in
  counters::Counter* mended_ = &own_mended_;
  counters::Counter* mending_ns_ = &own_mending_ns_;
};

}  // namespace faro::links
