// Coverage: what runs were like and what happened in them, counted, so that a million tiny runs cannot
// pass for a million.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lab/simulation/transport/turn_watch.h"

namespace faro::simulation {

/// Threads: a value.
struct Coverage {
  /// Histograms: name → lower bound of a bucket (exact up to 16, then powers of two) → runs (or queries,
  /// stages).
  std::map<std::string, std::map<uint64_t, uint64_t>, std::less<>> sizes;
  /// Counts of things that happened: group → name → how often.
  std::map<std::string, std::map<std::string, uint64_t, std::less<>>, std::less<>> events;

  void add(std::string_view name, uint64_t value);
  void count(std::string_view group, std::string_view name, uint64_t times = 1);
  /// How often; 0 if never.
  uint64_t counted(std::string_view group, std::string_view name) const;
  void merge(const Coverage& other);

  /// A line per histogram and per group.
  std::string to_string() const;
};

/// How rows went in the turns of a cluster.
void cover_turns(Coverage& coverage, const sim::TurnWatch::Counts& counts);

}  // namespace faro::simulation
