#include "shuffle/stage/large_row.h"

#include <algorithm>
#include <utility>

#include "shuffle/stage/stage_sender.h"

namespace faro::shuffle {

using counters::count;

LargeRow::~LargeRow() {
  if (is_begun()) shuffle_.operation().set_within_row(false);
}

// Two rows under way to one receiver would be taken for one.
void LargeRow::begin(std::vector<Destination*> members, const RowPieces& row) {
  row_ = row;
  parts_.reserve(members.size());
  std::ranges::sort(members);
  for (Destination* const to : members) {
    if (!parts_.empty() && parts_.back().to == to) {
      ++parts_.back().times;
    } else {
      parts_.push_back({to, PieceReader(row), 1});
    }
  }
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
    count(shuffle_.worker().counters.rows_dropped, part.times);
    part.over = true;
    return Outcome::done;
  }
  if (const Outcome outcome = to.lane.prepare(to); outcome != Outcome::done) return outcome;
  if (!to.lane.send_fragment(to, row_.bytes(), part.rest)) return to.lane.blocked(to);
  if (part.rest.left() > 0) return Outcome::done;
  to.sent.add(1, row_.bytes());
  count(shuffle_.worker().counters.rows_sent);
  part.rest = PieceReader(row_);
  part.over = --part.times == 0;
  return Outcome::done;
}

}  // namespace faro::shuffle
