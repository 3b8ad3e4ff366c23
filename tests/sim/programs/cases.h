// What the tests of programs share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>

#include "faro/log.h"
#include "sim/programs/record.h"
#include "sim/seeds.h"

namespace faro::test {

using RunProgram = programs::RunResult (*)(uint64_t seed, programs::LeftOut left_out,
                                           bool keeps_text);

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::off); }  // programs make mistakes
  void TearDown() override { set_log_level(LogLevel::info); }
};

/// Fewer under a sanitizer.
constexpr uint64_t programs_of(uint64_t count) {
#if defined(FARO_SANITIZE_ADDRESS) || defined(FARO_SANITIZE_UNDEFINED) || \
    defined(FARO_SANITIZE_THREAD)
  return count / 5;
#else
  return count;
#endif
}

/// What programs were like.
struct Counted {
  uint64_t programs = 0;
  programs::Tally with;  // how many of them had any of it
  programs::Tally sum;
};

/// Runs that many, which have to keep to their rules, and prints what they were like.
inline Counted run_programs(uint64_t count, RunProgram run) {
  Counted counted;
  for_each_seed(count, [&](uint64_t seed) {
    const programs::RunResult result = run(seed, 0, false);
    EXPECT_EQ(result.violation, "");
    for (const auto& [what, number] : result.tally) {
      counted.with[what] += number > 0;
      counted.sum[what] += number;
    }
    ++counted.programs;
  });
  for (const auto& [what, number] : counted.with)
    std::printf("%6llu programs: %s\n", static_cast<unsigned long long>(number), what.c_str());
  return counted;
}

/// A seed is the same program each time, whether people read it or not, and another seed another one.
inline void expect_repeatable_programs(uint64_t count, RunProgram run) {
  for_each_seed(count, [&](uint64_t seed) {
    const programs::RunResult once = run(seed, 0, false);
    EXPECT_EQ(once.digest, run(seed, 0, false).digest);
    EXPECT_EQ(once.digest, run(seed, 0, true).digest);
    EXPECT_NE(once.digest, run(seed + 1, 0, false).digest);
  });
}

}  // namespace faro::test
