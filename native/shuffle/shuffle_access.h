// ShuffleAccess: what is behind a Shuffle; for bindings to other languages.
#pragma once

#include "faro/sender.h"
#include "faro/shuffle.h"
#include "shuffle/open_shuffle.h"
#include "shuffle/stage/stage_sender.h"

namespace faro {

class ShuffleAccess {
 public:
  /// Only of an open shuffle.
  static shuffle::OpenShuffle& core(Shuffle& shuffle) { return *shuffle.core_; }
  /// Room for a row at the cursor of its receiver; a row that goes into no frame is claimed (StageSender::make_room).
  static Outcome make_room(shuffle::StageSender& sender, uint32_t receiver, size_t bytes,
                           RowClaim& apart, Wait wait) {
    apart.abort();
    const Outcome outcome = sender.make_room(receiver, bytes, apart.data_, wait);
    if (apart.data_.data() != nullptr) apart.sender_ = &sender;
    return outcome;
  }
};

}  // namespace faro
