#include "command/channel_words.h"

#include <fmt/format.h>

#include <iterator>

#include "command/text.h"

namespace faro::command {

using counters::ChannelLife;
using counters::ChannelView;
using counters::EndpointView;

const char* life_name(ChannelLife life) {
  constexpr const char* kNames[] = {"none", "opening", "open", "draining", "ended"};
  const auto number = static_cast<size_t>(life);  // of another version of faro, perhaps
  return number < std::size(kNames) ? kNames[number] : "unknown";
}

std::string peer_name(const ChannelView& channel) {
  return channel.peer.empty() ? channel.address
                              : fmt::format("{} ({})", channel.peer, channel.address);
}

std::string holds_text(uint64_t frames, uint64_t bytes) {
  const std::string held = frames == 0 ? "frames" : counted(frames, "frame");
  return fmt::format("holds {}, {} not released", held, bytes_text(bytes));
}

std::optional<ChannelWait> wait_of(const EndpointView& endpoint, const ChannelView& channel,
                                   bool moved) {
  using For = ChannelWait::For;
  const uint64_t age =
      endpoint.read_ns > channel.since_ns ? endpoint.read_ns - channel.since_ns : 0;
  const auto& counters = channel.counts.counters;
  const uint64_t unreleased = channel.counts.received.unreleased_bytes;
  const std::string room = "room: the peer has not released enough of its frames";
  switch (channel.life) {
    case ChannelLife::opening: {
      std::string what = channel.dialled ? fmt::format("{} to answer", channel.address)
                                         : std::string("its link to be set up");
      if (!channel.failure.empty())
        what += fmt::format("; the last attempt has failed: {}", channel.failure);
      return ChannelWait{For::opening, age, std::move(what)};
    }
    case ChannelLife::ended:
      return ChannelWait{For::release, age,
                         fmt::format("its poller to poll and to release, as it has ended{}{}",
                                     channel.failure.empty() ? "" : ": ", channel.failure)};
    default:
      break;
  }
  if (counters.mending_ns != 0)
    return ChannelWait{For::mending, counters.mending_ns,
                       "its connection, which has broken, to be mended"};
  if (counters.room_ns != 0) return ChannelWait{For::room, counters.room_ns, room};
  if (channel.life == ChannelLife::draining)
    return ChannelWait{For::draining, age, "both sides to have taken all frames: it is drained"};
  if (unreleased == 0 || moved) return std::nullopt;
  return ChannelWait{For::release, 0,
                     fmt::format("its frames to be released here: it {}",
                                 holds_text(counters.held_frames, unreleased))};
}

}  // namespace faro::command
