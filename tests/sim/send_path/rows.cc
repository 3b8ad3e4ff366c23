#include "sim/send_path/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lab/workload/chance.h"

namespace faro::send_path {
namespace {

std::string name_of(const Way& way) {
  return fmt::format("query {}, stage {}, from worker {} to {}", way.query, way.stage, way.sender,
                     way.receiver);
}

}  // namespace

void write_row(uint64_t number, std::span<std::byte> row) {
  uint64_t word = number;
  for (size_t at = 0; at < row.size(); at += sizeof word) {
    if (at > 0 || row.size() < sizeof word) word = workload::mix(number, at);
    std::memcpy(row.data() + at, &word, std::min(sizeof word, row.size() - at));
  }
}

bool Rows::is(const Row& row, std::span<const std::byte> bytes) {
  if (row.bytes != bytes.size()) return false;
  expected_.resize(row.bytes);
  write_row(row.number, expected_);
  return std::ranges::equal(expected_, bytes);
}

void Rows::received(const Way& way, std::span<const std::byte> row) {
  ++received_;
  std::deque<Row>& rows = under_way_[way];
  if (rows.empty()) return violated(name_of(way) + ": a row that was not sent");
  if (is(rows.front(), row)) return rows.pop_front();
  uint64_t lowest = UINT64_MAX;
  for (auto each = rows.begin(); each != rows.end(); ++each) {
    if (each->claimed && each->number < lowest && is(*each, row)) {
      rows.erase(each);
      return;
    }
    lowest = std::min(lowest, each->number);
  }
  violated(fmt::format("{}: a row of {} bytes, not row {} of {} bytes", name_of(way), row.size(),
                       rows.front().number, rows.front().bytes));
}

void Rows::ended(const Way& way) {
  const auto found = under_way_.find(way);
  if (found == under_way_.end() || found->second.empty()) return;
  violated(fmt::format("{}: {} rows are missing at the end", name_of(way), found->second.size()));
}

}  // namespace faro::send_path
