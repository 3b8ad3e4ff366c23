// The synthetic job that every contestant of the benchmark runs: the plan of §4.1 and Fig. 2 of
// "RDMA middleware for asynchronous multi-stage shuffling". It knows nothing of what carries rows; the
// rows are those of lab/workload/integer_rows.h.
//
//   generate n  -> shuffle 1 by hash(n) -> n := n*3/2 -> shuffle 2 by hash(n) -> sink
//
// Workers are numbered 0 … N-1 over all processes; worker g belongs to process g /
// workers_per_process. The integers 0 … rows-1 are dealt out in order: process p generates
// rows_per_process of them, split evenly between its workers.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "faro/hash.h"
#include "faro/shuffle.h"
#include "faro/status.h"
#include "lab/bench/figures.h"
#include "lab/workload/integer_rows.h"
#include "lab/workload/row_loops.h"

namespace faro::bench {

using workload::destination_of, workload::IntegerRange, workload::RowCodec, workload::RowSum,
    workload::Totals, workload::transform;

/// The hash functions a job can route by (see faro/hash.h).
enum class HashKind : uint8_t { finalizer, multiplicative };

/// "finalizer" or "multiplicative".
std::string_view hash_name(HashKind hash) noexcept;

/// Errors: invalid_argument names the text and the accepted names.
Result<HashKind> parse_hash(std::string_view name);

/// What a row of a job can have: the widths of workload::kRowWidths, and two that are larger than a frame.
inline constexpr uint32_t kJobWidths[] = {8, 16, 24, 32, 64, 100, 128, 64 * 1024, 1024 * 1024};
inline constexpr bool is_large(uint32_t row_bytes) { return row_bytes > 128; }

/// "8, 16, … or 128".
std::string names_of(std::span<const uint32_t> widths);

/// Parameters of one job, and the arithmetic that follows from them.
///
/// Threads: a value; all functions are const.
struct TwoStageJob {
  uint32_t process_count = 4;
  uint32_t workers_per_process = 1;
  uint64_t rows_per_process = 5'000'000;
  /// Bytes of one row: one of kJobWidths; with the multiplicative hash 8.
  uint32_t row_bytes = 8;
  HashKind hash = HashKind::finalizer;
  Delivery delivery = Delivery::worker;  // of both shuffles, where Faro carries them

  /// Call before anything else. Errors: invalid_argument names field, value and limit.
  Status validate() const;

  uint32_t worker_count() const noexcept { return process_count * workers_per_process; }
  uint64_t row_count() const noexcept { return process_count * rows_per_process; }

  uint32_t process_of(uint32_t worker) const noexcept { return worker / workers_per_process; }
  bool same_process(uint32_t a, uint32_t b) const noexcept {
    return process_of(a) == process_of(b);
  }

  /// What worker (0 … worker_count-1) generates. The ranges of all workers are disjoint and cover
  /// 0 … row_count-1.
  IntegerRange range_of(uint32_t worker) const noexcept;
  /// The totals are those of the second shuffle.
  Expectation expectation() const noexcept;
};

/// Calls `function.template operator()<Hash, kRowBytes>()` with the types of a valid job, so that a
/// carrier's inner loop is compiled for its hash and width:
///
///   return with_job_types(job, [&]<class Hash, uint32_t kRowBytes>() { return run<Hash,
///   kRowBytes>(); });
///
/// `kWidth`: the index of the least width that it can be.
template <size_t kWidth = 0, class Function>
decltype(auto) with_job_types(const TwoStageJob& job, Function&& function) {
  // The cheap hash for the narrowest rows only, where it matters: each pair of types is compiled.
  if constexpr (kWidth == 0) {
    if (job.hash == HashKind::multiplicative)
      return function.template operator()<MultiplicativeHash, 8>();
  }
  if constexpr (kWidth + 1 < std::size(kJobWidths)) {
    if (job.row_bytes != kJobWidths[kWidth])
      return with_job_types<kWidth + 1>(job, std::forward<Function>(function));
  }
  return function.template operator()<FinalizerHash, kJobWidths[kWidth]>();
}

}  // namespace faro::bench
