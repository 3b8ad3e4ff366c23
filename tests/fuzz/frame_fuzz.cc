// Frames of every kind in rings that end at a worker (frame_run.h).
#include "fuzz/frame_run.h"

namespace faro::fuzz {

void run_target(Input input) {
  static const base::Settings settings = frame_settings("workers");
  FrameRun(input, settings).run();
}

}  // namespace faro::fuzz
