#include "shuffle/operation/intake.h"

namespace faro::shuffle {

void Intake::add(Stage& stage) {
  stages_.push_back(&stage);
  if (takings_ > 0) stage.mark(true);
}

bool Intake::take_in() noexcept {
  bool any = false;
  for (Stage* const stage : stages_) any |= stage->take_in();
  return any;
}

void Intake::mark(bool is_taken) noexcept {
  for (Stage* const stage : stages_) stage->mark(is_taken);
}

}  // namespace faro::shuffle
