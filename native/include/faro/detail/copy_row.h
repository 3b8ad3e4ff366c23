// The copy of one row whose width the compiler may not know: what ShuffleSender inlines into its caller. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#pragma GCC visibility push(default)

namespace faro::detail {

/// 16 bytes that one register holds.
using WideWord [[gnu::vector_size(16)]] = uint64_t;

/// The first and the last of `bytes` bytes, which are as many as a Word has or up to twice as many: the two may overlap.
template <typename Word>
inline void copy_ends(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  Word first, last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, from + bytes - sizeof last, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + bytes - sizeof last, &last, sizeof last);
}

/// As memcpy, where the compiler knows how many bytes these are, or there are many: else a call takes longer than a few moves.
inline void copy_row(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  if (__builtin_constant_p(bytes) || bytes > 64) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  } else if (bytes > 32) {
    copy_ends<WideWord>(to, from, 32);
    copy_ends<WideWord>(to + bytes - 32, from + bytes - 32, 32);
  } else if (bytes >= 16) {
    copy_ends<WideWord>(to, from, bytes);
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

}  // namespace faro::detail

#pragma GCC visibility pop
