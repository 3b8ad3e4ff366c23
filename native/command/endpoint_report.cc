#include "command/endpoint_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "command/channel_words.h"
#include "command/counters_json.h"
#include "command/text.h"

namespace faro::command {
namespace {

using namespace counters;

std::string age_text(uint64_t ns) { return seconds_text(static_cast<double>(ns) / 1e9); }

void add_endpoints(Table& table, const std::vector<EndpointChange>& endpoints) {
  table.add({"endpoint", "pid", "up for", "channels", "opened", "closed", "lost", "refused",
             "memory", "mended", "cluster"});
  for (const EndpointChange& endpoint : endpoints) {
    const EndpointView& now = endpoint.now;
    const EndpointValues& counted = now.counters;
    const char* const state = !now.alive               ? " (ended)"
                              : now.stopped            ? " (stopped)"
                              : counted.listening == 0 ? " (closed)"
                                                       : "";
    table.add({now.full_name() + state, std::to_string(now.pid),
               age_text(now.read_ns - std::min(now.read_ns, now.created_ns)),
               grouped(counted.channels_open), grouped(counted.channels_opened),
               grouped(counted.channels_closed), grouped(counted.channels_lost),
               grouped(counted.channels_refused), bytes_text(counted.memory_bytes),
               grouped(now.all.counters.mended), now.cluster});
  }
}

/// Frames that channels of a poller hold.
uint64_t held_by(const EndpointView& endpoint, uint32_t poller) {
  uint64_t frames = 0;
  for (const ChannelView& channel : endpoint.channels)
    frames += channel.poller == poller ? channel.counts.counters.held_frames : 0;
  return frames;
}

void add_pollers(Table& table, const std::vector<EndpointChange>& endpoints) {
  table.add({"poller", "polls/s", "events/s", "waits/s", "sleeps/s", "held", "asleep for"});
  for (const EndpointChange& endpoint : endpoints) {
    for (uint32_t p = 0; p < endpoint.now.pollers.size(); ++p) {
      const PollerValues& change = endpoint.change.pollers[p];
      const uint64_t asleep = endpoint.now.pollers[p].asleep_ns;
      const auto rate = [&](uint64_t added) { return rate_text(endpoint.per_second(added)); };
      table.add({fmt::format("{} of {}", p, endpoint.now.full_name()), rate(change.polls),
                 rate(change.events), rate(change.waits), rate(change.sleeps),
                 grouped(held_by(endpoint.now, p)), asleep == 0 ? "-" : age_text(asleep)});
    }
  }
}

struct ChannelLine {
  const EndpointChange* endpoint;
  size_t index;
  const ChannelView& now() const { return endpoint->now.channels[index]; }
  const ChannelCounts& change() const { return endpoint->change.channels[index].counts; }
  uint64_t bytes() const { return change().sent.bytes_sent + change().received.bytes_received; }
  std::optional<ChannelWait> wait() const {
    return wait_of(endpoint->now, now(), has_moved(endpoint->change.channels[index]));
  }
};

std::vector<ChannelLine> lines_of(const std::vector<EndpointChange>& endpoints,
                                  const StatOrder& order) {
  std::vector<ChannelLine> lines;
  for (const EndpointChange& endpoint : endpoints) {
    for (size_t c = 0; c < endpoint.now.channels.size(); ++c) {
      const ChannelLine line{&endpoint, c};
      if (order.idle_too || line.bytes() > 0 || line.wait()) lines.push_back(line);
    }
  }
  if (order.by_rate) {
    std::stable_sort(lines.begin(), lines.end(), [](const ChannelLine& a, const ChannelLine& b) {
      return a.bytes() > b.bytes();
    });
  }
  return lines;
}

void add_channels(Table& table, const std::vector<EndpointChange>& endpoints,
                  const StatOrder& order) {
  const std::vector<ChannelLine> lines = lines_of(endpoints, order);
  table.add({"channel", "frames/s out", "bytes/s out", "frames/s in", "bytes/s in", "no room/s",
             "unreleased", "by", "waits for"});
  for (size_t i = 0; i < lines.size() && i < order.most_lanes; ++i) {
    const EndpointChange& endpoint = *lines[i].endpoint;
    const ChannelView& now = lines[i].now();
    const ChannelCounts& change = lines[i].change();
    const auto wait = lines[i].wait();
    std::string waits;
    if (wait) waits = wait->ns == 0 ? wait->what : age_text(wait->ns) + ": " + wait->what;
    table.add({fmt::format("{} of {} → {}", now.index, endpoint.now.full_name(), peer_name(now)),
               rate_text(endpoint.per_second(change.sent.frames_sent)),
               byte_rate_text(endpoint.per_second(change.sent.bytes_sent)),
               rate_text(endpoint.per_second(change.received.frames_received)),
               byte_rate_text(endpoint.per_second(change.received.bytes_received)),
               rate_text(endpoint.per_second(change.sent.no_room)),
               bytes_text(now.counts.received.unreleased_bytes), now.transport, std::move(waits)});
  }
  if (lines.size() > order.most_lanes)
    table.add_line(fmt::format("and {}", counted(lines.size() - order.most_lanes, "more channel")));
  if (lines.empty()) table.add_line("nothing moves on any channel");
}

Json counts_json(const ChannelCounts& now, const ChannelCounts& change,
                 const EndpointChange& whole) {
  return {{"outgoing", values_json(Scope::outgoing, now.sent, change.sent, whole)},
          {"incoming", values_json(Scope::incoming, now.received, change.received, whole)},
          {"counters", values_json(Scope::channel, now.counters, change.counters, whole)}};
}

Json channel_json(const EndpointChange& endpoint, size_t index) {
  const ChannelLine line{&endpoint, index};
  const ChannelView& now = line.now();
  Json json;
  json["channel"] = now.index;
  json["generation"] = now.generation;
  json["peer"] = now.peer;
  json["address"] = now.address;
  json["incarnation"] = now.incarnation;
  json["state"] = life_name(now.life);
  json["seconds"] =
      static_cast<double>(endpoint.now.read_ns - std::min(endpoint.now.read_ns, now.since_ns)) /
      1e9;
  json["transport"] = now.transport;
  json["poller"] = now.poller;
  json["dialled"] = now.dialled;
  json["send_bytes"] = now.send_bytes;
  json["receive_bytes"] = now.receive_bytes;
  json["failure"] = now.failure;
  const auto wait = line.wait();
  json["waits_for"] = wait ? Json(wait->what) : Json();
  json.update(counts_json(now.counts, line.change(), endpoint));
  return json;
}

Json endpoint_json(const EndpointChange& endpoint) {
  const EndpointView& now = endpoint.now;
  Json json;
  json["name"] = now.name;
  json["address"] = now.address;
  json["cluster"] = now.cluster;
  json["pid"] = now.pid;
  json["alive"] = now.alive;
  json["stopped"] = now.stopped;
  json["incarnation"] = now.incarnation;
  json["file"] = now.path;
  json["seconds"] = endpoint.seconds;
  json["counters"] = values_json(Scope::endpoint, now.counters, endpoint.change.counters, endpoint);
  json["all_channels"] = counts_json(now.all, endpoint.change.all, endpoint);
  json["pollers"] = Json::array();
  for (size_t p = 0; p < now.pollers.size(); ++p)
    json["pollers"].push_back(
        values_json(Scope::poller, now.pollers[p], endpoint.change.pollers[p], endpoint));
  json["channels"] = Json::array();
  for (size_t c = 0; c < now.channels.size(); ++c)
    json["channels"].push_back(channel_json(endpoint, c));
  return json;
}

}  // namespace

bool has_moved(const ChannelView& change) {
  return change.counts.sent.frames_sent > 0 || change.counts.received.frames_received > 0;
}

std::string endpoints_text(const std::vector<EndpointChange>& endpoints, const StatOrder& order) {
  Table all("lrrrrrrrrrl");
  add_endpoints(all, endpoints);
  Table pollers("lrrrrrr");
  add_pollers(pollers, endpoints);
  Table channels("lrrrrrrll");
  add_channels(channels, endpoints, order);
  return all.text() + "\n" + pollers.text() + "\n" + channels.text();
}

Json endpoints_json(const std::vector<EndpointChange>& endpoints) {
  Json json = Json::array();
  for (const EndpointChange& endpoint : endpoints) json.push_back(endpoint_json(endpoint));
  return json;
}

}  // namespace faro::command
