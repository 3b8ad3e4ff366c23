// InRing: one incoming ring of a worker.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shuffle/receive/frame_node.h"
#include "transport/transport.h"

namespace faro::shuffle {

/// What a slot of a ring stands for.
struct Binding {
  enum class State : uint8_t { unbound, bound, discard };
  State state = State::unbound;
  Inbox* inbox = nullptr;
};

/// One incoming ring.
struct InRing {
  transport::Incoming* transport = nullptr;   // the ring itself, as its link's transport has it
  std::shared_ptr<transport::DataLink> link;  // that the ring belongs to
  uint32_t sender = 0;                        // worker number
  uint32_t sender_node = 0;
  bool backlog = false;  // in the worker's list of rings to look at again
  bool release_unsent =
      false;            // in the worker's list of rings with releases that the sender may not know
  bool broken = false;  // the peer broke the rules; nothing more comes
  bool has_undispatched = false;        // there was no memory for the node of the next frame:
  transport::FrameView undispatched{};  // this frame

  /// Its sender may be waiting for room that frames take which nobody receives.
  bool blocks_sender() const noexcept {
    return first != nullptr && (backlog || transport->may_block_sender());
  }
  FrameNode* first = nullptr;  // in place and not handed out, oldest first
  FrameNode* last = nullptr;
  std::vector<Binding> slots;

  void append(FrameNode* node) noexcept;
  void unlink(FrameNode* node) noexcept;
};

}  // namespace faro::shuffle
