// AbsentLink: the link to a node that is not there (not yet, or not any more): its rings carry nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "transport/transport.h"

namespace faro::transport {

class AbsentOutgoing final : public Outgoing {
 public:
  explicit AbsentOutgoing(uint32_t ring_bytes) : ring_bytes_(ring_bytes) {}

  Claim claim(uint32_t, uint32_t) override { return {}; }
  void commit(uint32_t) override {}
  void post() override {}
  uint64_t pending_bytes() const override { return 0; }
  uint32_t frame_limit() const override { return wire::frame_limit(ring_bytes_); }
  uint32_t full_frame_limit() const override { return wire::full_frame_limit(ring_bytes_); }
  std::span<std::byte> memory() const override { return {}; }
  const OutgoingCounters& counters() const override { return counters_; }
  void count_in(OutgoingCounters&) override {}

 private:
  const uint32_t ring_bytes_;
  const OutgoingCounters counters_{};
};

class AbsentIncoming final : public Incoming {
 public:
  Next next(FrameView&) override { return Next::nothing; }
  void release(uint32_t) override {}
  void flush_releases() override {}
  uint64_t unreleased_bytes() const override { return 0; }
  bool may_block_sender() const override { return false; }
  std::span<const std::byte> memory() const override { return {}; }
  const IncomingCounters& counters() const override { return counters_; }
  void count_in(IncomingCounters&) override {}

 private:
  const IncomingCounters counters_{};
};

/// Threads: any.
class AbsentLink final : public DataLink {
 public:
  /// What the transport of a node that was never present is called.
  static constexpr std::string_view kNeverLinked = "none";

  /// To a node that was never present.
  explicit AbsentLink(uint32_t ring_bytes)
      : outgoing_(ring_bytes), capabilities_{.name = kNeverLinked} {}
  /// To a node that is gone. It still reports the transport and the counters of the former link.
  AbsentLink(uint32_t ring_bytes, const DataLink& former)
      : outgoing_(ring_bytes), capabilities_{.name = former.capabilities().name} {
    former.add_counters(former_);
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  bool is_absent() const override { return true; }
  void add_counters(LinkCounters& sum) const override { former_.add_to(sum); }
  Outgoing& outgoing(uint32_t) override { return outgoing_; }
  Incoming& incoming(uint32_t) override { return incoming_; }
  void stop() noexcept override {}

 private:
  AbsentOutgoing outgoing_;
  AbsentIncoming incoming_;
  const Capabilities capabilities_;
  LinkCounters former_;
};

}  // namespace faro::transport
