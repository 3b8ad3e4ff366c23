// The flags that say where the nodes of a benchmark run: on addresses of this host, or each on a separate host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "faro/status.h"

namespace CLI {
class App;
}

namespace faro::command::lab {

/// Threads: a value. Lives as long as the CLI::App that it was added to.
class NodeFlags {
 public:
  /// Adds --host, --node and --nodes to a sub-command.
  void add_to(CLI::App& app);

  /// Errors: invalid_argument; the message begins with the flag.
  Status check() const;

  bool on_several_hosts() const { return node_ || !nodes_.empty(); }

  /// On this host: the numeric addresses, which its processes use in turn.
  const std::vector<std::string>& hosts() const { return hosts_; }

  // On several hosts, checked.
  uint32_t node() const { return *node_; }
  const std::vector<std::string>& nodes() const { return nodes_; }

 private:
  std::vector<std::string> hosts_ = {"127.0.0.1"};
  std::optional<uint32_t> node_;
  std::vector<std::string> nodes_;
};

}  // namespace faro::command::lab
