#include "shuffle/kernels/kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <limits>
#include <mutex>

#include "base/processor.h"

namespace faro::shuffle {
namespace {

using detail::FrameCursor;

// Rows of a turn: in the first cache, as rows are that an engine has just made.
constexpr size_t kSampleBytes = 8 * 1024;
// The shortest of these turns counts: a turn takes some microseconds, so that few are disturbed.
constexpr int kTurns = 16;
// What a wider kernel has to gain to be worth its second pass, which the caches of a whole job notice more.
constexpr double kNoise = 0.05;
// What the frames of all receivers take. A frame that is full begins anew; with few receivers it is
// as large as frames mostly are.
constexpr size_t kFramesBytes = 64 * 1024;
constexpr size_t kLargestFrameBytes = 8 * 1024;
constexpr size_t kStaggerBytes = 64;  // frames a power of two apart fight for the same cache sets
constexpr size_t kMostReceivers = kKernelReceivers[std::size(kKernelReceivers) - 1];

/// The memory of a calibration.
struct Sample {
  std::mutex mutex;
  alignas(64) std::byte rows[kSampleBytes];
  alignas(64) std::byte frames[kFramesBytes + kMostReceivers * kStaggerBytes];
  size_t frame_bytes;
  FrameCursor cursors[kMostReceivers];
};
Sample sample;

/// Where rows to a receiver go that has none yet.
FrameCursor frame_of(uint32_t receiver) noexcept {
  std::byte* const begin = sample.frames + receiver * (sample.frame_bytes + kStaggerBytes);
  return {begin, begin + sample.frame_bytes};
}

template <uint32_t kRowBytes>
struct Row {
  std::byte bytes[kRowBytes];
};

/// One turn of a kernel; its time.
template <class Hash, uint32_t kRowBytes>
double turn_ns(const detail::BlockKernel* kernel, uint32_t receiver_count) {
  constexpr size_t kRows = kSampleBytes / kRowBytes;
  const std::span<const Row<kRowBytes>> rows(reinterpret_cast<const Row<kRowBytes>*>(sample.rows),
                                             kRows);
  const auto key = [](const Row<kRowBytes>& row) noexcept {
    uint64_t n;
    std::memcpy(&n, row.bytes, sizeof n);
    return n;
  };
  const auto next_frame = [](uint32_t receiver, const Row<kRowBytes>& row) noexcept {
    sample.cursors[receiver] = frame_of(receiver);
    return detail::put_row(sample.cursors[receiver], row);
  };
  const auto begin = std::chrono::steady_clock::now();
  (void)detail::scatter_rows(kernel, rows, Hash{}, key, receiver_count, sample.cursors, next_frame);
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - begin).count() / kRows;
}

template <class Hash, uint32_t kRowBytes>
std::vector<KernelTime> calibrate_width(KeyHash hash, uint32_t receiver_count) {
  const std::lock_guard lock(sample.mutex);
  for (size_t at = 0; at + kRowBytes <= kSampleBytes; at += kRowBytes) {
    const uint64_t n = at / kRowBytes;
    std::memcpy(sample.rows + at, &n, sizeof n);
  }
  std::memset(sample.frames, 0, sizeof sample.frames);  // the system gives the pages now
  sample.frame_bytes = std::min(kLargestFrameBytes, kFramesBytes / receiver_count);
  for (uint32_t receiver = 0; receiver < receiver_count; ++receiver)
    sample.cursors[receiver] = frame_of(receiver);
  std::vector<KernelTime> times;
  for (const Kernel kernel : kKernels) {
    if (is_supported(kernel)) times.push_back({kernel, std::numeric_limits<double>::max()});
  }
  // Each on its own: wide instructions take some microseconds to come up to speed.
  for (KernelTime& time : times) {
    const detail::BlockKernel* const kernel = block_kernel(time.kernel, hash);
    for (int turn = 0; turn < kTurns; ++turn)
      time.ns_per_row = std::min(time.ns_per_row, turn_ns<Hash, kRowBytes>(kernel, receiver_count));
  }
  return times;
}

template <class Hash>
std::vector<KernelTime> calibrate_hash(KeyHash hash, uint32_t row_bytes, uint32_t receiver_count) {
  switch (row_bytes) {
    case 8:
      return calibrate_width<Hash, 8>(hash, receiver_count);
    case 16:
      return calibrate_width<Hash, 16>(hash, receiver_count);
    case 24:
      return calibrate_width<Hash, 24>(hash, receiver_count);
    case 32:
      return calibrate_width<Hash, 32>(hash, receiver_count);
    case 64:
      return calibrate_width<Hash, 64>(hash, receiver_count);
    case 100:
      return calibrate_width<Hash, 100>(hash, receiver_count);
    default:
      return calibrate_width<Hash, 128>(hash, receiver_count);
  }
}

/// The place of the next larger one in an ascending list, else of the last.
template <size_t kCount>
size_t place_in(const uint32_t (&ascending)[kCount], uint32_t value) noexcept {
  const auto* const found = std::ranges::lower_bound(ascending, value);
  return std::min<size_t>(kCount - 1, static_cast<size_t>(found - ascending));
}

constexpr uint8_t kUnknown = 0xff;

struct Choices {
  Choices() noexcept {
    for (auto& each : kernels) {
      for (auto& of_width : each) {
        for (auto& kernel : of_width) kernel.store(kUnknown, std::memory_order_relaxed);
      }
    }
  }
  // By hash, width, receivers. Relaxed: whoever finds none calibrates, and any answer is right.
  std::atomic<uint8_t> kernels[2][std::size(kKernelWidths)][std::size(kKernelReceivers)];
};

}  // namespace

std::string_view kernel_name(Kernel kernel) noexcept {
  switch (kernel) {
    case Kernel::avx2:
      return "avx2";
    case Kernel::avx512:
      return "avx512";
    case Kernel::scalar:
      break;
  }
  return "scalar";
}

bool is_supported(Kernel kernel) noexcept {
  switch (kernel) {
    case Kernel::avx2:
      return base::has_avx2();
    case Kernel::avx512:
      return base::has_avx512();
    case Kernel::scalar:
      break;
  }
  return true;
}

const detail::BlockKernel* block_kernel(Kernel kernel, KeyHash hash) noexcept {
  switch (kernel) {
    case Kernel::avx2:
      return avx2_kernel(hash);
    case Kernel::avx512:
      return avx512_kernel(hash);
    case Kernel::scalar:
      break;
  }
  return nullptr;
}

std::vector<KernelTime> calibrate(KeyHash hash, uint32_t row_bytes, uint32_t receiver_count) {
  const uint32_t width = kKernelWidths[place_in(kKernelWidths, row_bytes)];
  const uint32_t receivers = kKernelReceivers[place_in(kKernelReceivers, receiver_count)];
  return hash == KeyHash::finalizer ? calibrate_hash<FinalizerHash>(hash, width, receivers)
                                    : calibrate_hash<MultiplicativeHash>(hash, width, receivers);
}

Kernel fastest_of(const std::vector<KernelTime>& times) noexcept {
  KernelTime fastest = times.front();
  for (const KernelTime& time : times) {
    if (time.ns_per_row < (1 - kNoise) * fastest.ns_per_row) fastest = time;
  }
  return fastest.kernel;
}

Kernel fastest_kernel(KeyHash hash, uint32_t row_bytes, uint32_t receiver_count) {
  static Choices choices;
  std::atomic<uint8_t>& choice = choices.kernels[static_cast<size_t>(hash)][place_in(
      kKernelWidths, row_bytes)][place_in(kKernelReceivers, receiver_count)];
  const uint8_t known = choice.load(std::memory_order_relaxed);
  if (known != kUnknown) return static_cast<Kernel>(known);
  const Kernel fastest = fastest_of(calibrate(hash, row_bytes, receiver_count));
  choice.store(static_cast<uint8_t>(fastest), std::memory_order_relaxed);
  return fastest;
}

detail::SendKernels send_kernels(std::string_view setting, uint32_t row_bytes,
                                 uint32_t receiver_count) {
  const auto kernel_for = [&](KeyHash hash) {
    for (const Kernel kernel : kKernels) {
      if (setting == kernel_name(kernel)) return block_kernel(kernel, hash);
    }
    return block_kernel(fastest_kernel(hash, row_bytes, receiver_count), hash);
  };
  return {kernel_for(KeyHash::finalizer), kernel_for(KeyHash::multiplicative)};
}

}  // namespace faro::shuffle
