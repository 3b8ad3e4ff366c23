// LargeRow: a row larger than a frame that is cut straight from its sender's memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "faro/outcome.h"
#include "shuffle/send/lane.h"
#include "shuffle/send/row_pieces.h"

namespace faro::shuffle {

class StageSender;

/// The row under way in a call that waits until it is done: each receiver has its own position in it, and none waits for
/// another's ring. From its first byte on the row has to end, or its query to fail: what comes next for a receiver would be
/// taken for the rest of it (native/DESIGN.md#hc-7).
///
/// Threads: those of the worker.
class LargeRow {
 public:
  LargeRow(StageSender& sender, ShuffleContext& shuffle) noexcept
      : sender_(sender), shuffle_(shuffle) {}
  ~LargeRow();
  LargeRow(const LargeRow&) = delete;
  LargeRow& operator=(const LargeRow&) = delete;

  /// Nothing of it was sent before. `members`: who gets it, each as often as it is named, one after the other; `row` refers
  /// to what stays until it is sent. Throws: std::bad_alloc.
  void begin(std::vector<Destination*> members, const RowPieces& row);
  bool is_begun() const noexcept { return !parts_.empty(); }
  /// An attempt to send the rest of it: as much as the rings have room for. done: all receivers have it whole, or need no more.
  Outcome go_on();

 private:
  /// What one receiver has not got yet.
  struct Part {
    Destination* to;
    PieceReader rest;
    size_t times;  // the row goes to it, this one included
    bool over = false;
  };

  Outcome advance(Part& part);

  StageSender& sender_;
  ShuffleContext& shuffle_;
  std::vector<Part> parts_;
  RowPieces row_{std::span<const RowPieces::Piece>()};
};

}  // namespace faro::shuffle
