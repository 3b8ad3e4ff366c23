#include "command/stat_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "command/counters_json.h"
#include "command/endpoint_report.h"
#include "command/node_ring_keepers.h"
#include "command/text.h"
#include "command/wait_text.h"
#include "counters/descriptions.h"

namespace faro::command {
namespace {

using namespace counters;

// A worker that waits for room for this long gets a line of its own.
constexpr uint64_t kNotDrainingNs = 100'000'000;

std::string age_text(uint64_t ns) { return seconds_text(static_cast<double>(ns) / 1e9); }

/// The share of the time since the previous sample in which a worker was blocked, including its current wait.
double blocked_share(const NodeChange& node, size_t worker) {
  if (node.seconds == 0) return 0;
  const WorkerView& view = node.now.workers[worker];
  uint64_t ns = node.change.workers[worker].counters.blocked_ns;
  if (view.waits_in_call()) ns += age_ns(node.now, view.waits.front().since_ns);
  return std::min(1.0, static_cast<double>(ns) / 1e9 / node.seconds);
}

void add_nodes(Table& table, const std::vector<NodeChange>& nodes) {
  table.add({"node", "pid", "cluster", "up for", "links", "queries", "failed", "overflow memory",
             "overflow file"});
  for (const NodeChange& node : nodes) {
    const NodeView& now = node.now;
    const auto up = std::count_if(now.peers.begin(), now.peers.end(), [](const PeerView& peer) {
      return peer.counters.connected != 0;
    });
    const auto all = std::count_if(now.peers.begin(), now.peers.end(),
                                   [&](const PeerView& peer) { return now.has(peer); });
    const char* const state = !now.alive    ? " (ended)"
                              : now.stopped ? " (stopped)"
                              : !now.open   ? " (connecting)"
                                            : "";
    const auto mending = std::count_if(now.peers.begin(), now.peers.end(), [](const auto& peer) {
      return peer.counters.mending_ns != 0;
    });
    table.add({fmt::format("{}{}", now.node, state), std::to_string(now.pid), now.cluster,
               age_text(age_ns(now, now.created_ns)),
               fmt::format("{} of {}{}", std::max<ptrdiff_t>(0, up - 1), all - 1,
                           mending == 0 ? "" : fmt::format(", {} broken", mending)),
               grouped(now.counters.queries_running), grouped(now.counters.queries_failed),
               bytes_text(now.counters.overflow_memory_bytes),
               bytes_text(now.counters.overflow_file_bytes)});
  }
}

/// A query, combined from all nodes of this host that know it.
void add_queries(Table& table, const std::vector<NodeChange>& nodes) {
  bool any = false;
  for (const NodeChange& node : nodes) {
    for (const QueryState& query : node.now.queries) {
      if (!std::exchange(any, true)) {
        table.add_line("");
        table.add({"query", "on node", "for", "state", "workers not done", "overflow"});
      }
      const char* const life = query.life == QueryLife::failed  ? "failed"
                               : query.life == QueryLife::ended ? "ended"
                                                                : "running";
      table.add({query.id.to_string(), std::to_string(node.now.node),
                 age_text(age_ns(node.now, query.since_ns)), life, grouped(query.workers_pending),
                 bytes_text(query.overflow_bytes)});
    }
  }
}

struct WorkerLine {
  const NodeChange* node;
  size_t index;
  const WorkerView& now() const { return node->now.workers[index]; }
  const WorkerValues& change() const { return node->change.workers[index].counters; }
};

void add_workers(Table& table, const std::vector<NodeChange>& nodes, const StatOrder& order) {
  std::vector<WorkerLine> lines;
  for (const NodeChange& node : nodes) {
    for (size_t w = 0; w < node.now.workers.size(); ++w) lines.push_back({&node, w});
  }
  if (order.by_rate) {
    std::stable_sort(lines.begin(), lines.end(), [](const WorkerLine& a, const WorkerLine& b) {
      return a.change().rows_sent + a.change().rows_received >
             b.change().rows_sent + b.change().rows_received;
    });
  }
  table.add_line("");
  table.add({"worker", "rows/s out", "rows/s in", "blocked", "spilled/s", "out overflow/s", "held",
             "shuffles", "waits for"});
  for (size_t i = 0; i < lines.size() && i < order.most_workers; ++i) {
    const NodeChange& node = *lines[i].node;
    const WorkerView& now = lines[i].now();
    const WorkerValues& change = lines[i].change();
    std::string waits = waits_text(node.now, now);
    if (!waits.empty())
      waits = fmt::format("{}: {}", age_text(age_ns(node.now, now.waits.front().since_ns)), waits);
    table.add({std::to_string(now.number), rate_text(node.per_second(change.rows_sent)),
               rate_text(node.per_second(change.rows_received)),
               fmt::format("{:.0f} %", 100 * blocked_share(node, lines[i].index)),
               byte_rate_text(node.per_second(change.bytes_spilled)),
               byte_rate_text(node.per_second(change.bytes_out_overflow)),
               grouped(now.counters.held_frames), grouped(now.counters.open_shuffles),
               std::move(waits)});
  }
  if (lines.size() > order.most_workers)
    table.add_line(
        fmt::format("and {}", counted(lines.size() - order.most_workers, "more worker")));
}

/// What lies at the end of each node at which lanes end, and for which of its workers.
void add_node_ends(Table& table, const std::vector<NodeChange>& nodes) {
  bool any = false;
  for (const NodeChange& node : nodes) {
    const NodeView& now = node.now;
    if (!now.lanes.end_at_nodes) continue;
    if (!std::exchange(any, true)) {
      table.add_line("");
      table.add({"node's end", "frames", "streams", "for worker", "streams", "not taken for"});
    }
    table.add({std::to_string(now.node), grouped(now.node_end.untaken_frames),
               grouped(now.node_end.untaken_streams)});
    for (const WorkerView& worker : now.workers) {
      if (worker.at_node_end.streams == 0) continue;
      const uint64_t untaken_ns = worker.at_node_end.untaken_ns;
      table.add({"", "", "", std::to_string(worker.number), grouped(worker.at_node_end.streams),
                 untaken_ns == 0 ? "-" : age_text(untaken_ns)});
    }
  }
}

/// Adds who keeps the ring for whose room a worker waits, if its node is on this host.
void add_keepers(std::set<std::string>& keepers, const std::vector<NodeChange>& nodes,
                 const NodeView& waiting, uint64_t receiver, uint32_t sender,
                 const WaitView& wait) {
  for (const NodeChange& node : nodes) {
    if (node.now.cluster != waiting.cluster || node.now.node != receiver) continue;
    for (const RingKeeper& keeper : ring_keepers(node.now, sender, wait.stage))
      keepers.insert(fmt::format("worker {} {}", keeper.worker, keeper.what));
  }
}

void add_not_draining(Table& table, const std::vector<NodeChange>& nodes) {
  struct Longest {
    uint64_t ns = 0;
    uint64_t waiting = 0;
    std::set<std::string> keepers;
  };
  // By cluster, and the worker, or the node where lanes end at nodes.
  std::map<std::tuple<std::string, bool, uint64_t>, Longest> receivers;
  for (const NodeChange& node : nodes) {
    for (const WorkerView& worker : node.now.workers) {
      std::set<uint64_t> awaited;  // one worker may wait for room of several stages
      for (const WaitView& wait : worker.waits) {
        const uint64_t ns = age_ns(node.now, wait.since_ns);
        if (wait.kind != WaitKind::room || ns < kNotDrainingNs) continue;
        const PeerView* const peer = peer_with(node.now, wait.peer);
        const bool is_node = wait.is_room_at_node() && peer != nullptr;
        const uint64_t receiver = is_node ? peer->node : wait.peer;
        Longest& longest = receivers[{node.now.cluster, is_node, receiver}];
        longest.ns = std::max(longest.ns, ns);
        if (awaited.insert(receiver).second) ++longest.waiting;
        if (is_node) add_keepers(longest.keepers, nodes, node.now, receiver, worker.number, wait);
      }
    }
  }
  if (receivers.empty()) return;
  table.add_line("");
  for (const auto& [receiver, longest] : receivers) {
    table.add_line(fmt::format(
        "! {} {} does not drain: {} for room in its rings, {} so far",
        std::get<1>(receiver) ? "node" : "worker", std::get<2>(receiver),
        longest.waiting == 1 ? "1 worker waits" : fmt::format("{} workers wait", longest.waiting),
        age_text(longest.ns)));
    for (const std::string& keeper : longest.keepers) table.add_line("    " + keeper);
  }
}

/// A lane from one worker to another, of which one end or both are on this host.
struct LaneLine {
  uint64_t sender = 0, receiver = 0;
  bool to_node = false;  // what was sent by it ends at the receiver's node, for all of its workers
  double frames = 0, bytes = 0, no_room = 0;  // per second
  std::optional<double> threshold_fill;
  uint64_t unreleased_bytes = 0;
};

/// How full the threshold is when a transfer starts, 1 = transfer.threshold_bytes: for the transfers in the interval,
/// or for all if there were none. Pending bytes are flushed before a wait, so an idle lane has none below its
/// threshold.
std::optional<double> threshold_fill(const NodeView& node, const OutgoingLane& total,
                                     const OutgoingLane& change) {
  const OutgoingValues& of = change.counters.transfers > 0 ? change.counters : total.counters;
  if (of.transfers == 0 || node.lanes.threshold_bytes == 0) return std::nullopt;
  return static_cast<double>(of.bytes_sent) /
         (static_cast<double>(of.transfers) * static_cast<double>(node.lanes.threshold_bytes));
}

std::vector<LaneLine> lanes_of(const std::vector<NodeChange>& nodes) {
  std::map<std::tuple<std::string, uint32_t, bool, uint32_t>, LaneLine> lanes;
  for (const NodeChange& node : nodes) {
    for (size_t i = 0; i < node.change.outgoing.size(); ++i) {
      const OutgoingLane& out = node.change.outgoing[i];
      const PeerView* const peer = peer_with(node.now, out.receiver);
      const bool to_node = !node.now.lanes.end_at_workers && peer != nullptr;
      LaneLine& lane =
          lanes[{node.now.cluster, out.sender, to_node, to_node ? peer->node : out.receiver}];
      lane.frames = node.per_second(out.counters.frames_sent);
      lane.bytes = node.per_second(out.counters.bytes_sent);
      lane.no_room = node.per_second(out.counters.no_room);
      lane.threshold_fill = threshold_fill(node.now, node.now.outgoing[i], out);
    }
    for (const IncomingLane& in : node.change.incoming) {
      LaneLine& lane = lanes[{node.now.cluster, in.sender, false, in.receiver}];
      lane.frames = std::max(lane.frames, node.per_second(in.counters.frames_received));
      lane.bytes = std::max(lane.bytes, node.per_second(in.counters.bytes_received));
      lane.unreleased_bytes = in.counters.unreleased_bytes;
    }
  }
  std::vector<LaneLine> lines;
  for (auto& [key, lane] : lanes) {
    lane.sender = std::get<1>(key);
    lane.to_node = std::get<2>(key);
    lane.receiver = std::get<3>(key);
    lines.push_back(lane);
  }
  return lines;
}

void add_lanes(Table& table, const std::vector<NodeChange>& nodes, const StatOrder& order) {
  std::vector<LaneLine> lines = lanes_of(nodes);
  if (!order.idle_too) {
    std::erase_if(lines, [](const LaneLine& lane) {
      return lane.bytes == 0 && lane.no_room == 0 && lane.unreleased_bytes == 0;
    });
  }
  if (order.by_rate) {
    std::stable_sort(lines.begin(), lines.end(),
                     [](const LaneLine& a, const LaneLine& b) { return a.bytes > b.bytes; });
  }
  table.add_line("");
  table.add({"lane", "frames/s", "bytes/s", "threshold fill", "no room/s", "unreleased"});
  for (size_t i = 0; i < lines.size() && i < order.most_lanes; ++i) {
    const LaneLine& lane = lines[i];
    table.add({fmt::format("{} → {}{}", lane.sender, lane.to_node ? "node " : "", lane.receiver),
               rate_text(lane.frames), byte_rate_text(lane.bytes),
               lane.threshold_fill ? fmt::format("{:.0f} %", 100 * *lane.threshold_fill) : "-",
               rate_text(lane.no_room), bytes_text(lane.unreleased_bytes)});
  }
  if (lines.size() > order.most_lanes)
    table.add_line(fmt::format("and {}", counted(lines.size() - order.most_lanes, "more lane")));
  if (lines.empty()) table.add_line("nothing moves on any lane");
}

Json wait_json(const NodeView& node, const WaitView& wait) {
  Json json;
  json["kind"] = wait_name(wait.kind);
  json["seconds"] = static_cast<double>(age_ns(node, wait.since_ns)) / 1e9;
  json["in_call"] = wait.in_call != 0;
  if (wait.query.counter != 0) json["query"] = wait.query.to_string();
  if (wait.kind == WaitKind::rows || wait.kind == WaitKind::room) json["stage"] = wait.stage;
  if (wait.kind == WaitKind::room) json["worker"] = wait.peer;
  if (wait.kind == WaitKind::rows) json["workers"] = wait.awaited;
  return json;
}

/// `wait` is the first one, whose kind is "none" if there is none.
void add_waits(Json& json, const NodeView& node, const WorkerView& worker) {
  json["waits"] = Json::array();
  for (const WaitView& wait : worker.waits) json["waits"].push_back(wait_json(node, wait));
  json["wait"] =
      worker.waits.empty() ? Json{{"kind", wait_name(WaitKind::none)}} : json["waits"][0];
}

Json node_end_json(const NodeChange& node) {
  const NodeView& now = node.now;
  Json json;
  json["counters"] = values_json(Scope::node_end, now.node_end, node.change.node_end, node);
  json["untaken"] = Json::array();
  for (const UntakenStream& stream : now.untaken) {
    json["untaken"].push_back(
        {{"query", stream.query.to_string()},
         {"stage", stream.stage},
         {"sender", stream.sender},
         {"readers", readers_of(now, stream)},
         {"any_reader", stream.reader == kAnyPeer},
         {"frames", stream.frames},
         {"bytes", stream.bytes},
         {"seconds", static_cast<double>(age_ns(now, stream.since_ns)) / 1e9}});
  }
  return json;
}

Json node_json(const NodeChange& node) {
  const NodeView& now = node.now;
  Json json;
  json["node"] = now.node;
  json["name"] = now.self().name;
  json["cluster"] = now.cluster;
  json["pid"] = now.pid;
  json["alive"] = now.alive;
  json["stopped"] = now.stopped;
  json["open"] = now.open;
  json["file"] = now.path;
  json["seconds"] = node.seconds;
  json["threshold_bytes"] = now.lanes.threshold_bytes;
  json["counters"] = values_json(Scope::node, now.counters, node.change.counters, node);
  json["links"] = Json::array();
  for (size_t i = 0; i < now.peers.size(); ++i) {
    const PeerView& peer = now.peers[i];
    if (!now.has(peer)) continue;
    json["links"].push_back({{"node", peer.node},
                             {"name", peer.name},
                             {"transport", peer.transport},
                             {"counters", values_json(Scope::peer, peer.counters,
                                                      node.change.peers[i].counters, node)}});
  }
  json["workers"] = Json::array();
  for (size_t i = 0; i < now.workers.size(); ++i) {
    const WorkerView& worker = now.workers[i];
    json["workers"].push_back({{"worker", worker.number},
                               {"counters", values_json(Scope::worker, worker.counters,
                                                        node.change.workers[i].counters, node)},
                               {"blocked_share", blocked_share(node, i)}});
    add_waits(json["workers"].back(), now, worker);
    if (now.lanes.end_at_nodes) {
      json["workers"].back()["node_end"] =
          values_json(Scope::reader, worker.at_node_end, node.change.workers[i].at_node_end, node);
    }
  }
  if (now.lanes.end_at_nodes) json["node_end"] = node_end_json(node);
  json["queries"] = Json::array();
  for (const QueryState& query : now.queries) {
    json["queries"].push_back({{"query", query.id.to_string()},
                               {"seconds", static_cast<double>(age_ns(now, query.since_ns)) / 1e9},
                               {"failed", query.life == QueryLife::failed},
                               {"ended", query.life == QueryLife::ended},
                               {"workers_pending", query.workers_pending},
                               {"nodes_pending", query.nodes_pending},
                               {"overflow_bytes", query.overflow_bytes}});
  }
  json["outgoing_lanes"] = Json::array();
  for (size_t i = 0; i < now.outgoing.size(); ++i) {
    const OutgoingLane& lane = now.outgoing[i];
    const auto fill = threshold_fill(now, lane, node.change.outgoing[i]);
    json["outgoing_lanes"].push_back(
        {{"sender", lane.sender},
         {"receiver", lane.receiver},
         {"threshold_fill", fill ? Json(*fill) : Json()},
         {"counters",
          values_json(Scope::outgoing, lane.counters, node.change.outgoing[i].counters, node)}});
  }
  json["incoming_lanes"] = Json::array();
  for (size_t i = 0; i < now.incoming.size(); ++i) {
    const IncomingLane& lane = now.incoming[i];
    json["incoming_lanes"].push_back(
        {{"sender", lane.sender},
         {"receiver", lane.receiver},
         {"counters",
          values_json(Scope::incoming, lane.counters, node.change.incoming[i].counters, node)}});
  }
  return json;
}

}  // namespace

std::string rate_text(double per_second) { return per_second == 0 ? "-" : scaled(per_second); }

std::string byte_rate_text(double per_second) {
  return per_second == 0 ? "-" : bytes_text(static_cast<uint64_t>(per_second));
}

std::string stat_text(const Sample& sample, const StatOrder& order) {
  const std::vector<NodeChange>& nodes = sample.nodes;
  std::string text;
  const auto section = [&text](auto add) {
    Table table("lrrrrrrrl");
    add(table);
    text += table.text();
  };
  if (!nodes.empty()) {
    section([&](Table& table) { add_nodes(table, nodes); });
    section([&](Table& table) { add_queries(table, nodes); });
    section([&](Table& table) { add_workers(table, nodes, order); });
    section([&](Table& table) { add_node_ends(table, nodes); });
    section([&](Table& table) { add_not_draining(table, nodes); });
    section([&](Table& table) { add_lanes(table, nodes, order); });
  }
  if (!sample.endpoints.empty())
    text += (nodes.empty() ? "" : "\n") + endpoints_text(sample.endpoints, order);
  return text;
}

Json stat_json(const Sample& sample) {
  Json json;
  json["nodes"] = Json::array();
  for (const NodeChange& node : sample.nodes) json["nodes"].push_back(node_json(node));
  json["endpoints"] = endpoints_json(sample.endpoints);
  return json;
}

}  // namespace faro::command
