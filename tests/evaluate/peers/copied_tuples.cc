// copied_tuples: what it costs to read tuples of --bytes one after the other from memory, and to write each to other memory, both
// larger than caches; five times, each round in one line of JSON, as the other peers print theirs.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "peer_program.h"

namespace {

constexpr uint32_t kRounds = 5;

/// Whether all arrived; `count`: of tuples.
template <size_t kBytes>
bool run(uint64_t count) {
  using namespace faro::evaluate;
  using Tuple = std::array<uint64_t, kBytes / sizeof(uint64_t)>;
  std::vector<Tuple> from(count), to(count);
  bool all = true;
  std::printf("{\"version\": \"compiler\", \"rounds\": [");
  for (uint32_t round = 0; round <= kRounds; ++round) {
    for (uint64_t number = 0; number < count; ++number) from[number].fill(number + round);
    const RoundClock clock;
    uint64_t sum = 0;
    for (uint64_t number = 0; number < count; ++number) {
      to[number] = from[number];
      sum += from[number].back();
    }
    const double seconds = static_cast<double>(RoundClock::now_ns() - clock.start_ns()) * 1e-9;
    const double cpu = static_cast<double>(clock.cpu_taken_ns()) * 1e-9;
    if (round == 0) continue;  // warms up
    const bool arrived = sum == count * (count - 1) / 2 + count * round && to == from;
    all &= arrived;
    std::printf("%s{\"seconds\": %.9f, \"cpu_seconds\": %.9f, \"count\": %llu, \"verified\": %s}",
                round == 1 ? "" : ", ", seconds, cpu, static_cast<unsigned long long>(count),
                arrived ? "true" : "false");
  }
  std::printf("]}\n");
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  using faro::evaluate::flag;
  const uint64_t bytes = std::strtoull(flag(argc, argv, "bytes", "8").c_str(), nullptr, 10);
  const uint64_t count = std::strtoull(flag(argc, argv, "count", "8000000").c_str(), nullptr, 10);
  bool all = false;
  if (count > 0 && bytes == 8) {
    all = run<8>(count);
  } else if (count > 0 && bytes == 32) {
    all = run<32>(count);
  } else if (count > 0 && bytes == 128) {
    all = run<128>(count);
  } else {
    std::fprintf(stderr, "copied_tuples --bytes <8, 32 or 128> --count <1 or more>\n");
    return 2;
  }
  return all ? 0 : 1;
}
