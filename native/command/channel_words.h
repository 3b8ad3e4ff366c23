// What a channel waits for, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "counters/endpoint_view.h"

namespace faro::command {

struct ChannelWait {
  enum class For : uint8_t { opening, mending, room, draining, release };
  For kind;
  uint64_t ns = 0;   ///< so far; 0: not known
  std::string what;  ///< "room: its peer has not released enough"
};

/// Empty if it waits for nothing, as far as the endpoint knows. `moved`: whether frames have come or gone lately: then those that
/// are not released are none to wait for.
std::optional<ChannelWait> wait_of(const counters::EndpointView& endpoint,
                                   const counters::ChannelView& channel, bool moved);

/// "opening", "open", "draining", "ended".
const char* life_name(counters::ChannelLife life);

/// "tm-2 (10.0.0.2:7000)".
std::string peer_name(const counters::ChannelView& channel);

/// "holds 3 frames, 96 KiB not released".
std::string holds_text(uint64_t frames, uint64_t bytes);

}  // namespace faro::command
