// Every kernel that this processor has hashes and scatters rows as a plain loop does: rows of all widths, to 1
// to 70 receivers, of any number, wherever rows and frames lie, and however soon frames are full.
#include "shuffle/kernels/kernels.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "faro/config.h"

namespace faro::shuffle {
namespace {

constexpr auto kUntouched = std::byte{0x5a};
constexpr size_t kBehind = 64;  // bytes behind a frame that are not its own

template <uint32_t kRowBytes>
struct Row {
  std::byte bytes[kRowBytes];
};

/// What each receiver was sent, frame by frame. Frames are of random sizes and lie anywhere.
class Receivers {
 public:
  Receivers(uint32_t count, size_t largest_frame, std::mt19937_64& random)
      : cursors(count),
        sent_(count),
        frames_(count),
        largest_frame_(largest_frame),
        random_(random) {}

  /// Takes the frame over that is open and opens one with room for a row at least.
  void next_frame(uint32_t receiver, size_t row_bytes) {
    take(receiver);
    const size_t bytes = row_bytes + random_() % largest_frame_;
    const size_t begin = random_() % 16;
    frames_[receiver] = {std::vector<std::byte>(begin + bytes + kBehind, kUntouched), begin, bytes};
    std::byte* const at = frames_[receiver].memory.data() + begin;
    cursors[receiver] = {at, at + bytes};
  }

  /// All rows that were sent to a receiver, one behind the other.
  const std::vector<std::byte>& sent_to(uint32_t receiver) {
    take(receiver);
    return sent_[receiver];
  }

  std::vector<detail::FrameCursor> cursors;

 private:
  struct Frame {
    std::vector<std::byte> memory;
    size_t begin = 0;
    size_t bytes = 0;
  };

  void take(uint32_t receiver) {
    Frame& frame = frames_[receiver];
    if (frame.memory.empty()) return;
    const std::byte* const begin = frame.memory.data() + frame.begin;
    sent_[receiver].insert(sent_[receiver].end(), begin,
                           static_cast<const std::byte*>(cursors[receiver].at));
    for (size_t i = 0; i < frame.begin; ++i) ASSERT_EQ(frame.memory[i], kUntouched);
    for (size_t i = frame.begin + frame.bytes; i < frame.memory.size(); ++i)
      ASSERT_EQ(frame.memory[i], kUntouched) << "behind the frame of receiver " << receiver;
    frame = {};
    cursors[receiver] = {};
  }

  std::vector<std::vector<std::byte>> sent_;
  std::vector<Frame> frames_;
  const size_t largest_frame_;
  std::mt19937_64& random_;
};

class EveryKernel : public testing::TestWithParam<Kernel> {
 protected:
  void SetUp() override {
    if (!is_supported(GetParam())) GTEST_SKIP() << "not on this processor";
  }
};

/// One call with `count` rows, which begin at any byte.
template <uint32_t kRowBytes, class Hash>
void expect_same_as_plain_loop(Kernel kernel, KeyHash hash, uint32_t receiver_count, size_t count,
                               size_t largest_frame, std::mt19937_64& random) {
  std::vector<std::byte> memory(count * kRowBytes + 16);
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
  const std::byte* const first = memory.data() + random() % 16;
  const std::span<const Row<kRowBytes>> rows(reinterpret_cast<const Row<kRowBytes>*>(first), count);
  const auto key = [](const Row<kRowBytes>& row) noexcept {
    uint64_t n;
    std::memcpy(&n, row.bytes, sizeof n);
    return n;
  };
  std::vector<std::vector<std::byte>> expected(receiver_count);
  for (const Row<kRowBytes>& row : rows) {
    std::vector<std::byte>& to = expected[partition(Hash{}(key(row)), receiver_count)];
    to.insert(to.end(), row.bytes, row.bytes + kRowBytes);
  }

  Receivers receivers(receiver_count, largest_frame, random);
  const size_t sent = detail::scatter_rows(
      block_kernel(kernel, hash), rows, Hash{}, key, receiver_count, receivers.cursors.data(),
      [&](uint32_t receiver, const Row<kRowBytes>& row) {
        receivers.next_frame(receiver, kRowBytes);
        return detail::put_row(receivers.cursors[receiver], row);
      });

  ASSERT_EQ(sent, count);
  for (uint32_t r = 0; r < receiver_count; ++r)
    ASSERT_EQ(receivers.sent_to(r), expected[r]) << "receiver " << r << " of " << receiver_count;
}

template <uint32_t kRowBytes>
void expect_same_to_all(Kernel kernel) {
  SCOPED_TRACE(std::to_string(kRowBytes) + " bytes");
  std::mt19937_64 random(kRowBytes);
  for (uint32_t receivers = 1; receivers <= 70; ++receivers) {
    for (const size_t largest_frame : {size_t{1}, size_t{300}, size_t{20'000}}) {
      const size_t count = random() % 600;
      ASSERT_NO_FATAL_FAILURE((expect_same_as_plain_loop<kRowBytes, FinalizerHash>(
          kernel, KeyHash::finalizer, receivers, count, largest_frame, random)));
      ASSERT_NO_FATAL_FAILURE((expect_same_as_plain_loop<kRowBytes, MultiplicativeHash>(
          kernel, KeyHash::multiplicative, receivers, count, largest_frame, random)));
    }
  }
}

TEST_P(EveryKernel, sends_rows_of_every_width_to_every_number_of_receivers) {
  ASSERT_NO_FATAL_FAILURE(expect_same_to_all<8>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(expect_same_to_all<16>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(expect_same_to_all<24>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(expect_same_to_all<32>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(expect_same_to_all<64>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(expect_same_to_all<100>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(expect_same_to_all<128>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(expect_same_to_all<9>(GetParam()));
}

TEST_P(EveryKernel, sends_every_number_of_rows) {
  std::mt19937_64 random(1);
  for (const uint32_t receivers : {2u, 4u, 6u, 7u}) {
    for (size_t count = 0; count < 530; ++count) {
      ASSERT_NO_FATAL_FAILURE((expect_same_as_plain_loop<8, FinalizerHash>(
          GetParam(), KeyHash::finalizer, receivers, count, 400, random)));
    }
  }
}

TEST_P(EveryKernel, ends_at_the_first_row_that_finds_no_room_and_sends_all_before_it) {
  std::mt19937_64 random(2);
  for (const uint32_t receiver_count : {2u, 4u, 6u, 12u}) {
    for (int round = 0; round < 100; ++round) {
      std::vector<Row<8>> rows(random() % 700);
      for (Row<8>& row : rows) {
        const uint64_t n = random();
        std::memcpy(row.bytes, &n, sizeof n);
      }
      const auto key = [](const Row<8>& row) noexcept {
        uint64_t n;
        std::memcpy(&n, row.bytes, sizeof n);
        return n;
      };
      Receivers receivers(receiver_count, 1000, random);
      for (uint32_t r = 0; r < receiver_count; ++r) receivers.next_frame(r, 8);
      std::vector<size_t> room(receiver_count);
      for (uint32_t r = 0; r < receiver_count; ++r) {
        const detail::FrameCursor& cursor = receivers.cursors[r];
        room[r] = static_cast<size_t>(cursor.end - cursor.at) / 8;
      }
      size_t expected = 0;
      std::vector<std::vector<std::byte>> streams(receiver_count);
      for (; expected < rows.size(); ++expected) {
        const uint32_t to = partition(FinalizerHash{}(key(rows[expected])), receiver_count);
        if (room[to]-- == 0) break;
        streams[to].insert(streams[to].end(), rows[expected].bytes, rows[expected].bytes + 8);
      }

      const size_t sent = detail::scatter_rows(block_kernel(GetParam(), KeyHash::finalizer),
                                               std::span<const Row<8>>(rows), FinalizerHash{}, key,
                                               receiver_count, receivers.cursors.data(),
                                               [](uint32_t, const Row<8>&) { return false; });

      ASSERT_EQ(sent, expected);
      for (uint32_t r = 0; r < receiver_count; ++r) ASSERT_EQ(receivers.sent_to(r), streams[r]);
    }
  }
}

TEST_P(EveryKernel, can_be_asked_for_by_its_name) {
  const std::string_view name = kernel_name(GetParam());
  Config config;
  ASSERT_TRUE(config.set("kernel.scatter", name).ok());
  const detail::SendKernels kernels = send_kernels(name, 8, 4);
  EXPECT_EQ(kernels.finalizer, block_kernel(GetParam(), KeyHash::finalizer));
  EXPECT_EQ(kernels.multiplicative, block_kernel(GetParam(), KeyHash::multiplicative));
  EXPECT_EQ(kernels.finalizer == nullptr, GetParam() == Kernel::scalar);
}

INSTANTIATE_TEST_SUITE_P(All, EveryKernel, testing::ValuesIn(kKernels),
                         [](const testing::TestParamInfo<Kernel>& tested) {
                           return std::string(kernel_name(tested.param));
                         });

TEST(Kernels, calibration_tries_all_that_are_supported_and_its_choice_stays) {
  size_t supported = 0;
  for (const Kernel kernel : kKernels) supported += is_supported(kernel);
  for (const uint32_t row_bytes : {1u, 8u, 20u, 100u, 4096u}) {
    for (const uint32_t receivers : {1u, 4u, 7u, 64u, 1000u}) {
      const std::vector<KernelTime> times = calibrate(KeyHash::finalizer, row_bytes, receivers);
      EXPECT_EQ(times.size(), supported);
      for (const KernelTime& time : times) {
        EXPECT_TRUE(is_supported(time.kernel));
        EXPECT_GT(time.ns_per_row, 0);
      }
      const Kernel chosen = fastest_kernel(KeyHash::finalizer, row_bytes, receivers);
      EXPECT_TRUE(is_supported(chosen));
      for (int again = 0; again < 3; ++again)
        EXPECT_EQ(fastest_kernel(KeyHash::finalizer, row_bytes, receivers), chosen);
    }
  }
}

TEST(Kernels, the_first_is_taken_unless_a_later_one_is_clearly_faster) {
  EXPECT_EQ(fastest_of({{Kernel::scalar, 2}}), Kernel::scalar);
  EXPECT_EQ(fastest_of({{Kernel::scalar, 2}, {Kernel::avx2, 1.95}}), Kernel::scalar);
  EXPECT_EQ(fastest_of({{Kernel::scalar, 2}, {Kernel::avx2, 1.8}, {Kernel::avx512, 1.75}}),
            Kernel::avx2);
  EXPECT_EQ(fastest_of({{Kernel::scalar, 2}, {Kernel::avx2, 3}, {Kernel::avx512, 1}}),
            Kernel::avx512);
}

TEST(Kernels, a_hash_of_the_users_own_takes_no_loop_of_another) {
  struct OwnHash {
    uint64_t operator()(uint64_t key) const noexcept { return ~key; }
  };
  detail::SendKernels kernels;
  const detail::BlockKernel some;
  kernels.finalizer = kernels.multiplicative = &some;
  EXPECT_EQ(kernels.of(OwnHash{}), nullptr);
  EXPECT_EQ(kernels.of(FinalizerHash{}), &some);
}

}  // namespace
}  // namespace faro::shuffle
