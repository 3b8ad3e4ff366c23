// What the sections of an endpoint's counter file hold; layout.h has the header. README.md in this folder is the page of the
// bytes.
//
// The file grows: it has the records of as many channels as the endpoint had at once, and a few more. A record belongs to the
// index of a channel and is used again by the next one of that index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "counters/layout.h"
#include "counters/records.h"

namespace faro::counters {

enum class EndpointSection : uint32_t {
  descriptions,  ///< Description, one per row of counters.def
  about,         ///< EndpointAbout, one
  endpoint,      ///< EndpointCounters, one
  pollers,       ///< PollerCounters, one per poller
  ended,         ///< EndedChannels, one
  channels,  ///< ChannelRecord, by index: as many as the file has; `count` is the most that it can have
  count,
};
inline constexpr uint32_t kEndpointSections = static_cast<uint32_t>(EndpointSection::count);
static_assert(kEndpointSections <= kSections);

/// What is constant about an endpoint.
struct EndpointAbout {
  Counter incarnation{0};           ///< once it listens
  std::array<char, 264> name{};     ///< EndpointSpec::name; ends with 0
  std::array<char, 112> address{};  ///< where it listens, cut if longer; ends with 0
};
static_assert(sizeof(EndpointAbout) == 384);

enum class ChannelLife : uint64_t {
  none,     ///< there is no channel of this index
  opening,  ///< it is dialled, or set up
  open,
  draining,  ///< a side has begun to drain it
  ended,     ///< its poller has not released all its frames, or its link is leaving
};

/// What a channel is. Replaced with each step of its life.
struct ChannelState {
  ChannelLife life = ChannelLife::none;
  uint64_t since_ns = 0;  ///< in this life
  uint64_t generation = 0;
  uint64_t incarnation = 0;  ///< of the peer; 0: not known yet
  uint64_t poller = 0;
  uint64_t dialled = 0;                        ///< 1: by this side
  uint64_t send_bytes = 0, receive_bytes = 0;  ///< of its rings
  std::array<char, 16> transport{};  ///< "tcp"; all texts end with 0 and are cut if longer
  std::array<char, 64> peer{};       ///< its name
  std::array<char, 48> address{};    ///< of the peer
  std::array<char, 120> failure{};   ///< opening: why the last attempt failed; ended: why
};
static_assert(sizeof(ChannelState) == 312 && std::is_trivially_copyable_v<ChannelState>);

struct ChannelRecord {
  Sequenced<ChannelState> state;
  OutgoingCounters outgoing;
  IncomingCounters incoming;
  ChannelCounters counters;
};
static_assert(sizeof(ChannelRecord) == 512 && offsetof(ChannelRecord, outgoing) == 320);

/// What channels have counted that are no more. `moves` is odd while the counts of one are moved here.
struct alignas(64) EndedChannels {
  Counter moves{0};
  OutgoingCounters outgoing;
  IncomingCounters incoming;
  ChannelCounters counters;
};
static_assert(sizeof(EndedChannels) == 256);

/// The least stride of each section.
inline constexpr std::array<size_t, kEndpointSections> kEndpointRecordBytes = {
    sizeof(Description),    sizeof(EndpointAbout), sizeof(EndpointCounters),
    sizeof(PollerCounters), sizeof(EndedChannels), sizeof(ChannelRecord)};

}  // namespace faro::counters
