// Segment: the memory of one direction of a link, as sender and receiver both see it.
//
//   0                                                                     written by
//   +--------------------+
//   | header             |  64 bytes                                       receiver, once
//   +--------------------+
//   | WrittenLine[ring]  |  64 bytes each                                  sender
//   +--------------------+
//   | ReadLine[ring]     |  64 bytes each                                  receiver
//   +--------------------+
//   | ready words        |  per receiving worker, whole cache lines        both: sender sets,
//   receiver takes
//   +--------------------+  multiple of 4096
//   | rings              |  staggered as ring::Layout says                 sender
//   +--------------------+  multiple of 4096
//
// On a link through shared memory the receiver makes the segment and the sender maps it; both ends
// of the local link are the same process and its segment is private. Either side may be hostile:
// nothing that is read here is trusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "ring/layout.h"
#include "transport/shm/shared_memory.h"
#include "wire/frame.h"

namespace faro::transport::shm {

struct SegmentHeader {
  uint64_t magic;    // kSegmentMagic
  uint32_t version;  // kSegmentVersion
  uint32_t sender_workers;
  uint32_t receiver_ends;
  uint32_t rings_per_lane;
  uint32_t ring_bytes;
  uint32_t reserved;  // 0
  uint64_t bytes;     // of the whole segment
  uint64_t
      optional[3];  // what a sender that does not know it may ignore; 0: nothing is defined yet
};
static_assert(sizeof(SegmentHeader) == 64 && std::is_trivially_copyable_v<SegmentHeader>);
static_assert(offsetof(SegmentHeader, bytes) == 32 && offsetof(SegmentHeader, optional) == 40);

inline constexpr uint64_t kSegmentMagic = 0x316d'6873'6f72'6166;  // "faroshm1"
/// The version of the whole picture above; it counts up with every change of that which a sender
/// must know. What it may ignore stands in SegmentHeader::optional, or where nobody looks yet: in
/// the rest of a WrittenLine or ReadLine.
inline constexpr uint32_t kSegmentVersion = 1;

/// What the sender tells about a ring.
struct alignas(64) WrittenLine {
  std::atomic<wire::Position> position;  // bytes before it are in the ring
  std::atomic<uint32_t> starving;  // 1: a claim found no space; wake me when there is (a hint)
};
static_assert(sizeof(WrittenLine) == 64 && offsetof(WrittenLine, starving) == 8);

/// What the receiver tells about a ring.
struct alignas(64) ReadLine {
  std::atomic<wire::Position> position;  // bytes before it may be overwritten
};
static_assert(sizeof(ReadLine) == 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

/// Where things lie in a segment for rings of that layout.
class SegmentLayout {
 public:
  explicit SegmentLayout(const ring::Layout& rings) : rings_(rings) {}

  const ring::Layout& rings() const { return rings_; }
  /// Ready words of one receiving worker.
  uint32_t ready_words() const { return (rings_.rings_of_receiver() + 63) / 64; }
  /// Rings whose bits stand in ready word `word` of a worker.
  uint32_t rings_in_ready_word(uint32_t word) const {
    const uint32_t left = rings_.rings_of_receiver() - word * 64;
    return left < 64 ? left : 64;
  }
  uint64_t written_offset(uint32_t ring) const {
    return sizeof(SegmentHeader) + uint64_t{64} * ring;
  }
  uint64_t read_offset(uint32_t ring) const {
    return written_offset(rings_.ring_count()) + uint64_t{64} * ring;
  }
  uint64_t ready_offset(uint32_t receiver) const {
    return read_offset(rings_.ring_count()) + ready_stride_bytes() * receiver;
  }
  uint64_t ring_offset(uint32_t ring) const { return rings_offset() + rings_.base_offset(ring); }
  uint64_t bytes() const { return whole_pages(rings_offset() + rings_.region_bytes()); }

 private:
  static uint64_t whole_pages(uint64_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
  // A worker's words have their cache lines for themselves.
  uint64_t ready_stride_bytes() const { return (uint64_t{8} * ready_words() + 63) / 64 * 64; }
  uint64_t rings_offset() const { return whole_pages(ready_offset(rings_.receiver_ends)); }

  ring::Layout rings_;
};

/// A mapped segment. Threads: constant after construction; what it points to is shared.
class Segment {
 public:
  /// Both ends in this process. Blocks: while the kernel clears the pages. Errors: resource_limit.
  static Result<std::shared_ptr<Segment>> make_private(const ring::Layout& rings,
                                                       std::string_view what);

  /// A new one for a peer to send into; `fd` is what the peer has to get.
  /// Blocks and Errors: see create_sealed_memfd.
  static Result<std::shared_ptr<Segment>> make_shared(const ring::Layout& rings,
                                                      std::string_view what, base::UniqueFd& fd);

  /// The peer's. Every number is checked against what this side computed itself.
  /// Errors: protocol_error; resource_limit.
  static Result<std::shared_ptr<Segment>> map_peer(int fd, const ring::Layout& rings,
                                                   std::string_view what);

  const SegmentLayout& layout() const { return layout_; }
  const ring::Layout& rings() const { return layout_.rings(); }
  WrittenLine& written(uint32_t ring) const {
    return *at<WrittenLine>(layout_.written_offset(ring));
  }
  ReadLine& read(uint32_t ring) const { return *at<ReadLine>(layout_.read_offset(ring)); }
  std::atomic<uint64_t>& ready_word(uint32_t receiver, uint32_t word) const {
    return *at<std::atomic<uint64_t>>(layout_.ready_offset(receiver) + uint64_t{8} * word);
  }
  std::byte* ring(uint32_t ring) const { return mapping_.data() + layout_.ring_offset(ring); }

 private:
  Segment(Mapping mapping, const SegmentLayout& layout)
      : mapping_(std::move(mapping)), layout_(layout) {}

  // Zeroed memory is a valid lock-free atomic of value 0 on every platform of ours; the first user
  // of a line finds it so.
  template <typename T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(mapping_.data() + offset);
  }

  Mapping mapping_;
  SegmentLayout layout_;
};

}  // namespace faro::transport::shm
