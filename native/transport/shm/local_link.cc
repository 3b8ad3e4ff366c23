#include "transport/shm/local_link.h"

#include <cassert>
#include <utility>

#include "base/return_if_error.h"
#include "transport/shm/segment.h"
#include "transport/shm/shm_datapath.h"

namespace faro::transport::shm {

uint64_t local_link_bytes(const ring::Layout& rings) {
  return SegmentLayout(rings).bytes() + ShmLink::bytes(rings, rings);
}

Result<std::unique_ptr<DataLink>> make_local_link(const ring::Layout& rings,
                                                  std::span<WorkerEnd> workers,
                                                  LinkEvents* events) {
  assert(workers.size() == rings.sender_workers);
  FARO_ASSIGN_OR_RETURN(auto segment,
                        Segment::make_private(rings, "the rings between local workers"));

  ShmLink::Parts parts;
  parts.capabilities.name = "local";
  parts.capabilities.same_host_only = true;
  parts.outgoing = segment;
  parts.incoming = segment;
  parts.events = events;
  for (const WorkerEnd& worker : workers) parts.peer_doorbells.push_back(worker.doorbell);
  return std::unique_ptr<DataLink>(new ShmLink(std::move(parts)));
}

}  // namespace faro::transport::shm
