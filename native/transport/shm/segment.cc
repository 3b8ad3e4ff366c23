#include "transport/shm/segment.h"

#include <cstring>
#include <utility>

#include "base/error.h"

namespace faro::transport::shm {
namespace {

SegmentHeader header_for(const SegmentLayout& layout) {
  SegmentHeader header{};
  header.magic = kSegmentMagic;
  header.version = kSegmentVersion;
  header.sender_workers = layout.rings().sender_workers;
  header.receiver_ends = layout.rings().receiver_ends;
  header.rings_per_lane = layout.rings().rings_per_lane;
  header.ring_bytes = layout.rings().ring_bytes;
  header.bytes = layout.bytes();
  return header;
}

}  // namespace

Result<std::shared_ptr<Segment>> Segment::make_private(const ring::Layout& rings,
                                                       std::string_view what) {
  const SegmentLayout layout(rings);
  FARO_ASSIGN_OR_RETURN(auto mapping, Mapping::allocate_private(layout.bytes(), what));
  return std::shared_ptr<Segment>(new Segment(std::move(mapping), layout));
}

Result<std::shared_ptr<Segment>> Segment::make_shared(const ring::Layout& rings,
                                                      std::string_view what, base::UniqueFd& fd) {
  const SegmentLayout layout(rings);
  FARO_ASSIGN_OR_RETURN(auto memfd, create_sealed_memfd("faro-segment", layout.bytes(), what));
  FARO_ASSIGN_OR_RETURN(auto mapping, Mapping::map(memfd.get(), layout.bytes(), what));
  const SegmentHeader header = header_for(layout);
  std::memcpy(mapping.data(), &header, sizeof header);
  fd = std::move(memfd);
  return std::shared_ptr<Segment>(new Segment(std::move(mapping), layout));
}

Result<std::shared_ptr<Segment>> Segment::map_peer(int fd, const ring::Layout& rings,
                                                   std::string_view what) {
  const SegmentLayout layout(rings);
  FARO_RETURN_IF_ERROR(check_sealed_memfd(fd, layout.bytes(), true, what));
  FARO_ASSIGN_OR_RETURN(auto mapping, Mapping::map(fd, layout.bytes(), what));

  SegmentHeader theirs;
  std::memcpy(&theirs, mapping.data(),
              sizeof theirs);  // looked at once; never used for an address
  const SegmentHeader ours = header_for(layout);
  if (theirs.magic != ours.magic) {
    return base::error(Code::protocol_error, "{}: not a segment of Faro", what);
  }
  if (theirs.version != ours.version) {
    return base::error(Code::protocol_error, "{}: segment version {} instead of {}", what,
                       theirs.version, ours.version);
  }
  if (std::memcmp(&theirs, &ours, offsetof(SegmentHeader, optional)) != 0) {
    return base::error(
        Code::protocol_error,
        "{}: made for {} x {} workers, {} rings a lane of {} bytes, instead of {} x {}, {} of {}",
        what, theirs.sender_workers, theirs.receiver_ends, theirs.rings_per_lane, theirs.ring_bytes,
        ours.sender_workers, ours.receiver_ends, ours.rings_per_lane, ours.ring_bytes);
  }
  return std::shared_ptr<Segment>(new Segment(std::move(mapping), layout));
}

}  // namespace faro::transport::shm
