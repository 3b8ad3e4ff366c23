#include "command/explain_channels.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>
#include <utility>

#include "command/channel_words.h"
#include "command/endpoint_report.h"
#include "command/text.h"

namespace faro::command {
namespace {

using namespace counters;

/// The endpoints of this host by incarnation, by which their peers know them.
using Endpoints = std::map<uint64_t, const EndpointChange*>;

std::string place(const EndpointChange& endpoint) {
  return fmt::format("{} (pid {})", endpoint.now.full_name(), endpoint.now.pid);
}

// What a poller does meanwhile.
std::string doing(const EndpointChange& endpoint, uint32_t poller) {
  if (poller >= endpoint.now.pollers.size()) return "it is not known";  // its file is broken
  const uint64_t asleep = endpoint.now.pollers[poller].asleep_ns;
  const uint64_t polls = endpoint.change.pollers[poller].polls;
  if (polls > 0) {
    return fmt::format("it goes on: {} and {} within {}", counted(polls, "poll"),
                       counted(endpoint.change.pollers[poller].events, "event"),
                       seconds_text(endpoint.seconds));
  }
  if (asleep == 0) return "it makes no call of poll";
  return fmt::format("it has been asleep for {}", seconds_text(static_cast<double>(asleep) / 1e9));
}

// Whoever does not release: the pollers of the peer's endpoint that have channels to this one.
std::vector<std::string> who_holds(const EndpointChange& endpoint, const ChannelView& channel,
                                   const Endpoints& all) {
  const auto found = all.find(channel.incarnation);
  if (found == all.end()) {
    return {fmt::format("{} is on another host, or of another user: run `faro explain` there",
                        peer_name(channel))};
  }
  const EndpointChange& peer = *found->second;
  if (!peer.now.alive) return {fmt::format("{} has ended", place(peer))};
  if (peer.now.stopped) {
    return {fmt::format("{} is stopped: continue it (kill -CONT {}), or let its debugger do so",
                        place(peer), peer.now.pid)};
  }
  struct Held {
    uint64_t frames = 0, bytes = 0;
  };
  std::map<uint32_t, Held> pollers;
  for (const ChannelView& other : peer.now.channels) {
    if (other.incarnation != endpoint.now.incarnation) continue;
    Held& held = pollers[other.poller];
    held.frames += other.counts.counters.held_frames;
    held.bytes += other.counts.received.unreleased_bytes;
  }
  std::vector<std::string> causes;
  for (const auto& [poller, held] : pollers) {
    causes.push_back(
        fmt::format("poller {} of {}: {}{}", poller, place(peer), doing(peer, poller),
                    held.bytes == 0 ? std::string() : "; " + holds_text(held.frames, held.bytes)));
  }
  return causes;
}

ExplainedChannel explained(const EndpointChange& endpoint, const ChannelView& channel,
                           const ChannelWait& wait, const Endpoints& all) {
  ExplainedChannel out;
  out.cluster = endpoint.now.cluster;
  out.endpoint = endpoint.now.full_name();
  out.pid = endpoint.now.pid;
  out.channel = channel.index;
  out.peer = peer_name(channel);
  out.what = wait.what;
  out.seconds = static_cast<double>(wait.ns) / 1e9;
  using For = ChannelWait::For;
  if (wait.kind == For::room || wait.kind == For::draining) {
    out.causes = who_holds(endpoint, channel, all);
  } else if (wait.kind == For::release) {
    out.causes = {fmt::format("poller {} of {}: {}", channel.poller, place(endpoint),
                              doing(endpoint, channel.poller))};
  }
  return out;
}

}  // namespace

std::vector<ExplainedChannel> explain_channels(const std::vector<EndpointChange>& endpoints) {
  Endpoints all;
  for (const EndpointChange& endpoint : endpoints) all[endpoint.now.incarnation] = &endpoint;
  std::vector<ExplainedChannel> channels;
  for (const EndpointChange& endpoint : endpoints) {
    for (size_t c = 0; c < endpoint.now.channels.size(); ++c) {
      const ChannelView& channel = endpoint.now.channels[c];
      const auto wait = wait_of(endpoint.now, channel, has_moved(endpoint.change.channels[c]));
      if (wait) channels.push_back(explained(endpoint, channel, *wait, all));
    }
  }
  return channels;
}

std::string explain_channels_text(const std::vector<ExplainedChannel>& channels) {
  std::string text;
  for (const ExplainedChannel& channel : channels) {
    text +=
        fmt::format("channel {} of {} (pid {}) to {} waits{} for {}\n", channel.channel,
                    channel.endpoint, channel.pid, channel.peer,
                    channel.seconds == 0 ? "" : " " + seconds_text(channel.seconds), channel.what);
    for (const std::string& cause : channel.causes) text += fmt::format("  → {}\n", cause);
  }
  return text;
}

Json explain_channels_json(const std::vector<ExplainedChannel>& channels) {
  Json json = Json::array();
  for (const ExplainedChannel& channel : channels) {
    json.push_back({{"cluster", channel.cluster},
                    {"endpoint", channel.endpoint},
                    {"pid", channel.pid},
                    {"channel", channel.channel},
                    {"peer", channel.peer},
                    {"seconds", channel.seconds},
                    {"for", channel.what},
                    {"causes", channel.causes}});
  }
  return json;
}

}  // namespace faro::command
