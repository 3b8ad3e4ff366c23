// PutRows: the loops that put many rows behind the cursors of their receivers, where the width of the rows is known at run
// time only and their receivers are known. What the compiler knows it sends by faro/detail/scatter.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faro/hash.h"
#include "faro/shuffle.h"

namespace faro::shuffle {

/// Puts rows of `row_bytes` bytes, one behind the other, at the cursors of their receivers, which all exist: the first ones,
/// until one finds no room. Returns how many.
using PutRows = size_t (*)(const std::byte* rows, size_t row_bytes, const uint32_t* receivers,
                           size_t count, detail::FrameCursor* cursors) noexcept;

/// The loop for rows of a width.
PutRows put_rows_of(uint32_t row_bytes) noexcept;

/// Puts rows of `row_bytes` bytes, one behind the other, at the cursor of the receiver that each one's key at `key_offset`
/// belongs to: the first ones, until one finds no room. Returns how many. One pass, as the scalar kernel of RowSender::send_all.
using PutByKey = size_t (*)(const std::byte* rows, size_t row_bytes, size_t key_offset,
                            size_t count, uint32_t receiver_count,
                            detail::FrameCursor* cursors) noexcept;

/// The loop for rows of a width with keys of 4 or 8 bytes; null for other keys.
PutByKey put_by_key_of(uint32_t row_bytes, uint32_t key_bytes, KeyHash hash) noexcept;

/// Puts rows of 8 bytes, by `words` as long as that finds room. As PutRows.
size_t put_words(detail::WordScatter words, const std::byte* rows, const uint32_t* receivers,
                 size_t count, detail::FrameCursor* cursors) noexcept;

/// Puts rows with a length each, which goes in front: row i is rows[offsets[i]] up to rows[offsets[i + 1]], of less than 4 GiB.
/// Adds to the number of rows in each receiver's open frame. As PutRows.
size_t put_rows_with_length(const std::byte* rows, const uint64_t* offsets,
                            const uint32_t* receivers, size_t count, detail::FrameCursor* cursors,
                            uint32_t* frame_rows) noexcept;

}  // namespace faro::shuffle
