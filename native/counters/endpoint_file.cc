#include "counters/endpoint_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/file_space.h"
#include "base/return_if_error.h"
#include "counters/descriptions.h"
#include "counters/folder.h"

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
  base::UniqueFd fd;
  if (!folder.empty()) {
    FARO_ASSIGN_OR_RETURN(fd, make_nameless(folder));
    if (const int error = base::reserve_file(fd.get(), 0, channels.offset); error != 0) {
      return base::error(Code::system_error, "no room for {} bytes of counters in {}: {}",
                         channels.offset, folder, base::reserve_error_text(error));
    }
  }
  // Longer than the file: what is beyond its end is touched when the file has grown.
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE,
           fd.valid() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED)
    return base::error(Code::resource_limit, "no memory for {} bytes of counters", size);
  fill(static_cast<std::byte*>(memory), shape, places, size, now);
  std::string path;
  if (fd.valid()) {
    Result<std::string> named = name_file(fd.get(), folder);
    if (!named.ok()) {
      munmap(memory, size);
      return named.status();
    }
    path = std::move(*named);
  }
  return std::unique_ptr<EndpointFile>(new EndpointFile(static_cast<std::byte*>(memory), size,
                                                        channels.offset, std::move(fd), folder,
                                                        std::move(path)));
}

EndpointFile::EndpointFile(std::byte* memory, uint64_t bytes, uint64_t used, base::UniqueFd fd,
                           std::string folder, std::string path)
    : memory_(memory),
      bytes_(bytes),
      used_bytes_(used),
      fd_(std::move(fd)),
      folder_(std::move(folder)),
      path_(std::move(path)) {}

EndpointFile::~EndpointFile() {
  remove_name();
  if (!folder_.empty()) remove_stale(folder_);
  munmap(memory_, bytes_);
}

void EndpointFile::remove_name() noexcept {
  if (!path_.empty()) take_name(path_);
  path_.clear();
}

void EndpointFile::listens(uint64_t incarnation) noexcept {
  set(at<EndpointAbout>(EndpointSection::about, 0)->incarnation, incarnation);
  set(endpoint().listening, 1);
}

// Allocated before it is used: a folder that is full must be an error here and not SIGBUS later.
Result<ChannelRecord*> EndpointFile::channel(uint32_t index) {
  auto* const record = at<ChannelRecord>(EndpointSection::channels, index);
  const auto end = static_cast<uint64_t>(reinterpret_cast<std::byte*>(record + 1) - memory_);
  const uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  if (end <= used) return record;
  const uint64_t grown = std::min(bytes_, std::max(end, used + kStepBytes));
  if (fd_.valid()) {
    if (const int error = base::reserve_file(fd_.get(), used, grown - used); error != 0) {
      return base::error(Code::system_error, "no room for {} bytes of counters in {}: {}", grown,
                         folder_, base::reserve_error_text(error));
    }
  }
  used_bytes_.store(grown, std::memory_order_release);
  return record;
}

}  // namespace faro::counters
