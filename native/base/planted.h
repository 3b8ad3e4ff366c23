// Bugs that a test plants to see that they are found.
//
// Everywhere but in that test `planted` is a constant false, and nothing of a bug is compiled. The test
// compiles the few files that ask again, with FARO_PLANTS, and says itself which bug there is.
#pragma once

#include <cstdint>

namespace faro::base {

enum class Plant : uint8_t {
  lost_notification,        // what arrived between a worker's last look and its sleep
  read_position_too_early,  // a frame is given back when it is handed out
  slot_reused_too_early,    // a slot is given out again while its shuffle is open
  skipped_overflow,         // rows overtake what is queued for their ring
  kept_marks,               // of a node that starts again, which of its queries had ended before
  lost_commit,  // a row claimed above a frame, committed below one, where there is no room
};

#ifdef FARO_PLANTS
inline namespace with_plants {
bool planted(Plant plant) noexcept;
}
#else
constexpr bool planted(Plant) noexcept { return false; }
#endif

}  // namespace faro::base
