#include "links/memory_budget.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace faro::links {

Result<std::shared_ptr<MemoryBudget::Share>> MemoryBudget::take(const Need& need) {
  if (limit_bytes_ != 0 &&
      need.memory_bytes > limit_bytes_ - std::min(limit_bytes_, taken_bytes_)) {
    const std::string ended =
        ended_bytes_ == 0 ? ""
                          : fmt::format(", those that have ended and whose frames are held {}",
                                        in_mebibytes(ended_bytes_));
    return base::error(Code::resource_limit,
                       "one more link needs {} of rings, and the links that stand take {}{} of "
                       "memory.limit_bytes = {}",
                       in_mebibytes(need.memory_bytes), in_mebibytes(taken_bytes_ - ended_bytes_),
                       ended, limit_bytes_);
  }
  if (checks_machine_) FARO_RETURN_IF_ERROR(check_limits(need, 0, machine_limits()));
  return std::make_shared<Share>(shared_from_this(), need);
}

}  // namespace faro::links
