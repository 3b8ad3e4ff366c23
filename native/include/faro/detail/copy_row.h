// The copy of one row whose width the compiler does not know: what ShuffleSender inlines into its
// caller. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#pragma GCC visibility push(default)

namespace faro::detail {

/// 16 bytes that one register holds.
using WideWord [[gnu::vector_size(16)]] = uint64_t;

/// Copies the first and the last of `bytes` bytes, which are as many as a Word has or up to twice
/// as many: the two may overlap.
template <typename Word>
inline void copy_ends(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  Word first, last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, from + bytes - sizeof last, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + bytes - sizeof last, &last, sizeof last);
}

/// Copies 8 to 16 bytes. The number of stores decides what sending such a row takes: one for the
/// usual widths.
inline void copy_to_16(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  if (bytes == 8) [[likely]] {
    std::memcpy(to, from, 8);
  } else if (bytes == 16) [[likely]] {
    std::memcpy(to, from, 16);
  } else {
    copy_ends<uint64_t>(to, from, bytes);
  }
}

/// Copies any number of bytes: by memcpy where the compiler knows how many, or there are many; else
/// a call takes longer than a few moves.
[[gnu::always_inline]] inline void copy_row(std::byte* to, const std::byte* from,
                                            size_t bytes) noexcept {
  if (__builtin_constant_p(bytes) || bytes > 128) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  } else if (bytes > 16) {
    const size_t last = bytes - sizeof(WideWord);
    for (size_t at = 0; at < last; at += sizeof(WideWord))
      std::memcpy(to + at, from + at, sizeof(WideWord));
    std::memcpy(to + last, from + last, sizeof(WideWord));
  } else if (bytes >= 8) {
    copy_ends<uint64_t>(to, from, bytes);
  } else if (bytes >= 4) {
    copy_ends<uint32_t>(to, from, bytes);
  } else if (bytes > 0) {
    to[bytes / 2] = from[bytes / 2];
    to[bytes - 1] = from[bytes - 1];
    *to = *from;
  }
}

/// The width of a shuffle's rows; once more by the way in which as many bytes are copied, so that
/// one comparison tells both.
struct RowWidth {
  static constexpr uint32_t kNone = UINT32_MAX;  // no row has as many: no frame has room for it

  static constexpr RowWidth of(uint32_t bytes) noexcept {
    return {bytes, bytes >= 8 && bytes <= 16 ? bytes : kNone,
            bytes > 16 && bytes <= 32 ? bytes : kNone};
  }

  uint32_t bytes = kNone;
  uint32_t to_16 = kNone;  // from 8 on: by copy_to_16
  uint32_t to_32 = kNone;  // above that: by copy_ends of WideWord
};

}  // namespace faro::detail

#pragma GCC visibility pop
