// Workers with threads of their own, over one link.
#pragma once

#include <cstdint>

#include "contract/transport_pair.h"

namespace faro::test {

/// All workers of both sides, a thread each and the network threads: they send and receive on all their
/// rings, sleep when they can do neither, and end when `many_frames` have arrived, half of them each
/// way. `reads`: workers that find nothing read the network themselves, as those of a session do. `mends`: how often,
/// evenly distributed over the frames, the link is mended meanwhile.
/// Blocks. Errors become failures of the test.
void run_busy_workers(TransportPair& pair, const PairShape& shape, uint64_t many_frames, bool reads,
                      uint32_t mends = 0);

}  // namespace faro::test
