// Outcome: what an operation of the data path answers.
#pragma once

#include <chrono>
#include <cstdint>

#pragma GCC visibility push(default)

namespace faro {

/// Everything but `failed` is a normal result: never logged, never thrown. Not to be dropped: a row
/// whose send did not answer `done` was not sent.
enum class [[nodiscard]] Outcome : uint8_t{
    done,        ///< it happened
    would_wait,  ///< nothing now. Call again later, or the waiting form. Only try_… answer this
    holding,  ///< it would have to wait, but the worker holds polled batches in place: release or
              ///< detach them first, or two workers could wait for each other's rings forever
    stopped,  ///< every receiver has stopped: send no more; finish still has to be called
    end_of_stream,  ///< every sender has finished and all rows were handed out
    deadline,       ///< the time limit passed first; nothing was changed
    failed,  ///< see status() of the object: query failed or cancelled, peer lost, wrong use, closed
};

/// How long a waiting call may take; kNoTimeout: until data, cancel, close or the loss of a peer.
using Timeout = std::chrono::nanoseconds;
inline constexpr Timeout kNoTimeout = Timeout::max();

/// The name of an outcome, for messages.
constexpr const char* outcome_name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::done:
      return "done";
    case Outcome::would_wait:
      return "would_wait";
    case Outcome::holding:
      return "holding";
    case Outcome::stopped:
      return "stopped";
    case Outcome::end_of_stream:
      return "end_of_stream";
    case Outcome::deadline:
      return "deadline";
    case Outcome::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace faro

#pragma GCC visibility pop
