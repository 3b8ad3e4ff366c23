// StageLists: which workers send and receive in a stage, so that those who open it can be compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faro/shuffle.h"

namespace faro::shuffle {

/// The lists of a shuffle as one worker has opened it; both are named.
struct StageLists {
  /// It is equal for equal senders, in any order, equal receivers, in the same order, and an equal
  /// delivery: rows are sent to receivers by their place in it.
  uint64_t digest = 0;
  uint32_t sender_count = 0;
  uint32_t receiver_count = 0;  // workers; 0: it was not opened
  Delivery delivery = Delivery::worker;
  std::string text;  // "senders 0, 1, receivers 2"

  static StageLists of(const ShuffleSpec& spec);
};

/// Every worker that a shuffle names, once, ascending.
std::vector<uint32_t> members_of(const ShuffleSpec& spec);

}  // namespace faro::shuffle
