// What faro/c.h says of the sending side of a shuffle.
#include "faro/sender.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/sized.h"
#include "shuffle/shuffle_access.h"

using namespace faro::c;
namespace base = faro::base;
using faro::Code;
using faro::Outcome;
using faro::Result;
using faro::Sent;
using faro::ShuffleSender;
using faro::Status;
using faro::Wait;
using faro::shuffle::ManyRows;
using faro::shuffle::RowPieces;

namespace {

Result<ShuffleSender> sender_of(const faro_shuffle* shuffle) {
  FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
  if (shuffle->sender) return *shuffle->sender;
  return shuffle->shuffle.sender();  // says why there is none
}

std::span<const std::byte> row_of(const void* row, size_t bytes) {
  return {static_cast<const std::byte*>(row), bytes};
}

// Checks what all calls that send a row have in common; then send(sender, wait) sends it.
template <typename Send>
faro_outcome send_row(const faro_shuffle* shuffle, const void* row, size_t bytes, int64_t wait_ns,
                      const Send& send) noexcept {
  return answered([&]() -> Answer {
    const Result<ShuffleSender> sender = sender_of(shuffle);
    if (!sender.ok()) return sender.status();
    FARO_RETURN_IF_ERROR(need_array(row, bytes, "row"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    return {send(*sender, *wait), *sender};
  });
}

// Checks what the calls that may claim a row have in common; then take(sender, wait) takes its place.
template <typename Take>
faro_outcome take_place(const faro_shuffle* shuffle, size_t bytes, int64_t wait_ns,
                        faro_claim* claim, const Take& take) noexcept {
  return answered([&]() -> Answer {
    const Result<ShuffleSender> sender = sender_of(shuffle);
    if (!sender.ok()) return sender.status();
    FARO_RETURN_IF_ERROR(need_struct(claim, "claim"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    const Outcome outcome = take(*sender, *wait);
    if (outcome == Outcome::done) {
      faro_claim told{};
      told.data = shuffle->claim.data().data();
      told.bytes = bytes;
      fill(*claim, told);
    }
    return {outcome, *sender};
  });
}

// Checks what the calls that send many rows have in common; then send(many, all, wait) sends those from `first` on.
template <typename Send>
faro_outcome send_many(const faro_shuffle* shuffle, const void* rows, size_t rows_bytes,
                       size_t first, size_t row_count, int64_t wait_ns, size_t* sent,
                       const Send& send) noexcept {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(sent, "sent"));
    *sent = first;
    if (first > row_count)
      return base::error(Code::invalid_argument, "first = {} of {} rows", first, row_count);
    const Result<ShuffleSender> sender = sender_of(shuffle);
    if (!sender.ok()) return sender.status();
    FARO_RETURN_IF_ERROR(need_array(rows, rows_bytes, "rows"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    const Result<Sent> done =
        send(shuffle->core->sender()->many(), row_of(rows, rows_bytes), *wait);
    if (!done.ok()) return done.status();
    *sent = done->rows;
    return {done->outcome, *sender};
  });
}

// At the cursor, if there is room; false: nothing was done.
bool put(const faro_shuffle& shuffle, uint32_t receiver, const void* row, size_t bytes) noexcept {
  const faro_open_frames& frames = shuffle.frames;
  if (receiver >= frames.receiver_count) return false;
  faro_cursor& cursor = frames.cursors[receiver];
  const auto room = static_cast<size_t>(cursor.end - cursor.at);
  if (frames.row_bytes != 0) {
    if (bytes != frames.row_bytes || room < bytes) return false;
  } else {
    if (room < sizeof(uint32_t) || room - sizeof(uint32_t) < bytes) return false;
    const auto length = static_cast<uint32_t>(bytes);
    std::memcpy(cursor.at, &length, sizeof length);
    cursor.at += sizeof length;
    ++frames.row_counts[receiver];
  }
  faro::detail::copy_row(reinterpret_cast<std::byte*>(cursor.at),
                         static_cast<const std::byte*>(row), bytes);
  cursor.at += bytes;
  return true;
}

}  // namespace

faro_outcome faro_sender_send(faro_shuffle* shuffle, uint32_t receiver, const void* row,
                              size_t bytes, int64_t wait_ns) {
  if (shuffle != nullptr && (row != nullptr || bytes == 0) && is_wait(wait_ns) &&
      put(*shuffle, receiver, row, bytes)) [[likely]]
    return FARO_OUTCOME_DONE;
  return send_row(shuffle, row, bytes, wait_ns, [&](const ShuffleSender& sender, Wait wait) {
    return sender.send(receiver, row_of(row, bytes), wait);
  });
}

faro_outcome faro_sender_multicast(faro_shuffle* shuffle, const uint32_t* receivers,
                                   size_t receiver_count, const void* row, size_t bytes,
                                   int64_t wait_ns) {
  if (receivers == nullptr && receiver_count > 0)
    return answered([]() -> Answer { return need(nullptr, "receivers"); });
  return send_row(shuffle, row, bytes, wait_ns, [&](const ShuffleSender& sender, Wait wait) {
    return sender.multicast({receivers, receiver_count}, row_of(row, bytes), wait);
  });
}

faro_outcome faro_sender_send_parts(faro_shuffle* shuffle, const uint32_t* receivers,
                                    size_t receiver_count, const faro_piece* pieces,
                                    size_t piece_count, int64_t wait_ns) {
  return answered([&]() -> Answer {
    const Result<ShuffleSender> sender = sender_of(shuffle);
    if (!sender.ok()) return sender.status();
    FARO_RETURN_IF_ERROR(need_array(receivers, receiver_count * sizeof *receivers, "receivers"));
    FARO_RETURN_IF_ERROR(need_array(pieces, piece_count * sizeof *pieces, "pieces"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    // One too many is enough for the call to be refused.
    std::vector<std::span<const std::byte>> row(std::min(piece_count, RowPieces::kMostPieces + 1));
    for (size_t i = 0; i < row.size(); ++i) row[i] = row_of(pieces[i].address, pieces[i].bytes);
    return {sender->send_parts({receivers, receiver_count}, row, *wait), *sender};
  });
}

faro_outcome faro_sender_broadcast(faro_shuffle* shuffle, const void* row, size_t bytes,
                                   int64_t wait_ns) {
  return send_row(shuffle, row, bytes, wait_ns, [&](const ShuffleSender& sender, Wait wait) {
    return sender.broadcast(row_of(row, bytes), wait);
  });
}

faro_outcome faro_sender_send_all(faro_shuffle* shuffle, const void* rows, size_t rows_bytes,
                                  size_t first, size_t row_count, uint32_t key_offset,
                                  uint32_t key_bytes, int32_t hash, int64_t wait_ns, size_t* sent) {
  return send_many(
      shuffle, rows, rows_bytes, first, row_count, wait_ns, sent,
      [&](ManyRows& many, auto all, Wait wait) {
        if (hash != FARO_HASH_FINALIZER && hash != FARO_HASH_MULTIPLICATIVE)
          return Result<Sent>(base::error(Code::invalid_argument, "there is no hash {}", hash));
        const auto by =
            hash == FARO_HASH_FINALIZER ? faro::KeyHash::finalizer : faro::KeyHash::multiplicative;
        return Result<Sent>(
            many.send_by_key(all, first, row_count, {key_offset, key_bytes}, by, wait));
      });
}

faro_outcome faro_sender_send_rows(faro_shuffle* shuffle, const void* rows, size_t rows_bytes,
                                   size_t first, size_t row_count, const uint32_t* receivers,
                                   int64_t wait_ns, size_t* sent) {
  return send_many(shuffle, rows, rows_bytes, first, row_count, wait_ns, sent,
                   [&](ManyRows& many, auto all, Wait wait) -> Result<Sent> {
                     FARO_RETURN_IF_ERROR(need_array(receivers, row_count, "receivers"));
                     return many.send(all, first, row_count, receivers, wait);
                   });
}

faro_outcome faro_sender_send_rows_at(faro_shuffle* shuffle, const void* rows, size_t rows_bytes,
                                      const void* offsets, uint32_t offset_bytes, size_t first,
                                      size_t row_count, const uint32_t* receivers, int64_t wait_ns,
                                      size_t* sent) {
  return send_many(shuffle, rows, rows_bytes, first, row_count, wait_ns, sent,
                   [&](ManyRows& many, auto all, Wait wait) -> Result<Sent> {
                     FARO_RETURN_IF_ERROR(need_array(offsets, row_count, "offsets"));
                     FARO_RETURN_IF_ERROR(need_array(receivers, row_count, "receivers"));
                     switch (offset_bytes) {
                       case sizeof(uint32_t):
                         return many.send(all, static_cast<const uint32_t*>(offsets), first,
                                          row_count, receivers, wait);
                       case sizeof(uint64_t):
                         return many.send(all, static_cast<const uint64_t*>(offsets), first,
                                          row_count, receivers, wait);
                       default:
                         return base::error(Code::invalid_argument, "offsets of {} bytes: 4 or 8",
                                            offset_bytes);
                     }
                   });
}

faro_outcome faro_sender_claim(faro_shuffle* shuffle, uint32_t receiver, size_t bytes,
                               int64_t wait_ns, faro_claim* claim) {
  const auto take = [&](const ShuffleSender& sender, Wait wait) {
    return sender.claim(receiver, bytes, shuffle->claim, wait);
  };
  return take_place(shuffle, bytes, wait_ns, claim, take);
}

faro_outcome faro_sender_make_room(faro_shuffle* shuffle, uint32_t receiver, size_t bytes,
                                   int64_t wait_ns, faro_claim* claim) {
  const auto take = [&](const ShuffleSender&, Wait wait) {
    return faro::ShuffleAccess::make_room(*shuffle->core->sender(), receiver, bytes, shuffle->claim,
                                          wait);
  };
  return take_place(shuffle, bytes, wait_ns, claim, take);
}

faro_code faro_sender_commit(faro_shuffle* shuffle, size_t bytes) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(sender_of(shuffle).status());
    const std::span<std::byte> claimed = shuffle->claim.data();
    if (claimed.data() != nullptr && bytes > claimed.size()) {  // SIZE_MAX means all in C++
      return base::error(Code::invalid_argument, "a commit of {} bytes of a claim of {}", bytes,
                         claimed.size());
    }
    return shuffle->claim.commit(bytes);
  });
}

faro_code faro_sender_abort(faro_shuffle* shuffle) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(shuffle, "shuffle"));
    shuffle->claim.abort();
    return Status::Ok();
  });
}

faro_outcome faro_sender_flush(faro_shuffle* shuffle) {
  return answered([&]() -> Answer {
    const Result<ShuffleSender> sender = sender_of(shuffle);
    if (!sender.ok()) return sender.status();
    return {sender->flush(), *sender};
  });
}

faro_outcome faro_sender_finish(faro_shuffle* shuffle, int64_t wait_ns) {
  return send_row(shuffle, nullptr, 0, wait_ns,
                  [](const ShuffleSender& sender, Wait wait) { return sender.finish(wait); });
}

faro_code faro_sender_name_format(faro_shuffle* shuffle, const char* format) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(sender_of(shuffle).status());
    FARO_RETURN_IF_ERROR(need(format, "format"));
    return shuffle->core->send_as(format);
  });
}

faro_code faro_sender_open_frames(faro_shuffle* shuffle, faro_open_frames* frames) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(sender_of(shuffle).status());
    FARO_RETURN_IF_ERROR(need_struct(frames, "frames"));
    fill(*frames, shuffle->frames);
    return Status::Ok();
  });
}
