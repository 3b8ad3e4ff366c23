// What nodes tell each other about their turns.
#pragma once

#include <cstdint>

namespace faro::transport::schedule {

/// Says how far its sender is: all its turns below `turn` have passed. Hearing it again changes nothing.
struct TurnMessage {
  enum class Kind : uint32_t {
    turn,  ///< says that alone
    follow,  ///< also that its sender waits for the turns of its receiver from now on, and wants to hear of them
    leave,  ///< also that its sender does not do so any more
  };

  Kind kind = Kind::turn;
  /// Turn `turn` has begun: rows of it are sent.
  bool has_begun = false;
  /// How many nodes in a row, from the sender on by number, sent nothing in the round before that of turn - 1.
  uint32_t quiet_nodes = 0;
  uint64_t turn = 0;
};

/// A message, and the node that gets it.
struct Telling {
  uint32_t peer = 0;
  TurnMessage message;
};

}  // namespace faro::transport::schedule
