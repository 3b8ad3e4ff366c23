// PeerView: what is known of a node at one moment, as Peers gives it to those who keep a copy.
//
//            added           up              asked          agreed            ends
//    none ----------> apart -----> linked ----------> asked ---------> agreed -----> parted
//                                  ^ ^ | \             |  |              ^              |
//                                  | | |  +-- agreed --|--|--------------+              |
//                                  | | |     stays     |  |                             |
//                                  | +-|---------------+  |                             |
//                                  |   | ends             | ends                refused |
//                                  |   v                  v                             |
//                                  |  lost <----------------------------------------+---+
//                                  |   |                                                |
//                                  +---+--------------------- up -----------------------+
//
//    drained: from each of these, whatever happens then, until it is removed
//    removed: from each of these to none
//
// Those of cluster.nodes begin apart, and the own node is linked.
#pragma once

#include <cstdint>

namespace faro::session {

enum class PeerState : uint8_t {
  none,    // no node has the number
  apart,   // it is a member, and not linked; which process it is is not known
  linked,  // its link is up
  asked,   // it is linked, and was asked whether its link may rest: nothing is sent to it meanwhile
  agreed,  // both have agreed that its link rests, which has not ended yet
  parted,  // its link rests: the same process may be linked again, and another one
  lost,    // its process does not come back: its node has to start again
  drained,  // it has the number until it is removed, and is not linked any more
};

struct PeerView {
  PeerState state = PeerState::none;
  /// That of the process which is linked, or was last; 0: none was since the session opened.
  uint64_t incarnation = 0;
  /// Grows with every change of the node. Of two views of a node the one that has more is the later one.
  uint64_t version = 0;
};

}  // namespace faro::session
