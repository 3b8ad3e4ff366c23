// Settings: a validated, frozen Config with a typed field per row of settings.def.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::base {

struct Settings {
#define FARO_NUMBER(field, name, value, unit, least, most, cluster_wide, help) uint64_t field = 0;
#define FARO_TEXT(field, name, value, cluster_wide, help) std::string field;
#include "base/settings.def"
#undef FARO_NUMBER
#undef FARO_TEXT

  // Derived by `resolve`:
  std::vector<std::string> node_addresses;  // one per node
  std::vector<uint32_t> workers_per_node;   // one per node

  uint32_t node_count() const { return static_cast<uint32_t>(workers_per_node.size()); }

  /// Validates `config` and freezes it. Errors: config_invalid with key, value and limit.
  static Result<Settings> resolve(const Config& config);
};

}  // namespace faro::base
