// RingSizes: how large the rings of channels are, where nobody says so and where both sides do.
//
//   dialling side    ChannelSpec, or else the usual size, or less if the budget is small      ──►  HELLO asks
//   accepting side   the lesser of that and of ChannelAcceptance, or else of what the budget allows   ──►  LINK decides
#pragma once

#include <cstdint>
#include <span>

#include "base/settings.h"
#include "faro/endpoint.h"
#include "faro/status.h"
#include "ring/layout.h"
#include "transport/transport.h"
#include "wire/control.h"

namespace faro::endpoint {

inline constexpr uint32_t kLeastRingBytes = wire::ChannelRings::kLeastBytes;
inline constexpr uint32_t kUsualRingBytes = 256u << 10;
inline constexpr uint32_t kMostRingBytes = 256u << 20;

/// Whether a ring of a channel can have that size.
bool is_ring(uint32_t bytes);

/// The only ring of a direction.
ring::Layout one_ring(uint32_t bytes);

/// What a channel takes beside its link: at its poller, in the table of channels, in the counter file.
inline constexpr uint64_t kChannelBytes = 1536;

/// What a channel with these rings takes of memory.limit_bytes, beside its greeting.
uint64_t channel_bytes(const transport::Transport& transport, const ring::Layout& outgoing,
                       const ring::Layout& incoming, const base::Settings& settings);

/// What a channel with such rings takes over that of the transports which takes most: which of them
/// a peer gets is not known before it comes.
uint64_t most_memory(std::span<transport::Transport* const> transports,
                     const base::Settings& settings, uint32_t outgoing_bytes,
                     uint32_t incoming_bytes);

/// Threads: any; constant.
class RingSizes {
 public:
  /// No budget.
  RingSizes() = default;
  /// Such that channel.expected channels fit memory.limit_bytes, over each of the transports. Errors: config_invalid, if
  /// there is no limit; resource_limit, if they do not fit with the smallest rings.
  static Result<RingSizes> make(const base::Settings& settings,
                                std::span<transport::Transport* const> transports);

  /// What the dialling side asks for. 0 in `spec` stands for what is usual, or less.
  ChannelSpec asked(ChannelSpec spec) const;
  /// What the accepting side allows of what it is asked for, if its answer says `bytes`. 0: all that the budget allows.
  uint32_t allowed(uint32_t asked, uint32_t bytes) const;

 private:
  explicit RingSizes(uint32_t most) : most_(most) {}

  uint32_t most_ = kMostRingBytes;
};

}  // namespace faro::endpoint
