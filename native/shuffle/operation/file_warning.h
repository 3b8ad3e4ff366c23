// A warning, once per query and node, that its rows go to the overflow file: an order of magnitude slower than memory, and
// mostly unintended.
#pragma once

#include <cstdint>

#include "shuffle/operation/worker_context.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/query/query.h"

namespace faro::shuffle {

/// Logs it. Threads: any.
void log_file_warning(const WorkerContext& worker, const Query& query, uint32_t stage) noexcept;

/// What of this stage was spilled just now.
inline void warn_if_in_file(const WorkerContext& worker, Query& query, uint32_t stage,
                            const Stored& stored) noexcept {
  const bool is_in_file =
      stored.place == Stored::Place::file || stored.place == Stored::Place::mapped;
  if (!is_in_file || query.usage.in_file.exchange(true, std::memory_order_relaxed)) return;
  log_file_warning(worker, query, stage);
}

}  // namespace faro::shuffle
