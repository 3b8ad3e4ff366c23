// Outcome: what a call of the data path answers.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace faro {

/// Everything but `failed` is a normal result: never logged, never thrown. Not to be dropped: a row
/// whose send did not answer `done` was not sent.
enum class [[nodiscard]] Outcome : uint8_t{
    done,        ///< it happened
    would_wait,  ///< nothing now, and Wait::none() was given. Do something else, and call again
    holding,  ///< it would have to wait, but the worker holds received batches in place: release or
              ///< detach them first, or two workers could wait for each other's rings forever
    stopped,  ///< every receiver has stopped: send no more; finish still has to be called
    end_of_stream,  ///< every sender has finished and all rows were handed out
    deadline,       ///< the time limit passed first; nothing was changed
    failed,  ///< status() of the object that was called says why, and its category what to do
};

/// How many of several rows were sent: the first ones. The outcome is done if all were, else it
/// says why not.
struct [[nodiscard]] Sent {
  size_t rows = 0;
  Outcome outcome = Outcome::done;
};

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
