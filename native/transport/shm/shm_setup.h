// Making a link through shared memory: each side makes the segment that it receives in and hands it
// to the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "transport/shm/fd_passing.h"
#include "transport/shm/segment.h"
#include "transport/shm/shared_memory.h"
#include "transport/transport.h"

namespace faro::transport::shm {

const Capabilities& shm_capabilities();

/// The one setup message, both ways: where and by which token the segment can be fetched.
/// Little-endian. What follows it is ignored.
struct OfferMessage {
  uint64_t magic;    // kOfferMagic
  uint32_t version;  // kSegmentVersion
  uint32_t name_bytes;
  FdToken token;
  char name[40];  // of the socket in the abstract namespace; zeros behind name_bytes
};
static_assert(sizeof(OfferMessage) == 72 && std::is_trivially_copyable_v<OfferMessage>);
static_assert(offsetof(OfferMessage, token) == 16 && offsetof(OfferMessage, name) == 32);

inline constexpr uint64_t kOfferMagic = 0x7265'6666'6f6d'6873;  // "shmoffer"

class ShmSetup final : public LinkSetup {
 public:
  /// Longest that the peer may take to hand over, from its offer on; the session's own deadline is
  /// usually what ends a setup with a peer that hangs.
  static constexpr base::Nanoseconds kFdPassingLimit = 30'000'000'000;

  /// `begun`: an error that `start` is to return.
  ShmSetup(LinkContext& context, std::shared_ptr<FdSender> listener,
           std::shared_ptr<const Rendezvous> rendezvous, Status begun);
  ~ShmSetup() override;

  Status start() override;
  Status on_message(std::span<const std::byte> message) override;
  /// Shared memory has no data connections: always a protocol_error.
  Status on_stream(DataStream stream) override;
  Status status() const override { return status_; }
  /// The peer has this side's segment, and this side has the peer's.
  bool ready() const override { return fds_passed_ && outgoing_ != nullptr && status_.ok(); }
  std::unique_ptr<DataLink> take() override;

 private:
  void on_peer_memory(Result<std::vector<base::UniqueFd>> fds);
  Status map_peer_memory(const std::vector<base::UniqueFd>& fds);

  LinkContext& context_;
  std::shared_ptr<FdSender> listener_;
  const std::shared_ptr<const Rendezvous> rendezvous_;  // null: no folder
  Status status_;
  FdToken token_{};

  base::UniqueFd incoming_fd_;
  std::shared_ptr<Segment> incoming_;
  bool fds_passed_ = false;

  std::optional<FdReceiver> receiver_;
  std::shared_ptr<Segment> outgoing_;  // set last of what comes from the peer
  Mapping peer_doorbells_;
};

}  // namespace faro::transport::shm
