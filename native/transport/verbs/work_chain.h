// WorkChain: work requests on their way into one ibv_post_send.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/verbs/link_parts.h"
#include "transport/verbs/sigpipe_shield.h"

namespace faro::transport::verbs {

/// Threads: the holder of the right to post.
class WorkChain {
 public:
  /// At most `limit` requests; data of up to `inline_bytes` goes into the request itself.
  /// `raises_sigpipe`: posting raises SIGPIPE when the connection has ended.
  WorkChain(uint32_t limit, uint32_t inline_bytes, bool raises_sigpipe) noexcept
      : limit_(limit), inline_bytes_(inline_bytes), raises_sigpipe_(raises_sigpipe) {}

  /// The most that the queue pair inlines from now on.
  void set_inline_bytes(uint32_t bytes) noexcept { inline_bytes_ = bytes; }
  void clear() noexcept {
    count_ = 0;
    wants_signal_ = false;
  }
  bool empty() const noexcept { return count_ == 0; }
  bool has_room_for(uint32_t requests) const noexcept { return count_ + requests <= limit_; }
  /// Requests a completion for the chain.
  void want_signal() noexcept { wants_signal_ = true; }
  bool wants_signal() const noexcept { return wants_signal_; }

  /// Adds a request; the caller fills in what is to be done with the data.
  ibv_send_wr& add(uint64_t id, const std::byte* data, uint32_t bytes, uint32_t key) noexcept {
    ibv_sge& piece = pieces_[count_];
    piece = {reinterpret_cast<uint64_t>(data), bytes, key};
    ibv_send_wr& request = requests_[count_];
    request = {};
    request.wr_id = id;
    request.sg_list = &piece;
    request.num_sge = 1;
    if (bytes <= inline_bytes_) request.send_flags = IBV_SEND_INLINE;
    if (count_ != 0) requests_[count_ - 1].next = &request;
    ++count_;
    return request;
  }
  /// The chain must not be empty.
  ibv_send_wr& last() noexcept { return requests_[count_ - 1]; }
  /// Posts the chain, which must not be empty. Returns 0 or the error.
  int post(ibv_qp* queue_pair) noexcept {
    ibv_send_wr* refused = nullptr;
    if (!raises_sigpipe_) [[likely]]
      return ibv_post_send(queue_pair, requests_.data(), &refused);
    const SigpipeShield shield;
    return ibv_post_send(queue_pair, requests_.data(), &refused);
  }

 private:
  const uint32_t limit_;
  uint32_t inline_bytes_;
  const bool raises_sigpipe_;
  std::array<ibv_send_wr, LinkParts::kChainLimit> requests_;
  std::array<ibv_sge, LinkParts::kChainLimit> pieces_;
  uint32_t count_ = 0;
  bool wants_signal_ = false;
};

}  // namespace faro::transport::verbs
