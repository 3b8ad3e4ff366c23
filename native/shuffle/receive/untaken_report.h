// UntakenReport: shows in the counter file of which streams of the node's end nobody has taken rows for longest, and how long these
// lie there for each worker: what they keep their senders waiting by (`faro explain`).
//
// Threads: whoever has the right of the node's end.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "counters/layout.h"
#include "session/membership.h"
#include "shuffle/receive/node_readers.h"

namespace faro::shuffle {

class UntakenReport {
 public:
  /// Both outlive it.
  UntakenReport(session::Membership& membership, NodeReaders& readers)
      : membership_(membership), readers_(readers) {}

  void show() noexcept;

 private:
  class Longest;

  counters::UntakenStream record_of(const NodeReader& reader) const noexcept;
  base::Nanoseconds look_at(uint32_t worker, Longest& longest) noexcept;

  session::Membership& membership_;
  NodeReaders& readers_;
  uint32_t shown_ = 0;  // slots
};

}  // namespace faro::shuffle
