// Bugs that one test, tests/sim/planted_bugs_test.cc, plants to see that the simulation finds them.
//
// In the library `planted` is a constant false, so that nothing of a bug is compiled. The test compiles the few files
// that ask for `planted` again, with FARO_PLANTS, and chooses the bug at run time.
#pragma once

#include <cstdint>

namespace faro::base {

enum class Plant : uint8_t {
  lost_notification,        // of what arrived between a worker's last look and its sleep
  read_position_too_early,  // a frame is released when it is handed out
  slot_reused_too_early,    // a slot is taken again while its shuffle is open
  skipped_overflow,         // rows overtake those that are queued for their ring
  skipped_member,           // one member of a group does not get a block of it
  kept_marks,  // a node starts again, and which of its former queries had ended is not forgotten
  frame_given_back,  // over a channel: when it is handed out
  left_too_early,    // a channel that is drained: this side leaves before the other has taken all
  // a channel that is drained: it is left before the other knows that this one has
  left_unacknowledged,
  index_given_again,  // of a channel: while its poller still holds frames of it
  link_given_back,    // of a channel that has ended: while frames of it are held
  lost_room,          // a claim found no room, and nobody tells when there is some
  lost_commit,   // of a row claimed larger than a frame and committed smaller, if the ring is full
  resent_twice,  // a link is mended, and control messages that have come are sent again, too
  frame_resent,  // a link is mended, and a frame that has come is sent again, behind itself
  drained_too_early,  // a node lets go of a drained one without having heard that the others have no query left that needs it
  silence_unnoticed,  // a data connection goes dark, and nobody looks what comes over it
  mended_for_ever,    // a link over which nothing gets further is mended again and again
  old_incarnation_believed,  // a link is to be mended, and another process answers in the peer's place
};

#ifdef FARO_PLANTS
inline namespace with_plants {
bool planted(Plant plant) noexcept;
}
#else
constexpr bool planted(Plant) noexcept { return false; }
#endif

}  // namespace faro::base
