#include "lab/workload/row_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace faro::workload {

RowChecker::RowChecker(const RowGenerator& rows, uint32_t receiver)
    : rows_(rows), receiver_(receiver) {
  for (const uint32_t sender : rows.senders())
    sources_[sender].next = rows.next_for(receiver, sender, 0);
}

std::string RowChecker::check(uint32_t sender, std::span<const std::byte> row) {
  const auto found = sources_.find(sender);
  if (found == sources_.end()) return fmt::format("rows of worker {}, no sender", sender);
  Source& source = found->second;
  if (source.next == RowGenerator::kNone)
    return fmt::format("worker {} sent a row that is for another", sender);
  expected_.resize(rows_.length(sender, source.next));
  rows_.fill(sender, source.next, expected_);
  if (row.size() != expected_.size()) {
    return fmt::format("row {} of worker {} has {} bytes, not {}", source.next, sender, row.size(),
                       expected_.size());
  }
  if (!std::equal(row.begin(), row.end(), expected_.begin()))
    return fmt::format("row {} of worker {} has other bytes", source.next, sender);
  source.received = source.next + 1;
  source.next = rows_.next_for(receiver_, sender, source.next + 1);
  return "";
}

std::string RowChecker::check_number(uint32_t sender, uint64_t made) const {
  const uint64_t received = sources_.at(sender).received;
  if (received <= made) return "";
  return fmt::format("row {} of worker {} came, which made {}", received - 1, sender, made);
}

std::string RowChecker::check_end(uint32_t sender, std::optional<uint64_t> made) const {
  if (!made) return fmt::format("the stream ends, but worker {} has not finished", sender);
  const uint64_t next = sources_.at(sender).next;
  if (next >= *made) return check_number(sender, *made);
  return fmt::format("the stream ends before row {} of worker {}, which made {}", next, sender,
                     *made);
}

}  // namespace faro::workload
