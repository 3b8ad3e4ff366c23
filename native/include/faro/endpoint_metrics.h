// Counters of endpoints, always on. Each value is exact; together they are of about one moment,
// like those of sessions (faro/metrics.h).
#pragma once

#include "faro/detail/cxx20.h"

#include <cstdint>
#include <string>
#include <vector>

#include "faro/channel_id.h"

#pragma GCC visibility push(default)

namespace faro {

/// What channels have carried: one, or many together. Bytes are those of frames, with headers and
/// padding.
struct ChannelTraffic {
  uint64_t frames_sent = 0;  ///< committed
  uint64_t bytes_sent = 0;
  uint64_t transfers = 0;        ///< started by this side
  uint64_t no_room = 0;          ///< claims that found no room
  uint64_t frames_received = 0;  ///< polled
  uint64_t bytes_received = 0;
  uint64_t read_notifications = 0;  ///< times that the peer was told what is read
  uint64_t unreleased_bytes = 0;    ///< taken and not released now
  uint64_t mended = 0;              ///< times that the connection was broken and made again
};

/// A channel that is open, or is being drained.
struct ChannelMetrics {
  ChannelId channel;
  uint32_t poller = 0;    ///< which one serves it
  std::string peer;       ///< EndpointSpec::name of the peer
  std::string address;    ///< where it listens, or connects from
  std::string transport;  ///< "shm", "tcp", "verbs"
  ChannelTraffic traffic;
};

struct EndpointMetrics {
  uint64_t channels_opened = 0;
  uint64_t channels_closed = 0;     ///< of these, those that were drained, or closed by a side
  uint64_t channels_lost = 0;       ///< of these, those that have ended otherwise
  uint64_t channels_refused = 0;    ///< that have not opened: refused, or nobody answered
  uint64_t memory_bytes = 0;        ///< what channels take now: rings, links, TLS
  uint64_t memory_limit_bytes = 0;  ///< memory.limit_bytes
  uint64_t polls = 0;               ///< calls of poll(), of all pollers, as the next three
  uint64_t events = 0;              ///< that these have told
  uint64_t waits = 0;               ///< calls of wait() and arm() that found nothing at once
  uint64_t sleeps = 0;              ///< on the doorbell
  std::vector<ChannelMetrics> channels;
  ChannelTraffic all;  ///< of all channels, those that are no more included
};

}  // namespace faro

#pragma GCC visibility pop
