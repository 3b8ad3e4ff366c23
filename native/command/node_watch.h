// NodeWatch: reads the counter files of the nodes of this host, and computes what has changed since the previous sample.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "counters/counter_view.h"
#include "faro/status.h"

namespace CLI {
class App;
}

namespace faro::command {

/// A node's current sample, and the changes since the previous one.
struct NodeChange {
  counters::NodeView now;
  counters::NodeView change;  ///< the same, but totals are what was added meanwhile
  double seconds = 0;         ///< the time between; 0 at the first look: no rates yet

  double per_second(uint64_t added) const {
    return seconds > 0 ? static_cast<double>(added) / seconds : 0;
  }
};

/// Threads: one. Owns: the mappings of the files.
class NodeWatch {
 public:
  /// Adds --pid, --counter-file and --folder to a sub-command. Lives as long as the CLI::App.
  void add_to(CLI::App& app);

  /// All nodes that were asked for, in the order of cluster and number, including those that have started since. A file
  /// whose process has ended is shown only if it was named. Blocks: never.
  /// Errors: config_invalid; system_error, invalid_argument: a file that was named cannot be read.
  Result<std::vector<NodeChange>> look();

  /// "No node …": the error if there are none.
  Status none() const;

 private:
  struct Known {
    std::unique_ptr<counters::CounterView> view;
    counters::NodeView last;
  };

  Status open_new(const std::string& path);

  std::string file_;
  std::string folder_;
  uint32_t pid_ = 0;                    // 0: all
  std::map<std::string, Known> known_;  // by path
};

}  // namespace faro::command
