// copied_messages: how fast memcpy moves messages of --bytes into a ring of 16 of them, as often as
// --count says, five times; each round in one line of JSON, as the other peers print theirs.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "peer_program.h"

namespace {

constexpr size_t kMessagesInRing = 16;  // as many as `faro-lab bench link` has room for
constexpr uint32_t kRounds = 5;

}  // namespace

int main(int argc, char** argv) {
  using namespace faro::evaluate;
  const size_t bytes = std::strtoull(flag(argc, argv, "bytes", "65536").c_str(), nullptr, 10);
  const uint64_t count = std::strtoull(flag(argc, argv, "count", "5000").c_str(), nullptr, 10);
  if (bytes < sizeof count || count == 0) {
    std::fprintf(stderr, "copied_messages --bytes <8 or more> --count <1 or more>\n");
    return 2;
  }
  std::vector<std::byte> message(bytes, std::byte{1});
  std::vector<std::byte> ring(bytes * kMessagesInRing);
  bool all = true;
  std::printf("{\"version\": \"libc\", \"rounds\": [");
  for (uint32_t round = 0; round <= kRounds; ++round) {
    const RoundClock clock;
    uint64_t arrived = 0;
    for (uint64_t number = 0; number < count; ++number) {
      std::byte* const to = ring.data() + number % kMessagesInRing * bytes;
      std::memcpy(message.data(), &number, sizeof number);
      std::memcpy(to, message.data(), bytes);
      uint64_t copied = 0;
      std::memcpy(&copied, to, sizeof copied);
      arrived += copied == number ? 1 : 0;
    }
    const double seconds = static_cast<double>(RoundClock::now_ns() - clock.start_ns()) * 1e-9;
    if (round == 0) continue;  // warms up
    all &= arrived == count;
    std::printf("%s{\"seconds\": %.9f, \"cpu_seconds\": %.9f, \"count\": %llu, \"verified\": %s}",
                round == 1 ? "" : ", ", seconds, static_cast<double>(clock.cpu_taken_ns()) * 1e-9,
                static_cast<unsigned long long>(arrived), arrived == count ? "true" : "false");
  }
  std::printf("]}\n");
  return all ? 0 : 1;
}
