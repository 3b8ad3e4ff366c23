#include "counters/counter_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "base/return_if_error.h"
#include "counters/descriptions.h"

namespace faro::counters {
namespace {

uint32_t awaited_words(const Shape& shape) { return (shape.worker_count() + 63) / 64; }

std::array<SectionPlace, kSections> places_of(const Shape& shape) {
  const auto nodes = static_cast<uint32_t>(shape.workers_per_node.size());
  const uint32_t workers = shape.local_workers();
  const uint32_t rings = workers * shape.worker_count() * shape.rings_per_lane;
  std::array<SectionPlace, kSections> places;
  const auto set = [&places](Section section, size_t count, size_t stride = 0) {
    const auto s = static_cast<uint32_t>(section);
    places[s].count = static_cast<uint32_t>(count);
    places[s].stride_bytes = static_cast<uint32_t>(std::max(stride, kRecordBytes[s]));
  };
  for (uint32_t s = 0; s < kSections; ++s) set(static_cast<Section>(s), 0);
  set(Section::descriptions, descriptions().size());
  set(Section::node, 1);
  set(Section::peers, nodes);
  set(Section::peer_counters, nodes);
  set(Section::workers, workers);
  const uint32_t waits = workers * kWaitSlots;
  set(Section::waits, waits);
  set(Section::awaited, waits, (awaited_words(shape) * sizeof(Counter) + 63) & ~size_t{63});
  set(Section::outgoing, size_t{workers} * shape.receiving_ends() * shape.rings_per_lane);
  set(Section::incoming, rings);
  set(Section::queries, kQuerySlots);
  if (shape.lanes_end_at_nodes) {
    set(Section::node_end, 1);
    set(Section::readers, workers);
    set(Section::untaken, kUntakenSlots);
  }
  set(Section::operators, size_t{workers} * kOperatorSlots);
  set(Section::operator_totals, size_t{workers} * kOperatorKinds);
  uint64_t offset = sizeof(Header);
  for (SectionPlace& place : places) {
    place.offset = offset;
    offset += uint64_t{place.count} * place.stride_bytes;
  }
  return places;
}

// All records are of zeros at first, as fresh memory is.
void fill(std::byte* memory, const Shape& shape, uint64_t now) {
  auto* const header = new (memory) Header;
  header->magic = kMagic;
  header->version = kLayoutVersion;
  header->header_bytes = sizeof(Header);
  header->file_bytes = CounterFile::bytes(shape);
  header->created_ns = now;
  header->pid = static_cast<uint32_t>(getpid());
  header->node = shape.node;
  header->node_count = static_cast<uint32_t>(shape.workers_per_node.size());
  header->worker_count = shape.worker_count();
  header->first_worker = shape.first_worker(shape.node);
  header->local_worker_count = shape.local_workers();
  header->rings_per_lane = shape.rings_per_lane;
  header->ring_bytes = shape.ring_bytes;
  header->threshold_bytes = shape.threshold_bytes;
  header->lanes_end_at_workers = shape.lanes_end_at_workers ? 1 : 0;
  shape.cluster.copy(header->cluster.data(), header->cluster.size() - 1);
  header->sections = places_of(shape);
  const std::span<const Description> rows = descriptions();
  const uint64_t offset = header->sections[static_cast<uint32_t>(Section::descriptions)].offset;
  std::memcpy(memory + offset, rows.data(), rows.size_bytes());
}

}  // namespace

uint32_t Shape::worker_count() const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.end(), 0u);
}
uint32_t Shape::first_worker(uint32_t of_node) const {
  return std::accumulate(workers_per_node.begin(), workers_per_node.begin() + of_node, 0u);
}

uint64_t CounterFile::bytes(const Shape& shape) {
  const SectionPlace last = places_of(shape).back();
  return last.offset + uint64_t{last.count} * last.stride_bytes;
}

Result<std::unique_ptr<CounterFile>> CounterFile::make(const Shape& shape,
                                                       const std::string& folder, uint64_t now) {
  const uint64_t size = bytes(shape);
  FARO_ASSIGN_OR_RETURN(CounterMemory memory, CounterMemory::make(folder, size));
  const std::array<SectionPlace, kSections> places = places_of(shape);
  const uint64_t lanes = places[static_cast<uint32_t>(Section::outgoing)].offset;
  const uint64_t behind_lanes = places[static_cast<uint32_t>(Section::queries)].offset;
  FARO_RETURN_IF_ERROR(memory.reserve(behind_lanes, size));  // the file has its size from here on
  FARO_RETURN_IF_ERROR(memory.reserve(0, lanes));
  fill(memory.data(), shape, now);
  FARO_RETURN_IF_ERROR(memory.name());
  return std::unique_ptr<CounterFile>(new CounterFile(std::move(memory), shape));
}

CounterFile::CounterFile(CounterMemory memory, const Shape& shape)
    : memory_(std::move(memory)), receiving_ends_(shape.receiving_ends()) {
  if (shape.lanes_end_at_workers) return;
  for (uint32_t node = 0; node < receiving_ends_; ++node)
    first_workers_.push_back(shape.first_worker(node));
}

uint32_t CounterFile::end_of(uint32_t worker) const noexcept {
  if (first_workers_.empty()) return worker;
  const auto behind = std::upper_bound(first_workers_.begin(), first_workers_.end(), worker);
  return static_cast<uint32_t>(behind - first_workers_.begin()) - 1;
}

Status CounterFile::reserve_lanes(uint32_t first_worker, uint32_t worker_count) {
  const uint32_t last_worker = first_worker + worker_count - 1;
  for (uint32_t local = 0; local < header().local_worker_count; ++local) {
    FARO_RETURN_IF_ERROR(reserve(Section::outgoing, outgoing_ring(local, end_of(first_worker), 0),
                                 outgoing_ring(local, end_of(last_worker) + 1, 0)));
    FARO_RETURN_IF_ERROR(
        reserve(Section::incoming, ring(local, first_worker, 0), ring(local, last_worker + 1, 0)));
  }
  return Status::Ok();
}

Status CounterFile::reserve(Section section, uint64_t first, uint64_t end) {
  const SectionPlace& place = header().sections[static_cast<uint32_t>(section)];
  return memory_.reserve(place.offset + first * place.stride_bytes,
                         place.offset + end * place.stride_bytes);
}

void CounterFile::set_peer(uint32_t node, const Peer& peer) noexcept {
  *at<Peer>(Section::peers, node) = peer;
}

void CounterFile::opened() noexcept {
  // Partner: CounterView::read. A reader that sees this store also sees the peers.
  node().open.store(1, std::memory_order_release);
}

std::span<Counter> CounterFile::awaited(uint32_t local, uint32_t slot) noexcept {
  return {at<Counter>(Section::awaited, local * kWaitSlots + slot),
          (header().worker_count + 63) / 64};
}

}  // namespace faro::counters
