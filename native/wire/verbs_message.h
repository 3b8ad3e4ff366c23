// Verbs messages: the SENDs of a link over RDMA, and what its two sides say to each other while it
// is set up. wire/README.md has the page of every byte; transport/verbs/README.md says what is checked and when
// they are sent.
//
// A SEND is a head and up to kRecordLimit records:
//
//    0                8                16
//   +-------+--------+--------+--------+- - - - - - - - - - -
//   | count | 0      | notes  | returns| count records
//   +-------+--------+--------+--------+- - - - - - - - - - -
//
//   record:  0                  4        8
//           +--------------+---+--------+------------------+
//           | ring         | k | 0      | position         |
//           +--------------+---+--------+------------------+
//             bits 0…30     31
//
//   k  record    ring                             position
//   0  WRITTEN   of the sender's outgoing rings   everything before it is in the receiver's ring
//   1  READ      of the sender's incoming rings   everything before it may be written again
//   1  SIGN      2^31 - 1, which is none          0; by kSigns (wire/control.h): the sender lives, and so does this way
//
// A SEND with records is a *notification*, one without is a *return* (of credits). `notes` and
// `returns` count, modulo 2^32, how many of the receiver's notifications (SENDs with records and
// WRITEs WITH IMMEDIATE) and returns the sender has taken and posted a new receive for.
//
// SENDs grow only by agreement: an ability for which both sides have a feature bit may give a meaning to the zeros.
// Messages of the setup grow at their end; a receiver ignores what it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "wire/frame.h"

namespace faro::wire {

struct VerbsHead {
  uint32_t record_count;
  uint32_t reserved;  // 0
  uint32_t notes;
  uint32_t returns;
};
static_assert(sizeof(VerbsHead) == 16 && std::is_trivially_copyable_v<VerbsHead>);
static_assert(offsetof(VerbsHead, notes) == 8 && offsetof(VerbsHead, returns) == 12);

struct VerbsRecord {
  uint32_t ring_and_kind;  // see the picture
  uint32_t reserved;       // 0
  Position position;
};
static_assert(sizeof(VerbsRecord) == 16 && std::is_trivially_copyable_v<VerbsRecord>);
static_assert(offsetof(VerbsRecord, position) == 8);

/// Records of one SEND, so that a full one takes kVerbsMessageBytes.
inline constexpr uint32_t kVerbsRecordLimit = 31;
inline constexpr uint32_t kVerbsMessageBytes =
    sizeof(VerbsHead) + kVerbsRecordLimit * sizeof(VerbsRecord);
static_assert(kVerbsMessageBytes == 512);

/// Set in ring_and_kind: READ; clear: WRITTEN.
inline constexpr uint32_t kVerbsReadRecord = uint32_t{1} << 31;

constexpr VerbsRecord verbs_written(uint32_t ring, Position position) {
  return {ring, 0, position};
}
constexpr VerbsRecord verbs_read(uint32_t ring, Position position) {
  return {ring | kVerbsReadRecord, 0, position};
}
constexpr VerbsRecord verbs_sign() { return {~uint32_t{0}, 0, 0}; }
constexpr bool is_sign(const VerbsRecord& record) {
  return record.ring_and_kind == verbs_sign().ring_and_kind && record.position == 0;
}
constexpr bool is_read(const VerbsRecord& record) {
  return (record.ring_and_kind & kVerbsReadRecord) != 0;
}
constexpr uint32_t ring_of(const VerbsRecord& record) {
  return record.ring_and_kind & ~kVerbsReadRecord;
}

// ------------------------------------------------------------------------------------------- setup

enum class VerbsSetupKind : uint32_t {
  listen = 1,  // by the accepting side: where it takes RDMA connections
  memory = 2,  // by either side: where its incoming rings lie
  resume = 3,  // by either side, when the link is mended: how far these rings are
};

/// family 0: the address at which the other side has reached this node already.
struct VerbsListen {
  VerbsSetupKind kind;
  uint16_t family;  // 0, 4 or 6
  uint16_t port;
  uint8_t address[16];  // of IPv4 the first four
};
static_assert(sizeof(VerbsListen) == 24 && std::is_trivially_copyable_v<VerbsListen>);

struct VerbsMemory {
  VerbsSetupKind kind;
  uint32_t key;               // that lets the other side write there (rkey)
  uint64_t address;           // of the region's first byte
  uint64_t bytes;             // of the region
  uint32_t receives;          // posted in advance on each connection, for the other side's messages
  uint32_t takes_immediates;  // 0 or 1: WRITE WITH IMMEDIATE is understood
};
static_assert(sizeof(VerbsMemory) == 32 && std::is_trivially_copyable_v<VerbsMemory>);
static_assert(offsetof(VerbsMemory, address) == 8 && offsetof(VerbsMemory, receives) == 24);

/// How far the sender of a RESUME is in one of its incoming rings.
struct VerbsProgress {
  Position arrived;  // everything before it is in the ring
  Position read;     // everything before it may be written again
};
static_assert(sizeof(VerbsProgress) == 16 && std::is_trivially_copyable_v<VerbsProgress>);
static_assert(offsetof(VerbsProgress, read) == 8);

/// Followed by the progress of `ring_count` rings, beginning with `first_ring`.
struct VerbsResume {
  VerbsSetupKind kind;
  uint32_t first_ring;
  uint32_t ring_count;  // 1 … kVerbsResumeLimit
  uint32_t reserved;    // 0
};
static_assert(sizeof(VerbsResume) == 16 && std::is_trivially_copyable_v<VerbsResume>);

/// Rings of one RESUME, which is then no longer than a SETUP may be.
inline constexpr uint32_t kVerbsResumeLimit = 255;

namespace detail {
template <typename Message>
std::optional<Message> load_verbs_setup(std::span<const std::byte> bytes, VerbsSetupKind kind) {
  Message message;
  if (bytes.size() < sizeof message) return std::nullopt;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.kind != kind) return std::nullopt;
  return message;
}
}  // namespace detail

/// Reads untrusted bytes; nothing unless they are a LISTEN of a known family, with a port. What follows it is ignored.
inline std::optional<VerbsListen> load_verbs_listen(std::span<const std::byte> bytes) {
  const auto listen = detail::load_verbs_setup<VerbsListen>(bytes, VerbsSetupKind::listen);
  if (!listen || listen->port == 0) return std::nullopt;
  const bool known_family = listen->family == 0 || listen->family == 4 || listen->family == 6;
  return known_family ? listen : std::nullopt;
}

/// Reads untrusted bytes; nothing unless they are a MEMORY. The link checks whether its sizes are
/// those that were agreed on.
inline std::optional<VerbsMemory> load_verbs_memory(std::span<const std::byte> bytes) {
  const auto memory = detail::load_verbs_setup<VerbsMemory>(bytes, VerbsSetupKind::memory);
  return memory && memory->takes_immediates <= 1 ? memory : std::nullopt;
}

/// Reads untrusted bytes; nothing unless they are a RESUME with the progress of all its rings,
/// which progress_in reads.
inline std::optional<VerbsResume> load_verbs_resume(std::span<const std::byte> bytes) {
  const auto resume = detail::load_verbs_setup<VerbsResume>(bytes, VerbsSetupKind::resume);
  if (!resume || resume->reserved != 0) return std::nullopt;
  if (resume->ring_count == 0 || resume->ring_count > kVerbsResumeLimit) return std::nullopt;
  const bool whole = bytes.size() - sizeof *resume >= resume->ring_count * sizeof(VerbsProgress);
  return whole ? resume : std::nullopt;
}

/// The progress of ring `first_ring` + `index` of a RESUME. Untrusted.
inline VerbsProgress progress_in(std::span<const std::byte> resume, uint32_t index) {
  VerbsProgress progress;
  std::memcpy(&progress, resume.data() + sizeof(VerbsResume) + index * sizeof progress,
              sizeof progress);
  return progress;
}

/// A whole one; at most kVerbsResumeLimit rings.
std::vector<std::byte> encode_verbs_resume(uint32_t first_ring,
                                           std::span<const VerbsProgress> progress);

}  // namespace faro::wire
