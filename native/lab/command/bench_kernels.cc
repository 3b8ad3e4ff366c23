// `faro-lab bench kernels`: what each kernel takes to hash a row and to scatter it (shuffle/kernels/kernels.h), and the loops for
// rows whose width is known at run time (shuffle/kernels/put_rows.h), for all widths and several numbers of receivers, in one
// thread and in memory alone.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "command/build_json.h"
#include "command/machine.h"
#include "command/subcommand.h"
#include "command/text.h"
#include "lab/bench/two_stage_job.h"
#include "lab/command/bench_parts.h"
#include "lab/command/bench_report.h"
#include "shuffle/kernels/kernels.h"
#include "shuffle/kernels/put_rows.h"

namespace faro::command::lab {
namespace {

using shuffle::KernelTime;

struct Flags {
  std::string hash = "finalizer";
  bool json = false;
};

constexpr uint32_t kReceivers[] = {2, 4, 6, 8, 16, 32, 64};

/// ns per row of each loop of put_rows.h. With 0 there is none.
struct PutTimes {
  double to_receivers = 0;
  double words = 0;  // the same by vectors, for rows of 8 bytes
  double by_key = 0;
  double with_length = 0;
};

/// Rows and frames in the first cache, as those of a calibration; a frame that is full begins anew.
class PutLoops {
 public:
  PutLoops(KeyHash hash, uint32_t row_bytes, uint32_t receiver_count)
      : hash_(hash),
        row_bytes_(row_bytes),
        count_(kRowsBytes / row_bytes),
        rows_(count_ * row_bytes),
        frame_bytes_(std::min(kLargestFrameBytes, kFramesBytes / receiver_count)),
        frames_(receiver_count * (frame_bytes_ + kStaggerBytes)),
        frame_rows_(receiver_count) {
    for (uint64_t n = 0; n < count_; ++n) {
      std::memcpy(rows_.data() + n * row_bytes, &n, sizeof n);
      const uint64_t hashed =
          hash == KeyHash::finalizer ? FinalizerHash{}(n) : MultiplicativeHash{}(n);
      receivers_.push_back(partition(hashed, receiver_count));
      offsets_.push_back(n * row_bytes);
    }
    offsets_.push_back(count_ * row_bytes);
    for (uint32_t receiver = 0; receiver < receiver_count; ++receiver)
      cursors_.push_back(frame_of(receiver));
  }

  PutTimes times() {
    const auto put = shuffle::put_rows_of(row_bytes_);
    const auto put_by_key = shuffle::put_by_key_of(row_bytes_, sizeof(uint64_t), hash_);
    const auto receiver_count = static_cast<uint32_t>(cursors_.size());
    PutTimes times;
    times.to_receivers = shortest_ns([&](size_t at, size_t count) {
      return put(row(at), row_bytes_, &receivers_[at], count, cursors_.data());
    });
    if (const detail::WordScatter words = words_of(receiver_count); words != nullptr) {
      times.words = shortest_ns([&](size_t at, size_t count) {
        return shuffle::put_words(words, row(at), &receivers_[at], count, cursors_.data());
      });
    }
    times.by_key = shortest_ns([&](size_t at, size_t count) {
      return put_by_key(row(at), row_bytes_, 0, count, receiver_count, cursors_.data());
    });
    times.with_length = shortest_ns([&](size_t at, size_t count) {
      return shuffle::put_rows_with_length(rows_.data(), &offsets_[at], &receivers_[at], count,
                                           cursors_.data(), frame_rows_.data());
    });
    return times;
  }

 private:
  static constexpr size_t kRowsBytes = 8 * 1024;
  static constexpr size_t kFramesBytes = 64 * 1024;
  static constexpr size_t kLargestFrameBytes = 8 * 1024;
  static constexpr size_t kStaggerBytes = 64;
  static constexpr int kTurns = 16;  // the shortest counts

  const std::byte* row(size_t number) const { return rows_.data() + number * row_bytes_; }
  detail::FrameCursor frame_of(uint32_t receiver) {
    std::byte* const begin = frames_.data() + receiver * (frame_bytes_ + kStaggerBytes);
    return {begin, begin + frame_bytes_};
  }
  detail::WordScatter words_of(uint32_t receiver_count) const {
    if (row_bytes_ != sizeof(uint64_t) || !shuffle::is_supported(shuffle::Kernel::avx512))
      return nullptr;
    const detail::BlockKernel* const kernel = shuffle::block_kernel(shuffle::Kernel::avx512, hash_);
    return receiver_count < std::size(kernel->words) ? kernel->words[receiver_count] : nullptr;
  }

  /// put(at, count) puts rows from number `at` on, until one finds no room, and answers how many.
  template <typename Put>
  double shortest_ns(const Put& put) {
    double shortest = std::numeric_limits<double>::max();
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto begin = std::chrono::steady_clock::now();
      for (size_t at = put(0, count_); at < count_; at += put(at, count_ - at))
        cursors_[receivers_[at]] = frame_of(receivers_[at]);
      const auto end = std::chrono::steady_clock::now();
      const double ns = std::chrono::duration<double, std::nano>(end - begin).count();
      shortest = std::min(shortest, ns / static_cast<double>(count_));
    }
    return shortest;
  }

  const KeyHash hash_;
  const uint32_t row_bytes_;
  const size_t count_;
  std::vector<std::byte> rows_;
  const size_t frame_bytes_;
  std::vector<std::byte> frames_;
  std::vector<uint32_t> frame_rows_;
  std::vector<uint32_t> receivers_;  // by row
  std::vector<uint64_t> offsets_;
  std::vector<detail::FrameCursor> cursors_;
};

struct Measured {
  uint32_t row_bytes = 0;
  uint32_t receivers = 0;
  std::vector<KernelTime> times;
  PutTimes put;
};

std::vector<Measured> measure(KeyHash hash) {
  std::vector<Measured> all;
  for (const uint32_t row_bytes : shuffle::kKernelWidths) {
    for (const uint32_t receivers : kReceivers)
      all.push_back({row_bytes, receivers, shuffle::calibrate(hash, row_bytes, receivers),
                     PutLoops(hash, row_bytes, receivers).times()});
  }
  return all;
}

std::string table_of(const std::vector<Measured>& all) {
  std::string columns = "rr";
  std::vector<std::string> titles = {"bytes", "receivers"};
  for (const KernelTime& time : all.front().times) {
    columns += 'r';
    titles.emplace_back(kernel_name(time.kernel));
  }
  columns += "lrrrr";
  titles.insert(titles.end(), {"taken", "to receivers", "by words", "by key", "with length"});
  Table table(columns);
  table.add(titles);
  for (const Measured& one : all) {
    std::vector<std::string> cells = {fmt::format("{}", one.row_bytes),
                                      fmt::format("{}", one.receivers)};
    for (const KernelTime& time : one.times)
      cells.push_back(fmt::format("{:.2f}", time.ns_per_row));
    cells.emplace_back(kernel_name(shuffle::fastest_of(one.times)));
    for (const double ns :
         {one.put.to_receivers, one.put.words, one.put.by_key, one.put.with_length})
      cells.push_back(ns == 0 ? "-" : fmt::format("{:.2f}", ns));
    table.add(cells);
  }
  return table.text();
}

Json json_of(const std::vector<Measured>& all) {
  Json json = origin_json(read_machine());
  json["results"] = Json::array();
  for (const Measured& one : all) {
    Json result = {{"row_bytes", one.row_bytes}, {"receivers", one.receivers}};
    for (const KernelTime& time : one.times)
      result["ns_per_row"][std::string(kernel_name(time.kernel))] = time.ns_per_row;
    result["taken"] = kernel_name(shuffle::fastest_of(one.times));
    result["put_ns_per_row"] = {{"to_receivers", one.put.to_receivers},
                                {"by_key", one.put.by_key},
                                {"with_length", one.put.with_length}};
    if (one.put.words != 0) result["put_ns_per_row"]["by_words"] = one.put.words;
    json["results"].push_back(std::move(result));
  }
  return json;
}

int run(const Flags& flags) {
  const Result<bench::HashKind> hash = bench::parse_hash(flags.hash);
  if (!hash) return bench_error(hash.status());
  const std::vector<Measured> all =
      measure(*hash == bench::HashKind::finalizer ? KeyHash::finalizer : KeyHash::multiplicative);
  if (flags.json) {
    fmt::print("{}\n", json_text(json_of(all), true));
  } else {
    fmt::print(
        "ns to hash a row ({}) and append it to the rows of its receiver. Behind `taken` the "
        "loops\n"
        "for a width that is known at run time: to receivers that are named, as `by words` with\n"
        "AVX-512; by a key of 8 bytes; with a length in front, to receivers that are named.\n\n"
        "{}\n{}\n",
        flags.hash, table_of(all), machine_text(read_machine()));
  }
  return kExitOk;
}

}  // namespace

void add_kernels_command(CLI::App& bench, int& exit_code) {
  auto [command, flags] =
      add_subcommand(bench, exit_code, "kernels",
                     "The cost of each way to hash and scatter rows on this processor", run);
  command.add_option("--hash", flags.hash, "finalizer or multiplicative")
      ->capture_default_str()
      ->type_name("NAME");
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace faro::command::lab
