#include "lab/workload/row_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace faro::workload {

RowChecker::RowChecker(const RowGenerator& rows, uint32_t receiver) : rows_(rows) {
  for (const uint32_t sender : rows.senders()) {
    Source& source = sources_[sender];
    for (const uint32_t target : rows.targets_of(receiver, sender))
      source.streams.push_back({target, rows.next_for(target, sender, 0)});
  }
}

std::string RowChecker::check(uint32_t sender, std::span<const std::byte> row) {
  const auto found = sources_.find(sender);
  if (found == sources_.end()) return fmt::format("rows of worker {}, no sender", sender);
  Source& source = found->second;
  for (Stream& stream : source.streams) {
    if (rows_.plan().delivery == Delivery::node) skip_to(sender, stream, row);
    if (!is_next(sender, stream, row)) continue;
    source.received = std::max(source.received, stream.next + 1);
    stream.next = rows_.next_for(stream.target, sender, stream.next + 1);
    return "";
  }
  return complaint(sender, source, row);
}

// Rows before that one are others'.
void RowChecker::skip_to(uint32_t sender, Stream& stream, std::span<const std::byte> row) {
  constexpr uint64_t kMostRows = 1 << 20;  // more than any sender makes
  while (stream.next < kMostRows && !is_next(sender, stream, row))
    stream.next = rows_.next_for(stream.target, sender, stream.next + 1);
}

bool RowChecker::is_next(uint32_t sender, const Stream& stream, std::span<const std::byte> row) {
  if (stream.next == RowGenerator::kNone || row.size() != rows_.length(sender, stream.next))
    return false;
  expected_.resize(row.size());
  rows_.fill(sender, stream.next, expected_);
  return std::equal(row.begin(), row.end(), expected_.begin());
}

std::string RowChecker::complaint(uint32_t sender, const Source& source,
                                  std::span<const std::byte> row) {
  const auto expected = std::ranges::find_if(
      source.streams, [](const Stream& stream) { return stream.next != RowGenerator::kNone; });
  if (expected == source.streams.end())
    return fmt::format("worker {} sent a row that is for another", sender);
  if (source.streams.size() > 1) {
    return fmt::format("a row of {} bytes of worker {} is the next of none of {} groups",
                       row.size(), sender, source.streams.size());
  }
  const uint64_t length = rows_.length(sender, expected->next);
  if (row.size() != length) {
    return fmt::format("row {} of worker {} has {} bytes, not {}", expected->next, sender,
                       row.size(), length);
  }
  return fmt::format("row {} of worker {} has other bytes", expected->next, sender);
}

std::string RowChecker::check_number(uint32_t sender, uint64_t made) const {
  const uint64_t received = sources_.at(sender).received;
  if (received <= made) return "";
  return fmt::format("row {} of worker {} came, which made {}", received - 1, sender, made);
}

std::string RowChecker::check_end(uint32_t sender, std::optional<uint64_t> made) const {
  if (!made) return fmt::format("the stream ends, but worker {} has not finished", sender);
  for (const Stream& stream : sources_.at(sender).streams) {
    if (stream.next >= *made || rows_.plan().delivery == Delivery::node) continue;
    return fmt::format("the stream ends before row {} of worker {}, which made {}", stream.next,
                       sender, *made);
  }
  return check_number(sender, *made);
}

}  // namespace faro::workload
