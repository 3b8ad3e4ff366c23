#include "ring/doorbell.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/clock.h"

namespace faro::ring {
namespace {

constexpr base::Nanoseconds kLong = 30'000'000'000;
constexpr base::Nanoseconds kShort = 2'000'000;

base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

TEST(Doorbell, is_not_rung_for_someone_awake) {
  DoorbellLine line{};
  EXPECT_FALSE(ring_doorbell(line));
  Doorbell bell(&line);
  bell.arm();
  bell.disarm();
  EXPECT_FALSE(ring_doorbell(line));
}

TEST(Doorbell, is_rung_once_for_a_sleeper) {
  DoorbellLine line{};
  Doorbell bell(&line);
  bell.arm();
  EXPECT_TRUE(ring_doorbell(line));
  EXPECT_FALSE(ring_doorbell(line)) << "the sleeper is already on its way";
}

TEST(Doorbell, one_sleep_serves_many) {
  DoorbellLine lines[3]{};
  const SeenLine all[] = {{&lines[0], 1}, {&lines[1], 1}, {&lines[2], 1}};
  for (DoorbellLine& line : lines) Doorbell(&line).arm();
  std::jthread ringer([&] { ring_doorbell(lines[1]); });
  const base::Nanoseconds before = now();
  while (lines[1].sleeping == 1) sleep_on_any(all, kLong);
  EXPECT_LT(now() - before, kLong);
  EXPECT_EQ(lines[0].sleeping, 1u);
  EXPECT_EQ(lines[2].sleeping, 1u);
}

TEST(Doorbell, one_sleep_for_more_than_the_kernel_takes_is_short) {
  std::vector<DoorbellLine> lines(500);
  std::vector<SeenLine> all;
  for (DoorbellLine& line : lines) {
    Doorbell(&line).arm();
    all.push_back({&line, 1});
  }
  const base::Nanoseconds before = now();
  sleep_on_any(all, kLong);
  EXPECT_LT(now() - before, kLong);
}

TEST(Doorbell, one_sleep_for_many_ends_at_its_time) {
  DoorbellLine line{};
  Doorbell(&line).arm();
  const SeenLine all[] = {{&line, 1}};
  constexpr base::Nanoseconds kTime =
      1'000'000;  // a kernel without futex_waitv sleeps no longer at once
  const base::Nanoseconds before = now();
  sleep_on_any(all, kTime);
  EXPECT_GE(now() - before, kTime);
}

TEST(Doorbell, one_sleep_for_many_ends_at_once_if_one_has_changed_since_it_was_seen) {
  DoorbellLine lines[2]{};
  const SeenLine all[] = {{&lines[0], 1}, {&lines[1], 0}};  // armed, and not armed
  for (DoorbellLine& changed : lines) {
    Doorbell(&lines[0]).arm();
    Doorbell(&lines[1]).disarm();
    if (&changed == &lines[0]) ring_doorbell(changed);
    if (&changed == &lines[1]) Doorbell(&changed).arm();
    const base::Nanoseconds before = now();
    sleep_on_any(all, kLong);
    EXPECT_LT(now() - before, kLong);
  }
}

TEST(Doorbell, is_not_rung_for_frames_for_someone_who_sleeps_for_all_but_these) {
  DoorbellLine line{};
  Doorbell bell(&line);
  bell.arm(WokenFor::all_but_frames);
  EXPECT_FALSE(ring_for_frames(line));
  EXPECT_TRUE(ring_doorbell(line));
  bell.arm(WokenFor::all_but_frames);
  std::jthread ringer([&] { ring_doorbell(line); });
  const base::Nanoseconds before = now();
  bell.sleep(kLong);
  EXPECT_LT(now() - before, kLong);
  bell.arm();
  EXPECT_TRUE(ring_for_frames(line));
}

TEST(Doorbell, rung_between_arm_and_sleep_ends_the_sleep_at_once) {
  DoorbellLine line{};
  Doorbell bell(&line);
  bell.arm();
  ring_doorbell(line);
  const base::Nanoseconds before = now();
  bell.sleep(kLong);
  EXPECT_LT(now() - before, kLong);
}

TEST(Doorbell, lets_a_sleep_end_after_its_time_and_disarms) {
  DoorbellLine line{};
  Doorbell bell(&line);
  bell.arm();
  const base::Nanoseconds before = now();
  bell.sleep(kShort);
  EXPECT_GE(now() - before, kShort);
  EXPECT_FALSE(ring_doorbell(line));
}

TEST(Doorbell, with_nonsense_written_into_its_line_costs_a_wake_and_no_more) {
  DoorbellLine line{};
  Doorbell bell(&line);
  bell.arm();
  line.sleeping.store(0xdeadbeef);
  bell.sleep(kLong);  // not 1: returns at once
  line.sleeping.store(7);
  EXPECT_TRUE(ring_doorbell(line));
  EXPECT_EQ(line.sleeping.load(), 0u);
}

}  // namespace
}  // namespace faro::ring
