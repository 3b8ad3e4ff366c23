// The tables of `faro stat` and `faro top`, and the same as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/node_watch.h"

namespace faro::command {

/// How lanes and workers are listed.
struct StatOrder {
  bool by_rate = false;        ///< most bytes, or rows, first; else by number
  bool idle_too = false;       ///< also lanes that carry and hold nothing
  size_t most_lanes = 40;      ///< and channels; of further ones only the number is shown
  size_t most_workers = 1000;  ///< of further ones only the number is shown
};

/// "1.25 M", "64 KiB"; "-" for nothing.
std::string rate_text(double per_second);
std::string byte_rate_text(double per_second);

/// Nodes, queries, workers, slow consumers, lanes; then endpoints, pollers, channels.
std::string stat_text(const Sample& sample, const StatOrder& order);

/// Everything, by the names of counters.def; "per_second" beside each total.
Json stat_json(const Sample& sample);

}  // namespace faro::command
