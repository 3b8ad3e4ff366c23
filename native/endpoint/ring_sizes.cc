#include "endpoint/ring_sizes.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "links/link_memory.h"

namespace faro::endpoint {
bool is_ring(uint32_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kLeastRingBytes && bytes <= kMostRingBytes;
}

ring::Layout one_ring(uint32_t bytes) {
  return {.sender_workers = 1, .receiver_ends = 1, .rings_per_lane = 1, .ring_bytes = bytes};
}

uint64_t channel_bytes(const transport::Transport& transport, const ring::Layout& outgoing,
                       const ring::Layout& incoming, const base::Settings& settings) {
  return kChannelBytes + links::link_bytes(transport, outgoing, incoming, settings.tls != "off");
}

uint64_t most_memory(std::span<transport::Transport* const> transports,
                     const base::Settings& settings, uint32_t outgoing_bytes,
                     uint32_t incoming_bytes) {
  uint64_t most = 0;
  for (const transport::Transport* const each : transports) {
    most = std::max(
        most, channel_bytes(*each, one_ring(outgoing_bytes), one_ring(incoming_bytes), settings));
  }
  return most;
}

Result<RingSizes> RingSizes::make(const base::Settings& settings,
                                  std::span<transport::Transport* const> transports) {
  if (settings.channel_expected == 0) return RingSizes();
  if (settings.memory_limit_bytes == 0) {
    return base::error(
        Code::config_invalid,
        "channel.expected = {} is a share of memory.limit_bytes, which is 0, no limit: "
        "set that, too",
        settings.channel_expected);
  }
  const uint64_t share = settings.memory_limit_bytes / settings.channel_expected;
  uint32_t most = kMostRingBytes;
  while (most >= kLeastRingBytes && most_memory(transports, settings, most, most) > share)
    most /= 2;
  if (most >= kLeastRingBytes) return RingSizes(most);
  const uint64_t least = most_memory(transports, settings, kLeastRingBytes, kLeastRingBytes);
  return base::error(
      Code::resource_limit,
      "channel.expected = {}: with the smallest rings, of {} bytes each way, these channels "
      "need {} bytes, and memory.limit_bytes is {}; expect fewer, or raise the limit",
      settings.channel_expected, kLeastRingBytes, least * settings.channel_expected,
      settings.memory_limit_bytes);
}

ChannelSpec RingSizes::asked(ChannelSpec spec) const {
  const uint32_t usual = std::min(kUsualRingBytes, most_);
  if (spec.send_bytes == 0) spec.send_bytes = usual;
  if (spec.receive_bytes == 0) spec.receive_bytes = usual;
  return spec;
}

uint32_t RingSizes::allowed(uint32_t asked, uint32_t bytes) const {
  if (bytes == 0) return std::min(asked, most_);
  return std::min(asked, std::max(std::bit_floor(bytes), kLeastRingBytes));
}

}  // namespace faro::endpoint
