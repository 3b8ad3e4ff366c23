// The page of `faro-lab simulate --network`: what the model shows, beside what is known of real networks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace faro::network {

/// What a section of the page has to show.
struct Goal {
  std::string text;
  bool is_met = false;
  bool is_of_machine = false;  ///< how fast the model runs here, not what it shows
};

struct Section {
  std::string text;
  std::vector<Goal> goals;
};

using MakeSection = Section (*)(uint64_t seed);

/// In the order of the page. Each takes seconds.
std::vector<MakeSection> page_sections();

/// What the figures are of.
std::string page_head(uint64_t seed);

}  // namespace faro::network
