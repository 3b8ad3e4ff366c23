#include "transport/shm/node_doorbells.h"

#include <utility>

#include "base/return_if_error.h"

namespace faro::transport::shm {

Result<NodeDoorbells> NodeDoorbells::make(uint32_t worker_count) {
  constexpr std::string_view kWhat = "the doorbells of the workers";
  const uint64_t bytes = uint64_t{sizeof(ring::DoorbellLine)} * worker_count;
  NodeDoorbells doorbells;
  doorbells.worker_count_ = worker_count;
  Result<base::UniqueFd> fd = create_sealed_memfd("faro-doorbells", bytes, kWhat);
  if (!fd.ok() && fd.status().code() != Code::transport_unavailable) return fd.status();
  FARO_ASSIGN_OR_RETURN(doorbells.mapping_, fd.ok() ? Mapping::map(fd->get(), bytes, kWhat)
                                                    : Mapping::allocate_private(bytes, kWhat));
  if (fd.ok()) doorbells.fd_ = std::move(*fd);
  return doorbells;
}

}  // namespace faro::transport::shm
