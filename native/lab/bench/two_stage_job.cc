#include "lab/bench/two_stage_job.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace faro::bench {
namespace {

// Far above what a machine can run; keeps all products of the job within 64 bits.
constexpr uint32_t kMaxWorkers = 4096;
constexpr uint64_t kMaxRows = uint64_t{1} << 48;

Status out_of_range(std::string_view field, uint64_t value, std::string_view limit) {
  std::string text(field);
  text += " = ";
  text += std::to_string(value);
  text += ": must be ";
  text += limit;
  return Status(Code::invalid_argument, std::move(text));
}

}  // namespace

std::string names_of(std::span<const uint32_t> widths) {
  std::string names;
  for (const uint32_t& width : widths) {
    if (!names.empty()) names += &width == &widths.back() ? " or " : ", ";
    names += std::to_string(width);
  }
  return names;
}

std::string_view hash_name(HashKind hash) noexcept {
  return hash == HashKind::finalizer ? FinalizerHash::kName : MultiplicativeHash::kName;
}

Result<HashKind> parse_hash(std::string_view name) {
  for (HashKind hash : {HashKind::finalizer, HashKind::multiplicative}) {
    if (name == hash_name(hash)) return hash;
  }
  return Status(Code::invalid_argument,
                "hash = " + std::string(name) + ": must be finalizer or multiplicative");
}

Status TwoStageJob::validate() const {
  if (process_count == 0 || process_count > kMaxWorkers) {
    return out_of_range("processes", process_count, "1 … 4096");
  }
  if (workers_per_process == 0 || workers_per_process > kMaxWorkers / process_count) {
    return out_of_range("workers per process", workers_per_process, "1 … 4096 / processes");
  }
  if (rows_per_process > kMaxRows / process_count) {
    return out_of_range("rows per process", rows_per_process, "at most 2^48 / processes");
  }
  if (std::ranges::find(kJobWidths, row_bytes) == std::end(kJobWidths)) {
    return out_of_range("row bytes", row_bytes, names_of(kJobWidths));
  }
  if (hash == HashKind::multiplicative && row_bytes != 8) {
    return out_of_range("row bytes", row_bytes, "8 with the multiplicative hash");
  }
  return Status::Ok();
}

IntegerRange TwoStageJob::range_of(uint32_t worker) const noexcept {
  const uint64_t first = process_of(worker) * rows_per_process;
  return IntegerRange{first, first + rows_per_process}.part(worker % workers_per_process,
                                                            workers_per_process);
}

Expectation TwoStageJob::expectation() const noexcept {
  return {row_count(), 2 * row_count(), workload::totals_of(row_count(), transform)};
}

}  // namespace faro::bench
