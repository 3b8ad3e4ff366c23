#include "transport/shm/shm_transport.h"

#include "base/error.h"
#include "transport/shm/fd_passing.h"
#include "transport/shm/segment.h"
#include "transport/shm/shared_memory.h"
#include "transport/shm/shm_datapath.h"
#include "transport/shm/shm_setup.h"

namespace faro::transport::shm {
namespace {

constexpr std::string_view kRemedy =
    "allow memfd_create, fcntl(F_ADD_SEALS) and unix sockets (a seccomp profile or a sandbox may "
    "forbid them), or set "
    "transport=tcp";

}  // namespace

const Capabilities& ShmTransport::capabilities() const { return shm_capabilities(); }

Status ShmTransport::available() const {
  Result<base::UniqueFd> memory =
      create_sealed_memfd("faro-probe", kPageBytes, "probing shared memory");
  Status status = memory.ok()
                      ? check_sealed_memfd(memory->get(), kPageBytes, true, "probing shared memory")
                      : memory.status();
  if (status.ok()) status = check_abstract_sockets();
  if (status.ok()) return {};
  return base::error(Code::transport_unavailable, "{}; {}", status.message(), kRemedy);
}

uint64_t ShmTransport::memory_bytes(const ring::Layout& /*outgoing*/,
                                    const ring::Layout& incoming) const {
  return SegmentLayout(incoming).bytes();
}

uint64_t ShmTransport::state_bytes(const ring::Layout& outgoing,
                                   const ring::Layout& incoming) const {
  return ShmLink::bytes(outgoing, incoming);
}

std::unique_ptr<LinkSetup> ShmTransport::begin(LinkContext& context) {
  std::shared_ptr<FdSender> listener = listener_.lock();
  Status status;
  if (listener == nullptr) {
    Result<std::shared_ptr<FdSender>> opened = FdSender::open(*context.reactor, rendezvous_);
    if (opened.ok()) {
      listener = *opened;
      listener_ = listener;
    } else {
      status = opened.status();
    }
  }
  return std::make_unique<ShmSetup>(context, std::move(listener), rendezvous_, status);
}

}  // namespace faro::transport::shm
