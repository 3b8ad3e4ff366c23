// What is accepted as shared memory from another process, and what is not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>

#include "support/expect.h"
#include "transport/shm/segment.h"
#include "transport/shm/shared_memory.h"
#include "transport/shm/shm_transport.h"

namespace faro::transport::shm {
namespace {

constexpr uint64_t kBytes = 3 * kPageBytes;
constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

base::UniqueFd plain_memfd(uint64_t bytes, bool allocated, int seals) {
  base::UniqueFd fd(memfd_create("faro-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  if (allocated) {
    EXPECT_EQ(posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)), 0);
  }
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(ShmMemory, is_accepted_as_it_is_made) {
  auto fd = test::value_of(create_sealed_memfd("faro-test", kBytes - 100, "memory"));
  EXPECT_TRUE(check_sealed_memfd(fd.get(), kBytes, true, "memory").ok());
  EXPECT_NE(ftruncate(fd.get(), 0), 0) << "nobody can shrink it";
  EXPECT_NE(ftruncate(fd.get(), 1 << 20), 0) << "nor let it grow";
}

struct BadMemory {
  const char* name;
  std::function<base::UniqueFd()> make;
  const char* why;
};

class ShmBadMemory : public testing::TestWithParam<BadMemory> {};
INSTANTIATE_TEST_SUITE_P(
    All, ShmBadMemory,
    testing::Values(
        BadMemory{"a_pipe",
                  [] {
                    int ends[2] = {-1, -1};
                    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
                    close(ends[0]);
                    return base::UniqueFd(ends[1]);
                  },
                  "no memfd"},
        BadMemory{"a_file",
                  [] { return base::UniqueFd(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)); },
                  "memfd"},
        BadMemory{"unsealed", [] { return plain_memfd(kBytes, true, 0); }, "lacks seals"},
        BadMemory{"shrinkable", [] { return plain_memfd(kBytes, true, F_SEAL_GROW | F_SEAL_SEAL); },
                  "lacks seals"},
        BadMemory{"seals_still_open",
                  [] { return plain_memfd(kBytes, true, F_SEAL_GROW | F_SEAL_SHRINK); },
                  "lacks seals"},
        BadMemory{"write_sealed",
                  [] { return plain_memfd(kBytes, true, kAllSeals | F_SEAL_WRITE); },
                  "sealed against writing"},
        BadMemory{"too_small", [] { return plain_memfd(kBytes - kPageBytes, true, kAllSeals); },
                  "has 8192 bytes instead of 12288"},
        BadMemory{"too_large", [] { return plain_memfd(kBytes + kPageBytes, true, kAllSeals); },
                  "has 16384 bytes instead of 12288"},
        BadMemory{"sparse", [] { return plain_memfd(kBytes, false, kAllSeals); }, "sparse"}),
    [](const auto& bad) { return std::string(bad.param.name); });

TEST_P(ShmBadMemory, is_refused_and_says_why) {
  const base::UniqueFd fd = GetParam().make();
  ASSERT_TRUE(fd.valid());
  test::expect_error(check_sealed_memfd(fd.get(), kBytes, true, "the peer's rings"),
                     Code::protocol_error, {GetParam().why, "the peer's rings"});
}

TEST(ShmMemory, that_exceeds_the_file_size_limit_is_an_error_naming_need_and_limit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 65536;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Result<base::UniqueFd> fd = create_sealed_memfd("faro-test", 1 << 20, "the incoming rings");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  test::expect_error(fd.status(), Code::resource_limit, {"1048576", "65536"});
}

TEST(ShmMemory, that_no_machine_has_is_an_error_naming_the_need) {
  test::expect_error(Mapping::allocate_private(uint64_t{1} << 60, "the local rings").status(),
                     Code::resource_limit, {"the local rings needs 1152921504606846976 bytes"});
}

constexpr ring::Layout kRings{2, 3, 2, 4096};

TEST(ShmSegment, made_by_the_receiver_is_seen_by_the_sender) {
  base::UniqueFd fd;
  auto made = test::value_of(Segment::make_shared(kRings, "a segment", fd));
  auto mapped = test::value_of(Segment::map_peer(fd.get(), kRings, "a segment"));
  for (uint32_t ring = 0; ring < kRings.ring_count(); ++ring) {
    mapped->written(ring).position.store(ring + 1);
    made->read(ring).position.store(ring + 2);
    std::memset(mapped->ring(ring), static_cast<int>(ring), kRings.ring_bytes);
  }
  for (uint32_t ring = 0; ring < kRings.ring_count(); ++ring) {
    EXPECT_EQ(made->written(ring).position.load(), ring + 1);
    EXPECT_EQ(mapped->read(ring).position.load(), ring + 2);
    EXPECT_EQ(made->ring(ring)[0], std::byte(ring));
    EXPECT_EQ(made->ring(ring)[kRings.ring_bytes - 1], std::byte(ring));
  }
  for (uint32_t worker = 0; worker < kRings.receiver_ends; ++worker)
    EXPECT_EQ(made->ready_word(worker, 0).load(), 0u) << "rings and control words overlap";
}

TEST(ShmSegment,
     with_another_value_in_any_field_of_its_header_is_refused_unless_it_may_be_ignored) {
  for (size_t at = 0; at < sizeof(SegmentHeader); ++at) {
    base::UniqueFd fd;
    auto made = test::value_of(Segment::make_shared(kRings, "a segment", fd));
    unsigned char byte = 0;
    ASSERT_EQ(pread(fd.get(), &byte, 1, static_cast<off_t>(at)), 1);
    byte ^= 0x40;
    ASSERT_EQ(pwrite(fd.get(), &byte, 1, static_cast<off_t>(at)), 1);
    EXPECT_EQ(Segment::map_peer(fd.get(), kRings, "a segment").status().code(),
              at < offsetof(SegmentHeader, optional) ? Code::protocol_error : Code::ok)
        << "byte " << at;
  }
}

TEST(ShmSegment, of_another_shape_is_refused_even_if_it_has_the_same_size) {
  base::UniqueFd fd;
  auto made = test::value_of(Segment::make_shared({2, 1, 1, 4096}, "a segment", fd));
  const ring::Layout other{1, 1, 2, 4096};
  ASSERT_EQ(SegmentLayout(other).bytes(), made->layout().bytes());
  test::expect_error(Segment::map_peer(fd.get(), other, "a segment").status(), Code::protocol_error,
                     {"made for 2 x 1 workers"});
}

TEST(ShmTransport, is_available_here_and_needs_memory_for_the_incoming_direction_only) {
  ShmTransport transport;
  EXPECT_TRUE(test::is_ok(transport.available()));
  const ring::Layout outgoing{2, 4, 2, 1 << 20};
  const ring::Layout incoming{4, 2, 2, 4096};
  EXPECT_EQ(transport.memory_bytes(outgoing, incoming), SegmentLayout(incoming).bytes());
  EXPECT_LT(transport.memory_bytes(outgoing, incoming), uint64_t{1} << 20);
}

}  // namespace
}  // namespace faro::transport::shm
