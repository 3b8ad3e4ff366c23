// Frames: what lies in a ring. wire/README.md has the page of every byte.
//
//    0        4      5      6      8            12           16
//   +--------+------+------+------+------------+------------+------------------ - - -
//   | length | kind | flags| slot | row_count  | field_bytes| payload (length - 16 bytes)
//   +--------+------+------+------+------------+------------+------------------ - - -
//
// All numbers are little-endian. A frame starts at a position that is a multiple of 64 and never
// wraps around the end of its ring; the next one starts at the next multiple of 64 after its end.
//
// How frames grow: a new kind, which its sender may mark to be skipped by receivers that do not know it; fields at the end of an
// OPEN or a FINISH (wire/fields.h), counted in field_bytes, which the receiver leaves alone if it does not know them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace faro::wire {

static_assert(std::endian::native == std::endian::little,
              "the wire format is little-endian and read in place");

/// A count of bytes ever written to or read from a ring; only grows. Never an offset.
using Position = uint64_t;

/// Frames start at multiples of this. One cache line, and the unit in which a WRITE WITH IMMEDIATE
/// counts bytes.
inline constexpr uint32_t kFrameAlignment = 64;

enum class FrameKind : uint8_t {
  // 0 is never valid, so that zeroed memory is not a frame.
  pad = 1,       // fills the ring up to its end; only `length` matters
  data = 2,      // whole rows of the shuffle in `slot`
  open = 3,      // binds `slot` to a shuffle; payload OpenPayload, then perhaps OpenFormat
  finish = 4,    // no more rows of `slot`'s shuffle in this ring; payload FinishPayload
  fragment = 5,  // a part of one row too large for a frame; payload FragmentPayload, then bytes
  // In the rings of channels only:
  message = 6,  // one frame of the layer above; payload its bytes, perhaps none
  end = 7,      // nothing more comes in this ring; no payload
};
/// The kinds from pad on up to this one are known.
inline constexpr FrameKind kLastFrameKind = FrameKind::end;

/// In flags: a receiver that does not know the kind skips the frame. The kinds above never have it.
inline constexpr uint8_t kMaySkipFrame = 1;

struct FrameHeader {
  uint32_t length;       // bytes of header and payload, without the padding behind it
  FrameKind kind;        //
  uint8_t flags;         // 0, or kMaySkipFrame
  uint16_t slot;         // meaningless in a pad; 0 in the rings of channels
  uint32_t row_count;    // rows in a data frame; 1 in the last fragment of a row; else 0
  uint32_t field_bytes;  // in OPEN and FINISH: bytes at the payload's end that are fields; else 0
};
static_assert(sizeof(FrameHeader) == 16 && alignof(FrameHeader) == 4);
static_assert(std::is_trivially_copyable_v<FrameHeader>);
static_assert(offsetof(FrameHeader, kind) == 4 && offsetof(FrameHeader, slot) == 6);
static_assert(offsetof(FrameHeader, row_count) == 8);

/// Names a query over the life of a cluster; never recurs.
struct QueryKey {
  uint64_t counter;      // counted by the coordinator, from 1
  uint64_t incarnation;  // of the coordinator: drawn anew each time its process joins
  uint32_t issuer;       // node number
  uint32_t reserved;     // 0
};
static_assert(sizeof(QueryKey) == 24);

struct OpenPayload {
  QueryKey query;
  uint32_t stage;
  uint32_t row_bytes;  // width of every row; 0: rows have a length each
  uint64_t
      lists;  // XXH3-64 of the senders, ascending, 2^32-1, and the receivers, in order; uint32 each
  uint32_t sender_count;
  uint32_t receiver_count;
};
static_assert(sizeof(OpenPayload) == 48);

/// The format of the rows, if the sender has named it: behind OpenPayload, and followed by the beginning of the
/// format's text, up to kOpenFormatTextLimit bytes of UTF-8.
struct OpenFormat {
  uint64_t digest;  // XXH3-64 of the whole text; 1 if that is 0
};
static_assert(sizeof(OpenFormat) == 8);
inline constexpr uint32_t kOpenFormatTextLimit = 256;

/// Whether that many bytes can be the payload of an OPEN, without its fields.
constexpr bool is_open_payload(uint32_t bytes) {
  constexpr uint32_t before_text = sizeof(OpenPayload) + sizeof(OpenFormat);
  return bytes == sizeof(OpenPayload) ||
         (bytes > before_text && bytes <= before_text + kOpenFormatTextLimit);
}

struct FinishPayload {
  uint64_t row_count;  // of all rows that the sender put into this ring for this shuffle
};
static_assert(sizeof(FinishPayload) == 8);

struct FragmentPayload {
  uint64_t row_bytes;  // of the whole row; the same in each of its fragments
  uint64_t offset;     // of this fragment in the row; fragments come in order, without gaps
};
static_assert(sizeof(FragmentPayload) == 16);

/// In a data frame of a shuffle with row_bytes 0 each row is preceded by its length (uint32, then
/// the bytes, no padding).
using RowLength = uint32_t;

/// The space that a frame of that many bytes occupies in a ring.
constexpr uint64_t padded(uint64_t length) {
  return (length + kFrameAlignment - 1) & ~uint64_t{kFrameAlignment - 1};
}

/// The largest frame that a single row, or a fragment of one, may need in a ring of this size: a quarter
/// (native/DESIGN.md#lane-ring-and-frame). Half a ring, including a pad, always has room for it.
constexpr uint32_t frame_limit(uint64_t ring_bytes) {
  return static_cast<uint32_t>(ring_bytes / 4);
}

/// The largest frame of several rows, if there is room for it: half the ring.
constexpr uint32_t full_frame_limit(uint64_t ring_bytes) {
  return static_cast<uint32_t>(ring_bytes / 2);
}

/// Copies a header out of memory that another process may be changing. Use only the copy.
inline FrameHeader load_header(const std::byte* at) {
  FrameHeader header;
  std::memcpy(&header, at, sizeof header);
#if defined(__GNUC__)
  asm volatile("" ::: "memory");  // the copy is made once; the compiler must not read again
#endif
  return header;
}

/// Writes the header of a frame to its beginning.
inline void store_header(std::byte* at, const FrameHeader& header) {
  std::memcpy(at, &header, sizeof header);
}

/// The payload without the fields at its end, of a valid header.
constexpr uint32_t bytes_before_fields(const FrameHeader& header) {
  return header.length - static_cast<uint32_t>(sizeof(FrameHeader)) - header.field_bytes;
}

namespace detail {
/// Whether flags and field_bytes, which are not both 0, are those of a frame with fields.
constexpr bool has_fields(const FrameHeader& header) {
  const bool may_have = header.kind == FrameKind::open || header.kind == FrameKind::finish;
  return may_have && header.flags == 0 && header.field_bytes <= header.length - sizeof(FrameHeader);
}
}  // namespace detail

/// Why a header is not a valid one of a known kind at the given place; nullptr if it is.
/// `available`: bytes written from here on; `to_end`: bytes up to the end of the ring's buffer.
inline const char* why_invalid(const FrameHeader& header, uint64_t available, uint64_t to_end,
                               uint32_t ring_bytes) {
  if (header.length < sizeof(FrameHeader)) return "frame shorter than its header";
  const uint64_t occupied = padded(header.length);
  if (occupied > available) return "frame reaches beyond the written position";
  if (occupied > to_end) return "frame wraps around the end of the ring";
  if ((header.flags != 0 || header.field_bytes != 0) && !detail::has_fields(header))
    return "unknown flags in a frame";
  const uint32_t payload = header.length - static_cast<uint32_t>(sizeof(FrameHeader));
  switch (header.kind) {
    case FrameKind::pad:
      return occupied == to_end ? nullptr : "pad that does not end with the ring";
    case FrameKind::data:
      if (occupied > full_frame_limit(ring_bytes)) return "frame larger than half a ring";
      return payload > 0 && header.row_count > 0 ? nullptr : "data frame without rows";
    case FrameKind::open:
      if (occupied > full_frame_limit(ring_bytes)) return "frame larger than half a ring";
      return is_open_payload(payload - header.field_bytes) ? nullptr : "OPEN of wrong length";
    case FrameKind::finish:
      if (occupied > full_frame_limit(ring_bytes)) return "frame larger than half a ring";
      return payload - header.field_bytes == sizeof(FinishPayload) ? nullptr
                                                                   : "FINISH of wrong length";
    case FrameKind::fragment:
      if (occupied > frame_limit(ring_bytes)) return "fragment larger than a quarter ring";
      return payload > sizeof(FragmentPayload) ? nullptr : "fragment without bytes";
    case FrameKind::message:
      if (occupied > full_frame_limit(ring_bytes)) return "frame larger than half a ring";
      return header.slot == 0 && header.row_count == 0 ? nullptr : "message with a slot or rows";
    case FrameKind::end:
      if (header.slot != 0 || header.row_count != 0) return "END with a slot or rows";
      return payload == 0 ? nullptr : "END of wrong length";
  }
  return "unknown kind of frame";
}

/// Whether a header that is invalid, as above, is only of an unknown kind and may be skipped.
inline bool may_skip(const FrameHeader& header, uint64_t available, uint64_t to_end,
                     uint32_t ring_bytes) {
  if (header.kind <= kLastFrameKind || header.flags != kMaySkipFrame || header.field_bytes != 0 ||
      header.length < sizeof(FrameHeader)) {
    return false;
  }
  const uint64_t occupied = padded(header.length);
  return occupied <= available && occupied <= to_end && occupied <= full_frame_limit(ring_bytes);
}

}  // namespace faro::wire
