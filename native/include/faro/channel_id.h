// ChannelId: names a channel of an endpoint.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstdint>

#pragma GCC visibility push(default)

namespace faro {

/// Names a channel. An endpoint never gives the same one twice.
struct ChannelId {
  /// Below EndpointSpec::channel_limit; it is given again when the channel is forgotten.
  uint32_t index = UINT32_MAX;
  uint32_t generation = 0;  ///< of the index
  bool operator==(const ChannelId&) const = default;
};

}  // namespace faro

#pragma GCC visibility pop
