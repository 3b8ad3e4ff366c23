#include "shuffle/operation/file_warning.h"

#include <new>

#include "base/log.h"

namespace faro::shuffle {

void log_file_warning(const WorkerContext& worker, const Query& query, uint32_t stage) noexcept {
  try {
    base::log(LogLevel::warning,
              "{}: query {}: rows of stage {} go to the overflow file in {}, which is slow: {} of "
              "overflow.memory_bytes = {} are in use, {} bytes are of this query. Its receivers "
              "take rows later than they come: let a worker receive while it sends, for instance "
              "with Wait::none() after some hundred rows, or raise overflow.memory_bytes. (Told "
              "once per query)",
              worker.own_node().name, query.id.to_string(), stage, worker.settings.overflow_folder,
              worker.overflow.memory_bytes(), worker.overflow.limits().memory_bytes,
              query.usage.bytes.load(std::memory_order_relaxed));
  } catch (const std::bad_alloc&) {
    // The counters show it all the same.
  }
}

}  // namespace faro::shuffle
