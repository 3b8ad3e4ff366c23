// NodeStreams: sorts the frames that come by rings which end at the node into streams, and takes them out again when they are taken,
// moved to overflow, or not wanted any more.
//
// Threads: whoever has the right of the node's end.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/clock.h"
#include "session/membership.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/query/query_table.h"
#include "shuffle/receive/node_readers.h"
#include "shuffle/receive/node_ring.h"
#include "shuffle/receive/node_stream.h"

namespace faro::shuffle {

class NodeStreams {
 public:
  /// All outlive it.
  NodeStreams(session::Membership& membership, QueryTable& queries, Overflow& overflow,
              NodeReaders& readers)
      : membership_(membership), queries_(queries), overflow_(overflow), readers_(readers) {}
  NodeStreams(const NodeStreams&) = delete;
  NodeStreams& operator=(const NodeStreams&) = delete;

  /// The next frame of a ring. Throws: std::bad_alloc; then it can be called again for that frame.
  void sort(NodeRing& ring, NodeFrame& frame);
  /// A row that no reader takes before its end has come must not keep the ring in which that end is to come.
  /// False: there was no memory for all of that.
  bool store_begun_rows(NodeRing& ring) noexcept;
  /// Nothing more comes by the ring, and what has is not wanted.
  void drop_all(NodeRing& ring) noexcept;
  /// Drops what is of queries that are over, and what only readers that have left could take.
  void sweep() noexcept;

  /// The reader has taken its next frame. False: the stream was at its end, and is no more.
  bool taken(NodeReader& reader, base::Nanoseconds at) noexcept;
  /// Calls move(stream, frame, room, to) for each frame of a stream that lies in the ring, until it answers false; true: its bytes now
  /// lie in overflow, `to`, in a block of `room` bytes or behind those of the frame before. Returns whether any do.
  using Move =
      std::function<bool(const NodeStream&, const NodeFrame&, uint64_t room, MovedFrame& to)>;
  bool move(NodeStream& stream, const Move& move);

 private:
  bool move_frame(NodeStream& stream, NodeFrame& frame, const Move& move);
  void pack(NodeStream& stream, NodeFrame& frame, NodeFrame& into) noexcept;
  bool open(NodeRing& ring, const NodeFrame& frame);
  void finish(NodeStream& stream) noexcept;
  void break_rule(NodeRing& ring, const NodeFrame& frame, std::string_view what);
  void check_rows(NodeStream& stream, const NodeFrame& frame);
  NodeFrame* keep_control(NodeStream& stream, NodeFrame& frame);
  void add(NodeStream& stream, NodeFrame& frame) noexcept;
  void note_part_of_row(NodeStream& stream, const NodeFrame& frame) noexcept;
  void forget_begun_row(NodeStream& stream) noexcept;

  void note_untaken(NodeStream& stream, const NodeFrame& frame, int more) noexcept;
  void remove(NodeStream& stream, NodeFrame& frame) noexcept;
  bool end_if_done(NodeStream& stream) noexcept;
  void leave(NodeReader& reader) noexcept;
  void note_left(NodeStream& stream) noexcept;
  void drop_frames(NodeStream& stream) noexcept;
  void drop(NodeRing& ring, NodeFrame& frame) noexcept;
  void gave_back(NodeRing& ring) noexcept;

  session::Membership& membership_;
  QueryTable& queries_;
  Overflow& overflow_;
  NodeReaders& readers_;
  uint64_t opened_ = 0;
};

}  // namespace faro::shuffle
