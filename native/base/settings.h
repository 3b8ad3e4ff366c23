// Settings: a validated, frozen Config with a typed field per row of settings.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::base {

/// What was given in place of a file; overwritten when the last one lets it go.
using Bytes = std::shared_ptr<const std::vector<std::byte>>;
using GivenBytes = std::map<std::string, Bytes, std::less<>>;

struct Settings {
#define FARO_NUMBER(field, name, value, unit, least, most, cluster_wide, help) uint64_t field = 0;
#define FARO_TEXT(field, name, value, cluster_wide, help) std::string field;
#include "base/settings.def"
#undef FARO_NUMBER
#undef FARO_TEXT

  // Derived by `resolve`:
  uint64_t large_ring_bytes = 0;  // of rings of which a node has few (session/topology.h)
  GivenBytes given;               // in place of files, by the setting that would name the file
  std::vector<std::string> node_addresses;  // one per number of a node; empty: no node has it
  std::vector<uint32_t> workers_per_node;   // one per number of a node

  /// Numbers that nodes can have.
  uint32_t node_count() const { return static_cast<uint32_t>(workers_per_node.size()); }
  /// Where lanes end (lane.ends): at workers, at nodes, or there are both.
  bool lanes_end_at_workers() const { return lane_ends != "node"; }
  bool lanes_end_at_nodes() const { return lane_ends != "workers"; }

  /// Validates `config` and freezes it. Errors: config_invalid with key, value and limit.
  static Result<Settings> resolve(const Config& config);
  /// Validates `config` and freezes it for what is no node of a cluster: cluster.nodes, node,
  /// node_limit and workers are not looked at, and nothing is derived of them.
  /// Errors: config_invalid with key, value and limit.
  static Result<Settings> resolve_without_nodes(const Config& config);

  /// What was given in place of the file that this setting names; null: nothing was.
  Bytes given_for(std::string_view setting) const {
    const auto found = given.find(setting);
    return found == given.end() ? nullptr : found->second;
  }

 private:
  static Settings read(const Config& config);
};

/// Whether this is host:port. Errors: config_invalid, with the name of the setting and `whose` it is.
Status check_address(std::string_view name, const std::string& address, std::string_view whose);

}  // namespace faro::base
