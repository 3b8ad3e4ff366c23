// ChannelPlan: everything that a seed decides about a run of endpoints before anything runs. README.md states the
// distribution.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lab/simulation/transport/sim_knobs.h"
#include "lab/workload/chance.h"

namespace faro::simulation {

using workload::Chance;
using workload::mix;

/// What one side of a channel does.
struct SidePlan {
  enum class Ending : uint8_t {
    drains,       // when it has sent all
    waits,        // for the other side to end it; only the accepting side
    drops,        // closes at once, after `ends_after` frames either way
    drains_late,  // when it has sent all and received `ends_after` frames, or the other side ends it
  };
  uint32_t frames = 0;   // that it wants to send
  uint32_t largest = 0;  // payload of a frame
  uint32_t holds = 0;    // frames that it keeps at most
  Ending ending = Ending::drains;
  uint32_t ends_after = 0;
};

/// A channel that one peer dials.
struct ConversationPlan {
  uint32_t index = 0;
  uint32_t from = 0;  // peers
  uint32_t to = 0;    // never `from`
  base::Nanoseconds at = 0;
  uint32_t send_bytes = 0;  // of rings, as they are asked for
  uint32_t receive_bytes = 0;
  bool is_refused = false;  // by the engine of `to`
  SidePlan sides[2];        // the dialling side, the accepting side
};

struct PeerPlan {
  uint32_t pollers = 1;
  uint32_t channel_limit = 0;
  uint64_t memory_limit_bytes = 0;  // 0: none
  uint32_t ring_limit = 0;          // what it allows peers that dial; 0: what they ask for
  bool has_task = false;            // another thread sends in the sleeping poller's place
  base::Nanoseconds starts_at = 0;
};

enum class PeerFaultKind : uint8_t {
  death,         // of `peer`
  death_return,  // the same, and it opens an endpoint again
  close,         // of its endpoint, at once
  close_return,
  short_stall,  // shorter than the time limit of liveness, so nothing may be lost
  long_stall,
  half_open,  // nothing from `peer` to `other` for longer than the time limit
  hostile,    // bytes from `peer` to `other`
  cut,        // of connections between `peer` and `other`, `count` times
  apart,      // `peer` and `other` cannot reach each other for a while
};
inline constexpr uint32_t kPeerFaultKinds = 10;
const char* fault_name(PeerFaultKind kind) noexcept;

struct PeerFault {
  PeerFaultKind kind = PeerFaultKind::death;
  base::Nanoseconds at = 0;
  base::Nanoseconds lasting = 0;
  uint32_t peer = 0;
  uint32_t other = 0;  // never `peer`
  uint32_t count = 0;  // of hostile deliveries, or of cuts
};

struct ChannelPlan {
  uint64_t seed = 0;
  sim::Knobs knobs;
  uint64_t wait_yields = 0;
  uint64_t liveness_ms = 0;
  uint64_t mend_ms = 0;
  std::vector<PeerPlan> peers;
  std::vector<ConversationPlan> conversations;
  std::vector<PeerFault> faults;

  uint32_t peer_count() const { return static_cast<uint32_t>(peers.size()); }
  /// Whether nobody may lose anything by it: connections are cut, and mended in time.
  bool is_mended(const PeerFault& fault) const;
};

/// Draws a plan, which depends on the seed alone, everywhere.
ChannelPlan draw_channel_plan(uint64_t seed);

/// In a few lines, for whoever looks into a run.
std::string describe(const ChannelPlan& plan);

}  // namespace faro::simulation
