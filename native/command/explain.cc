#include "command/explain.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "command/node_ring_keepers.h"
#include "command/text.h"
#include "command/wait_text.h"
#include "counters/descriptions.h"
#include "faro/metrics.h"

namespace faro::command {
namespace {

using namespace counters;

/// The nodes of one cluster on this host: those that know each other's processes. What they know of other nodes may
/// differ: a node that has restarted does not know a node that was lost before.
class Cluster {
 public:
  void add(const NodeChange& node) { nodes_[node.now.node] = &node; }
  /// Whether a node belongs here. Two clusters may have one name.
  bool holds(const NodeChange& other) const {
    const NodeView& a = nodes_.begin()->second->now;
    const NodeView& b = other.now;
    if (a.cluster != b.cluster || a.peers.size() != b.peers.size()) return false;
    return a.node < a.peers.size() && b.node < b.peers.size() &&
           a.peers[a.node].incarnation == b.peers[a.node].incarnation &&
           a.peers[b.node].incarnation == b.peers[b.node].incarnation;
  }
  const std::string& name() const { return nodes_.begin()->second->now.cluster; }
  const std::map<uint32_t, const NodeChange*>& nodes() const { return nodes_; }

  /// nullptr if it is not on this host.
  const NodeChange* node(uint32_t number) const {
    const auto found = nodes_.find(number);
    return found == nodes_.end() ? nullptr : found->second;
  }
  const std::vector<PeerView>& all_nodes() const { return nodes_.begin()->second->now.peers; }
  std::string name_of(uint64_t number) const {
    return number < all_nodes().size() ? all_nodes()[number].name : fmt::format("node {}", number);
  }
  uint32_t node_of(uint64_t worker) const {
    const PeerView* const peer = peer_with(nodes_.begin()->second->now, worker);
    return peer == nullptr ? 0 : peer->node;
  }

 private:
  std::map<uint32_t, const NodeChange*> nodes_;
};

/// How a node that waits for this peer says that they are not linked; empty: they are, or it has no peer of that number.
std::string not_linked(const NodeView& node, const PeerView* peer) {
  if (peer == nullptr || peer->name.empty() || peer->node == node.node ||
      peer->counters.connected != 0)
    return {};
  return fmt::format(
      "{} is not linked with {}: {}; a query waits for that for "
      "connect.timeout_ms at most",
      node.self().name, peer->name,
      peer->was_linked() ? "the link was let go or lost, and is being made again"
                         : "the link is being made, for which both have to be there");
}

const QueryState* find_query(const NodeView& node, const QueryId& id) {
  const auto found = std::find_if(node.queries.begin(), node.queries.end(),
                                  [&id](const QueryState& query) { return query.id == id; });
  return found == node.queries.end() ? nullptr : &*found;
}

/// Follows waits to their ends.
class Follower {
 public:
  explicit Follower(const Cluster& cluster) : cluster_(cluster) {}

  /// The ends of what this worker waits for.
  std::set<std::string> ends_of(uint32_t worker, const QueryId& query) {
    ends_.clear();
    seen_.clear();
    query_ = query;
    follow(worker, "waits");
    if (ends_.empty()) ends_.insert(circle());
    return ends_;
  }

 private:
  /// What of a ring that ends at a node a worker keeps.
  enum class Keeps : uint8_t { nothing, held_frames, untaken_frames };

  /// `fault`: what others are missing from this worker.
  void follow(uint64_t worker, std::string_view fault, Keeps keeps = Keeps::nothing) {
    if (!seen_.insert(worker).second) return;
    const uint32_t number = cluster_.node_of(worker);
    const NodeChange* const node = cluster_.node(number);
    if (node == nullptr) {
      ends_.insert(
          fmt::format("worker {} is on {}, which this user does not see here: run `faro "
                      "explain` there",
                      worker, cluster_.name_of(number)));
      return;
    }
    const size_t local = worker - node->now.self().first_worker;
    if (local >= node->now.workers.size()) return;  // its file is broken
    const WorkerView& view = node->now.workers[local];
    const uint64_t calls = node->change.workers[local].counters.operations;
    if (!node->now.alive) {
      ends_.insert(fmt::format("{} has ended", place(*node, worker)));
    } else if (node->now.stopped) {
      ends_.insert(stopped(*node));
    } else if (view.waits.empty() || (calls == 0 && !sleeps(*node, view))) {
      ends_.insert(calls == 0 ? makes_no_call(*node, view, fault, keeps)
                              : goes_on(*node, view, calls, fault, keeps));
    } else {
      follow_waits(*node, view);
    }
  }

  /// A busy machine may take that long to run a thread that is due.
  static constexpr double kLateness = 1;

  /// Whether it is in a call that waits, or armed for an event loop that has not been told to look
  /// since.
  static bool sleeps(const NodeChange& node, const WorkerView& view) {
    const double due_s = static_cast<double>(age_ns(node.now, view.waits.front().due_ns)) / 1e9;
    return view.waits_in_call() && due_s < node.seconds + kLateness;
  }

  /// What an event loop waits for in other queries counts only if it waits for nothing in this one.
  void follow_waits(const NodeChange& node, const WorkerView& view) {
    const bool is_of_query = std::ranges::any_of(
        view.waits, [this](const WaitView& wait) { return wait.query == query_; });
    for (const WaitView& wait : view.waits) {
      if (!is_of_query || wait.query == query_) follow_wait(node, view, wait);
    }
  }

  void follow_wait(const NodeChange& node, const WorkerView& view, const WaitView& wait) {
    switch (wait.kind) {
      case WaitKind::room:
        return follow_room(node, view.number, wait);
      case WaitKind::rows:
        for (const uint32_t sender : wait.awaited) follow_to(node, sender, "sends nothing");
        return;
      case WaitKind::outcome:
        return follow_outcome(node, wait.query);
      default:
        ends_.insert(
            fmt::format("{} waits for {}", place(node, view.number), wait_text(node.now, wait)));
    }
  }

  /// Nobody is to be blamed for what cannot come yet.
  bool is_unlinked(const NodeChange& node, const PeerView* peer) {
    const std::string why = not_linked(node.now, peer);
    if (!why.empty()) ends_.insert(why);
    return !why.empty();
  }
  void follow_to(const NodeChange& node, uint64_t worker, std::string_view fault) {
    if (!is_unlinked(node, peer_with(node.now, worker))) follow(worker, fault);
  }

  // A ring that ends at a node is kept by the workers that hold frames of it, or have not taken those that lie there, whichever of
  // them the rows of this wait are for.
  void follow_room(const NodeChange& node, uint32_t sender, const WaitView& wait) {
    const NodeChange* const receiver = cluster_.node(cluster_.node_of(wait.peer));
    if (!wait.is_room_at_node() || receiver == nullptr)
      return follow_to(node, wait.peer, "does not drain");
    if (is_unlinked(node, peer_with(node.now, wait.peer))) return;
    const std::vector<RingKeeper> keepers = ring_keepers(receiver->now, sender, wait.stage);
    if (keepers.empty()) return follow_idle(*receiver, wait.peer);
    for (const RingKeeper& keeper : keepers) {
      const std::string fault = fmt::format("keeps that ring, for it {}", keeper.what);
      follow(keeper.worker, fault, keeper.holds ? Keeps::held_frames : Keeps::untaken_frames);
    }
  }

  // Nobody there has looked at what has come, or the last tick was before that.
  void follow_idle(const NodeChange& receiver, uint64_t worker) {
    follow(worker, "does not drain");
    for (const WorkerView& each : receiver.now.workers) {
      if (each.counters.open_shuffles > 0) follow(each.number, "does not look at its node's end");
    }
  }

  // The coordinator waits for nodes, and each of these for its workers. The coordinator only shows the first node that
  // it waits for. The other nodes on this host show themselves what they wait for.
  void follow_outcome(const NodeChange& waiting, const QueryId& id) {
    if (id.issuer < waiting.now.peers.size() && is_unlinked(waiting, &waiting.now.peers[id.issuer]))
      return;
    const NodeChange* const issuer = cluster_.node(id.issuer);
    if (issuer == nullptr) {
      ends_.insert(fmt::format("{} has to tell the outcome: run `faro explain` there",
                               cluster_.name_of(id.issuer)));
      return;
    }
    const QueryState* const state = find_query(issuer->now, id);
    if (state == nullptr || state->nodes_pending == 0) return;
    const auto pending = static_cast<uint32_t>(state->first_node_pending);
    const NodeChange* const first = cluster_.node(pending);
    if (pending < issuer->now.peers.size() && is_unlinked(*issuer, &issuer->now.peers[pending])) {
      // Its workers may wait for something else; they are looked at below.
    } else if (first == nullptr) {
      ends_.insert(fmt::format("{} has not ended its part: run `faro explain` there",
                               cluster_.name_of(pending)));
    } else if (find_query(first->now, id) == nullptr) {
      ends_.insert(fmt::format("{} (pid {}) takes part in the query and has not used it",
                               first->now.self().name, first->now.pid));
    }
    for (const auto& [number, node] : cluster_.nodes()) {
      const QueryState* const part = find_query(node->now, id);
      if (part != nullptr && part->workers_pending > 0)
        follow(part->first_worker_pending, "has not ended its part");
      else if (number == pending && node->now.stopped)
        ends_.insert(stopped(*node));
    }
  }

  static std::string place(const NodeChange& node, uint64_t worker) {
    return fmt::format("worker {} of {} (pid {})", worker, node.now.self().name, node.now.pid);
  }

  static std::string stopped(const NodeChange& node) {
    return fmt::format("{} is stopped: continue it (kill -CONT {}), or let its debugger do so",
                       node.now.self().name, node.now.pid);
  }

  /// Frames in its rings that were not released.
  static std::string holds(const NodeChange& node, const WorkerView& view) {
    std::string text;
    for (const IncomingLane& lane : node.now.incoming) {
      if (lane.receiver != view.number || lane.counters.unreleased_bytes == 0) continue;
      text += fmt::format("{} {} from worker {}", text.empty() ? "; not released:" : ",",
                          bytes_text(lane.counters.unreleased_bytes), lane.sender);
    }
    if (view.counters.held_frames > 0)
      text = fmt::format("; holds {}{}", counted(view.counters.held_frames, "frame"), text);
    return text;
  }

  static std::string makes_no_call(const NodeChange& node, const WorkerView& view,
                                   std::string_view fault, Keeps keeps) {
    constexpr std::string_view kAdvice =
        ". If it waits for another worker of its node by means of the engine's own, it has to "
        "release or detach its batches before that";
    return fmt::format("{} {}: it makes no call of Faro{}{}", place(node, view.number), fault,
                       holds(node, view), keeps == Keeps::held_frames ? kAdvice : "");
  }

  static std::string goes_on(const NodeChange& node, const WorkerView& view, uint64_t calls,
                             std::string_view fault, Keeps keeps) {
    const WorkerValues& change =
        node.change.workers[view.number - node.now.self().first_worker].counters;
    return fmt::format(
        "{} {}is making progress: {}, {} out and {} in within {}{}", place(node, view.number),
        keeps == Keeps::nothing ? "" : fmt::format("{}, and ", fault), counted(calls, "call"),
        counted(change.rows_sent, "row"), counted(change.rows_received, "row"),
        seconds_text(node.seconds), holds(node, view));
  }

  std::string circle() const {
    return fmt::format(
        "these workers wait for each other: {}; or the last of them has just continued",
        few_of({seen_.begin(), seen_.end()}));
  }

  const Cluster& cluster_;
  QueryId query_;
  std::set<std::string> ends_;
  std::set<uint64_t> seen_;
};

void explain_in(const Cluster& cluster, const QueryId& id, ExplainedQuery& out) {
  std::map<std::string, uint32_t> ends;
  Follower follower(cluster);
  for (const auto& [number, node] : cluster.nodes()) {
    const NodeView& now = node->now;
    const QueryState* const state = find_query(now, id);
    if (state == nullptr) continue;
    out.nodes.push_back(number);
    out.seconds = std::max(out.seconds, static_cast<double>(age_ns(now, state->since_ns)) / 1e9);
    out.failed = out.failed || state->life == QueryLife::failed;
    if (state->unopened_worker != kAnyPeer) {
      ++ends[fmt::format("worker {} of {} (pid {}) was sent rows of stage {} and has not opened it",
                         state->unopened_worker, now.self().name, now.pid, state->unopened_stage)];
    }
    for (const PeerView& peer : now.peers) {
      if (peer.counters.mending_ns == 0) continue;
      (void)ends[fmt::format("the link of {} to {} has been broken for {}, and is being mended",
                             now.self().name, peer.name,
                             seconds_text(static_cast<double>(peer.counters.mending_ns) / 1e9))];
    }
    for (const WorkerView& worker : now.workers) {
      for (const OperatorView& each : worker.operators) {
        if (each.query != id) continue;
        out.operators.push_back({number, worker.number, static_cast<uint32_t>(each.stage),
                                 static_cast<OperatorKind>(each.kind) == OperatorKind::join,
                                 each.counters});
      }
      bool waits = false;
      for (const WaitView& wait : worker.waits) {
        if (wait.query != id) continue;
        waits = true;
        out.waits.push_back({number, now.pid, worker.number,
                             static_cast<double>(age_ns(now, wait.since_ns)) / 1e9,
                             wait_text(now, wait)});
      }
      if (!waits) continue;
      const counters::WaitView& first = worker.waits.front();
      if (first.further > 0) {
        out.waits.push_back({number, now.pid, worker.number,
                             static_cast<double>(age_ns(now, first.since_ns)) / 1e9,
                             fmt::format("{} more, of this or other queries", first.further)});
      }
      for (const std::string& end : follower.ends_of(worker.number, id)) ++ends[end];
    }
  }
  for (const auto& [text, waiting] : ends) out.causes.push_back({text, waiting});
  std::stable_sort(out.causes.begin(), out.causes.end(),
                   [](const Cause& a, const Cause& b) { return a.waiting > b.waiting; });
}

/// "4,096 rows in, 16 groups out".
std::string done_text(const ExplainedOperator& one) {
  const OperatorValues& done = one.counters;
  std::string text = fmt::format("{} in, {} out", counted(done.rows_in, "row"),
                                 counted(done.rows_out, one.is_join ? "pair" : "group"));
  if (!one.is_join && done.states_sent > 0) {
    text += fmt::format(", {:.1f} rows per state sent, {}",
                        static_cast<double>(done.rows_in) / static_cast<double>(done.states_sent),
                        done.table_states == 0
                            ? "rows pass the table"
                            : fmt::format("a table of {} states", grouped(done.table_states)));
  }
  text += fmt::format("; holds {}, {} at most", bytes_text(done.held_bytes),
                      bytes_text(done.peak_bytes));
  if (done.partitions_spilled > 0) {
    text += fmt::format("; spilled {}, {}", counted(done.partitions_spilled, "partition"),
                        bytes_text(done.spilled_bytes));
  }
  if (done.passes > 0)
    text += fmt::format("; {} over probe rows once more", counted(done.passes, "pass"));
  return text;
}

std::vector<Cluster> clusters_of(const std::vector<NodeChange>& nodes) {
  std::vector<Cluster> clusters;
  for (const NodeChange& node : nodes) {
    if (!node.now.open) continue;
    const auto known = std::find_if(clusters.begin(), clusters.end(),
                                    [&node](const Cluster& c) { return c.holds(node); });
    (known == clusters.end() ? clusters.emplace_back() : *known).add(node);
  }
  return clusters;
}

}  // namespace

std::vector<ExplainedQuery> explain(const std::vector<NodeChange>& nodes,
                                    const std::string& only_query) {
  std::vector<ExplainedQuery> explained;
  for (const Cluster& cluster : clusters_of(nodes)) {
    std::set<QueryId> ids;
    for (const auto& [number, node] : cluster.nodes()) {
      for (const QueryState& query : node->now.queries) {
        if (only_query.empty() || query.id.to_string() == only_query) ids.insert(query.id);
      }
    }
    for (const QueryId& id : ids) {
      ExplainedQuery& out = explained.emplace_back();
      out.cluster = cluster.name();
      out.query = id.to_string();
      explain_in(cluster, id, out);
    }
  }
  return explained;
}

std::string explain_text(const std::vector<ExplainedQuery>& queries) {
  std::string text;
  for (const ExplainedQuery& query : queries) {
    text += fmt::format("{}query {} of cluster {}: for {}{}, known here to node{} {}\n",
                        text.empty() ? "" : "\n", query.query, query.cluster,
                        seconds_text(query.seconds), query.failed ? ", failed" : "",
                        query.nodes.size() == 1 ? "" : "s", few_of(query.nodes));
    for (const ExplainedWait& wait : query.waits) {
      text += fmt::format("  worker {} (node {}, pid {}) waits {} for {}\n", wait.worker, wait.node,
                          wait.pid, seconds_text(wait.seconds), wait.what);
    }
    if (query.waits.empty()) text += "  no worker of this host waits for anything of it\n";
    for (const ExplainedOperator& one : query.operators) {
      text += fmt::format("  {} at worker {}, stage {}: {}\n", one.is_join ? "join" : "aggregation",
                          one.worker, one.stage, done_text(one));
    }
    for (const Cause& cause : query.causes) {
      text += cause.waiting == 0
                  ? fmt::format("  → {}\n", cause.text)
                  : fmt::format("  → {} ({})\n", cause.text,
                                cause.waiting == 1
                                    ? "1 worker waits for that"
                                    : fmt::format("{} workers wait for that", cause.waiting));
    }
  }
  return text;
}

Json explain_json(const std::vector<ExplainedQuery>& queries) {
  Json json;
  json["queries"] = Json::array();
  for (const ExplainedQuery& query : queries) {
    Json one = {{"cluster", query.cluster},   {"query", query.query},   {"seconds", query.seconds},
                {"nodes", query.nodes},       {"failed", query.failed}, {"waits", Json::array()},
                {"operators", Json::array()}, {"causes", Json::array()}};
    for (const ExplainedWait& wait : query.waits) {
      one["waits"].push_back({{"node", wait.node},
                              {"pid", wait.pid},
                              {"worker", wait.worker},
                              {"seconds", wait.seconds},
                              {"for", wait.what}});
    }
    for (const ExplainedOperator& each : query.operators) {
      Json of_operator = {{"node", each.node},
                          {"worker", each.worker},
                          {"stage", each.stage},
                          {"kind", each.is_join ? "join" : "aggregation"}};
      for_each_counter(
          Scope::an_operator, each.counters,
          [&](const Description& row, uint64_t value) { of_operator[row.name.data()] = value; });
      one["operators"].push_back(std::move(of_operator));
    }
    for (const Cause& cause : query.causes)
      one["causes"].push_back({{"text", cause.text}, {"waiting", cause.waiting}});
    json["queries"].push_back(std::move(one));
  }
  return json;
}

}  // namespace faro::command
