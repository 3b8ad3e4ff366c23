// ControlLog: the control messages of a link that have to arrive although its connection breaks, and how many of the
// peer's have come.
//
// Both sides count these messages, APPLICATION and MEMBERS, from the link's first connection on. No number is sent with
// them: a connection keeps their order. A heartbeat acknowledges what has come. When another connection takes the place
// of one that has broken, each side names how many it has, and the other sends from there on. What was still on its way
// over the old connection is not read any more, so nothing comes twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>

#include "wire/control.h"

namespace faro::links {

/// Threads: network thread. Owns: what was sent and is not acknowledged.
class ControlLog {
 public:
  /// Most bytes that are kept. A peer that is this far behind is treated as lost, as one that does not read is.
  static constexpr size_t kLimit = size_t{4} << 20;
  /// After that many bytes of the peer's an acknowledgement does not wait for the next heartbeat.
  static constexpr size_t kAcknowledged = size_t{64} << 10;

  /// Keeps a message that is sent, or will be when there is a connection. False if that would be too much.
  bool keep(wire::ControlMessage message) {
    if (bytes_ + message.size() > kLimit) return false;
    bytes_ += message.size();
    kept_.push_back(std::move(message));
    return true;
  }
  /// The peer has that many of this side's messages. False if that cannot be.
  bool acknowledge(const wire::Received& received) {
    if (received.messages < acknowledged_ || received.messages - acknowledged_ > kept_.size())
      return false;
    for (; acknowledged_ != received.messages; ++acknowledged_) {
      bytes_ -= kept_.front().size();
      kept_.pop_front();
    }
    return true;
  }
  /// What is not acknowledged, in order.
  const std::list<wire::ControlMessage>& kept() const { return kept_; }
  size_t bytes() const { return bytes_; }

  /// A message of the peer's has come. Returns whether to acknowledge it now.
  bool note_received(size_t bytes) {
    ++received_.messages;
    unsaid_ += bytes;
    return unsaid_ >= kAcknowledged;
  }
  /// What to tell the peer, which happens now.
  const wire::Received& say_received() {
    unsaid_ = 0;
    return received_;
  }

 private:
  std::list<wire::ControlMessage> kept_;
  size_t bytes_ = 0;
  uint64_t acknowledged_ = 0;
  wire::Received received_;
  size_t unsaid_ = 0;  // bytes that have come since the peer was told
};

}  // namespace faro::links
