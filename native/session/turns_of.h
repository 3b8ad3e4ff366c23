// What network.schedule means for a session.
#pragma once

#include <optional>

#include "base/settings.h"
#include "transport/schedule/phases.h"

namespace faro::session {

/// How its nodes take turns over data connections. Nothing: rows are sent without.
inline std::optional<transport::schedule::PhaseSettings> turns_of(const base::Settings& settings) {
  if (settings.schedule == "off" || settings.node_count() < transport::schedule::kLeastNodes)
    return std::nullopt;
  return transport::schedule::PhaseSettings{.turn_bytes = settings.turn_bytes,
                                            .from_bytes = settings.schedule_from_bytes,
                                            .turn_ns = settings.turn_ms * base::kMillisecond};
}

}  // namespace faro::session
