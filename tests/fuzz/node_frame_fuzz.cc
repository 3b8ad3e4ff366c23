// Frames of every kind in rings that end at a worker, or at its node, for one worker, any or each (frame_run.h).
#include "fuzz/frame_run.h"

namespace faro::fuzz {

void run_target(Input input) {
  static const base::Settings settings = frame_settings("both");
  FrameRun(input, settings).run();
}

}  // namespace faro::fuzz
