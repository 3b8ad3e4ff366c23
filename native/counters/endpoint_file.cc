#include "counters/endpoint_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/return_if_error.h"
#include "counters/descriptions.h"

namespace faro::counters {
namespace {

// By which the file grows: 32 channels.
constexpr uint64_t kStepBytes = 32 * sizeof(ChannelRecord);

using Places = std::array<SectionPlace, kSections>;

Places places_of(const EndpointShape& shape) {
  const std::array<size_t, kEndpointSections> counts = {
      descriptions().size(), 1, 1, shape.poller_count, 1, shape.channel_limit};
  Places places;
  uint64_t offset = sizeof(Header);
  for (uint32_t s = 0; s < kEndpointSections; ++s) {
    places[s] = {offset, static_cast<uint32_t>(counts[s]),
                 static_cast<uint32_t>(kEndpointRecordBytes[s])};
    offset += counts[s] * kEndpointRecordBytes[s];
  }
  return places;
}

const SectionPlace& place_of(const Places& places, EndpointSection section) {
  return places[static_cast<uint32_t>(section)];
}

// All records are of zeros at first, as fresh memory is.
void fill(std::byte* memory, const EndpointShape& shape, const Places& places, uint64_t bytes,
          uint64_t now) {
  auto* const header = new (memory) Header;
  header->magic = kMagic;
  header->version = kLayoutVersion;
  header->kind = FileKind::endpoint;
  header->header_bytes = sizeof(Header);
  header->file_bytes = bytes;
  header->created_ns = now;
  header->pid = static_cast<uint32_t>(getpid());
  shape.cluster.copy(header->cluster.data(), header->cluster.size() - 1);
  header->sections = places;
  const std::span<const Description> rows = descriptions();
  std::memcpy(memory + place_of(places, EndpointSection::descriptions).offset, rows.data(),
              rows.size_bytes());
  auto* const about = new (memory + place_of(places, EndpointSection::about).offset) EndpointAbout;
  shape.name.copy(about->name.data(), about->name.size() - 1);
  shape.address.copy(about->address.data(), about->address.size() - 1);
}

}  // namespace

Result<std::unique_ptr<EndpointFile>> EndpointFile::make(const EndpointShape& shape,
                                                         const std::string& folder, uint64_t now) {
  const Places places = places_of(shape);
  const SectionPlace& channels = place_of(places, EndpointSection::channels);
  const uint64_t size = channels.offset + uint64_t{channels.count} * channels.stride_bytes;
  FARO_ASSIGN_OR_RETURN(CounterMemory memory, CounterMemory::make(folder, size));
  FARO_RETURN_IF_ERROR(memory.reserve(0, channels.offset));
  fill(memory.data(), shape, places, size, now);
  FARO_RETURN_IF_ERROR(memory.name());
  return std::unique_ptr<EndpointFile>(new EndpointFile(std::move(memory), channels.offset));
}

void EndpointFile::listens(uint64_t incarnation) noexcept {
  set(at<EndpointAbout>(EndpointSection::about, 0)->incarnation, incarnation);
  set(endpoint().listening, 1);
}

Result<ChannelRecord*> EndpointFile::channel(uint32_t index) {
  auto* const record = at<ChannelRecord>(EndpointSection::channels, index);
  const auto end = static_cast<uint64_t>(reinterpret_cast<std::byte*>(record + 1) - memory_.data());
  const uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  if (end <= used) return record;
  const uint64_t grown = std::min(memory_.bytes(), std::max(end, used + kStepBytes));
  FARO_RETURN_IF_ERROR(memory_.reserve(used, grown));
  used_bytes_.store(grown, std::memory_order_release);
  return record;
}

}  // namespace faro::counters
