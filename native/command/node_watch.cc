#include "command/node_watch.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/return_if_error.h"
#include "counters/counter_file.h"
#include "counters/descriptions.h"
#include "faro/config.h"

namespace faro::command {
namespace {

using namespace counters;

template <typename Values>
void subtract(Scope scope, const Values& before, Values& now) {
  for (const Description& row : descriptions()) {
    if (row.scope != scope || row.kind != Kind::total) continue;
    const uint64_t from = value_at(before, row);
    uint64_t& to = value_in(now, row);
    to = to > from ? to - from : 0;
  }
}

// A lane that was not there has counted nothing.
template <typename Lane>
void subtract_lanes(Scope scope, const std::vector<Lane>& before, std::vector<Lane>& now) {
  std::map<std::pair<uint32_t, uint32_t>, const Lane*> known;
  for (const Lane& lane : before) known[{lane.sender, lane.receiver}] = &lane;
  for (Lane& lane : now) {
    const auto found = known.find({lane.sender, lane.receiver});
    if (found != known.end()) subtract(scope, found->second->counters, lane.counters);
  }
}

// Two views of one file have the same nodes and workers.
NodeView difference(const NodeView& before, NodeView now) {
  subtract(Scope::node, before.counters, now.counters);
  for (size_t i = 0; i < now.peers.size(); ++i)
    subtract(Scope::peer, before.peers[i].counters, now.peers[i].counters);
  for (size_t i = 0; i < now.workers.size(); ++i)
    subtract(Scope::worker, before.workers[i].counters, now.workers[i].counters);
  subtract_lanes(Scope::outgoing, before.outgoing, now.outgoing);
  subtract_lanes(Scope::incoming, before.incoming, now.incoming);
  return now;
}

void subtract(const ChannelCounts& before, ChannelCounts& now) {
  subtract(Scope::outgoing, before.sent, now.sent);
  subtract(Scope::incoming, before.received, now.received);
  subtract(Scope::channel, before.counters, now.counters);
}

EndpointView difference(const EndpointView& before, EndpointView now) {
  subtract(Scope::endpoint, before.counters, now.counters);
  for (size_t i = 0; i < now.pollers.size() && i < before.pollers.size(); ++i)
    subtract(Scope::poller, before.pollers[i], now.pollers[i]);
  subtract(before.all, now.all);
  auto old = before.channels.begin();  // both are sorted by index
  for (ChannelView& channel : now.channels) {
    while (old != before.channels.end() && old->index < channel.index) ++old;
    const bool is_same = old != before.channels.end() && old->index == channel.index &&
                         old->generation == channel.generation;
    if (is_same) subtract(old->counts, channel.counts);
  }
  return now;
}

}  // namespace

void NodeWatch::add_to(CLI::App& app) {
  app.add_option("--pid", pid_, "Only the nodes and endpoints of this process")->type_name("PID");
  app.add_option("--counter-file", file_, "Only this file, even if its process has ended")
      ->type_name("PATH");
  app.add_option("--folder", folder_, "Folder of the files (default: the setting counters.folder)")
      ->type_name("PATH");
  settings_.add_to(app);
}

Status NodeWatch::open_new(const std::string& path) {
  if (nodes_.count(path) != 0 || endpoints_.count(path) != 0) return Status::Ok();
  const bool named = path == file_;
  FARO_ASSIGN_OR_RETURN(const FileKind kind, kind_of(path, named));
  if (kind == FileKind::endpoint) {
    FARO_ASSIGN_OR_RETURN(auto reader, EndpointCounterView::open(path, named));
    endpoints_[path].reader = std::move(reader);
  } else {
    FARO_ASSIGN_OR_RETURN(auto reader, CounterView::open(path, named));
    nodes_[path].reader = std::move(reader);
  }
  return Status::Ok();
}

template <typename Change, typename Reader, typename View>
std::vector<Change> NodeWatch::look_at(KnownFiles<Reader, View>& files) {
  std::vector<Change> changes;
  for (auto known = files.begin(); known != files.end();) {
    View now = known->second.reader->read();
    if (file_.empty() && !now.alive) {
      known = files.erase(known);
      continue;
    }
    std::optional<View>& last = known->second.last;
    if (pid_ == 0 || now.pid == pid_) {
      Change change;
      change.change = last ? difference(*last, now) : now;
      change.seconds = last ? static_cast<double>(now.read_ns - last->read_ns) / 1e9 : 0;
      change.now = now;
      changes.push_back(std::move(change));
    }
    last = std::move(now);
    ++known;
  }
  return changes;
}

Result<Sample> NodeWatch::look() {
  FARO_ASSIGN_OR_RETURN(const Config config, settings_.load());
  if (!file_.empty()) {
    FARO_RETURN_IF_ERROR(open_new(file_));
  } else {
    if (folder_.empty()) folder_ = config.get("counters.folder");
    // Files of other users and of other versions are skipped if they cannot be read.
    skipped_ = Status::Ok();
    for (const std::string& path : counter_files_in(folder_)) {
      const Status opened = open_new(path);
      if (skipped_.ok() && opened.code() == Code::invalid_argument) skipped_ = opened;
    }
  }
  Sample sample{look_at<NodeChange>(nodes_), look_at<EndpointChange>(endpoints_)};
  std::sort(sample.nodes.begin(), sample.nodes.end(), [](const NodeChange& a, const NodeChange& b) {
    return std::tie(a.now.cluster, a.now.node, a.now.path) <
           std::tie(b.now.cluster, b.now.node, b.now.path);
  });
  std::sort(sample.endpoints.begin(), sample.endpoints.end(),
            [](const EndpointChange& a, const EndpointChange& b) {
              return std::tie(a.now.cluster, a.now.name, a.now.path) <
                     std::tie(b.now.cluster, b.now.name, b.now.path);
            });
  return sample;
}

Status NodeWatch::none() const {
  std::string text =
      pid_ != 0 ? fmt::format("process {} has no node or endpoint that this user can see in {}",
                              pid_, folder_)
                : fmt::format("no node or endpoint of this user has a counter file in {}", folder_);
  if (!skipped_.ok()) text += fmt::format(" that can be read: {}", skipped_.message());
  return {Code::system_error, text};
}

}  // namespace faro::command
