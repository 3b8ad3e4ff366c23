// The synthetic job that every contestant of the benchmark runs: the plan of §4.1 and Fig. 2 of
// "RDMA middleware for asynchronous multi-stage shuffling". It knows nothing of what carries rows.
//
//   generate n  -> shuffle 1 by hash(n) -> n := n*3/2 -> shuffle 2 by hash(n) -> sink
//
// Workers are numbered 0 … N-1 over all processes; worker g belongs to process g /
// workers_per_process. The integers 0 … rows-1 are dealt out in order: process p generates
// rows_per_process of them, split evenly between its workers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "faro/hash.h"
#include "faro/status.h"

namespace faro::bench {

// Rows are laid out by memcpy of native integers.
static_assert(std::endian::native == std::endian::little);

/// The hash functions a job can route by (see faro/hash.h).
enum class HashKind : uint8_t { finalizer, multiplicative };

/// "finalizer" or "multiplicative".
std::string_view hash_name(HashKind hash) noexcept;

/// Errors: invalid_argument names the text and the accepted names.
Result<HashKind> parse_hash(std::string_view name);

/// The widths that loops are compiled for.
inline constexpr uint32_t kRowWidths[] = {8, 16, 24, 32, 64, 100, 128};
/// "8, 16, … or 128".
std::string row_widths();

/// The integers [begin, end).
struct IntegerRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Parameters of one job, and the arithmetic that follows from them.
///
/// Threads: a value; all functions are const.
struct TwoStageJob {
  uint32_t process_count = 4;
  uint32_t workers_per_process = 1;
  uint64_t rows_per_process = 5'000'000;
  /// Bytes of one row: one of kRowWidths; with the multiplicative hash 8.
  uint32_t row_bytes = 8;
  HashKind hash = HashKind::finalizer;

  /// Call before anything else. Errors: invalid_argument names field, value and limit.
  Status validate() const;

  uint32_t worker_count() const noexcept { return process_count * workers_per_process; }
  uint64_t row_count() const noexcept { return process_count * rows_per_process; }
  /// A hop is one row shuffled once.
  uint64_t hop_count() const noexcept { return 2 * row_count(); }

  uint32_t process_of(uint32_t worker) const noexcept { return worker / workers_per_process; }
  bool same_process(uint32_t a, uint32_t b) const noexcept {
    return process_of(a) == process_of(b);
  }

  /// What worker (0 … worker_count-1) generates. The ranges of all workers are disjoint and cover
  /// 0 … row_count-1.
  IntegerRange range_of(uint32_t worker) const noexcept;
};

/// What all sinks together must have seen.
struct ExpectedTotals {
  uint64_t count = 0;
  uint64_t checksum = 0;
};

/// Computed by a plain loop over all integers of the job, without hash, destination or shuffling;
/// about 1 ns an integer, remembered by row count.
///
/// Threads: any.
ExpectedTotals expected_totals(const TwoStageJob& job);

/// Between the stages: sends most rows to another worker than before. Injective, so that a lost and
/// a doubled row cannot hide each other.
constexpr uint64_t transform(uint64_t n) noexcept { return n * 3 / 2; }

/// One row's part of the checksum. Not linear in n: two wrong rows do not cancel out.
constexpr uint64_t mix(uint64_t n) noexcept {
  n *= 0x9e3779b97f4a7c15ULL;
  return n ^ (n >> 32);
}

/// The worker that handles n.
template <class Hash>
constexpr uint32_t destination_of(uint64_t n, uint32_t worker_count) noexcept {
  return partition(Hash{}(n), worker_count);
}

/// A row of kRowBytes bytes:
///
///   0        8        16            8*i            kRowBytes
///   +--------+--------+-- … --+--------+-- … --+-----+
///   |   n    |  n+1   |       |  n+i   |       | tail|     tail: the low bytes of the next word
///   +--------+--------+-- … --+--------+-- … --+-----+
///
/// Everything behind n follows from n, so that the receiver can tell a torn row. Rows need no
/// alignment.
template <uint32_t kRowBytes>
struct RowCodec {
  static_assert(kRowBytes >= 8);
  static constexpr uint32_t kBytes = kRowBytes;
  static constexpr uint32_t kWords = kRowBytes / 8;
  static constexpr uint32_t kTailBytes = kRowBytes % 8;

  /// Writes the row of n to `to` (kRowBytes bytes).
  static void write(void* to, uint64_t n) noexcept {
    char* at = static_cast<char*>(to);
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint64_t word = n + i;
      std::memcpy(at + 8 * i, &word, 8);
    }
    if constexpr (kTailBytes > 0) {
      const uint64_t word = n + kWords;
      std::memcpy(at + 8 * kWords, &word, kTailBytes);
    }
  }

  /// Reads n back. Bits of the rest that differ from what write() left there are or-ed into
  /// `damage`, which stays 0 while all rows are whole.
  static uint64_t read(const void* from, uint64_t& damage) noexcept {
    const char* at = static_cast<const char*>(from);
    uint64_t n;
    std::memcpy(&n, at, 8);
    for (uint32_t i = 1; i < kWords; ++i) {
      uint64_t word;
      std::memcpy(&word, at + 8 * i, 8);
      damage |= word ^ (n + i);
    }
    if constexpr (kTailBytes > 0) {
      constexpr uint64_t kTailMask = (uint64_t{1} << (8 * kTailBytes)) - 1;
      uint64_t word = 0;
      std::memcpy(&word, at + 8 * kWords, kTailBytes);
      damage |= word ^ ((n + kWords) & kTailMask);
    }
    return n;
  }
};

/// The end of the plan: counts and sums, in any order.
///
/// Threads: one worker each; add the totals of all workers.
class Sink {
 public:
  void reset() noexcept { *this = Sink(); }

  /// Consumes one row of the second shuffle.
  void consume(uint64_t n) noexcept {
    ++count_;
    sum_ += mix(n);
  }
  /// Consumes a batch whose rows the caller has added up itself: their number and the sum of
  /// mix(n).
  void consume_batch(uint64_t count, uint64_t sum_of_mix) noexcept {
    count_ += count;
    sum_ += sum_of_mix;
  }
  /// Takes over the damage that RowCodec::read reported, of either stage.
  void add_damage(uint64_t damage) noexcept { damage_ |= damage; }

  uint64_t count() const noexcept { return count_; }
  /// Differs from the expected one if any row was damaged, lost, doubled or altered.
  uint64_t checksum() const noexcept { return sum_ + damage_; }

 private:
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t damage_ = 0;
};

/// Calls `function.template operator()<Hash, kRowBytes>()` with the types of a valid job, so that a
/// carrier's inner loop is compiled for its hash and width:
///
///   return with_job_types(job, [&]<class Hash, uint32_t kRowBytes>() { return run<Hash,
///   kRowBytes>(); });
template <class Function>
decltype(auto) with_job_types(const TwoStageJob& job, Function&& function) {
  // The cheap hash for the narrowest rows only, where it matters: each pair of types is compiled.
  if (job.hash == HashKind::multiplicative) {
    return function.template operator()<MultiplicativeHash, 8>();
  }
  switch (job.row_bytes) {
    case 16:
      return function.template operator()<FinalizerHash, 16>();
    case 24:
      return function.template operator()<FinalizerHash, 24>();
    case 32:
      return function.template operator()<FinalizerHash, 32>();
    case 64:
      return function.template operator()<FinalizerHash, 64>();
    case 100:
      return function.template operator()<FinalizerHash, 100>();
    case 128:
      return function.template operator()<FinalizerHash, 128>();
    default:
      return function.template operator()<FinalizerHash, 8>();
  }
}

}  // namespace faro::bench
