// ManyRows: the calls that send many rows of a type that is known at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "faro/hash.h"
#include "faro/outcome.h"
#include "faro/shuffle.h"
#include "faro/wait.h"
#include "shuffle/operation/shuffle_context.h"

namespace faro::shuffle {

class StageSender;

/// They go block by block: what says where the rows of a block go is read once, into memory of the call's own, and checked there,
/// so that nobody can change it after the check (native/DESIGN.md#inv-6). Then the loops of kernels/put_rows.h put the rows; one
/// that finds no room is sent by itself, by StageSender::send.
///
/// All answer as faro::ShuffleSender documents. The rows before number `first` were sent by calls before: they count in Sent::rows,
/// and a row that is refused is named by its number among all. Threads: those of the worker.
class ManyRows {
 public:
  ManyRows(StageSender& sender, ShuffleContext& shuffle, ShuffleSide& side)
      : sender_(sender), shuffle_(shuffle), side_(side) {}
  ManyRows(const ManyRows&) = delete;
  ManyRows& operator=(const ManyRows&) = delete;

  /// Sends rows of the fixed width, each to receivers[i].
  Sent send(std::span<const std::byte> rows, size_t first, size_t count, const uint32_t* receivers,
            Wait wait) noexcept;
  /// Sends rows with a length each: row i is rows[offsets[i]] up to rows[offsets[i + 1]].
  template <typename Offset>
  Sent send(std::span<const std::byte> rows, const Offset* offsets, size_t first, size_t count,
            const uint32_t* receivers, Wait wait) noexcept;
  /// Sends rows of the fixed width, each to the receiver that its key belongs to.
  Sent send_by_key(std::span<const std::byte> rows, size_t first, size_t count, RowKey key,
                   KeyHash hash, Wait wait) noexcept;

 private:
  template <typename Rows>
  Sent send_in_blocks(Rows& rows, size_t first, size_t count, Wait wait) noexcept;
  template <typename Fail>
  Outcome refuse(const Fail& fail) noexcept;
  bool have_fixed_width(std::span<const std::byte> rows, size_t count) noexcept;
  uint32_t receiver_count() const noexcept;
  const detail::SendKernels& kernels();

  StageSender& sender_;
  ShuffleContext& shuffle_;
  ShuffleSide& side_;
  std::optional<detail::SendKernels> kernels_;  // once they were needed
};

}  // namespace faro::shuffle
