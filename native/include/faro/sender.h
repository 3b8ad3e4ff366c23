// ShuffleSender: the sending side of a shuffle; RowSender: the sending side for rows of one type;
// RowClaim: a row that is written in place.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "faro/detail/copy_row.h"
#include "faro/detail/scatter.h"
#include "faro/hash.h"
#include "faro/outcome.h"
#include "faro/status.h"
#include "faro/wait.h"

#pragma GCC visibility push(default)

namespace faro {

namespace shuffle {
class StageSender;
}

class RowClaim;

namespace detail {

// The inlined paths call these three where a row does not fit into the open frame. A null sender
// answers failed.
Outcome send_slow(shuffle::StageSender* sender, uint32_t receiver, const void* row, size_t bytes,
                  Wait wait) noexcept;
/// Sends one row, but never by way of the outgoing overflow: while batches are held and the ring is
/// full it answers `holding` instead.
Outcome send_in_ring_slow(shuffle::StageSender* sender, uint32_t receiver, const void* row,
                          size_t bytes, Wait wait) noexcept;
/// Broadcasts the first of these rows, which makes room, and what then fits.
Sent broadcast_slow(shuffle::StageSender* sender, const void* rows, size_t row_bytes, size_t count,
                    Wait wait) noexcept;

}  // namespace detail

/// A row written in place, in the memory it is sent from (see ShuffleSender::claim).
/// commit() sends it; destroying it without commit aborts: the row never existed.
class RowClaim {
 public:
  RowClaim() = default;
  RowClaim(RowClaim&& other) noexcept { *this = std::move(other); }
  RowClaim& operator=(RowClaim&& other) noexcept {
    if (this == &other) return *this;
    abort();
    sender_ = std::exchange(other.sender_, nullptr);
    data_ = std::exchange(other.data_, {});
    return *this;
  }
  ~RowClaim() { abort(); }

  /// The claimed space; valid until commit or abort. No send of the same worker may come between.
  std::span<std::byte> data() const noexcept { return data_; }
  /// Sends the first `bytes` bytes, by default all; of a row of fixed width that is the only
  /// choice. Blocks: never.
  /// Errors: invalid_argument if more than claimed: the claim stays. The query's failure,
  /// wrong_state: the row was not sent, and the claim is empty.
  Status commit(size_t bytes = kAll);
  void abort() noexcept;

 private:
  friend class ShuffleSender;
  friend class ShuffleAccess;
  static constexpr size_t kAll = SIZE_MAX;

  void end() noexcept;

  shuffle::StageSender* sender_ = nullptr;
  std::span<std::byte> data_;
};

/// The sending side of a shuffle at one worker, for rows as bytes, also of a width that is known
/// only at run time: `send` is then nearly as fast as that of RowSender, which has calls that send
/// many at once.
///
/// Receivers are numbered 0 … receiver_count()-1 in the order of ShuffleSpec::receivers (with all
/// workers as receivers, that is the worker number). With ShuffleSpec::groups a `receiver` of all
/// calls is a group, by its number there. Rows of one sender to one receiver arrive once, whole and
/// in order. A row is copied, or written in place, before the call returns; it may
/// then lie in the open frame until a later row finds no room in it, flush, finish, or until the
/// worker waits.
///
/// What calls answer:
///   done        the row was sent, or dropped because this receiver has stopped while others have
///               not
///   would_wait  there is no room, and Wait::none() was given
///   holding     there is no room, and the worker holds batches. Only where a row cannot go to the
///               outgoing overflow
///   stopped     every receiver has stopped
///   deadline    there was no room for as long as Wait::at_most said
///   failed      see status(): a receiver that does not exist, a row of another width than the
///               shuffle's or above row.limit_bytes (the call was refused, the query goes on); the
///               query has failed (close the shuffle and end the query)
/// Except after done, the row was not sent; a row larger than a frame that was begun by a call of
/// Wait::forever() ends with that call, or with its query. What waits moves on everything that
/// others need of this worker meanwhile, also rows of other shuffles and queries
/// (native/DESIGN.md#inv-2).
///
/// It is a value: copy it, and keep it in a local variable (the compiler then keeps its members in
/// registers). Threads: those of the worker. Valid as long as its shuffle is open.
class ShuffleSender {
 public:
  ShuffleSender() = default;

  /// Copies one row towards a receiver. While the worker holds batches and the ring is full, the
  /// row goes to the outgoing overflow.
  Outcome send(uint32_t receiver, std::span<const std::byte> row,
               Wait wait = Wait::forever()) const noexcept {
    if (receiver < receiver_count_) [[likely]] {
      detail::FrameCursor& cursor = cursors_[receiver];
      const size_t bytes = row.size();
      const auto copy = [&](std::byte* to) noexcept { detail::copy_row(to, row.data(), bytes); };
      if (bytes == width_.to_16) [[likely]] {
        if (has_room(cursor, bytes)) [[likely]] {
          detail::copy_to_16(take(cursor, bytes), row.data(), bytes);
          return Outcome::done;
        }
      } else if (bytes == width_.to_32) {
        if (has_room(cursor, bytes)) [[likely]] {
          detail::copy_ends<detail::WideWord>(take(cursor, bytes), row.data(), bytes);
          return Outcome::done;
        }
      } else if (bytes == width_.bytes) {
        if (has_room(cursor, bytes)) [[likely]] {
          copy(take(cursor, bytes));
          return Outcome::done;
        }
      } else if (put_with_length(cursor, receiver, bytes, copy)) {
        return Outcome::done;
      }
    }
    return detail::send_slow(sender_, receiver, row.data(), row.size(), wait);
  }

  /// Sends one row that is written where it is sent from. When there is room, fill(to) is called
  /// once and writes `bytes` bytes at `std::byte* to`; it does nothing else with this worker. If it
  /// throws, the row was not begun. It answers as send() does.
  template <typename Fill>
  Outcome write(uint32_t receiver, size_t bytes, const Fill& fill,
                Wait wait = Wait::forever()) const {
    if (put(receiver, bytes, fill)) [[likely]]
      return Outcome::done;
    RowClaim row;
    const Outcome outcome = claim(receiver, bytes, row, wait);
    if (outcome != Outcome::done) return outcome;
    fill(row.data().data());
    return row.commit().ok() ? Outcome::done : Outcome::failed;
  }

  /// Gives `row` space to write one row of up to `bytes` bytes in place; a claim that `row` already
  /// has is aborted. A worker has one claim at a time. Until it is committed or aborted send
  /// nothing else with this worker: another claim answers `failed` with wrong_state, and so does
  /// what goes the same way as a claimed row that fits into a frame; all other rows may overtake
  /// the claimed one.
  Outcome claim(uint32_t receiver, size_t bytes, RowClaim& row, Wait wait = Wait::forever()) const;

  /// Sends one row to several receivers, each named once: to all of them, or to none. It is
  /// `failed` also if one is named twice.
  Outcome multicast(std::span<const uint32_t> receivers, std::span<const std::byte> row,
                    Wait wait = Wait::forever()) const;

  /// Sends one row to all receivers, or to none.
  Outcome broadcast(std::span<const std::byte> row, Wait wait = Wait::forever()) const noexcept {
    if (put_everywhere(row)) [[likely]]
      return Outcome::done;
    return detail::broadcast_slow(sender_, row.data(), row.size(), 1, wait).outcome;
  }

  /// Sends one row that lies in several places, one behind the other: to one receiver, or to
  /// several as multicast() does. The pieces are gathered where the row is sent from. It is
  /// `failed`, and nothing was sent, for more than 65 536 pieces, for a piece without address that
  /// has bytes, and where all of them together are no row of the shuffle.
  Outcome send_parts(uint32_t receiver, std::span<const std::span<const std::byte>> pieces,
                     Wait wait = Wait::forever()) const {
    return send_parts({&receiver, 1}, pieces, wait);
  }
  Outcome send_parts(std::span<const uint32_t> receivers,
                     std::span<const std::span<const std::byte>> pieces,
                     Wait wait = Wait::forever()) const;

  /// Sends rows of the shuffle's fixed width, which lie one behind the other: row i goes to
  /// receivers[i]. For engines that partition by themselves. The first Sent::rows rows were sent,
  /// in order per receiver, and none after them: go on from there. A row for a receiver that has
  /// stopped counts as sent, as by `send`. Each receiver is read once, so another thread may change
  /// them meanwhile. A time limit is for each row that finds no room.
  /// It is `failed`, after the rows before, also for a receiver that does not exist (status() names
  /// the row), and where nothing was sent if the rows of this shuffle have a length each.
  Sent send_rows(const std::byte* rows, size_t count, const uint32_t* receivers,
                 Wait wait = Wait::forever()) const noexcept;

  /// Sends rows with a length each: row i is the bytes of `rows` from offsets[i] up to
  /// offsets[i + 1], of which there are `count` + 1, as in a column of strings of Apache Arrow. The
  /// first need not be 0. Else it does what send_rows does for rows of a fixed width; each offset
  /// is read once, too. It is `failed`, after the rows before, also where offsets fall or a row is
  /// above row.limit_bytes, and where nothing was sent if rows of this shuffle have a fixed width.
  Sent send_rows(const std::byte* rows, const uint64_t* offsets, size_t count,
                 const uint32_t* receivers, Wait wait = Wait::forever()) const noexcept;
  /// Sends rows with a length each, as by offsets of 64 bits, with offsets of 32.
  Sent send_rows(const std::byte* rows, const uint32_t* offsets, size_t count,
                 const uint32_t* receivers, Wait wait = Wait::forever()) const noexcept;

  /// Sends rows of the shuffle's fixed width, which lie one behind the other, each to the receiver
  /// that its key belongs to: partition(hash(key), receiver_count()) for integers of 4 and 8 bytes,
  /// partition(hash_bytes(key), receiver_count()) for keys of other widths. Answers, limit and
  /// order are those of send_rows. It is `failed`, and nothing was sent, if the key does not lie
  /// within the row.
  Sent send_all(const std::byte* rows, size_t count, RowKey key, KeyHash hash = KeyHash::finalizer,
                Wait wait = Wait::forever()) const noexcept;

  /// Starts the transfer of everything that this worker has sent so far, however little. Rows are
  /// sent without it, too, when a later row finds no room in their frame, when the worker waits,
  /// and by finish. Answers done or failed. Blocks: never.
  Outcome flush() const;

  /// Says that there are no more rows: every receiver learns it after the last row. Everything is
  /// flushed. Repeatable, and to be repeated until it answers done: closing the shuffle before that
  /// cancels the query.
  Outcome finish(Wait wait = Wait::forever()) const;

  uint32_t receiver_count() const noexcept { return receiver_count_; }

  /// Why the last call of this side of the shuffle that answered `failed` did; ok if none did. No
  /// call clears it: the next one that fails replaces it. The receiving side has a status of its
  /// own.
  Status status() const;

 protected:
  friend class Shuffle;

  /// `bytes` has little more than 32 bits.
  static bool has_room(const detail::FrameCursor& cursor, size_t bytes) noexcept {
    return reinterpret_cast<uintptr_t>(cursor.at) + bytes <=
           reinterpret_cast<uintptr_t>(cursor.end);
  }

  /// The place of the next row, for which there is room. It counts as sent from now on: what the
  /// next call reads is stored before the row's bytes.
  static std::byte* take(detail::FrameCursor& cursor, size_t bytes) noexcept {
    return std::exchange(cursor.at, cursor.at + bytes);
  }

  /// Writes the row into the open frame; false if there is none with room for the row, or the row
  /// is none of this shuffle.
  template <typename Fill>
  [[gnu::always_inline]] bool put(uint32_t receiver, size_t bytes, const Fill& fill) const {
    if (receiver >= receiver_count_) [[unlikely]]
      return false;
    detail::FrameCursor& cursor = cursors_[receiver];
    if (bytes < length_end_) return put_with_length(cursor, receiver, bytes, fill);
    if (bytes != width_.bytes || !has_room(cursor, bytes)) [[unlikely]]
      return false;
    std::byte* const at = cursor.at;
    fill(at);
    cursor.at = at + bytes;
    return true;
  }

  template <typename Fill>
  [[gnu::always_inline]] bool put_with_length(detail::FrameCursor& cursor, uint32_t receiver,
                                              size_t bytes, const Fill& fill) const {
    if (bytes >= length_end_ || !has_room(cursor, sizeof(uint32_t) + bytes)) [[unlikely]]
      return false;
    const auto length = static_cast<uint32_t>(bytes);
    std::byte* const at = cursor.at;
    std::memcpy(at, &length, sizeof length);
    fill(at + sizeof length);
    cursor.at = at + sizeof length + bytes;
    ++frame_rows_[receiver];
    return true;
  }

  /// Writes the row into every open frame; false, and nothing is done, if one has no room.
  bool put_everywhere(std::span<const std::byte> row) const noexcept {
    const size_t bytes = row.size();
    const bool of_width = bytes == width_.bytes;
    if (!of_width && bytes >= length_end_) return false;
    if (!everyone_has_room(of_width ? bytes : sizeof(uint32_t) + bytes)) return false;
    const auto copy = [&](std::byte* to) noexcept { detail::copy_row(to, row.data(), bytes); };
    uint32_t receiver = 0;
    do {  // there is one
      if (of_width) {
        copy(take(cursors_[receiver], bytes));
      } else {
        (void)put_with_length(cursors_[receiver], receiver, bytes, copy);
      }
    } while (++receiver < receiver_count_);
    return true;
  }

  /// Whether every open frame has room for as many bytes; false also if there is no receiver.
  bool everyone_has_room(size_t bytes) const noexcept {
    detail::FrameCursor* const end = cursors_ + receiver_count_;
    detail::FrameCursor* cursor = cursors_;
    while (cursor != end && has_room(*cursor, bytes)) ++cursor;
    return cursor == end && cursor != cursors_;
  }

  shuffle::StageSender* sender_ = nullptr;
  detail::FrameCursor* cursors_ = nullptr;
  uint32_t* frame_rows_ =
      nullptr;  // rows in each receiver's open frame: for its header, if they have a length each
  uint32_t receiver_count_ = 0;
  // One of the two accepts no row: rows have a width, or a length each, which is below
  // length_end_.
  detail::RowWidth width_;
  uint32_t length_end_ = 0;
};

/// Sends rows of one fixed width: the typed, inlined path. It has all that ShuffleSender has.
template <typename Row>
class RowSender : public ShuffleSender {
  static_assert(std::is_trivially_copyable_v<Row>);

 public:
  /// Copies one row towards a receiver. While the worker holds batches and the ring is full, the
  /// row goes to the outgoing overflow. It answers as ShuffleSender says.
  Outcome send(uint32_t receiver, const Row& row, Wait wait = Wait::forever()) const noexcept {
    if (receiver < receiver_count_) [[likely]] {
      detail::FrameCursor& cursor = cursors_[receiver];
      std::byte* at = cursor.at;
      if (static_cast<size_t>(cursor.end - at) >= sizeof(Row)) [[likely]] {
        cursor.at = at + sizeof(Row);
        std::memcpy(at, &row, sizeof(Row));
        return Outcome::done;
      }
    }
    return detail::send_slow(sender_, receiver, &row, sizeof(Row), wait);
  }

  using ShuffleSender::send_all;

  /// Sends rows[i] to partition(hash(key(rows[i])), receiver_count()), for all i or the first ones,
  /// by the loops that are fastest on this machine (setting kernel.scatter). A time limit is for
  /// each row that finds no room, in write_all and broadcast_all, too.
  template <typename Hash, typename Key>
  Sent send_all(std::span<const Row> rows, Hash hash, Key key,
                Wait wait = Wait::forever()) const noexcept {
    Sent sent{0, Outcome::failed};
    if (sender_ == nullptr) return sent;
    sent.outcome = Outcome::done;
    sent.rows = detail::scatter_rows(kernels_.of(hash), rows, hash, key, receiver_count_, cursors_,
                                     [&](uint32_t receiver, const Row& row) noexcept {
                                       sent.outcome = detail::send_slow(sender_, receiver, &row,
                                                                        sizeof(Row), wait);
                                       return sent.outcome == Outcome::done;
                                     });
    return sent;
  }

  /// Sends `count` rows that are written where they are sent from: one pass, no copy. For rows that
  /// are made from others as they are sent, above all wide ones; what lies in memory is sent by
  /// send_all. Row i goes to partition(hash(key(i)), receiver_count()); then fill(i, to) writes its
  /// sizeof(Row) bytes at `std::byte* to`, which may be any address. Each is called in order, once
  /// for a row that is sent, and does nothing else with this worker; if one throws, row i was not
  /// begun. Rows that fit into a frame never go to overflow: while the worker holds batches, and a
  /// ring is full, it is `holding`. So rows can be made from a batch where it lies. Copy the rest
  /// then, and release the batch.
  template <typename Hash, typename Key, typename Fill>
  Sent write_all(size_t count, Hash hash, Key key, Fill fill, Wait wait = Wait::forever()) const {
    Sent sent{0, Outcome::failed};
    if (sender_ == nullptr) return sent;
    sent.outcome = Outcome::done;
    sent.rows = detail::write_one_by_one<Row>(
        count, hash, key, fill, receiver_count_, cursors_,
        [&](uint32_t receiver, const std::byte* row) noexcept {
          sent.outcome = detail::send_in_ring_slow(sender_, receiver, row, sizeof(Row), wait);
          return sent.outcome == Outcome::done;
        });
    return sent;
  }

  /// Sends every row, or the first ones, to every receiver.
  Sent broadcast_all(std::span<const Row> rows, Wait wait = Wait::forever()) const noexcept {
    if (sender_ == nullptr) return {0, Outcome::failed};
    detail::FrameCursor* const end = cursors_ + receiver_count_;
    Sent sent;
    while (sent.rows < rows.size()) {
      const Row* const first = rows.data() + sent.rows;
      size_t count = rows.size() - sent.rows;
      detail::FrameCursor* cursor = cursors_;
      do {  // there is a receiver
        const size_t room = static_cast<size_t>(cursor->end - cursor->at) / sizeof(Row);
        count = room < count ? room : count;
      } while (++cursor != end);
      if (count == 0) [[unlikely]] {
        const Sent more =
            detail::broadcast_slow(sender_, first, sizeof(Row), rows.size() - sent.rows, wait);
        sent.rows += more.rows;
        sent.outcome = more.outcome;
        if (more.outcome != Outcome::done) return sent;
        continue;
      }
      cursor = cursors_;
      do {
        std::memcpy(cursor->at, first, count * sizeof(Row));
        cursor->at += count * sizeof(Row);
      } while (++cursor != end);
      sent.rows += count;
    }
    return sent;
  }

 private:
  friend class Shuffle;

  detail::SendKernels kernels_;
};

}  // namespace faro

#pragma GCC visibility pop
