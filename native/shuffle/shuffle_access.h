// ShuffleAccess: what is behind a Shuffle; for bindings to other languages.
#pragma once

#include "faro/shuffle.h"
#include "shuffle/open_shuffle.h"

namespace faro {

class ShuffleAccess {
 public:
  /// Only of an open shuffle.
  static shuffle::OpenShuffle& core(Shuffle& shuffle) { return *shuffle.core_; }
};

}  // namespace faro
