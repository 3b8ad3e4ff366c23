#include "lab/bench/copies.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/return_if_error.h"
#include "lab/bench/process_group.h"

namespace faro::bench {
namespace {

constexpr size_t partition_bytes(uint32_t row_bytes) { return std::max(32u * 1024, row_bytes); }
constexpr size_t kStaggerBytes =
    64;  // partitions a power of two apart fight for the same cache sets
constexpr uint64_t kProgressRows = 1 << 16;

/// Rows for one receiver.
template <uint32_t kRowBytes>
class Partition {
 public:
  static constexpr size_t kRows = partition_bytes(kRowBytes) / kRowBytes;

  explicit Partition(char* memory) : begin_(memory), at_(memory) {}

  bool full() const { return at_ == begin_ + kRows * kRowBytes; }
  void add(const char* row) {
    std::memcpy(at_, row, kRowBytes);
    at_ += kRowBytes;
  }
  const char* begin() const { return begin_; }
  const char* end() const { return at_; }
  void clear() { at_ = begin_; }

 private:
  char* begin_;
  char* at_;
};

template <class Hash, uint32_t kRowBytes>
class Copies {
 public:
  Copies(const TwoStageJob& job, std::atomic<uint64_t>& progress)
      : job_(job), progress_(progress), memory_(2 * size_t{job.worker_count()} * kPartitionBytes) {
    char* at = memory_.data();
    for (auto* partitions : {&first_, &second_}) {
      for (uint32_t to = 0; to < job.worker_count(); ++to, at += kPartitionBytes)
        partitions->emplace_back(at);
    }
  }

  Status run_round() {
    sink_ = {};
    const uint32_t receivers = job_.worker_count();
    for (uint64_t n = 0; n < job_.row_count();) {
      for (const uint64_t end = std::min(job_.row_count(), n + kProgressRows); n < end; ++n) {
        Rows& rows = first_[destination_of<Hash>(n, receivers)];
        if (rows.full()) [[unlikely]]
          forward(rows);
        add(rows, n);
      }
      progress_.store(sink_.count, std::memory_order_relaxed);
    }
    for (Rows& rows : first_) forward(rows);
    for (Rows& rows : second_) consume(rows);
    return Status::Ok();
  }

  Totals totals() const { return sink_.totals(); }

 private:
  using Codec = RowCodec<kRowBytes>;
  using Rows = Partition<kRowBytes>;
  static constexpr size_t kPartitionBytes = partition_bytes(kRowBytes) + kStaggerBytes;

  static void add(Rows& rows, uint64_t n) {
    char row[kRowBytes];
    Codec::write(row, n);
    rows.add(row);
  }

  [[gnu::noinline]] void forward(Rows& rows) {
    const uint32_t receivers = job_.worker_count();
    uint64_t damage = 0;
    for (const char* at = rows.begin(); at != rows.end(); at += kRowBytes) {
      const uint64_t n = transform(Codec::read(at, damage));
      Rows& next = second_[destination_of<Hash>(n, receivers)];
      if (next.full()) [[unlikely]]
        consume(next);
      add(next, n);
    }
    sink_.damage |= damage;
    rows.clear();
  }

  [[gnu::noinline]] void consume(Rows& rows) {
    sink_ += workload::sum_rows<kRowBytes>(
        rows.begin(), static_cast<size_t>(rows.end() - rows.begin()) / kRowBytes);
    rows.clear();
  }

  const TwoStageJob job_;
  std::atomic<uint64_t>& progress_;
  std::vector<char> memory_;
  std::vector<Rows> first_;   // of stage 1, by receiver
  std::vector<Rows> second_;  // of stage 2
  RowSum sink_;
};

}  // namespace

Result<std::vector<RunFigures>> run_copies(const TwoStageJob& job, const RunOptions& options) {
  FARO_RETURN_IF_ERROR(job.validate());
  auto body = [&](GroupMember& member) {
    member.run_workers([&](uint32_t) {
      return with_job_types(job, [&]<class Hash, uint32_t kRowBytes>() {
        Copies<Hash, kRowBytes> copies(job, member.progress(0));
        return member.run_rounds(0, copies);
      });
    });
    return Status::Ok();
  };
  return run_group(group_options(1, 1, options), job.expectation(), options, body);
}

}  // namespace faro::bench
