// ChannelLedger: what both sides of the channels of a run tell each other and the checker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"

namespace faro::simulation {

/// What happened at one side of a channel.
struct SideRecord {
  bool opened = false;
  uint32_t committed = 0;  // frames
  uint32_t received = 0;
  bool dropped = false;            // it closed at once
  std::optional<Status> closed{};  // what it was told last
  base::Nanoseconds opened_at = 0;
  base::Nanoseconds closed_at = 0;
};

struct ConversationRecord {
  bool dialled = false;
  bool is_over = false;  // its dialling side has done with it
  std::optional<Status> not_dialled{};
  bool refused = false;  // by the accepting engine
  SideRecord sides[2];
};

struct ChannelLedger {
  std::vector<ConversationRecord> conversations;  // by index
  uint32_t dials_left = 0;                        // conversations that are not over
  std::vector<uint32_t> running;                  // programs of each peer
  std::vector<bool> ended;  // peers whose endpoint has died or was closed, at least once
  std::vector<base::Nanoseconds> died_at;  // the first time, or never
  std::vector<bool> disturbed;             // peers that were stopped too long, or cut off
  using Pairs = std::set<std::pair<uint32_t, uint32_t>>;  // the lesser first
  Pairs hostile;
  Pairs cut;  // connections between them were, perhaps before there was a channel
  Pairs apart;

  bool is_hostile(uint32_t a, uint32_t b) const { return hostile.contains(std::minmax(a, b)); }
  bool is_cut(uint32_t a, uint32_t b) const { return cut.contains(std::minmax(a, b)); }
  bool is_apart(uint32_t a, uint32_t b) const { return apart.contains(std::minmax(a, b)); }

  // What the run was like.
  uint64_t frames = 0;
  uint64_t bytes = 0;
  uint64_t room_waits = 0;
  uint64_t entered = 0;  // another thread sent in the sleeping poller's place
  uint64_t held = 0;
};

}  // namespace faro::simulation
