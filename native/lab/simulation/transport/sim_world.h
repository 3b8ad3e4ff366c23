// World: a whole cluster in one thread. Its time, its chance, its threads and what is under way.
//
//   fibers      worker programs: ordinary blocking code; where it would wait, it suspends
//   agents      network threads: do_work() called at moments that the seed chooses
//   events      deliveries: what happens at a later simulated time
//
// One step runs one of them, chosen by the seed among those that can run, and time passes a little;
// if none can run, time passes until one can. The same seed and the same program give exactly the
// same run: nothing here depends on real time, addresses or hash orders. `trace_hash` proves it.
//
// Threads: one for everything that belongs to a world.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "faro/status.h"
#include "lab/simulation/transport/sim_agents.h"
#include "lab/simulation/transport/sim_conditions.h"
#include "lab/simulation/transport/sim_events.h"
#include "lab/simulation/transport/sim_fibers.h"
#include "lab/simulation/transport/sim_knobs.h"
#include "lab/simulation/transport/sim_random.h"
#include "lab/simulation/transport/sim_trace.h"

namespace faro::sim {

class World {
 public:
  using FiberId = uint32_t;
  using AgentId = uint32_t;
  using Group = sim::Group;
  static constexpr Group kNoGroup = sim::kNoGroup;

  explicit World(uint64_t seed, const Knobs& knobs = {});

  uint64_t seed() const noexcept { return seed_; }
  const Knobs& knobs() const noexcept { return knobs_; }
  Random& random() noexcept { return random_; }
  /// Simulated time. Every look takes a little of it, so that a program that polls until a deadline
  /// gets there; and is a place where the seed may let others run first (maybe_yield).
  const base::Clock& clock() const noexcept { return clock_; }

  // --- the program

  /// A thread. `body` starts at a moment that the seed chooses. An exception that leaves it is a
  /// violation.
  FiberId spawn(std::string name, std::function<void()> body, Group group = kNoGroup);

  /// A network thread. `do_work` returns whether there was any; it runs when woken, at the time it
  /// asked for, and now and then without reason. It must not wait.
  AgentId add_agent(std::string name, std::function<bool()> do_work, Group group = kNoGroup) {
    return agents_.add(std::move(name), std::move(do_work), group);
  }
  /// Not called again from now on; may be called by its own do_work.
  void remove_agent(AgentId agent) { agents_.remove(agent); }
  /// Something happened that this agent should see soon. Callable from anywhere in the world.
  void wake_agent(AgentId agent) { agents_.wake(agent); }
  /// The agent has to look again by then, at the latest.
  void agent_due(AgentId agent, Nanoseconds when) { agents_.look_by(agent, when); }

  /// Nothing of this group runs before `until`: a process that was stopped and goes on.
  void stall(Group group, Nanoseconds until);

  /// Something that happens later. `what` is a literal, for the trace. Events of equal time happen
  /// in the order in which they were scheduled.
  void schedule(Nanoseconds when, const char* what, std::function<void()> event);

  // --- what the code of a fiber calls. Outside fibers, where a test stands, waiting drives the
  // world step by step. In an agent or event, which must not wait, it is a violation, and returns
  // at once.

  /// Whether a fiber is running.
  bool in_fiber() const noexcept { return fibers_.running(); }
  /// Whether an agent or event is running.
  bool in_agent_or_event() const noexcept { return stepping_ && !in_fiber(); }

  /// Whose code runs: the group of the running fiber or agent. kNoGroup in events, between steps, and
  /// Outside.
  Group running_group() const noexcept;

  /// While it lives what runs belongs to no group: the network, the disk or the test. Nothing yields
  /// meanwhile.
  class Outside {
   public:
    explicit Outside(World& world) noexcept : world_(world) { ++world_.outside_; }
    ~Outside() { --world_.outside_; }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    World& world_;
  };

  /// Lets others run.
  void yield() noexcept;

  /// A place where the seed may decide that others run first; nothing outside a fiber. Test
  /// programs put it between their operations, the simulated transport into its own.
  void maybe_yield() noexcept;

  /// Suspends until `word` is 0, or the deadline. `what` is a literal, for reports.
  void wait_for_zero(const std::atomic<uint32_t>& word, Nanoseconds deadline,
                     const char* what) noexcept;

  /// Suspends until `ready` or the deadline; returns ready(). `ready` is called often and must not
  /// change anything.
  bool wait_until(const std::function<bool()>& ready, Nanoseconds deadline, const char* what);

  /// Lets time pass, with progress; from a fiber.
  void sleep(Nanoseconds lasting);

  /// What the running fiber is doing in the program's words ("polls stage 2"), for reports; nothing
  /// outside a fiber.
  void note(std::string text);

  /// Something happened that brings the program forward (a row arrived): postpones the stall limit.
  void note_progress() noexcept { last_progress_ = now(); }

  /// A rule was broken: the run ends with this. The first one counts.
  void violation(std::string text);

  // --- running it

  /// Runs until every fiber has finished. Agents stay, events may stay under way: more can be
  /// spawned and run again. Errors: internal_error with one line that names the seed and what
  /// happened: a violation, a deadlock (nothing can ever run, or no progress for stall_limit), or a
  /// limit. Every later call says the same.
  Status run();

  /// One step. False if nothing can ever run (which here is no failure) or the run has failed.
  /// Not from inside the world.
  bool step();

  /// Steps until no event is under way and no agent was woken: everything that was posted has
  /// arrived. For worlds without heartbeats. Errors: as of run.
  Status settle();

  Nanoseconds now() const noexcept { return clock_.now_; }
  uint64_t steps() const noexcept { return steps_; }
  /// Hash of every decision so far: equal for equal runs.
  uint64_t trace_hash() const noexcept { return trace_.hash(); }
  bool failed() const noexcept { return !failure_.ok(); }
  const Status& failure() const noexcept { return failure_; }
  /// Everything a person needs to look into a failure: seed, time, what each fiber waits for and
  /// since when, and the last decisions.
  std::string report() const;

 private:
  class SimClock final : public base::Clock {
   public:
    explicit SimClock(World& world) : world_(world) {}
    SimClock(const SimClock&) = delete;  // nor is a world copied
    SimClock& operator=(const SimClock&) = delete;
    Nanoseconds now_ns() const noexcept override {
      // Code looks at the time where it decides whether to wait: a good place to interrupt it.
      world_.maybe_yield();
      return now_ += kLookNs;
    }
    static constexpr Nanoseconds kLookNs = 20;
    mutable Nanoseconds now_ = kWorldStart;

   private:
    World& world_;
  };

  bool step_inside();
  void run_one(uint64_t event_weight, uint64_t total);
  void run_agent(AgentId agent);
  void run_event();
  bool check_limits();
  void fail(std::string text);
  void drive_until(const std::function<bool()>& ready, Nanoseconds deadline, const char* what);
  Nanoseconds next_moment() const {
    return std::min({events_.next(), fibers_.next(), agents_.next()});
  }

  const uint64_t seed_;
  const Knobs knobs_;
  Random random_;
  SimClock clock_{*this};
  Stalls stalls_;
  const uint32_t event_weight_;
  FiberTable fibers_;
  AgentTable agents_;
  EventQueue events_;

  bool stepping_ = false;  // an agent or event runs, or the scheduler itself
  uint32_t outside_ = 0;
  uint64_t steps_ = 0;
  Nanoseconds last_progress_;
  Status failure_;
  Trace trace_;
};

}  // namespace faro::sim
