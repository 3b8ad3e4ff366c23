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
  last_look_left_out,  // at a node's end: who gives the right back does not look whether somebody else had wanted it
  release_untried,  // there: who releases a frame leaves that to whoever looks next
  full_for_ever,  // there: frames of a full ring were moved to overflow, and nobody looks what waited behind them
  rung_does_not_look,  // there: a worker that was rung goes its way
  finished_too_early,  // with delivery to nodes: FINISH counts as it comes, not when all rows before it are handed out
  first_stop_believed,  // there: a sender stops for a node of which one worker has stopped
  left_unnoticed,       // there: what one worker takes no more of waits for it
  read_by_one,          // there: a frame that each worker reads is given back by the first
  charged_per_reader,  // there: a copy that all workers read is charged to overflow again for each that holds it
  not_passed_on,        // there: who was woken for a row that it does not take wakes no other
  partition_freed,      // a partition is freed while it has blocks that nobody has read
  partition_forgotten,  // what was spilled of a partition is forgotten
  matched_by_key,       // rows count as matched though the condition on their pair has failed
  pass_left_out,  // build rows that did not fit the first table of a partition meet no probe rows
  turn_lost,      // a node is lost, and the one that waits for its turns goes on waiting
  round_without_end,  // an empty round is followed by another one
  sleeper_forgotten,  // a turn begins for rows that were held, and nobody sends them for a worker that sleeps
  turn_believed_twice,  // a turn that is told again counts as the next one
  hot_key_at_some_workers,  // its build rows come to some workers only: the others believe that there are none
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
