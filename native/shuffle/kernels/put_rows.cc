#include "shuffle/kernels/put_rows.h"

#include <cstring>
#include <iterator>

namespace faro::shuffle {
namespace {

using detail::FrameCursor;
using detail::WideWord;

size_t room_in(const FrameCursor& cursor) noexcept {
  return static_cast<size_t>(cursor.end - cursor.at);
}

/// receiver_of(i, row) says where a row goes; copy(to, row) copies it.
template <typename ReceiverOf, typename Copy>
[[gnu::always_inline]] inline size_t put_each(const std::byte* rows, size_t row_bytes, size_t count,
                                              FrameCursor* cursors, const ReceiverOf& receiver_of,
                                              const Copy& copy) noexcept {
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const row = rows + i * row_bytes;
    FrameCursor& cursor = cursors[receiver_of(i, row)];
    std::byte* const at = cursor.at;
    if (room_in(cursor) < row_bytes) [[unlikely]]
      return i;
    cursor.at = at + row_bytes;
    copy(at, row);
  }
  return count;
}

// --- how a row is copied

/// Rows of a width that the compiler knows.
template <size_t kBytes>
struct CopyExact {
  static constexpr size_t kWidth = kBytes;
  explicit CopyExact(size_t) noexcept {}
  void operator()(std::byte* to, const std::byte* from) const noexcept {
    std::memcpy(to, from, kBytes);
  }
};

/// Rows that take as many registers of 16 bytes, of which the last two may overlap.
template <size_t kWords>
struct CopyWords {
  static constexpr size_t kWidth = 0;  // not known
  explicit CopyWords(size_t row_bytes) noexcept : last(row_bytes - sizeof(WideWord)) {}
  void operator()(std::byte* to, const std::byte* from) const noexcept {
#pragma GCC unroll 8
    for (size_t word = 0; word + 1 < kWords; ++word)
      std::memcpy(to + word * sizeof(WideWord), from + word * sizeof(WideWord), sizeof(WideWord));
    std::memcpy(to + last, from + last, sizeof(WideWord));
  }
  size_t last;
};

struct CopyAny {
  static constexpr size_t kWidth = 0;
  explicit CopyAny(size_t row_bytes) noexcept : bytes(row_bytes) {}
  void operator()(std::byte* to, const std::byte* from) const noexcept {
    detail::copy_row(to, from, bytes);
  }
  size_t bytes;
};

/// Loops<Copy>::put is a loop that copies so: that for rows of `row_bytes` bytes.
template <template <typename> typename Loops>
auto loop_for(uint32_t row_bytes) noexcept {
  switch (row_bytes) {
    case 4:
      return Loops<CopyExact<4>>::put;
    case 8:
      return Loops<CopyExact<8>>::put;
    case 12:
      return Loops<CopyExact<12>>::put;
    case 16:
      return Loops<CopyExact<16>>::put;
    case 24:
      return Loops<CopyExact<24>>::put;
    case 32:
      return Loops<CopyExact<32>>::put;
    case 64:
      return Loops<CopyExact<64>>::put;
    default:
      break;
  }
  constexpr decltype(&Loops<CopyAny>::put) kByWords[] = {
      Loops<CopyAny>::put,      Loops<CopyAny>::put,      Loops<CopyWords<2>>::put,
      Loops<CopyWords<3>>::put, Loops<CopyWords<4>>::put, Loops<CopyWords<5>>::put,
      Loops<CopyWords<6>>::put, Loops<CopyWords<7>>::put, Loops<CopyWords<8>>::put};
  const uint64_t words = (uint64_t{row_bytes} + sizeof(WideWord) - 1) / sizeof(WideWord);
  return words < std::size(kByWords) ? kByWords[words] : Loops<CopyAny>::put;
}

// --- the loops

template <typename Copy>
struct ToReceivers {
  static size_t put(const std::byte* rows, size_t row_bytes, const uint32_t* receivers,
                    size_t count, FrameCursor* cursors) noexcept {
    return put_each(
        rows, Copy::kWidth != 0 ? Copy::kWidth : row_bytes, count, cursors,
        [=](size_t i, const std::byte*) { return receivers[i]; }, Copy(row_bytes));
  }
};

template <typename Hash, typename Integer>
struct ByKey {
  template <typename Copy>
  struct Loop {
    static size_t put(const std::byte* rows, size_t row_bytes, size_t key_offset, size_t count,
                      uint32_t receiver_count, FrameCursor* cursors) noexcept {
      const auto receiver_of = [=](size_t, const std::byte* row) {
        Integer key;
        std::memcpy(&key, row + key_offset, sizeof key);
        return partition(Hash{}(key), receiver_count);
      };
      return put_each(rows, Copy::kWidth != 0 ? Copy::kWidth : row_bytes, count, cursors,
                      receiver_of, Copy(row_bytes));
    }
  };
};

template <typename Hash>
PutByKey put_by_hash(uint32_t row_bytes, uint32_t key_bytes) noexcept {
  switch (key_bytes) {
    case sizeof(uint64_t):
      return loop_for<ByKey<Hash, uint64_t>::template Loop>(row_bytes);
    case sizeof(uint32_t):
      return loop_for<ByKey<Hash, uint32_t>::template Loop>(row_bytes);
    default:
      return nullptr;
  }
}

}  // namespace

PutRows put_rows_of(uint32_t row_bytes) noexcept { return loop_for<ToReceivers>(row_bytes); }

PutByKey put_by_key_of(uint32_t row_bytes, uint32_t key_bytes, KeyHash hash) noexcept {
  return hash == KeyHash::finalizer ? put_by_hash<FinalizerHash>(row_bytes, key_bytes)
                                    : put_by_hash<MultiplicativeHash>(row_bytes, key_bytes);
}

size_t put_words(detail::WordScatter words, const std::byte* rows, const uint32_t* receivers,
                 size_t count, FrameCursor* cursors) noexcept {
  constexpr size_t kBetween = 16;  // rows put one by one where a vector of them found no room
  size_t i = 0;
  while (i < count) {
    i += words(rows + i * sizeof(uint64_t), receivers + i, count - i, cursors);
    const size_t some = count - i < kBetween ? count - i : kBetween;
    const size_t put = ToReceivers<CopyExact<sizeof(uint64_t)>>::put(rows + i * sizeof(uint64_t), 0,
                                                                     receivers + i, some, cursors);
    i += put;
    if (put < some) return i;
  }
  return i;
}

size_t put_rows_with_length(const std::byte* rows, const uint64_t* offsets,
                            const uint32_t* receivers, size_t count, FrameCursor* cursors,
                            uint32_t* frame_rows) noexcept {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bytes = offsets[i + 1] - offsets[i];
    FrameCursor& cursor = cursors[receivers[i]];
    if (room_in(cursor) < sizeof(uint32_t) + bytes) [[unlikely]]
      return i;
    const auto length = static_cast<uint32_t>(bytes);
    std::byte* const at = cursor.at;
    cursor.at = at + sizeof length + bytes;
    ++frame_rows[receivers[i]];
    std::memcpy(at, &length, sizeof length);
    detail::copy_row(at + sizeof length, rows + offsets[i], bytes);
  }
  return count;
}

}  // namespace faro::shuffle
