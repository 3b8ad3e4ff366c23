// What a channel costs: frames from one process to another, and empty frames there and back, beside what cannot be had for
// less: the two copies alone, a bare ring, a socket that does the same, two processes that wake each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"
#include "lab/bench/process_group.h"

namespace faro::bench {

/// Each frame is copied from the sender's memory into the ring, and from the ring into the receiver's. Its first and its last
/// word are its number, which the receiver checks.
struct ChannelJob {
  uint32_t frame_bytes = 32 * 1024;  ///< the user's; a multiple of 8, at least 16
  uint64_t frame_count = 100'000;    ///< of a round
  uint32_t frames_per_post = 1;      ///< or per writev of the socket; up to kMostPerPost
  uint64_t trip_count = 50'000;      ///< empty frames there and back, of a round
  uint32_t ring_bytes = 256 * 1024;
  uint32_t rounds = 5;  ///< of which the median is taken; one more, before them, does not count

  static constexpr uint32_t kMostPerPost = 8;

  /// Errors: invalid_argument.
  Status validate() const;

  /// Whether what is committed is posted after this frame.
  bool is_posted_after(uint64_t number) const {
    return (number + 1) % frames_per_post == 0 || number + 1 == frame_count;
  }
};

/// What carries the frames of a job.
enum class ChannelCarrier : uint8_t {
  copies,  ///< one process copies each frame twice
  /// two processes, as many frames in shared memory as fit the ring, two positions; a side that
  /// waits yields
  bare_ring,
  channel,  ///< an endpoint each, over the transport of the configuration
  socket,   ///< writev of headers and frames, read into place; TCP over loopback
};

/// Medians. Verified: all frames came, whole and in order.
struct ChannelFigures {
  double seconds = 0;
  double cpu_seconds = 0;  ///< of both processes
  bool verified = false;
};

/// Frames one way. Blocks: as long as it takes. Errors: as ProcessGroup::run.
Result<ChannelFigures> run_frames(const ChannelJob& job, ChannelCarrier carrier,
                                  const Config& config);
/// Empty frames there and back. `copies`: two processes that wake each other by a futex; `bare_ring`: that yield.
Result<ChannelFigures> run_trips(const ChannelJob& job, ChannelCarrier carrier,
                                 const Config& config);

}  // namespace faro::bench
