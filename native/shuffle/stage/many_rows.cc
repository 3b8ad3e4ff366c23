#include "shuffle/stage/many_rows.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "faro/sender.h"
#include "shuffle/kernels/put_rows.h"
#include "shuffle/stage/stage_sender.h"

namespace faro::shuffle {
namespace {

constexpr size_t kBlockRows = 256;

/// Why a row cannot be sent.
Status no_receiver(uint32_t receiver, uint32_t receiver_count) {
  return base::error(Code::invalid_argument, "receiver {} does not exist (0 … {})", receiver,
                     receiver_count - 1);
}

/// Another thread may change it meanwhile.
template <typename Number>
Number read_once(const Number& number) noexcept {
  return __atomic_load_n(&number, __ATOMIC_RELAXED);
}

/// Reads the receivers of a block. Returns how many rows come before the first whose receiver does not exist.
size_t read_receivers(const uint32_t* from, size_t count, uint32_t receiver_count,
                      uint32_t* receivers) noexcept {
  uint32_t greatest = 0;
  for (size_t i = 0; i < count; ++i) {
    receivers[i] = read_once(from[i]);
    greatest = std::max(greatest, receivers[i]);
  }
  if (greatest < receiver_count) [[likely]]
    return count;
  const uint32_t* const wrong =
      std::find_if(receivers, receivers + count, [&](uint32_t r) { return r >= receiver_count; });
  return static_cast<size_t>(wrong - receivers);
}

/// Rows of one width, one behind the other, and where each goes.
class FixedRows {
 public:
  FixedRows(std::span<const std::byte> rows, uint32_t row_bytes, const detail::SendKernels& kernels,
            uint32_t receiver_count, detail::FrameCursor* cursors)
      : rows_(rows.data()),
        row_bytes_(row_bytes),
        put_(put_rows_of(row_bytes)),
        receiver_count_(receiver_count),
        cursors_(cursors) {
    const detail::BlockKernel* const kernel = kernels.finalizer;
    if (row_bytes == sizeof(uint64_t) && kernel != nullptr &&
        receiver_count < detail::BlockKernel::kWordReceivers)
      words_ = kernel->words[receiver_count];
  }

  uint32_t receiver(size_t i) const noexcept { return receivers_[i]; }
  std::span<const std::byte> row(size_t i) const noexcept { return {at(i), row_bytes_}; }
  /// Puts the rows from number `from` of the block on. Returns how many found room.
  size_t put(size_t from, size_t count) noexcept {
    return words_ != nullptr ? put_words(words_, at(from), receivers_ + from, count, cursors_)
                             : put_(at(from), row_bytes_, receivers_ + from, count, cursors_);
  }

 protected:
  const std::byte* at(size_t i) const noexcept { return block_ + i * row_bytes_; }
  void begin_block(size_t first) noexcept { block_ = rows_ + first * row_bytes_; }

  const std::byte* rows_;
  const std::byte* block_ = nullptr;
  size_t row_bytes_;
  PutRows put_;
  detail::WordScatter words_ = nullptr;
  uint32_t receiver_count_;
  detail::FrameCursor* cursors_;
  uint32_t receivers_[kBlockRows];  // of the block
};

class RowsToReceivers : public FixedRows {
 public:
  template <typename... Args>
  explicit RowsToReceivers(const uint32_t* to, Args&&... args)
      : FixedRows(std::forward<Args>(args)...), to_(to) {}

  /// Reads where the rows of a block go, from number `first` on. Returns how many can be sent.
  size_t read(size_t first, size_t count) noexcept {
    begin_block(first);
    return read_receivers(to_ + first, count, receiver_count_, receivers_);
  }
  /// Why the row behind those that can be sent is refused.
  Status why_not(size_t i) const { return no_receiver(receivers_[i], receiver_count_); }

 private:
  const uint32_t* to_;
};

/// Rows of one width, each of which goes where its key says: in one pass, or by a kernel's hash of a block.
class RowsByKey : public FixedRows {
 public:
  template <typename... Args>
  RowsByKey(RowKey key, KeyHash hash, uint32_t row_bytes, const detail::SendKernels& kernels,
            Args&&... args)
      : FixedRows(std::forward<Args>(args)...), key_(key), hash_(hash) {
    const detail::BlockKernel* const kernel =
        hash == KeyHash::finalizer ? kernels.finalizer : kernels.multiplicative;
    if (kernel != nullptr) {
      partition_ = kernel->partition;
    } else {
      put_by_key_ = put_by_key_of(row_bytes, key.bytes, hash);
    }
  }

  size_t read(size_t first, size_t count) noexcept {
    begin_block(first);
    if (put_by_key_ != nullptr) return count;
    if (partition_ == nullptr || !is_integer()) {
      for (size_t i = 0; i < count; ++i) receivers_[i] = receiver_by_key(i);
      return count;
    }
    uint64_t keys[kBlockRows];
    for (size_t i = 0; i < count; ++i) keys[i] = integer(i);
    partition_(keys, count, receiver_count_, receivers_);
    return count;
  }
  uint32_t receiver(size_t i) const noexcept {
    return put_by_key_ != nullptr ? receiver_by_key(i) : receivers_[i];
  }
  size_t put(size_t from, size_t count) noexcept {
    if (put_by_key_ == nullptr) return FixedRows::put(from, count);
    return put_by_key_(at(from), row_bytes_, key_.offset, count, receiver_count_, cursors_);
  }
  static Status why_not(size_t) { return Status::Ok(); }  // all can

 private:
  bool is_integer() const noexcept {
    return key_.bytes == sizeof(uint64_t) || key_.bytes == sizeof(uint32_t);
  }
  uint64_t integer(size_t i) const noexcept {
    uint64_t key = 0;
    std::memcpy(&key, at(i) + key_.offset, key_.bytes);
    return key;
  }
  uint32_t receiver_by_key(size_t i) const noexcept {
    const uint64_t hash = !is_integer() ? hash_bytes(at(i) + key_.offset, key_.bytes)
                          : hash_ == KeyHash::finalizer ? FinalizerHash{}(integer(i))
                                                        : MultiplicativeHash{}(integer(i));
    return faro::partition(hash, receiver_count_);
  }

  RowKey key_;
  KeyHash hash_;
  PutByKey put_by_key_ = nullptr;                       // null: block by block
  detail::BlockKernel::Partition partition_ = nullptr;  // null: one by one
};

/// Rows with a length each, and where each goes.
template <typename Offset>
class RowsByOffset {
 public:
  RowsByOffset(std::span<const std::byte> rows, const Offset* offsets, const uint32_t* to,
               size_t first, uint64_t row_limit, uint32_t receiver_count,
               detail::FrameCursor* cursors, uint32_t* frame_rows)
      : rows_(rows),
        from_(offsets),
        to_(to),
        first_(first),
        row_limit_(row_limit),
        receiver_count_(receiver_count),
        cursors_(cursors),
        frame_rows_(frame_rows) {}

  uint32_t receiver(size_t i) const noexcept { return receivers_[i]; }
  std::span<const std::byte> row(size_t i) const noexcept {
    return {rows_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }
  size_t put(size_t from, size_t count) noexcept {
    return put_rows_with_length(rows_.data(), offsets_ + from, receivers_ + from, count, cursors_,
                                frame_rows_);
  }

  size_t read(size_t first, size_t count) noexcept {
    // Each is read once, also the last one of the block before.
    offsets_[0] = first == first_ ? read_once(from_[first]) : offsets_[kBlockRows];
    for (size_t i = 1; i <= count; ++i) offsets_[i] = read_once(from_[first + i]);
    const size_t rows = rows_with_length(count);
    return read_receivers(to_ + first, rows, receiver_count_, receivers_);
  }
  Status why_not(size_t i) const {
    if (is_row(i)) return no_receiver(receivers_[i], receiver_count_);
    const uint64_t begin = offsets_[i];
    const uint64_t end = offsets_[i + 1];
    if (end < begin)
      return base::error(Code::invalid_argument, "its offsets fall from {} to {}", begin, end);
    if (end > rows_.size()) {
      return base::error(Code::invalid_argument, "it ends at byte {}, but all rows have {}", end,
                         rows_.size());
    }
    return base::error(Code::row_too_large, "its {} bytes are above row.limit_bytes = {}",
                       end - begin, row_limit_);
  }

 private:
  bool is_row(size_t i) const noexcept {
    return offsets_[i] <= offsets_[i + 1] && offsets_[i + 1] <= rows_.size() &&
           offsets_[i + 1] - offsets_[i] <= row_limit_;
  }
  size_t rows_with_length(size_t count) const noexcept {
    bool all = true;
    for (size_t i = 0; i < count; ++i) all &= is_row(i);
    if (all) [[likely]]
      return count;
    size_t rows = 0;
    while (is_row(rows)) ++rows;
    return rows;
  }

  std::span<const std::byte> rows_;
  const Offset* from_;
  const uint32_t* to_;
  size_t first_;  // row of the call
  uint64_t row_limit_;
  uint32_t receiver_count_;
  detail::FrameCursor* cursors_;
  uint32_t* frame_rows_;
  uint64_t offsets_[kBlockRows + 1];  // of the block
  uint32_t receivers_[kBlockRows];
};

}  // namespace

template <typename Rows>
Sent ManyRows::send_in_blocks(Rows& rows, size_t first, size_t count, Wait wait) noexcept {
  Sent sent{first};
  while (sent.rows < count) {
    const size_t block = std::min(count - sent.rows, kBlockRows);
    const size_t good = rows.read(sent.rows, block);
    for (size_t i = rows.put(0, good); i < good; i += rows.put(i, good - i)) {
      sent.outcome = sender_.send(rows.receiver(i), rows.row(i), wait);
      if (sent.outcome != Outcome::done) return {sent.rows + i, sent.outcome};
      ++i;
    }
    sent.rows += good;
    if (good < block) {
      sent.outcome = refuse([&] {
        const Status why = rows.why_not(good);
        return side_.fail(why.code(), "stage {}: row {}: {}", shuffle_.spec().stage, sent.rows,
                          why.message());
      });
      break;
    }
  }
  return sent;
}

// What is wrong with the worker or its query is told first.
template <typename Fail>
Outcome ManyRows::refuse(const Fail& fail) noexcept {
  (void)side_.guarded([&] {
    if (sender_.enter() == Outcome::done) (void)fail();
    return Status::Ok();
  });
  return Outcome::failed;
}

uint32_t ManyRows::receiver_count() const noexcept { return sender_.targets().count(); }

const detail::SendKernels& ManyRows::kernels() {
  if (!kernels_) kernels_ = sender_.kernels();
  return *kernels_;
}

bool ManyRows::have_fixed_width(std::span<const std::byte> rows, size_t count) noexcept {
  const ShuffleSpec& spec = shuffle_.spec();
  if (spec.row_bytes != 0 && count <= rows.size() / spec.row_bytes) [[likely]]
    return true;
  (void)refuse([&] {
    return spec.row_bytes == 0
               ? side_.fail(Code::invalid_argument,
                            "stage {}: rows without offsets, but its rows have a length each",
                            spec.stage)
               : side_.fail(Code::invalid_argument, "stage {}: {} rows of {} bytes in {} bytes",
                            spec.stage, count, spec.row_bytes, rows.size());
  });
  return false;
}

Sent ManyRows::send(std::span<const std::byte> rows, size_t first, size_t count,
                    const uint32_t* receivers, Wait wait) noexcept {
  if (!have_fixed_width(rows, count)) return {first, Outcome::failed};
  RowsToReceivers block(receivers, rows, shuffle_.spec().row_bytes, kernels(), receiver_count(),
                        sender_.targets().cursors());
  return send_in_blocks(block, first, count, wait);
}

Sent ManyRows::send_by_key(std::span<const std::byte> rows, size_t first, size_t count, RowKey key,
                           KeyHash hash, Wait wait) noexcept {
  if (!have_fixed_width(rows, count)) return {first, Outcome::failed};
  const uint32_t row_bytes = shuffle_.spec().row_bytes;
  if (key.bytes == 0 || key.bytes > row_bytes || key.offset > row_bytes - key.bytes) {
    return {first, refuse([&] {
              return side_.fail(Code::invalid_argument,
                                "stage {}: a key of {} bytes at {} in rows of {} bytes",
                                shuffle_.spec().stage, key.bytes, key.offset, row_bytes);
            })};
  }
  RowsByKey block(key, hash, row_bytes, kernels(), rows, row_bytes, kernels(), receiver_count(),
                  sender_.targets().cursors());
  return send_in_blocks(block, first, count, wait);
}

template <typename Offset>
Sent ManyRows::send(std::span<const std::byte> rows, const Offset* offsets, size_t first,
                    size_t count, const uint32_t* receivers, Wait wait) noexcept {
  if (shuffle_.spec().row_bytes != 0) {
    return {first, refuse([&] {
              return side_.fail(Code::invalid_argument,
                                "stage {}: rows by offsets, but row_bytes = {}",
                                shuffle_.spec().stage, shuffle_.spec().row_bytes);
            })};
  }
  RowsByOffset<Offset> block(rows, offsets, receivers, first,
                             shuffle_.worker().settings.row_limit_bytes, receiver_count(),
                             sender_.targets().cursors(), sender_.targets().frame_rows());
  return send_in_blocks(block, first, count, wait);
}
template Sent ManyRows::send(std::span<const std::byte>, const uint32_t*, size_t, size_t,
                             const uint32_t*, Wait) noexcept;
template Sent ManyRows::send(std::span<const std::byte>, const uint64_t*, size_t, size_t,
                             const uint32_t*, Wait) noexcept;

}  // namespace faro::shuffle

// ------------------------------------------------------------------------- faro::ShuffleSender

namespace faro {
namespace {

// The caller answers for the length of what he points to.
std::span<const std::byte> all_from(const std::byte* rows) noexcept {
  return {rows, rows == nullptr ? 0 : SIZE_MAX};
}

}  // namespace

Sent ShuffleSender::send_rows(const std::byte* rows, size_t count, const uint32_t* receivers,
                              Wait wait) const noexcept {
  if (sender_ == nullptr) return {0, Outcome::failed};
  return sender_->many().send(all_from(rows), 0, count, receivers, wait);
}

Sent ShuffleSender::send_rows(const std::byte* rows, const uint64_t* offsets, size_t count,
                              const uint32_t* receivers, Wait wait) const noexcept {
  if (sender_ == nullptr) return {0, Outcome::failed};
  return sender_->many().send(all_from(rows), offsets, 0, count, receivers, wait);
}

Sent ShuffleSender::send_rows(const std::byte* rows, const uint32_t* offsets, size_t count,
                              const uint32_t* receivers, Wait wait) const noexcept {
  if (sender_ == nullptr) return {0, Outcome::failed};
  return sender_->many().send(all_from(rows), offsets, 0, count, receivers, wait);
}

Sent ShuffleSender::send_all(const std::byte* rows, size_t count, RowKey key, KeyHash hash,
                             Wait wait) const noexcept {
  if (sender_ == nullptr) return {0, Outcome::failed};
  return sender_->many().send_by_key(all_from(rows), 0, count, key, hash, wait);
}

}  // namespace faro
