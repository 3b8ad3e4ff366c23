// What the channels of endpoints wait for, and whose fault it is.
#pragma once

#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/node_watch.h"

namespace faro::command {

struct ExplainedChannel {
  std::string cluster;
  std::string endpoint;  ///< "tm-1 (10.0.0.1:7000)"
  uint32_t pid = 0;
  uint32_t channel = 0;
  std::string peer;    ///< as the endpoint
  std::string what;    ///< "room: the peer has not released enough of its frames"
  double seconds = 0;  ///< 0: not known
  std::vector<std::string> causes;
};

/// Every channel that waits for something. `endpoints` has two snapshots of each, which show what makes progress.
std::vector<ExplainedChannel> explain_channels(const std::vector<EndpointChange>& endpoints);

std::string explain_channels_text(const std::vector<ExplainedChannel>& channels);
/// An array.
Json explain_channels_json(const std::vector<ExplainedChannel>& channels);

}  // namespace faro::command
