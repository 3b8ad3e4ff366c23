// NodeStream: what comes by a ring that ends at the node (node_ring.h) of one shuffle, for one of its workers or for several
// (Delivery), from OPEN to FINISH. NodeReader: how far one of these workers is.
//
//                 OPEN ─ rows ─ rows ─ rows ─ FINISH          delivery   a frame of rows goes when
//                               ▲      ▲                      worker     its worker has taken it
//        NodeReader of worker 0 ┘      │                      node       any reader has: those that stand before it move on
//        NodeReader of worker 1 ───────┘                      replicate  all readers have
//
// OPEN and FINISH are for every reader. With `node` a reader so comes to FINISH when somebody has taken each frame before it. The bytes
// of a frame of rows stay where they lie until it is taken, or until any worker of the node moves them to overflow; OPEN and FINISH for
// several readers are copied there as they come, since some of these may look late.
//
// Threads: everything here belongs to whoever has the right of the node's end (node_end.h), except where said.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "counters/layout.h"
#include "faro/shuffle.h"
#include "shuffle/query/node_stage.h"
#include "shuffle/query/query.h"
#include "shuffle/receive/in_ring.h"
#include "transport/transport.h"

namespace faro::shuffle {

class NodeRing;
struct NodeStream;

/// Frames whose rows stand behind those of another one in overflow, as one with it.
struct Packed {
  uint32_t frames = 0;
  uint32_t rows = 0;
  uint32_t bytes = 0;
  uint32_t bytes_in_ring = 0;  // that they took there, where each is padded
};

/// A frame that somebody has still to take.
struct NodeFrame {
  NodeFrame* before = nullptr;
  NodeFrame* next = nullptr;
  transport::FrameView view;  // its token is its place in the ring
  uint32_t unread = 0;        // readers that have not passed it
  bool is_moved = false;      // made for what does not lie in the ring
  MovedFrame moved;           // then: where it does, until a reader takes it
  Packed packed;              // and what lies there with it

  bool is_in_ring() const noexcept { return !is_moved; }
  /// Not OPEN or FINISH.
  bool has_rows() const noexcept {
    return view.header.kind == wire::FrameKind::data ||
           view.header.kind == wire::FrameKind::fragment;
  }
};

struct NodeReader {
  /// A `slot` that is none: it has taken no OPEN.
  static constexpr uint16_t kNoSlot = UINT16_MAX;

  NodeStream* stream = nullptr;
  uint32_t worker = 0;        // of this node
  NodeFrame* next = nullptr;  // that it has not passed; null: it has passed all, or has left
  bool has_left = false;      // it takes no more (NodeStage)
  uint16_t slot = kNoSlot;    // of its InRing. Threads: the worker, with the right
  bool is_waiting = false;    // in the list of its worker
  NodeReader* waiting_before = nullptr;
  NodeReader* waiting_next = nullptr;
};

struct NodeStream {
  NodeRing* ring = nullptr;
  uint64_t id = 0;  // of all that ended at this node
  Delivery delivery = Delivery::worker;
  std::shared_ptr<Query> query;
  uint32_t stage_number = 0;
  std::shared_ptr<NodeStage> stage;  // null with Delivery::worker
  std::vector<NodeReader> readers;   // with addresses that stay
  std::list<NodeStream>::iterator place;

  NodeFrame* first = nullptr;  // oldest first
  NodeFrame* last = nullptr;
  const NodeFrame* row_begin =
      nullptr;               // with `node`: the first part of a row whose end has not come
  uint64_t rows = 0;         // that have come
  uint32_t untaken = 0;      // frames of rows that lie there
  bool is_finished = false;  // nothing more comes
  base::Nanoseconds untaken_since = 0;  // there are frames, or one was taken

  uint32_t rings_left =
      0;              // with `node`: readers that may still have to be woken for what lies there
  uint32_t turn = 0;  // which is the next

  bool is_shared() const noexcept { return delivery != Delivery::worker; }
  /// Who uses its frames is one of several.
  bool is_for_any() const noexcept { return delivery == Delivery::node; }
  /// Each reader uses its frames.
  bool is_for_each() const noexcept { return delivery == Delivery::replicate; }
  /// What the counter file shows for its stage.
  uint64_t stage_word() const noexcept { return counters::stage_word(query->id, stage_number); }
  bool is_over() const noexcept { return query->failed() || query->outcome_known(); }
  /// The frame that a reader may take now; null: none. A row in parts is taken by one reader, as a whole.
  NodeFrame* available(const NodeReader& reader) const noexcept {
    return is_for_any() && row_begin != nullptr && reader.next == row_begin ? nullptr : reader.next;
  }
  bool has_readers() const noexcept;
  /// The oldest frame that lies in the ring; null: there is none. Rows are moved oldest first: those before it, which may be many,
  /// were moved, and are not looked at.
  NodeFrame* first_in_ring() const noexcept;
  void append(NodeFrame* frame) noexcept;
  /// Takes a frame out that no reader stands at.
  void remove(NodeFrame* frame) noexcept;
  /// That frame now lies elsewhere.
  void replace(NodeFrame* frame, NodeFrame* by) noexcept;
};

}  // namespace faro::shuffle
