// Shuffle: one shuffle operator of one running query, at one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "faro/hash.h"
#include "faro/outcome.h"
#include "faro/query.h"
#include "faro/status.h"

#pragma GCC visibility push(default)

namespace faro {

namespace shuffle {
class LocalWorker;
class OpenShuffle;
class StageReceiver;
class StageSender;
}  // namespace shuffle

class Batch;
class RowClaim;
class Shuffle;
class ShuffleAccess;
template <typename Row>
class RowSender;
class VariableRowSender;

/// What to open. Every worker that takes part opens the same spec (any order, any time).
struct ShuffleSpec {
  /// The greatest stage. A number above it was negative.
  static constexpr uint32_t kStageLimit = 0x7fffffff;

  QueryId query;
  uint32_t stage = 0;               ///< number of the shuffle operator in its query's plan
  uint32_t row_bytes = 0;           ///< width of every row; 0: rows have a length each
  std::vector<uint32_t> senders;    ///< worker numbers; empty: all workers
  std::vector<uint32_t> receivers;  ///< worker numbers; empty: all workers. Gather: one
  /// What the rows are, in words of the engine: a schema, the name of a codec. A receiver compares its own with that of
  /// each sender before it reads a row: if both are given and differ, the query fails on every participant with
  /// stage_mismatch, which names both, the workers and their nodes. Of any length; errors have the first 256 bytes.
  std::string format{};
};

namespace detail {

/// Where the next row for one receiver goes; at == end when there is no open frame. The worker's
/// alone.
struct OutboxCursor {
  std::byte* at = nullptr;
  std::byte* end = nullptr;
};

// What the inlined paths of this header need where a row does not fit into the open frame.
Outcome send_slow(shuffle::StageSender& sender, uint32_t receiver, const void* row, size_t bytes,
                  bool wait) noexcept;
/// The same without the outgoing overflow: while batches are held it answers `holding` instead.
Outcome send_in_ring_slow(shuffle::StageSender& sender, uint32_t receiver, const void* row,
                          size_t bytes, bool wait) noexcept;
/// Broadcasts the first of these rows, which makes room, and what then fits; returns how many.
size_t broadcast_slow(shuffle::StageSender& sender, const void* rows, size_t row_bytes,
                      size_t count, bool wait, Outcome& outcome) noexcept;
Outcome claim_slow(shuffle::StageSender& sender, uint32_t receiver, size_t bytes, bool wait,
                   Timeout timeout, RowClaim& claim);

/// Puts rows of 8 bytes at the cursors of their receivers: the first ones, until some receiver's room is
/// short or fewer than a vector are left; returns how many.
using WordScatter = size_t (*)(const void* rows, const uint32_t* receivers, size_t count,
                               OutboxCursor* cursors) noexcept;

/// The loops of one way to send many rows: blocks of them, first hashed, then scattered.
struct BlockKernel {
  using Partition = void (*)(const uint64_t* keys, size_t count, uint32_t receiver_count,
                             uint32_t* receivers) noexcept;
  static constexpr size_t kWordReceivers = 7;

  Partition partition = nullptr;
  WordScatter words[kWordReceivers] = {};  // by number of receivers; null: row by row
};

/// Which way a shuffle's rows take, by hash; null: one pass over the rows, one by one.
struct SendKernels {
  const BlockKernel* finalizer = nullptr;
  const BlockKernel* multiplicative = nullptr;

  const BlockKernel* of(FinalizerHash) const noexcept { return finalizer; }
  const BlockKernel* of(MultiplicativeHash) const noexcept { return multiplicative; }
  template <typename Hash>
  const BlockKernel* of(Hash) const noexcept {
    return nullptr;  // a hash of the user's own is no loop of ours
  }
};

/// Copies a row behind the last one of its receiver; false: there is no room for it.
template <typename Row>
inline bool put_row(OutboxCursor& cursor, const Row& row) noexcept {
  std::byte* const at = cursor.at;
  if (static_cast<size_t>(cursor.end - at) < sizeof(Row)) [[unlikely]]
    return false;
  cursor.at = at + sizeof(Row);
  std::memcpy(at, &row, sizeof(Row));
  return true;
}

/// Puts rows[i] at the cursor of partition(hash(key(rows[i])), receiver_count). For one without room
/// it calls slow(receiver, row), which sends it, or answers false: that ends it. Returns how many
/// were sent.
template <typename Row, typename Hash, typename Key, typename Slow>
size_t scatter_one_by_one(std::span<const Row> rows, Hash hash, Key key, uint32_t receiver_count,
                          OutboxCursor* cursors, Slow slow) noexcept {
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t receiver = faro::partition(hash(key(rows[i])), receiver_count);
    if (!put_row(cursors[receiver], rows[i])) [[unlikely]] {
      if (!slow(receiver, rows[i])) return i;
    }
  }
  return rows.size();
}

/// The same by the loops of `kernel`, which are those of this hash.
template <typename Row, typename Key, typename Slow>
size_t scatter_in_blocks(const BlockKernel& kernel, std::span<const Row> rows, Key key,
                         uint32_t receiver_count, OutboxCursor* cursors, Slow slow) noexcept {
  constexpr size_t kBlock = 256;   // keys and receivers of a block: 3 KiB of stack, in L1
  constexpr size_t kBetween = 16;  // rows put one by one where a vector of them found no room
  uint64_t keys[kBlock];
  uint32_t receivers[kBlock];
  WordScatter words = nullptr;
  if constexpr (sizeof(Row) == sizeof(uint64_t)) {
    if (receiver_count < BlockKernel::kWordReceivers) words = kernel.words[receiver_count];
  }
  for (size_t begin = 0; begin < rows.size(); begin += kBlock) {
    const size_t count = rows.size() - begin < kBlock ? rows.size() - begin : kBlock;
    const Row* const block = rows.data() + begin;
    for (size_t i = 0; i < count; ++i) keys[i] = key(block[i]);
    kernel.partition(keys, count, receiver_count, receivers);
    for (size_t i = 0; i < count;) {
      size_t end = count;
      if (words != nullptr) {
        i += words(block + i, receivers + i, count - i, cursors);
        end = count - i < kBetween ? count : i + kBetween;
      }
      for (; i < end; ++i) {
        if (!put_row(cursors[receivers[i]], block[i])) [[unlikely]] {
          if (!slow(receivers[i], block[i])) return begin + i;
        }
      }
    }
  }
  return rows.size();
}

/// Lets fill(i, to) write row i behind the last one of partition(hash(key(i)), receiver_count), for all
/// i in order. `slow` as above, called with a row that was written elsewhere.
template <typename Row, typename Hash, typename Key, typename Fill, typename Slow>
size_t write_one_by_one(size_t count, Hash hash, Key& key, Fill& fill, uint32_t receiver_count,
                        OutboxCursor* cursors, Slow slow) {
  alignas(Row) std::byte scratch[sizeof(Row)];
  for (size_t i = 0; i < count; ++i) {
    const uint32_t receiver = faro::partition(hash(key(i)), receiver_count);
    OutboxCursor& cursor = cursors[receiver];
    std::byte* const at = cursor.at;
    const bool has_room = static_cast<size_t>(cursor.end - at) >= sizeof(Row);
    // One call, whichever it is: a second one costs the loop its registers.
    fill(i, has_room ? at : scratch);
    if (has_room) [[likely]] {
      cursor.at = at + sizeof(Row);
    } else if (!slow(receiver, scratch)) {
      return i;
    }
  }
  return count;
}

/// By `kernel`, or one by one if it is null.
template <typename Row, typename Hash, typename Key, typename Slow>
size_t scatter_rows(const BlockKernel* kernel, std::span<const Row> rows, Hash hash, Key key,
                    uint32_t receiver_count, OutboxCursor* cursors, Slow slow) noexcept {
  if (kernel == nullptr) return scatter_one_by_one(rows, hash, key, receiver_count, cursors, slow);
  return scatter_in_blocks(*kernel, rows, key, receiver_count, cursors, slow);
}

}  // namespace detail

/// A row written in place, in the memory it is sent from (see Shuffle::claim).
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
  /// Sends the first `bytes` bytes (fixed width: all). Blocks: never. Errors: invalid_argument if
  /// more than claimed: the claim stays. The query's failure, wrong_state: the row was not sent, and
  /// the claim is empty.
  Status commit(size_t bytes);
  Status commit() { return commit(data_.size()); }
  void abort() noexcept;

 private:
  friend class Shuffle;
  friend Outcome detail::claim_slow(shuffle::StageSender&, uint32_t, size_t, bool, Timeout,
                                    RowClaim&);
  shuffle::StageSender* sender_ = nullptr;
  std::span<std::byte> data_;
};

/// Rows that were received, where they lie: in the ring, or in memory if they were spilled.
///
/// Threads: those of its worker. Owns: the frame until release(), detach() or destruction. Held
/// batches keep their sender's ring from moving on: release soon. A worker that holds some never
/// waits: what would wait answers Outcome::holding. A peer on the same machine could change the
/// bytes while they are read (native/DESIGN.md#inv-6): load a length once.
class Batch {
 public:
  Batch() = default;
  Batch(Batch&& other) noexcept { *this = std::move(other); }
  Batch& operator=(Batch&& other) noexcept {
    if (this != &other) {
      release();
      receiver_ = std::exchange(other.receiver_, nullptr);
      frame_ = std::exchange(other.frame_, nullptr);
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
      row_count_ = std::exchange(other.row_count_, 0);
      row_bytes_ = other.row_bytes_;
      sender_ = other.sender_;
    }
    return *this;
  }
  ~Batch() { release(); }

  /// Number of the worker that sent the rows.
  uint32_t sender() const noexcept { return sender_; }
  uint32_t row_count() const noexcept { return row_count_; }
  bool empty() const noexcept { return frame_ == nullptr; }
  /// Width of each row; 0: each row has its length in front. A row that is too large for a frame
  /// comes alone, with its own width, also where the others have a length each.
  uint32_t row_bytes() const noexcept { return row_bytes_; }

  /// All rows as bytes; for rows with a length each, including the lengths (see VariableRows).
  std::span<const std::byte> bytes() const noexcept { return {data_, bytes_}; }

  /// The rows of a fixed-width shuffle. A Row of another width than row_bytes() is a mistake that must
  /// not pass for "no rows": the query fails on every participant with query_failed, which names both
  /// widths, and no rows are returned.
  template <typename Row>
  std::span<const Row> rows() const noexcept {
    static_assert(std::is_trivially_copyable_v<Row> && alignof(Row) <= 16);
    if (sizeof(Row) != row_bytes_) [[unlikely]] {
      fail_query_by_width(sizeof(Row));
      return {};
    }
    return {reinterpret_cast<const Row*>(data_), row_count_};
  }

  /// Iterates the rows of a shuffle with row_bytes 0; also fixed-width rows, as bytes.
  class RowIterator {
   public:
    std::span<const std::byte> operator*() const noexcept { return row_; }
    RowIterator& operator++() noexcept { return load(), *this; }
    bool operator!=(const RowIterator& other) const noexcept { return left_ != other.left_; }

   private:
    friend class Batch;
    // left_ counts the row that is loaded: the last ++ brings it to 0. Lengths are loaded once and
    // checked: a peer on the same machine could change them meanwhile.
    void load() noexcept {
      if (left_ > 0) --left_;
      if (left_ == 0) return;
      size_t length = row_bytes_;
      const auto available = static_cast<size_t>(end_ - at_);
      if (row_bytes_ == 0) {
        uint32_t stored;
        if (available < sizeof stored) {
          left_ = 0;
          return;
        }
        std::memcpy(&stored, at_, sizeof stored);
        at_ += sizeof stored;
        length = stored;
      }
      if (static_cast<size_t>(end_ - at_) < length) {
        left_ = 0;
        return;
      }
      row_ = {at_, length};
      at_ += length;
    }
    const std::byte* at_ = nullptr;
    const std::byte* end_ = nullptr;
    std::span<const std::byte> row_;
    uint32_t left_ = 0;       // rows from this one on
    uint32_t row_bytes_ = 0;  // 0: each row has a length
  };
  struct RowRange {
    RowIterator first, last;
    RowIterator begin() const noexcept { return first; }
    RowIterator end() const noexcept { return last; }
  };
  RowRange each_row() const noexcept;

  /// Gives the memory back. Idempotent; the batch is empty then.
  void release() noexcept {
    if (frame_ != nullptr) release_frame();
  }

  /// Copies the rows to overflow, so that the ring can move on while they are kept; for merging. The copy
  /// counts against the overflow budget. Errors: limit_exceeded; the batch then stays as it is.
  Status detach();

 private:
  friend class Shuffle;
  friend class shuffle::StageReceiver;
  void release_frame() noexcept;
  void fail_query_by_width(size_t bytes) const noexcept;

  shuffle::StageReceiver* receiver_ = nullptr;
  void* frame_ = nullptr;  // shuffle/receive/frame_node.h
  const std::byte* data_ = nullptr;
  uint32_t row_count_ = 0;
  uint32_t row_bytes_ = 0;
  uint32_t sender_ = 0;
  uint64_t bytes_ = 0;
};

/// One shuffle at one worker: the sending and the receiving side. Opened by Worker::open_shuffle.
///
/// Receivers are numbered 0 … receiver_count()-1 in the order of ShuffleSpec::receivers (with all
/// workers as receivers, that is the worker number). Rows of one sender to one receiver arrive
/// once, whole and in order.
///
/// try_… never waits; the others wait until done, the time limit, cancel, close or the loss of a
/// peer. While a worker waits it moves on everything that others need of it, also rows of other
/// shuffles and queries (native/DESIGN.md#inv-2).
///
/// Threads: those of its worker, one at a time (see Worker). Destruction closes. A shuffle that is
/// closed before its end cancels the query on every participant, with a cause that names the worker
/// and the stage: a sender that has not finished, and a receiver that was not told end_of_stream (of
/// each sender, if it polls them one by one). A receiver that needs no more rows says so by stop()
/// before it closes. To give the participants a cause of your own, call cancel before.
class Shuffle {
 public:
  Shuffle() = default;
  Shuffle(Shuffle&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Shuffle& operator=(Shuffle&& other) noexcept {
    if (this == &other) return *this;
    close();
    core_ = std::exchange(other.core_, nullptr);
    return *this;
  }
  ~Shuffle() { close(); }

  bool is_open() const noexcept { return core_ != nullptr; }
  uint32_t receiver_count() const noexcept;
  /// Number of this worker among the receivers; receiver_count() if it is none.
  uint32_t own_receiver() const noexcept;
  uint32_t stage() const noexcept;
  QueryId query() const noexcept;

  /// Why the last operation answered `failed`; ok if none did.
  Status status() const;

  // --- sending

  /// The inlined path for rows of one fixed width: a small value to keep in a local variable.
  /// Errors: invalid_argument if the shuffle was opened with another row_bytes; wrong_state if this
  /// worker is no sender.
  template <typename Row>
  Result<RowSender<Row>> sender();

  /// The inlined path for rows with a length each. Errors: invalid_argument if the shuffle has a
  /// fixed width; wrong_state if this worker is no sender.
  Result<VariableRowSender> variable_sender();

  /// Copies one row (fixed width: exactly row_bytes) towards a receiver.
  ///   done     copied; may lie in the open frame until threshold, flush or finish. Also for a
  ///            receiver that has stopped while others have not: the row is dropped
  ///   stopped  every receiver has stopped
  ///   failed   also for a receiver that does not exist, or a row above row.limit_bytes
  /// While the worker holds batches and the ring is full, the row goes to the outgoing overflow:
  /// done.
  Outcome try_send(uint32_t receiver, std::span<const std::byte> row);
  Outcome send(uint32_t receiver, std::span<const std::byte> row, Timeout timeout = kNoTimeout);

  /// The same row to several receivers, each named once; to all of them or, if the answer is neither
  /// done nor stopped, to none. `failed` also if one is named twice.
  Outcome try_multicast(std::span<const uint32_t> receivers, std::span<const std::byte> row);
  Outcome multicast(std::span<const uint32_t> receivers, std::span<const std::byte> row,
                    Timeout timeout = kNoTimeout);
  /// To all receivers.
  Outcome try_broadcast(std::span<const std::byte> row);
  Outcome broadcast(std::span<const std::byte> row, Timeout timeout = kNoTimeout);

  /// Space to write one row of up to `bytes` bytes in place. One claim per worker at a time;
  /// anything else sent on the same worker meanwhile answers `failed` with wrong_state.
  Outcome try_claim(uint32_t receiver, size_t bytes, RowClaim& claim);
  Outcome claim(uint32_t receiver, size_t bytes, RowClaim& claim, Timeout timeout = kNoTimeout);

  /// Starts the transfer of everything sent so far, however little.
  void flush();

  /// No more rows: every receiver learns it after the last row. Everything is flushed. Repeatable, and
  /// to be repeated until it answers done: closing before that cancels the query.
  Outcome try_finish();
  Outcome finish(Timeout timeout = kNoTimeout);

  // --- receiving

  /// Takes the next rows of any sender. Releases what `batch` held.
  ///   done           `batch` has rows
  ///   end_of_stream  every sender has finished and all rows were handed out
  Outcome try_poll(Batch& batch);
  Outcome take(Batch& batch, Timeout timeout = kNoTimeout);

  /// The same from one sender only (a worker number), for merging sorted streams; end_of_stream
  /// when that one has finished.
  Outcome try_poll_from(uint32_t sender, Batch& batch);
  Outcome take_from(uint32_t sender, Batch& batch, Timeout timeout = kNoTimeout);

  /// This receiver needs no more rows (LIMIT, semi-join): its senders drop them from now on, and
  /// the query goes on. Polling answers end_of_stream. Nothing else means this: closing a receiver
  /// before the end of stream cancels the query.
  void stop();

  // --- the query

  /// Fails the query on every participant with query_cancelled and this reason.
  void cancel(std::string_view reason);

  /// Closes; see the class comment. Idempotent.
  void close() noexcept;

 private:
  friend class shuffle::LocalWorker;
  friend class ShuffleAccess;
  explicit Shuffle(shuffle::OpenShuffle* core) : core_(core) {}
  shuffle::StageSender* sending() const noexcept;  // null if this worker is no sender
  detail::OutboxCursor* cursors() const noexcept;
  uint32_t* frame_rows() const noexcept;
  /// As kernel.scatter asks for; auto calibrates once per process, width and number of receivers.
  detail::SendKernels kernels() const;
  Status check_sender(size_t row_bytes) const;

  shuffle::OpenShuffle* core_ = nullptr;
};

/// Sends rows of one fixed width; the typed, inlined path. A value: copy it, keep it in a local
/// variable (the compiler then keeps its members in registers). Valid as long as its shuffle is
/// open. Threads: those of the worker.
template <typename Row>
class RowSender {
  static_assert(std::is_trivially_copyable_v<Row>);

 public:
  /// As Shuffle::try_send.
  Outcome try_send(uint32_t receiver, const Row& row) const noexcept {
    return put(receiver, row, false);
  }
  /// As Shuffle::send without time limit.
  Outcome send(uint32_t receiver, const Row& row) const noexcept {
    return put(receiver, row, true);
  }

  /// Sends rows[i] to partition(hash(key(rows[i])), receiver_count), for all i or as many as there
  /// is room for; returns how many were taken; `outcome` says why it stopped. By the loops that
  /// are fastest on this machine (setting kernel.scatter).
  template <typename Hash, typename Key>
  size_t try_send_all(std::span<const Row> rows, Hash hash, Key key,
                      Outcome& outcome) const noexcept {
    return put_all(rows, hash, key, outcome, false);
  }
  /// The same, waiting for room; returns fewer than all only if outcome is `stopped`, `holding` or
  /// `failed`.
  template <typename Hash, typename Key>
  size_t send_all(std::span<const Row> rows, Hash hash, Key key, Outcome& outcome) const noexcept {
    return put_all(rows, hash, key, outcome, true);
  }

  /// Sends `count` rows that are written where they are sent from: one pass, no copy. For rows that are
  /// made from others as they are sent, above all wide ones; what lies in memory is sent by
  /// try_send_all. Row i goes to partition(hash(key(i)), receiver_count); then fill(i, to) writes its
  /// sizeof(Row) bytes at `std::byte* to`, which may be any address. Each is called in order, once
  /// for a row that is sent, and does nothing else with this worker; if one throws, row i was not
  /// begun. Returns how many were sent; `outcome` says why it stopped. Rows that fit into a frame never
  /// go to overflow: while the worker holds batches, and a ring is full, it is `holding`. So rows can
  /// be made from a batch where it lies. Copy the rest then, and release the batch.
  template <typename Hash, typename Key, typename Fill>
  size_t try_write_all(size_t count, Hash hash, Key key, Fill fill, Outcome& outcome) const {
    return write_all(count, hash, key, fill, outcome, false);
  }
  /// The same, waiting for room; returns fewer than all only if outcome is `stopped`, `holding` or
  /// `failed`.
  template <typename Hash, typename Key, typename Fill>
  size_t write_all(size_t count, Hash hash, Key key, Fill fill, Outcome& outcome) const {
    return write_all(count, hash, key, fill, outcome, true);
  }

  /// As Shuffle::try_broadcast.
  Outcome try_broadcast(const Row& row) const noexcept { return put_everywhere(row, false); }
  /// As Shuffle::broadcast without time limit.
  Outcome broadcast(const Row& row) const noexcept { return put_everywhere(row, true); }
  /// Sends all rows to every receiver, or as many of the first as there is room for everywhere; returns how
  /// many; `outcome` says why it stopped.
  size_t try_broadcast_all(std::span<const Row> rows, Outcome& outcome) const noexcept {
    return put_everywhere(rows, outcome, false);
  }
  /// The same, waiting for room; returns fewer than all only if outcome is `stopped`, `holding` or
  /// `failed`.
  size_t broadcast_all(std::span<const Row> rows, Outcome& outcome) const noexcept {
    return put_everywhere(rows, outcome, true);
  }

  uint32_t receiver_count() const noexcept { return receiver_count_; }

 private:
  friend class Shuffle;

  Outcome put(uint32_t receiver, const Row& row, bool wait) const noexcept {
    if (receiver < receiver_count_) [[likely]] {
      detail::OutboxCursor& cursor = cursors_[receiver];
      std::byte* at = cursor.at;
      if (static_cast<size_t>(cursor.end - at) >= sizeof(Row)) [[likely]] {
        cursor.at = at + sizeof(Row);
        std::memcpy(at, &row, sizeof(Row));
        return Outcome::done;
      }
    }
    return detail::send_slow(*sender_, receiver, &row, sizeof(Row), wait);
  }

  template <typename Hash, typename Key>
  size_t put_all(std::span<const Row> rows, Hash hash, Key key, Outcome& outcome,
                 bool wait) const noexcept {
    outcome = Outcome::done;
    return detail::scatter_rows(kernels_.of(hash), rows, hash, key, receiver_count_, cursors_,
                                [&](uint32_t receiver, const Row& row) noexcept {
                                  outcome = detail::send_slow(*sender_, receiver, &row, sizeof(Row),
                                                              wait);
                                  return outcome == Outcome::done;
                                });
  }

  template <typename Hash, typename Key, typename Fill>
  size_t write_all(size_t count, Hash hash, Key& key, Fill& fill, Outcome& outcome,
                   bool wait) const {
    outcome = Outcome::done;
    return detail::write_one_by_one<Row>(count, hash, key, fill, receiver_count_, cursors_,
                                         [&](uint32_t receiver, const std::byte* row) noexcept {
                                           outcome = detail::send_in_ring_slow(
                                               *sender_, receiver, row, sizeof(Row), wait);
                                           return outcome == Outcome::done;
                                         });
  }

  Outcome put_everywhere(const Row& row, bool wait) const noexcept {
    Outcome outcome;
    (void)put_everywhere(std::span<const Row>(&row, 1), outcome, wait);
    return outcome;
  }

  size_t put_everywhere(std::span<const Row> rows, Outcome& outcome, bool wait) const noexcept {
    const std::span<detail::OutboxCursor> cursors(cursors_, receiver_count_);
    outcome = Outcome::done;
    for (size_t sent = 0; sent < rows.size();) {
      size_t count = rows.size() - sent;
      for (const detail::OutboxCursor& cursor : cursors) {
        const size_t room = static_cast<size_t>(cursor.end - cursor.at) / sizeof(Row);
        count = room < count ? room : count;
      }
      if (count == 0) {
        sent += detail::broadcast_slow(*sender_, &rows[sent], sizeof(Row), rows.size() - sent, wait,
                                       outcome);
        if (outcome != Outcome::done) return sent;
        continue;
      }
      for (detail::OutboxCursor& cursor : cursors) {
        std::memcpy(cursor.at, &rows[sent], count * sizeof(Row));
        cursor.at += count * sizeof(Row);
      }
      sent += count;
    }
    return rows.size();
  }

  shuffle::StageSender* sender_ = nullptr;
  detail::OutboxCursor* cursors_ = nullptr;
  uint32_t receiver_count_ = 0;
  detail::SendKernels kernels_;
};

/// Sends rows with a length each, inlined; as RowSender otherwise.
class VariableRowSender {
 public:
  /// As Shuffle::try_send.
  Outcome try_send(uint32_t receiver, std::span<const std::byte> row) const noexcept {
    return copy(receiver, row, false);
  }
  /// As Shuffle::send without time limit.
  Outcome send(uint32_t receiver, std::span<const std::byte> row) const noexcept {
    return copy(receiver, row, true);
  }

  /// As try_send, of a row that is written where it is sent from: when there is room, fill(to) is
  /// called once and writes `bytes` bytes at `std::byte* to`. It does nothing else with this worker.
  /// If it throws, the row was not begun.
  template <typename Fill>
  Outcome try_write(uint32_t receiver, size_t bytes, const Fill& fill) const {
    return write(receiver, bytes, fill, false);
  }
  /// The same as `send`.
  template <typename Fill>
  Outcome write(uint32_t receiver, size_t bytes, const Fill& fill) const {
    return write(receiver, bytes, fill, true);
  }

  /// As Shuffle::try_broadcast.
  Outcome try_broadcast(std::span<const std::byte> row) const noexcept {
    return copy_everywhere(row, false);
  }
  /// As Shuffle::broadcast without time limit.
  Outcome broadcast(std::span<const std::byte> row) const noexcept {
    return copy_everywhere(row, true);
  }

  uint32_t receiver_count() const noexcept { return receiver_count_; }

 private:
  friend class Shuffle;

  Outcome copy(uint32_t receiver, std::span<const std::byte> row, bool wait) const noexcept {
    const bool written = put(receiver, row.size(), [row](std::byte* to) noexcept {
      if (!row.empty()) std::memcpy(to, row.data(), row.size());
    });
    if (written) [[likely]]
      return Outcome::done;
    return detail::send_slow(*sender_, receiver, row.data(), row.size(), wait);
  }

  template <typename Fill>
  Outcome write(uint32_t receiver, size_t bytes, const Fill& fill, bool wait) const {
    if (put(receiver, bytes, fill)) [[likely]]
      return Outcome::done;
    RowClaim claim;
    const Outcome outcome = detail::claim_slow(*sender_, receiver, bytes, wait, kNoTimeout, claim);
    if (outcome != Outcome::done) return outcome;
    fill(claim.data().data());
    return claim.commit().ok() ? Outcome::done : Outcome::failed;
  }

  Outcome copy_everywhere(std::span<const std::byte> row, bool wait) const noexcept {
    for (uint32_t receiver = 0; receiver < receiver_count_; ++receiver) {
      if (has_room(receiver, row.size())) continue;
      Outcome outcome;
      detail::broadcast_slow(*sender_, row.data(), row.size(), 1, wait, outcome);
      return outcome;
    }
    for (uint32_t receiver = 0; receiver < receiver_count_; ++receiver)
      (void)copy(receiver, row, wait);  // has room: done
    return Outcome::done;
  }

  /// In the open frame, for a row and its length.
  bool has_room(uint32_t receiver, size_t bytes) const noexcept {
    const detail::OutboxCursor& cursor = cursors_[receiver];
    const auto room = static_cast<size_t>(cursor.end - cursor.at);
    return room >= sizeof(uint32_t) && room - sizeof(uint32_t) >= bytes;
  }

  /// Into the open frame; false if there is none with room for it.
  template <typename Fill>
  bool put(uint32_t receiver, size_t bytes, const Fill& fill) const {
    if (receiver >= receiver_count_ || !has_room(receiver, bytes)) return false;
    detail::OutboxCursor& cursor = cursors_[receiver];
    std::byte* const at = cursor.at;
    const auto length = static_cast<uint32_t>(bytes);
    std::memcpy(at, &length, sizeof length);
    fill(at + sizeof length);
    cursor.at = at + sizeof length + bytes;
    ++frame_rows_[receiver];
    return true;
  }

  shuffle::StageSender* sender_ = nullptr;
  detail::OutboxCursor* cursors_ = nullptr;
  uint32_t* frame_rows_ = nullptr;
  uint32_t receiver_count_ = 0;
};

template <typename Row>
Result<RowSender<Row>> Shuffle::sender() {
  if (Status status = check_sender(sizeof(Row)); !status.ok()) return status;
  RowSender<Row> made;
  made.sender_ = sending();
  made.cursors_ = cursors();
  made.receiver_count_ = receiver_count();
  made.kernels_ = kernels();
  return made;
}

}  // namespace faro

#pragma GCC visibility pop
