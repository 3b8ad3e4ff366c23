// Endpoints in the tables of `faro stat` and `faro top`, and the same as JSON.
#pragma once

#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/node_watch.h"
#include "command/stat_report.h"

namespace faro::command {

/// Endpoints, their pollers and channels; channels are listed as lanes are.
std::string endpoints_text(const std::vector<EndpointChange>& endpoints, const StatOrder& order);

/// An array of all of it, by the names of counters.def.
Json endpoints_json(const std::vector<EndpointChange>& endpoints);

/// Whether frames of a channel have moved between two samples. `change`: of the channel.
bool has_moved(const counters::ChannelView& change);

}  // namespace faro::command
