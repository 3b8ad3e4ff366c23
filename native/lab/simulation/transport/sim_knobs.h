// Knobs: what a simulated world is like. The defaults are a quick network with a long tail, and
// threads that lose the processor at bad moments.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "lab/simulation/transport/sim_random.h"

namespace faro::sim {

/// A delay: mostly near `least`, now and then up to `most`. What arrives late once in a while turns
/// up more broken orders than what is always about equally late.
struct Delay {
  base::Nanoseconds least = 0;
  base::Nanoseconds most = 0;

  base::Nanoseconds draw(Random& random) const noexcept {
    return random.one_in(8) ? random.between(least, most)
                            : random.between(least, least + (most - least) / 32);
  }
};

struct Knobs {
  // --- data of a link (sim_transport.h)
  Delay placement{
      500, 100'000};  // from the start of a transfer until a piece of it is in the peer's ring
  Delay notification{200, 50'000};  // from its last piece until the receiver is told
  Delay completion{200, 200'000};   // from its last piece until its sender is told
  Delay read_notification{500, 100'000};
  uint32_t pieces_most = 3;  // a transfer's bytes arrive in at most that many pieces, in any order
  uint32_t transfers_in_flight = 2;  // of one ring; what is posted beyond waits for a completion
  /// Rings need no connection, as in shared memory: only control connections can be cut. Else a transfer that has not
  /// arrived when its connection is cut never does, and is made again over the next one.
  bool rings_stand = false;
  /// Nothing keeps a node from hearing in time of the turns of others: that two send to one in their turns is a violation.
  bool one_sender_at_a_time = false;

  // --- control connections (lab/simulation/links)
  Delay control{1'000, 500'000};
  Delay connect{10'000, 2'000'000};

  // --- threads
  base::Nanoseconds step_cost_most = 400;  // time that one step takes: 0 … this
  Delay wake_up{0, 50'000};                // from a thread's reason to wake until it can run
  uint32_t descheduled_one_in = 32;        // a thread that yields loses the processor for a while
  Delay descheduled{1'000, 1'000'000};
  uint32_t preempted_one_in = 16;                  // maybe_yield() yields; 0: never
  base::Nanoseconds agent_idle_least = 100'000;    // an agent without work looks again after this,
  base::Nanoseconds agent_idle_most = 20'000'000;  // doubled each time up to this
  /// What is due, an event or an agent, waits no longer than this for its turn among the fibers; then it is the turn of
  /// what is due for longest. All nodes share the steps of the world: without a bound many workers that only look again
  /// would keep the network silent for as long as they run.
  base::Nanoseconds late_most = 25'000'000;

  // --- when a run has failed
  uint64_t step_limit = 20'000'000;
  base::Nanoseconds time_limit = 600'000'000'000;
  /// So long without progress (World::note_progress) is a deadlock, though timers still run.
  base::Nanoseconds stall_limit = 30'000'000'000;
};

}  // namespace faro::sim
