#include "shuffle/stage/large_row.h"

#include "shuffle/stage/stage_sender.h"

namespace faro::shuffle {

using counters::count;

LargeRow::~LargeRow() {
  if (is_begun()) shuffle_.operation().set_within_row(false);
}

void LargeRow::begin(std::span<Destination> destinations, std::span<const uint32_t> receivers,
                     const RowPieces& row) {
  parts_.reserve(receivers.size());
  for (const uint32_t receiver : receivers)
    parts_.push_back({&destinations[receiver], PieceReader(row)});
  bytes_ = row.bytes();
  shuffle_.operation().set_within_row(true);
}

// A frame to each receiver in turn. Before each round it looks whether the query has failed, or receivers have stopped.
Outcome LargeRow::go_on() {
  for (;;) {
    if (const Outcome outcome = sender_.enter(); outcome != Outcome::done) return outcome;
    bool is_over = true;
    bool has_moved = false;
    for (Part& part : parts_) {
      if (part.over) continue;
      const Outcome outcome = advance(part);
      if (outcome == Outcome::failed) return outcome;
      has_moved |= outcome == Outcome::done;
      is_over &= part.over;
    }
    if (is_over) return Outcome::done;
    if (!has_moved) return Outcome::would_wait;
  }
}

// would_wait: there is no room for a frame, or others are queued before it.
Outcome LargeRow::advance(Part& part) {
  Destination& to = *part.to;
  if (to.stopped) {
    count(shuffle_.worker().counters.rows_dropped);
    part.over = true;
    return Outcome::done;
  }
  if (const Outcome outcome = to.lane.prepare_large(to); outcome != Outcome::done) return outcome;
  if (!to.lane.send_fragment(to, bytes_, part.rest)) return to.lane.blocked(to);
  part.over = part.rest.left() == 0;
  if (!part.over) return Outcome::done;
  to.sent.add(1, bytes_);
  count(shuffle_.worker().counters.rows_sent);
  return Outcome::done;
}

}  // namespace faro::shuffle
