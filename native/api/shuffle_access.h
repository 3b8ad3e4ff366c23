// ShuffleAccess: what is behind a Shuffle; for bindings to other languages.
#pragma once

#include "faro/shuffle.h"
#include "shuffle/shuffle_core.h"

namespace faro {

class ShuffleAccess {
 public:
  /// Only of an open shuffle.
  static detail::ShuffleCore& core(Shuffle& shuffle) { return *shuffle.core_; }
};

}  // namespace faro
