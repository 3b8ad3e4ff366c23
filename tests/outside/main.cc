// outside_client: random plans over real processes, as a user's program would run them (README.md).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "driver.h"
#include "node.h"

int main(int count, char** words) {
  outside::DriverOptions options;
  options.seed = std::random_device()();
  std::string node, round_seed;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const char* value = i + 1 < count ? words[i + 1] : "";
    if (word == "--verbose") {
      options.is_verbose = true;
      continue;
    }
    ++i;
    if (word == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (word == "--round") {
      options.round = std::strtoull(value, nullptr, 10);
    } else if (word == "--node") {
      node = value;
    } else if (word == "--round-seed") {
      round_seed = value;
    } else {
      std::fprintf(stderr,
                   "usage: outside_client [--seed S] [--seconds N] [--round R] [--verbose]\n");
      return 2;
    }
  }
  if (!node.empty()) {
    return outside::run_node(std::strtoull(round_seed.c_str(), nullptr, 10),
                             static_cast<uint32_t>(std::strtoul(node.c_str(), nullptr, 10)));
  }
  return outside::run_driver(options);
}
