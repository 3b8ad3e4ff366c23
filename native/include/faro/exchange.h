// ExchangePart: one shuffle of a worker that sends and receives together (Worker::exchange).
#pragma once

#include "faro/detail/cxx20.h"

#include <functional>

#include "faro/batch.h"
#include "faro/outcome.h"
#include "faro/sender.h"

#pragma GCC visibility push(default)

namespace faro {

class Shuffle;

/// What Worker::exchange does with one shuffle. The functions are called on the worker's thread,
/// many times, never within each other. They send and receive by Wait::none() alone: a wait in
/// them, and another exchange, answers failed with wrong_state.
struct ExchangePart {
  /// Sends rows of this shuffle, some hundred at a time: between two calls the worker takes what
  /// others have sent to it. It answers
  ///   done           call it again
  ///   would_wait     a row found no room, which it keeps; or there is nothing to send yet. It is
  ///                  called again when there is room, when rows came, and after Worker::wake()
  ///   end_of_stream  it has sent its last row: it is not called again, and exchange calls finish
  ///   stopped        every receiver has stopped: as end_of_stream
  ///   failed         the query fails on every participant, for why the sender or the worker has
  ///                  failed last; so it does for an exception, which exchange throws on
  /// `holding`, which a send may answer, counts as would_wait.
  using Produce = std::function<Outcome(const ShuffleSender& sender)>;
  /// Takes a batch, which is released when it returns, unless it has moved it away: then exchange
  /// answers holding at once. An exception fails the query, and is thrown on.
  using Consume = std::function<void(Batch& batch)>;

  Shuffle* shuffle = nullptr;
  Produce produce{};  ///< none where this worker is no sender, or has finished
  Consume consume{};  ///< none where this worker is no receiver, or has received all
  /// Set by exchange when every sender has finished and `consume` has got all rows: for a part that
  /// produces from what another one consumes.
  bool ended = false;
};

}  // namespace faro

#pragma GCC visibility pop
