#include "transport/shm/shm_setup.h"

#include <unistd.h>

#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "base/return_if_error.h"
#include "transport/shm/shm_datapath.h"
#include "wire/control.h"

namespace faro::transport::shm {

const Capabilities& shm_capabilities() {
  static constexpr Capabilities kCapabilities{
      .name = "shm", .same_host_only = true, .mends = wire::kMends};
  return kCapabilities;
}

ShmSetup::ShmSetup(LinkContext& context, std::shared_ptr<FdSender> listener,
                   std::shared_ptr<const Rendezvous> rendezvous, Status begun)
    : context_(context),
      listener_(std::move(listener)),
      rendezvous_(std::move(rendezvous)),
      status_(std::move(begun)) {}

ShmSetup::~ShmSetup() {
  if (listener_ != nullptr) listener_->withdraw(token_);
}

Status ShmSetup::start() {
  FARO_RETURN_IF_ERROR(status_);
  if (context_.doorbells.fd < 0 ||
      context_.doorbells.worker_count != context_.outgoing.sender_workers) {
    return {
        Code::system_error,
        "the doorbells of this node could not be put into shared memory when its session opened "
        "(memfd_create or its seals)"};
  }
  FARO_ASSIGN_OR_RETURN(
      incoming_,
      Segment::make_shared(context_.incoming, "the incoming rings of a link", incoming_fd_));

  FARO_RETURN_IF_ERROR(draw_random(token_.data(), token_.size()));
  listener_->offer(token_, {incoming_fd_.get(), context_.doorbells.fd},
                   [this](const Status& status) {
                     fds_passed_ = status.ok();
                     if (!status.ok() && status_.ok()) status_ = status;
                     incoming_fd_.reset();
                   });

  OfferMessage offer{};
  offer.magic = kOfferMagic;
  offer.version = kSegmentVersion;
  offer.token = token_;
  const std::string& name = listener_->name();
  assert(name.size() <= sizeof offer.name);
  offer.name_bytes = static_cast<uint32_t>(name.size());
  std::memcpy(offer.name, name.data(), name.size());
  context_.send(std::as_bytes(std::span(&offer, 1)));
  return {};
}

Status ShmSetup::on_message(std::span<const std::byte> message) {
  OfferMessage offer;
  if (message.size() < sizeof offer)
    return {Code::protocol_error, "shared memory: offer cut short"};
  std::memcpy(&offer, message.data(), sizeof offer);
  if (offer.magic != kOfferMagic) return {Code::protocol_error, "shared memory: not an offer"};
  if (offer.version != kSegmentVersion) {
    return {Code::protocol_error, "shared memory: offer of another version of segments"};
  }
  if (offer.name_bytes == 0 || offer.name_bytes > sizeof offer.name) {
    return {Code::protocol_error, "shared memory: offer without a name"};
  }
  const std::string_view name(offer.name, offer.name_bytes);
  if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos)
    return {Code::protocol_error, "shared memory: offer with a name that is none"};
  if (receiver_.has_value()) return {Code::protocol_error, "shared memory: a second offer"};
  receiver_.emplace(
      *context_.reactor, std::string(name), rendezvous_, offer.token, 2,
      base::deadline_after(context_.reactor->clock().now_ns(), kFdPassingLimit),
      [this](Result<std::vector<base::UniqueFd>> fds) { on_peer_memory(std::move(fds)); });
  return status_;
}

Status ShmSetup::on_stream(DataStream stream) {
  if (stream.fd >= 0) close(stream.fd);
  return {Code::protocol_error, "shared memory: a data connection that belongs to no link"};
}

void ShmSetup::on_peer_memory(Result<std::vector<base::UniqueFd>> fds) {
  const Status status = fds.ok() ? map_peer_memory(*fds) : fds.status();
  if (!status.ok() && status_.ok()) status_ = status;
}

Status ShmSetup::map_peer_memory(const std::vector<base::UniqueFd>& fds) {
  constexpr std::string_view kDoorbells = "the peer's doorbells";
  const uint64_t doorbell_bytes =
      uint64_t{sizeof(ring::DoorbellLine)} * context_.incoming.sender_workers;
  FARO_RETURN_IF_ERROR(check_sealed_memfd(fds[1].get(), doorbell_bytes, true, kDoorbells));
  FARO_ASSIGN_OR_RETURN(auto doorbells, Mapping::map(fds[1].get(), doorbell_bytes, kDoorbells));
  FARO_ASSIGN_OR_RETURN(auto segment, Segment::map_peer(fds[0].get(), context_.outgoing,
                                                        "the outgoing rings of a link"));
  peer_doorbells_ = std::move(doorbells);
  outgoing_ = std::move(segment);
  return {};
}

std::unique_ptr<DataLink> ShmSetup::take() {
  assert(ready());
  ShmLink::Parts parts;
  parts.capabilities = shm_capabilities();
  auto* const lines = reinterpret_cast<ring::DoorbellLine*>(peer_doorbells_.data());
  for (uint32_t worker = 0; worker < context_.incoming.sender_workers; ++worker) {
    parts.peer_doorbells.push_back(&lines[worker]);
  }
  parts.peer_doorbell_memory = std::move(peer_doorbells_);
  parts.events = context_.events;
  parts.outgoing = std::move(outgoing_);
  parts.incoming = std::move(incoming_);
  return std::make_unique<ShmLink>(std::move(parts));
}

}  // namespace faro::transport::shm
