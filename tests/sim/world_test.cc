// The scheduler of the simulation: fibers, agents, events, time, and what it says when a program
// hangs.
#include "lab/simulation/transport/sim_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "lab/simulation/transport/sim_waiter.h"
#include "ring/doorbell.h"
#include "sim/seeds.h"
#include "support/expect.h"

namespace faro::sim {
namespace {

using test::for_each_seed;

TEST(World, runs_every_fiber_to_its_end) {
  World world(1);
  int finished = 0;
  for (int i = 0; i < 20; ++i) {
    world.spawn("fiber " + std::to_string(i), [&world, &finished, i] {
      for (int k = 0; k < i; ++k) world.yield();
      ++finished;
    });
  }
  const Status status = world.run();
  EXPECT_TRUE(status.ok()) << world.report();
  EXPECT_EQ(finished, 20);
}

TEST(World, nothing_of_a_stalled_group_runs_before_its_time) {
  for_each_seed(20, [](uint64_t seed) {
    World world(seed);
    const Nanoseconds until = world.now() + 50'000'000;
    bool other_finished = false;
    std::vector<Nanoseconds> ran;
    world.add_agent(
        "stalled agent", [&] { return ran.push_back(world.now()), true; }, 3);
    world.spawn(
        "stalled fiber",
        [&] {
          ran.push_back(world.now());
          world.wait_until([&] { return other_finished; }, base::kForever, "the other");
          ran.push_back(world.now());
        },
        3);
    world.spawn("other", [&] {
      for (int i = 0; i < 100; ++i) world.yield();
      other_finished = true;
    });
    world.stall(3, until);
    ASSERT_TRUE(world.run().ok()) << world.report();
    ASSERT_GE(ran.size(), 2u);
    for (const Nanoseconds when : ran) EXPECT_GE(when, until);
  });
}

// However many threads want the next step: a crowded world is no silent network.
TEST(World, what_is_due_does_not_wait_for_its_turn_for_long) {
  Knobs knobs;
  knobs.descheduled_one_in = UINT32_MAX;
  knobs.agent_idle_least = knobs.agent_idle_most = 10'000;
  knobs.late_most = 100'000;
  Nanoseconds latest_of_all = 0;
  for_each_seed(20, [&](uint64_t seed) {
    World world(seed, knobs);
    Nanoseconds latest_event = 0;
    std::function<void()> schedule_next = [&] {
      const Nanoseconds due = world.now() + 10'000;
      world.schedule(due, "event", [&, due] {
        latest_event = std::max(latest_event, world.now() - due);
        schedule_next();
      });
    };
    schedule_next();
    Nanoseconds longest_pause = 0;
    Nanoseconds last = world.now();
    world.add_agent("agent", [&] {
      longest_pause = std::max(longest_pause, world.now() - last);
      last = world.now();
      return true;
    });
    for (int i = 0; i < 200; ++i) {
      world.spawn("fiber " + std::to_string(i), [&world] {
        for (int k = 0; k < 100; ++k) world.yield();
      });
    }
    ASSERT_TRUE(world.run().ok()) << world.report();
    constexpr Nanoseconds kAFewSteps = 4'000;
    latest_of_all = std::max(latest_of_all, latest_event);
    EXPECT_LE(latest_event, knobs.late_most + kAFewSteps);
    EXPECT_LE(longest_pause, knobs.agent_idle_most + knobs.late_most + kAFewSteps);
  });
  EXPECT_GE(latest_of_all, knobs.late_most) << "no world was crowded";
}

TEST(World, a_fiber_can_start_another_and_wait_for_it) {
  World world(1);
  bool inner = false;
  world.spawn("outer", [&] {
    world.spawn("inner", [&] {
      world.yield();
      inner = true;
    });
    EXPECT_TRUE(world.wait_until([&] { return inner; }, base::kForever, "inner"));
  });
  EXPECT_TRUE(world.run().ok()) << world.report();
  EXPECT_TRUE(inner);
}

// A program with everything in it, whose order of events is written down.
struct Outcome {
  std::string order;
  uint64_t hash;
  Nanoseconds end;
};

Outcome run_everything(uint64_t seed) {
  World world(seed);
  SimWaiter waiter(world);
  ring::DoorbellLine line{};
  std::string order;
  int worked = 0;
  const auto agent = world.add_agent("agent", [&] {
    order += 'n';
    return worked++ % 3 == 0;
  });
  for (int i = 0; i < 4; ++i) {
    world.spawn("fiber", [&, i] {
      for (int k = 0; k < 5; ++k) {
        order += static_cast<char>('0' + i);
        if (i == 0) {
          ring::Doorbell doorbell(&line);
          doorbell.arm();
          waiter.sleep(doorbell, 50'000);
        } else if (i == 1) {
          ring::ring_doorbell(line);
          world.wake_agent(agent);
        }
        world.schedule(world.now() + world.random().below(20'000), "event", [&] { order += 'e'; });
        world.maybe_yield();
        world.yield();
      }
    });
  }
  const Status status = world.run();
  EXPECT_TRUE(status.ok()) << world.report();
  return {order, world.trace_hash(), world.now()};
}

TEST(World, the_same_seed_gives_exactly_the_same_run) {
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Outcome first = run_everything(seed);
    const Outcome second = run_everything(seed);
    EXPECT_EQ(first.order, second.order) << "seed " << seed;
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_EQ(first.end, second.end) << "seed " << seed;
    orders.insert(first.order);
  }
  EXPECT_EQ(orders.size(), 50u) << "different seeds give different runs";
}

TEST(World, random_numbers_are_the_same_on_every_platform) {
  // From the algorithm as published, computed in Python: xoshiro256** seeded by splitmix64(1).
  Random random(1);
  const std::vector<uint64_t> expected = {0xb3f2af6d0fc710c5u, 0x853b559647364ceau,
                                          0x92f89756082a4514u};
  for (const uint64_t value : expected) EXPECT_EQ(random.next(), value);
}

TEST(World, time_passes_to_the_deadline_of_a_sleeper) {
  World world(1);
  SimWaiter waiter(world);
  ring::DoorbellLine line{};
  Nanoseconds before = 0;
  Nanoseconds after = 0;
  world.spawn("sleeper", [&] {
    ring::Doorbell doorbell(&line);
    doorbell.arm();
    before = world.now();
    waiter.sleep(doorbell, 5'000'000'000);
    after = world.now();
    EXPECT_EQ(line.sleeping.load(), 0u) << "disarmed";
  });
  EXPECT_TRUE(world.run().ok()) << world.report();
  EXPECT_GE(after - before, 5'000'000'000u);
  EXPECT_LT(after - before, 5'001'000'000u);
}

TEST(World, a_doorbell_wakes_a_sleeper_long_before_its_deadline) {
  for_each_seed(50, [](uint64_t seed) {
    World world(seed);
    SimWaiter waiter(world);
    ring::DoorbellLine line{};
    std::atomic<bool> published{false};
    world.spawn("sleeper", [&] {
      ring::Doorbell doorbell(&line);
      while (!published) {
        doorbell.arm();
        world.maybe_yield();
        if (published) break;
        world.maybe_yield();
        waiter.sleep(doorbell, 10'000'000'000);
      }
      EXPECT_LT(world.now(), 2'000'000'000u);
    });
    world.spawn("ringer", [&] {
      for (int i = 0; i < 10; ++i) world.yield();
      published = true;
      world.maybe_yield();
      ring::ring_doorbell(line);
    });
    EXPECT_TRUE(world.run().ok()) << world.report();
  });
}

// The opposite order of S1 and S2 of native/DESIGN.md#memory-orders. A simulation that does not find this is
// worth nothing.
TEST(World, finds_a_lost_wake_up) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    World world(seed);
    SimWaiter waiter(world);
    ring::DoorbellLine line{};
    std::atomic<bool> published{false};
    world.spawn("sleeper", [&] {
      ring::Doorbell doorbell(&line);
      while (!published) {
        world.maybe_yield();
        doorbell.arm();  // too late: nobody looks again
        waiter.sleep(doorbell, base::kForever);
      }
    });
    world.spawn("ringer", [&] {
      world.maybe_yield();
      published = true;
      ring::ring_doorbell(line);
    });
    if (!world.run().ok()) ++lost;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 300) << "most runs are lucky";
}

TEST(World, reports_who_waits_for_what_when_nothing_can_ever_run) {
  World world(77);
  SimWaiter waiter(world);
  static ring::DoorbellLine line{};
  const auto never = [] { return false; };
  world.spawn("worker 3", [&] {
    world.note("polls stage 2");
    ring::Doorbell doorbell(&line);
    doorbell.arm();
    waiter.sleep(doorbell, base::kForever);
  });
  world.spawn("worker 4", [&] { world.wait_until(never, base::kForever, "a barrier"); });
  const Status status = world.run();
  EXPECT_EQ(status.code(), Code::internal_error);
  EXPECT_TRUE(test::contains(status.to_string(), "seed 77")) << status.to_string();
  EXPECT_TRUE(test::contains(status.to_string(), "deadlock")) << status.to_string();
  const std::string report = world.report();
  EXPECT_TRUE(test::contains(report, "worker 3: waits for its doorbell since")) << report;
  EXPECT_TRUE(test::contains(report, "(polls stage 2)")) << report;
  EXPECT_TRUE(test::contains(report, "worker 4: waits for a barrier")) << report;
  EXPECT_EQ(world.run().to_string(), status.to_string()) << "it stays failed";
}

TEST(World, reports_a_deadlock_though_timers_still_run) {
  Knobs knobs;
  knobs.stall_limit = 3'000'000'000;
  World world(5, knobs);
  SimWaiter waiter(world);
  static ring::DoorbellLine line{};
  world.add_agent("node 0", [] { return false; });
  world.spawn("worker", [&] {
    ring::Doorbell doorbell(&line);
    for (;;) {
      doorbell.arm();
      waiter.sleep(doorbell, 200'000'000);
    }
  });
  const Status status = world.run();
  EXPECT_TRUE(test::contains(status.to_string(), "no progress for 3000 ms")) << status.to_string();
}

TEST(World, progress_postpones_the_stall_limit) {
  Knobs knobs;
  knobs.stall_limit = 1'000'000'000;
  World world(5, knobs);
  world.spawn("worker", [&] {
    for (int i = 0; i < 10; ++i) {
      world.wait_until([] { return false; }, world.now() + 900'000'000, "time");
      world.note_progress();
    }
  });
  EXPECT_TRUE(world.run().ok()) << world.report();
}

TEST(World, ends_a_fiber_that_spins_for_ever) {
  Knobs knobs;
  knobs.step_limit = 1000;
  World world(1, knobs);
  world.spawn("spinner", [&] {
    for (;;) world.yield();
  });
  EXPECT_TRUE(test::contains(world.run().to_string(), "more than 1000 steps"));
}

TEST(World, an_exception_of_a_fiber_is_a_violation) {
  World world(1);
  world.spawn("thrower", [] { throw std::runtime_error("no luck"); });
  EXPECT_TRUE(test::contains(world.run().to_string(), "thrower threw no luck"));
}

TEST(World, an_agent_that_waits_is_a_violation) {
  World world(1);
  world.add_agent("node 0", [&] {
    world.yield();
    return false;
  });
  world.spawn("worker",
              [&] { world.wait_until([] { return false; }, world.now() + 1'000'000'000, "time"); });
  EXPECT_TRUE(test::contains(world.run().to_string(), "network threads must not wait"));
}

TEST(World, agents_run_when_woken_when_due_and_until_removed) {
  World world(3);
  std::vector<Nanoseconds> looks;
  World::AgentId agent = world.add_agent("node 0", [&] {
    looks.push_back(world.now());
    return false;
  });
  const auto sleep_for = [&](Nanoseconds time) {
    world.wait_until([] { return false; }, world.now() + time, "time");
  };
  world.spawn("program", [&] {
    sleep_for(1'000'000'000);
    EXPECT_GE(looks.size(), 1'000'000'000 / world.knobs().agent_idle_most) << "without a reason";
    const size_t before = looks.size();
    const Nanoseconds woken = world.now();
    world.wake_agent(agent);
    sleep_for(100'000);
    ASSERT_GT(looks.size(), before) << "woken";
    EXPECT_LT(looks[before] - woken, 100'000u);
    world.remove_agent(agent);
    const size_t last = looks.size();
    sleep_for(1'000'000'000);
    EXPECT_EQ(looks.size(), last) << "removed";
  });
  EXPECT_TRUE(world.run().ok()) << world.report();
}

TEST(World, events_happen_in_the_order_of_their_time) {
  World world(1);
  std::string order;
  const Nanoseconds now = world.now();
  world.schedule(now + 3000, "c", [&] { order += 'c'; });
  world.schedule(now + 1000, "a", [&] {
    order += 'a';
    EXPECT_GE(world.now(), now + 1000);
  });
  world.schedule(now + 2000, "b", [&] { order += 'b'; });
  world.schedule(now + 3000, "d", [&] { order += 'd'; });
  EXPECT_TRUE(world.settle().ok());
  EXPECT_EQ(order, "abcd");
}

TEST(World, a_poller_that_never_sleeps_reaches_its_deadline) {
  World world(1);
  const Nanoseconds deadline = world.now() + 1'000'000;
  world.spawn("poller", [&] {
    while (world.clock().now_ns() < deadline) {
    }
  });
  EXPECT_TRUE(world.run().ok()) << world.report();
}

}  // namespace
}  // namespace faro::sim
