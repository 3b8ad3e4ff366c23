#include "command/node_watch.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/return_if_error.h"
#include "command/setting_flags.h"
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
    const auto* const from = reinterpret_cast<const std::byte*>(&before) + row.offset;
    auto* const to = reinterpret_cast<std::byte*>(&now) + row.offset;
    *reinterpret_cast<uint64_t*>(to) -= *reinterpret_cast<const uint64_t*>(from);
  }
}

// Two views of one file have the same nodes, workers and lanes.
NodeView difference(const NodeView& before, NodeView now) {
  subtract(Scope::node, before.counters, now.counters);
  for (size_t i = 0; i < now.peers.size(); ++i)
    subtract(Scope::peer, before.peers[i].counters, now.peers[i].counters);
  for (size_t i = 0; i < now.workers.size(); ++i)
    subtract(Scope::worker, before.workers[i].counters, now.workers[i].counters);
  for (size_t i = 0; i < now.outgoing.size(); ++i)
    subtract(Scope::outgoing, before.outgoing[i].counters, now.outgoing[i].counters);
  for (size_t i = 0; i < now.incoming.size(); ++i)
    subtract(Scope::incoming, before.incoming[i].counters, now.incoming[i].counters);
  return now;
}

}  // namespace

void NodeWatch::add_to(CLI::App& app) {
  app.add_option("--pid", pid_, "Only the nodes of this process")->type_name("PID");
  app.add_option("--counter-file", file_, "Only this file, even if its process has ended")
      ->type_name("PATH");
  app.add_option(
         "--folder", folder_,
         "Folder of the files (default: counters.folder, by FARO_COUNTERS_FOLDER or FARO_CONFIG)")
      ->type_name("PATH");
}

Status NodeWatch::open_new(const std::string& path) {
  if (known_.count(path) != 0) return Status::Ok();
  FARO_ASSIGN_OR_RETURN(known_[path].view, CounterView::open(path, path == file_));
  return Status::Ok();
}

Result<std::vector<NodeChange>> NodeWatch::look() {
  if (!file_.empty()) {
    FARO_RETURN_IF_ERROR(open_new(file_));
  } else {
    if (folder_.empty()) {
      FARO_ASSIGN_OR_RETURN(const Config config, SettingFlags().load());
      folder_ = config.get("counters.folder");
    }
    // Files of other users and of other versions are skipped if they cannot be read.
    for (const std::string& path : counter_files_in(folder_)) (void)open_new(path);
  }
  std::vector<NodeChange> changes;
  for (auto known = known_.begin(); known != known_.end();) {
    NodeView now = known->second.view->read();
    if (file_.empty() && !now.alive) {
      known = known_.erase(known);
      continue;
    }
    NodeView& last = known->second.last;
    if (pid_ == 0 || now.pid == pid_) {
      NodeChange change;
      change.change = last.peers.empty() ? now : difference(last, now);
      change.seconds =
          last.peers.empty() ? 0 : static_cast<double>(now.read_ns - last.read_ns) / 1e9;
      change.now = now;
      changes.push_back(std::move(change));
    }
    last = std::move(now);
    ++known;
  }
  std::sort(changes.begin(), changes.end(), [](const NodeChange& a, const NodeChange& b) {
    return std::tie(a.now.cluster, a.now.node, a.now.path) <
           std::tie(b.now.cluster, b.now.node, b.now.path);
  });
  return changes;
}

Status NodeWatch::none() const {
  return {Code::system_error,
          pid_ != 0
              ? fmt::format("process {} has no node that this user can see in {}", pid_, folder_)
              : fmt::format("no node of this user has a counter file in {}", folder_)};
}

}  // namespace faro::command
