// ShuffleReceiver: the receiving side of a shuffle.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <functional>

#include "faro/batch.h"
#include "faro/outcome.h"
#include "faro/status.h"
#include "faro/wait.h"

#pragma GCC visibility push(default)

namespace faro {

namespace shuffle {
class StageReceiver;
}

/// The receiving side of a shuffle at one worker. Rows come in batches, which are read where they
/// lie:
///
///   Batch batch;
///   Outcome outcome;
///   while ((outcome = receiver.receive(batch)) == Outcome::done)
///     for (const Row& row : batch.rows<Row>()) use(row);
///   if (outcome != Outcome::end_of_stream) return receiver.status();
///
/// A worker that sends rows, too, does both at the same time by Worker::exchange: to send all of
/// them before it receives any takes up to three times as long, and memory for all that has come.
///
/// It is a value. Threads: those of the worker. Valid as long as its shuffle is open.
class ShuffleReceiver {
 public:
  ShuffleReceiver() = default;

  /// Takes the next rows of any sender, after releasing what `batch` held.
  ///   done           `batch` has rows
  ///   end_of_stream  every sender has finished and all rows were handed out, or this receiver has
  ///                  stopped
  ///   would_wait     nothing has come, and Wait::none() was given
  ///   holding        nothing has come, and the worker holds other batches
  ///   deadline       nothing came for as long as Wait::at_most said
  ///   failed         see status()
  Outcome receive(Batch& batch, Wait wait = Wait::forever()) const;

  /// Takes the next rows of one sender, given by its index in ShuffleSpec::senders, after releasing
  /// what `batch` held. It answers as receive() does, but end_of_stream when that sender has
  /// finished, and `failed` also if there is no such sender, and with Delivery::node, where any
  /// worker of the node takes the rows of a sender. MergingReceiver merges sorted streams.
  Outcome receive_from(uint32_t sender, Batch& batch, Wait wait = Wait::forever()) const;

  /// Gives memory for `bytes` bytes, at an address that is a multiple of kRowAlignment, or null.
  /// `room`: how many there are. It does nothing with this worker; std::bad_alloc is as null.
  using Allocate = std::function<std::byte*(size_t bytes, size_t& room)>;
  static constexpr size_t kRowAlignment = 64;

  /// Receives as receive() does, but a row that is larger than a frame is put together in memory of
  /// the caller's, straight from the ring, and stays there: `batch` only refers to it. `allocate`
  /// is called when the first bytes of such a row have come, with its length as its sender says it,
  /// at most row.limit_bytes. Its memory belongs to this worker's receive calls until one of them
  /// has handed the row out, has answered end_of_stream, the query has failed, or the shuffle is
  /// closed. It is `failed` also if `allocate` is null, or its memory is null, too little, or not
  /// aligned: the row stays to be received, and memory for the rows of other senders stays in use.
  /// So it does if `allocate` throws, which is thrown on.
  Outcome receive_into(Batch& batch, const Allocate& allocate, Wait wait = Wait::forever()) const;

  /// This receiver needs no more rows (LIMIT, semi-join): its senders drop them from now on, and
  /// the query goes on. Receiving answers end_of_stream. Nothing else means this: closing a shuffle
  /// before the end of its stream cancels the query. Answers done or failed. Blocks: never.
  Outcome stop() const;

  /// Why the last call of this side of the shuffle, of a Batch too, that answered `failed` did; ok
  /// if none did. No call clears it: the next one that fails replaces it. The sending side has a
  /// status of its own.
  Status status() const;

 private:
  friend class Shuffle;

  shuffle::StageReceiver* receiver_ = nullptr;
};

}  // namespace faro

#pragma GCC visibility pop
