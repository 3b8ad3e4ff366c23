// What peers cost: many that are linked to one endpoint and say nothing, and the set-up of a link.
#pragma once

#include <cstdint>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::bench {

/// Peers are endpoints of a few processes, each with one channel to the endpoint of another process.
struct PeersJob {
  uint32_t peer_count = 1000;
  uint32_t ring_bytes = 16 * 1024;  ///< each way
  uint32_t idle_ms = 10'000;        ///< how long nothing is said but heartbeats

  /// Errors: invalid_argument.
  Status validate() const;
};

/// What was measured of the endpoint that all are linked to.
struct PeersFigures {
  uint64_t memory_bytes = 0;  ///< resident, by which its process has grown with its links
  double cpu_share = 0;       ///< of one processor, while nothing is said
  bool verified = false;      ///< all were linked, and still were at the end
};

/// Heartbeats of 1 s, unless the configuration has liveness.timeout_ms. Blocks: as long as it takes. Errors: as
/// ProcessGroup::run.
Result<PeersFigures> run_idle_peers(const PeersJob& job, const Config& config);

/// Medians, in one process.
struct SetUpFigures {
  double channel_seconds = 0;  ///< from dial to the first frame
  double session_seconds = 0;  ///< until a session of two nodes is open on both
  bool verified = false;       ///< each channel brought its frame
};

/// `count` channels, one after the other, then as many sessions. Blocks: as long as it takes. Errors: those of opening.
Result<SetUpFigures> run_set_ups(uint32_t count, const Config& config);

}  // namespace faro::bench
