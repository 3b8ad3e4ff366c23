#include "shuffle/query/query_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/log.h"

namespace faro::shuffle {

// Queries that one line of the log names.
constexpr size_t kNamedInLog = 8;

void QueryReport::show_in(counters::CounterFile& file) {
  file_ = &file;
  for (uint32_t slot = counters::kQuerySlots; slot-- > 0;) free_slots_.push_back(slot);
}

bool QueryReport::give_slot(std::optional<uint32_t>& slot, bool is_unverified) {
  if (slot) return true;
  if (free_slots_.size() <= (is_unverified ? counters::kQuerySlots / 2 : 0)) return false;
  slot = free_slots_.back();
  free_slots_.pop_back();
  return true;
}

void QueryReport::show(uint32_t slot, const counters::QueryState& state) {
  file_->query(slot).store(state);
}

void QueryReport::hide(std::optional<uint32_t>& slot) {
  if (!slot) return;
  file_->query(*slot).store({});
  free_slots_.push_back(*slot);
  slot.reset();
}

void QueryReport::show_running(uint64_t count) {
  if (file_ != nullptr) counters::set(file_->node().queries_running, count);
}

void QueryReport::count_failure() {
  failed_count_.fetch_add(1, std::memory_order_relaxed);
  if (file_ != nullptr) counters::set(file_->node().queries_failed, failed_count());
}

void QueryReport::log_failures(std::vector<QueryId> ids, const Status& cause) const {
  if (ids.empty()) return;
  std::sort(ids.begin(), ids.end(), [](const QueryId& a, const QueryId& b) {
    return std::tie(a.issuer, a.counter) < std::tie(b.issuer, b.counter);
  });
  std::string named;
  for (size_t i = 0; i < std::min(ids.size(), kNamedInLog); ++i)
    named += (i == 0 ? "" : ", ") + ids[i].to_string();
  if (ids.size() > kNamedInLog) named += fmt::format(" and {} more", ids.size() - kNamedInLog);
  base::log(LogLevel::warning, "{}: {} {} failed: {}", node_name_,
            ids.size() == 1 ? "query" : "queries", named, cause.to_string());
}

}  // namespace faro::shuffle
