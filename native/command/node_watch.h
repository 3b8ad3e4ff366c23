// NodeWatch: reads the counter files of the nodes and endpoints of this host, and computes what has changed since the previous
// sample.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command/setting_flags.h"
#include "counters/counter_view.h"
#include "counters/endpoint_view.h"
#include "faro/status.h"

namespace CLI {
class App;
}

namespace faro::command {

/// A node's current sample, and the changes since the previous one.
struct NodeChange {
  counters::NodeView now;
  counters::NodeView change;  ///< as `now`, but totals are what was added meanwhile
  double seconds = 0;         ///< the time between; 0 at the first look: no rates yet

  double per_second(uint64_t added) const {
    return seconds > 0 ? static_cast<double>(added) / seconds : 0;
  }
};

/// What an endpoint has counted, and what it was since the last look. A channel that has come since
/// counts from 0.
struct EndpointChange {
  counters::EndpointView now;
  counters::EndpointView change;
  double seconds = 0;

  double per_second(uint64_t added) const {
    return seconds > 0 ? static_cast<double>(added) / seconds : 0;
  }
};

/// All that was asked for: nodes in the order of cluster and number, endpoints in that of cluster and name.
struct Sample {
  std::vector<NodeChange> nodes;
  std::vector<EndpointChange> endpoints;
  bool empty() const { return nodes.empty() && endpoints.empty(); }
};

/// Threads: one. Owns: copies of the files.
class NodeWatch {
 public:
  /// Adds --pid, --counter-file, --folder, --file and --set to a sub-command. Lives as long as the
  /// CLI::App.
  void add_to(CLI::App& app);

  /// All that was asked for, including what has started since. A file whose process has ended is shown only if it was
  /// named. Blocks: never.
  /// Errors: config_invalid; system_error, invalid_argument: a file that was named cannot be read.
  Result<Sample> look();

  /// "No node or endpoint …": the error if there are none, with the reason of the first file that was skipped, as one of
  /// another version is.
  Status none() const;

 private:
  /// A file, and what was read last; nothing yet at first.
  template <typename Reader, typename View>
  struct Known {
    std::unique_ptr<Reader> reader;
    std::optional<View> last;
  };
  template <typename Reader, typename View>
  using KnownFiles = std::map<std::string, Known<Reader, View>>;  // by path

  Status open_new(const std::string& path);
  template <typename Change, typename Reader, typename View>
  std::vector<Change> look_at(KnownFiles<Reader, View>& files);

  SettingFlags settings_;
  std::string file_;
  std::string folder_;
  uint32_t pid_ = 0;  // 0: all
  Status skipped_;    // why a file of this user was, in the last look
  KnownFiles<counters::CounterView, counters::NodeView> nodes_;
  KnownFiles<counters::EndpointCounterView, counters::EndpointView> endpoints_;
};

}  // namespace faro::command
