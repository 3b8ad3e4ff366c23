// The messages of a path: where they are in the link's memory, and what the next one says.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "transport/verbs/credits.h"
#include "transport/verbs/link_parts.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

/// Messages have their numbers within the link. Threads: any, except where noted.
class PathMessages {
 public:
  /// The messages of path `path` of the link that has these parts, which outlive it.
  PathMessages(const LinkParts& parts, uint32_t path) noexcept
      : memory_(parts.messages),
        first_sent_(path * LinkParts::message_count(parts.receives, parts.send_depth) +
                    parts.receives) {}

  std::byte* at(uint32_t index) const noexcept {
    return memory_.base() + uint64_t{index} * wire::kVerbsMessageBytes;
  }
  /// The message of a place in the send queue.
  std::byte* of_place(uint32_t place) const noexcept { return at(first_sent_ + place); }
  uint32_t local_key() const noexcept { return memory_.local_key(); }

  /// A message was taken: posts its receive anew, before the peer can learn that. Errors:
  /// peer_lost. Threads: the holder of the right to poll.
  Status post_again(ibv_qp* queue_pair, uint32_t index) const {
    const int error = post_receive(queue_pair, memory_, index);
    if (error == 0) return {};
    return base::error(Code::peer_lost, "RDMA connection broken while posting a receive: {}",
                       std::strerror(error));
  }

 private:
  const RegisteredMemory& memory_;
  const uint32_t first_sent_;  // behind the path's receives
};

/// The records that are gathered for the next message. Threads: the holder of the right to post.
class MessageRecords {
 public:
  void clear() noexcept { count_ = 0; }
  uint32_t count() const noexcept { return count_; }
  bool full() const noexcept { return count_ == records_.size(); }
  /// Not if full().
  void add(const wire::VerbsRecord& record) noexcept { records_[count_++] = record; }

  /// Writes the message that has them and these credits; returns its bytes.
  uint32_t write(std::byte* message, Credits::Told credits) const noexcept {
    const wire::VerbsHead head{count_, 0, credits.notes, credits.returns};
    const size_t record_bytes = count_ * sizeof(wire::VerbsRecord);
    std::memcpy(message, &head, sizeof head);
    std::memcpy(message + sizeof head, records_.data(), record_bytes);
    return static_cast<uint32_t>(sizeof head + record_bytes);
  }

 private:
  std::array<wire::VerbsRecord, wire::kVerbsRecordLimit> records_;
  uint32_t count_ = 0;
};

}  // namespace faro::transport::verbs
