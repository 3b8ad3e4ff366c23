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

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "transport/sim/fiber.h"
#include "transport/sim/sim_knobs.h"
#include "transport/sim/sim_random.h"

namespace faro::sim {

using base::Nanoseconds;

class World {
 public:
  using FiberId = uint32_t;
  using AgentId = uint32_t;
  /// Fibers and agents that stop together: a process. Small numbers; kNoGroup is never stalled.
  using Group = uint32_t;
  static constexpr Group kNoGroup = UINT32_MAX;

  explicit World(uint64_t seed, const Knobs& knobs = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

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
  AgentId add_agent(std::string name, std::function<bool()> do_work, Group group = kNoGroup);
  /// Not called again from now on; may be called by its own do_work.
  void remove_agent(AgentId agent);
  /// Something happened that this agent should see soon. Callable from anywhere in the world.
  void wake_agent(AgentId agent);
  /// The agent has to look again by then, at the latest.
  void agent_due(AgentId agent, Nanoseconds when);

  /// Nothing of this group runs before `until`: a process that was stopped and goes on.
  void stall(Group group, Nanoseconds until);

  /// Something that happens later. `what` is a literal, for the trace. Events of equal time happen
  /// in the order in which they were scheduled.
  void schedule(Nanoseconds when, const char* what, std::function<void()> event);

  // --- what the code of a fiber calls. Outside fibers, where a test stands, waiting drives the
  // world step by step. In an agent or event, which must not wait, it is a violation, and returns
  // at once.

  /// Whether a fiber is running.
  bool in_fiber() const noexcept { return current_ != nullptr; }
  /// Whether an agent or event is running.
  bool in_agent_or_event() const noexcept { return stepping_ && current_ == nullptr; }

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
  uint64_t trace_hash() const noexcept { return trace_hash_; }
  bool failed() const noexcept { return !failure_.ok(); }
  const Status& failure() const noexcept { return failure_; }
  /// Everything a person needs to look into a failure: seed, time, what each fiber waits for and
  /// since when, and the last decisions.
  std::string report() const;

 private:
  class SimClock final : public base::Clock {
   public:
    explicit SimClock(World& world) : world_(world) {}
    Nanoseconds now_ns() const noexcept override {
      // Code looks at the time where it decides whether to wait: a good place to interrupt it.
      world_.maybe_yield();
      return now_ += kLookNs;
    }
    static constexpr Nanoseconds kLookNs = 20;
    static constexpr Nanoseconds kStart = 1'000'000'000;  // not 0: nobody may rely on that
    mutable Nanoseconds now_ = kStart;

   private:
    World& world_;
  };

  struct Thread;
  struct Agent {
    std::string name;
    std::function<bool()> do_work;
    uint32_t weight;
    Nanoseconds due;  // the next look
    Nanoseconds idle;
    Group group;
    bool woken = false;
    bool removed = false;
  };
  struct Event {
    Nanoseconds when;
    uint64_t number;
    const char* what;
    std::function<void()> run;
  };
  struct LaterFirst {
    bool operator()(const Event& a, const Event& b) const noexcept {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };
  enum class Kind : uint8_t { fiber, agent, event };
  struct Decision {
    uint64_t step;
    Nanoseconds now;
    Kind kind;
    uint64_t number;   // of the fiber, agent or event
    const char* what;  // of an event
  };
  static constexpr size_t kTraceLength = 60;

  bool step_inside();
  void look_at_waiters();
  Nanoseconds next_moment() const;
  Nanoseconds not_before(Group group, Nanoseconds when) const;
  void record(Kind kind, uint64_t number, const char* what);
  void run_fiber(uint32_t number);
  void run_agent(uint32_t number);
  void run_event();
  bool check_limits();
  bool is_late(Nanoseconds due) const { return now() > due + knobs_.late_most; }
  void fail(std::string text);
  uint32_t draw_weight();
  void suspend_until(Nanoseconds runnable_at);
  void suspend_waiting(Nanoseconds deadline, const char* what);
  void drive_until(const std::function<bool()>& ready, Nanoseconds deadline, const char* what);
  std::string describe(const Thread& thread) const;
  static double at_ms(Nanoseconds when);

  const uint64_t seed_;
  const Knobs knobs_;
  Random random_;
  SimClock clock_{*this};

  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<uint32_t> live_;              // numbers of those not finished, in order
  std::vector<Nanoseconds> stalled_until_;  // by group
  std::deque<Agent> agents_;                // a deque: an agent may add another while it runs
  std::vector<Event> events_;               // a heap by LaterFirst
  uint64_t event_count_ = 0;
  uint32_t event_weight_;

  Thread* current_ = nullptr;
  bool stepping_ = false;         // an agent or event runs, or the scheduler itself
  Group agent_group_ = kNoGroup;  // of the running agent
  uint32_t outside_ = 0;
  uint64_t steps_ = 0;
  Nanoseconds last_progress_;
  Status failure_;

  std::deque<Decision> trace_;
  uint64_t trace_hash_ = 0;
};

}  // namespace faro::sim
