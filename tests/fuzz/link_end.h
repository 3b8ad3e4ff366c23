// This node's end of a link with a peer that may send anything: one worker, which sends and receives as workers do.
#pragma once

#include <utility>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/hand_reactor.h"
#include "support/data_header.h"
#include "transport/mirrored_ring.h"
#include "transport/transport.h"

namespace faro::fuzz {

inline void require_inside(const transport::Claim& claim, uint32_t least,
                           std::span<const std::byte> ring) {
  require(claim.bytes >= least && claim.data >= ring.data() &&
              claim.data + claim.bytes <= ring.data() + ring.size(),
          "a claim lies in its ring");
}
inline void require_inside(const transport::FrameView& view, std::span<const std::byte> ring) {
  require(view.payload >= ring.data() + sizeof view.header &&
              view.payload + view.payload_bytes() <= ring.data() + ring.size(),
          "a frame lies in its ring");
}

/// Threads: one. Outlives the link.
class LinkEnd final : private transport::LinkEvents {
 public:
  /// The rings of both directions.
  static constexpr ring::Layout kRings{1, 1, 2, 4096};

  LinkEnd() {
    context_.outgoing = context_.incoming = kRings;
    context_.workers = {&worker_, 1};
    context_.ready_group = {&ready_group_, 1};
    context_.reactor = &reactor_;
    context_.events = this;
  }

  transport::LinkContext& context() { return context_; }
  HandReactor& reactor() { return reactor_; }
  bool failed() const { return !cause_.ok(); }
  /// Why the link has failed.
  const Status& cause() const { return cause_; }
  /// The link was mended.
  void forget_failure() { cause_ = Status::Ok(); }

  /// The worker sends a frame, if there is room; `input` says how long and how soon.
  void send(transport::DataLink& link, uint32_t number, Input& input) {
    transport::Outgoing& ring = link.outgoing(number);
    const uint32_t length = 16 + 16 * input.below(64);
    const transport::Claim claim = ring.claim(length, length);
    if (claim.bytes == 0) return;
    require_inside(claim, length, static_cast<transport::MirroredOutgoing&>(ring).memory());
    test::put_data_header(claim.data, length);
    ring.commit(length);
    input.flag() ? ring.post_soon() : ring.post();
  }

  /// The worker looks at a ring, whose bytes are `memory`.
  void receive(transport::DataLink& link, uint32_t number, std::span<const std::byte> memory) {
    transport::Incoming& ring = link.incoming(number);
    transport::FrameView view;
    const transport::Next next = ring.next(view);
    require(next != transport::Next::invalid || failed(), "a broken rule fails the link");
    require(ring.unreleased_bytes() <= kRings.ring_bytes, "no more is held than the ring has");
    if (next != transport::Next::frame) return;
    require_inside(view, memory);
    held_.emplace_back(number, view.token);
  }
  void receive(transport::DataLink& link, uint32_t number) {
    receive(link, number,
            static_cast<transport::MirroredIncoming&>(link.incoming(number)).memory());
  }

  /// The worker gives one of the frames back that it holds.
  void release(transport::DataLink& link, uint32_t which) {
    if (held_.empty()) return;
    const auto [ring, token] = std::exchange(held_[which % held_.size()], held_.back());
    held_.pop_back();
    link.incoming(ring).release(token);
  }

 private:
  void on_link_failed(const Status& cause) override {
    require(!failed(), "a link fails once");
    cause_ = cause;
    require(!cause.ok() && !cause.message().empty() && printable(cause.message()),
            "why a link fails is said");
  }

  HandReactor reactor_;
  ring::ReadySet ready_{1};
  ring::DoorbellLine doorbell_{};
  transport::WorkerEnd worker_{&ready_, &doorbell_};
  uint32_t ready_group_ = 0;
  transport::LinkContext context_;
  std::vector<std::pair<uint32_t, uint32_t>> held_;  // ring, token
  Status cause_;
};

}  // namespace faro::fuzz
