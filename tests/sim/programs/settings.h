// Settings of a program's session, from what it names and the defaults.
#pragma once

#include <utility>

#include "base/settings.h"
#include "faro/config.h"
#include "faro/status.h"

namespace faro::programs {

/// Threads: one.
class SettingsMaker {
 public:
  template <typename Value>
  void set(const char* name, Value value) {
    Status status = config_.set(name, value);
    if (failure_.ok()) failure_ = std::move(status);
  }
  /// Errors: the first that a name or a value has met.
  Result<base::Settings> resolve() const {
    if (!failure_.ok()) return failure_;
    return base::Settings::resolve(config_);
  }

 private:
  Config config_;
  Status failure_;
};

}  // namespace faro::programs
