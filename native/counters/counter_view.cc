#include "counters/counter_view.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "counters/counter_file.h"
#include "counters/descriptions.h"

namespace faro::counters {

uint32_t CounterView::count(Section section) const {
  return header().sections[static_cast<uint32_t>(section)].count;
}

template <typename Record>
const Record& CounterView::at(Section section, uint32_t index) const {
  const SectionPlace& place = header().sections[static_cast<uint32_t>(section)];
  return *reinterpret_cast<const Record*>(memory_.data() + place.offset +
                                          uint64_t{index} * place.stride_bytes);
}

Result<std::unique_ptr<CounterView>> CounterView::open(const std::string& path, bool named) {
  FARO_ASSIGN_OR_RETURN(auto fd, open_counter_file(path, named));
  const auto bad = [&path](std::string_view why) {
    return base::error(Code::invalid_argument, "{} is no counter file: {}", path, why);
  };
  struct stat state {};
  if (fstat(fd.get(), &state) != 0 || static_cast<size_t>(state.st_size) < sizeof(Header))
    return bad("too short");
  const auto bytes = static_cast<uint64_t>(state.st_size);
  if (bytes > kFileLimit)
    return bad(fmt::format("it claims {} bytes, more than {}", bytes, kFileLimit));
  std::unique_ptr<CounterView> view(new CounterView(bytes, std::move(fd), path));
  if (!view->copy_)
    return base::error(Code::resource_limit, "no memory for the {} bytes of {}", bytes, path);
  if (!view->copy_file(view->copy_.get(), 0, bytes)) return bad("it was cut short");
  FARO_RETURN_IF_ERROR(view->check());
  // A node allocates its file, except for lanes that are not used.
  constexpr uint64_t kBlock = 512;
  const uint64_t taken = static_cast<uint64_t>(state.st_blocks) * kBlock;
  if (taken + view->lane_bytes() < bytes)
    return bad(fmt::format("it claims {} bytes and takes {}", bytes, taken));
  view->note_room();
  return view;
}

// Records of lanes that were linked have their space. What a header says of others must not cost the reader memory.
void CounterView::note_room() {
  constexpr uint64_t kBlock = 512;
  struct stat state {};
  const bool is_known = fstat(fd_.get(), &state) == 0;
  const uint64_t taken = is_known ? static_cast<uint64_t>(state.st_blocks) * kBlock : 0;
  const size_t of_receiver = lanes_end_at_workers() ? sizeof(OutgoingCounters) : 0;
  lane_room_ = taken / (of_receiver + sizeof(IncomingCounters));
}

Result<std::unique_ptr<CounterView>> CounterView::over(std::span<const std::byte> memory) {
  std::unique_ptr<CounterView> view(new CounterView(memory, "memory"));
  FARO_RETURN_IF_ERROR(view->check());
  return view;
}

CounterView::SparseLines CounterView::make_lines(uint64_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {nullptr, Unmap{0}};
  return {static_cast<Line*>(memory), Unmap{bytes}};
}

bool CounterView::copy_file(Line* to, uint64_t offset, uint64_t bytes) const {
  if (!copy_sparse_file(fd_.get(), std::span(reinterpret_cast<std::byte*>(to), bytes), offset))
    return false;
  struct stat state {};
  return fstat(fd_.get(), &state) == 0 && static_cast<uint64_t>(state.st_size) >= memory_.size();
}

bool CounterView::copy_again(Section section) {
  const SectionPlace& place = header().sections[static_cast<uint32_t>(section)];
  const uint64_t bytes = uint64_t{place.count} * place.stride_bytes;
  if (bytes == 0) return true;
  const auto again = again_.try_emplace(section, make_lines(bytes)).first;
  return again->second != nullptr && copy_file(again->second.get(), place.offset, bytes);
}

uint64_t CounterView::lane_bytes() const {
  uint64_t bytes = 0;
  for (const Section section : {Section::outgoing, Section::incoming}) {
    const SectionPlace& place = header().sections[static_cast<uint32_t>(section)];
    bytes += uint64_t{place.count} * place.stride_bytes;
  }
  return bytes;
}

// A copy shows a record with one number, before and after. It is whole if it has the same number
// afterwards.
template <typename Value>
bool CounterView::load(Section section, uint32_t index, Value& value) const {
  const auto& record = at<Sequenced<Value>>(section, index);
  if (!record.load(value)) return false;
  const auto again = again_.find(section);
  if (again == again_.end()) return true;
  const SectionPlace& place = header().sections[static_cast<uint32_t>(section)];
  const std::byte* const later = reinterpret_cast<const std::byte*>(again->second.get()) +
                                 uint64_t{index} * place.stride_bytes;
  return reinterpret_cast<const Sequenced<Value>*>(later)->sequence() == record.sequence();
}

// Processes of the same user write these files. Even so, no content may make the reader leave the bounds of its
// copy. Sizes are constant from the start, so they are checked once.
Status CounterView::check() {
  const auto bad = [this](std::string_view why) {
    return base::error(Code::invalid_argument, "{} is no counter file: {}", path_, why);
  };
  if (memory_.size() < sizeof(Header)) return bad("too short");
  std::memcpy(&header_, memory_.data(), sizeof header_);
  if (header().magic != kMagic) return bad("no magic number");
  if (header().version != kLayoutVersion) {
    return base::error(Code::invalid_argument,
                       "{} has version {} of the layout, this faro reads {}: use the faro of that "
                       "process's library",
                       path_, header().version, kLayoutVersion);
  }
  if (header().kind != FileKind::session) return bad("it is not of a session");
  for (uint32_t s = 0; s < kSections; ++s) {
    const SectionPlace& place = header().sections[s];
    const uint64_t bytes = uint64_t{place.count} * place.stride_bytes;
    if (place.offset % 64 != 0 || place.stride_bytes % 64 != 0 ||
        place.stride_bytes < kRecordBytes[s] || place.offset > memory_.size() ||
        bytes > memory_.size() - place.offset) {
      return bad(fmt::format("section {} lies outside of it", s));
    }
  }
  // All numbers below are shown one by one: each of them stands for a record that is there.
  const uint64_t lanes = uint64_t{header().local_worker_count} * header().worker_count;
  const uint64_t rings = lanes * header().rings_per_lane;
  if (lanes > UINT32_MAX || rings == 0 || count(Section::node) != 1 ||
      count(Section::peers) != header().node_count ||
      count(Section::peer_counters) != header().node_count ||
      header().node >= header().node_count ||
      count(Section::workers) != header().local_worker_count ||
      count(Section::waits) != uint64_t{header().local_worker_count} * kWaitSlots ||
      count(Section::awaited) != count(Section::waits) || count(Section::incoming) != rings ||
      count(Section::outgoing) !=
          uint64_t{header().local_worker_count} * receiving_ends() * header().rings_per_lane ||
      uint64_t{header().sections[static_cast<uint32_t>(Section::awaited)].stride_bytes} * 8 <
          header().worker_count ||
      count(Section::operators) != uint64_t{header().local_worker_count} * kOperatorSlots ||
      count(Section::operator_totals) != uint64_t{header().local_worker_count} * kOperatorKinds ||
      !has_node_end_or_none()) {
    return bad("its sections do not fit its cluster");
  }
  return Status::Ok();
}

bool CounterView::has_node_end_or_none() const {
  const uint64_t ends = count(Section::node_end);
  return ends <= 1 && count(Section::readers) == ends * header().local_worker_count &&
         count(Section::untaken) == ends * kUntakenSlots;
}

// The records of a lane's rings are adjacent.
template <typename Values>
void CounterView::add(Section section, uint32_t first, Values& sum) const {
  using Record = std::conditional_t<std::is_same_v<Values, OutgoingValues>, OutgoingCounters,
                                    IncomingCounters>;
  for (uint32_t k = 0; k < header().rings_per_lane; ++k) {
    add_values(values_of<Values>(at<Record>(section, first + k)), sum);
  }
}

WorkerView CounterView::read_worker(uint32_t local, uint64_t now) const {
  WorkerView worker;
  worker.number = header().first_worker + local;
  worker.counters = values_of<WorkerValues>(at<WorkerCounters>(Section::workers, local));
  if (lanes_end_at_nodes()) {
    worker.at_node_end = values_of<ReaderValues>(at<ReaderCounters>(Section::readers, local));
    count_until(now, Scope::reader, worker.at_node_end);
  }
  for (uint32_t slot = 0; slot < kWaitSlots; ++slot) {
    WaitView wait = read_wait(local * kWaitSlots + slot);
    if (wait.kind == WaitKind::none) break;
    worker.waits.push_back(std::move(wait));
  }
  read_operators(local, worker);
  return worker;
}

// A record that is another operator's by now has another number.
void CounterView::read_operators(uint32_t local, WorkerView& worker) const {
  for (uint32_t slot = 0; slot < kOperatorSlots; ++slot) {
    const uint32_t index = local * kOperatorSlots + slot;
    OperatorView one;
    one.counters = at<OperatorRecord>(Section::operators, index).load(one);
    const bool is_whole = load(Section::operators, index, static_cast<OperatorState&>(one));
    if (is_whole && one.kind != 0 && one.kind <= kOperatorKinds) worker.operators.push_back(one);
  }
  for (uint32_t kind = 0; kind < kOperatorKinds; ++kind) {
    worker.operator_totals[kind] = values_of<OperatorValues>(
        at<OperatorCounters>(Section::operator_totals, local * kOperatorKinds + kind));
  }
}

std::vector<IncomingLane::Held> CounterView::read_held(uint32_t first) const {
  std::vector<IncomingLane::Held> held;
  for (uint32_t k = 0; k < header().rings_per_lane; ++k) {
    const auto& ring = at<IncomingCounters>(Section::incoming, first + k);
    const uint64_t bytes = ring.unreleased_bytes.load(std::memory_order_relaxed);
    if (bytes != 0) held.push_back({k, bytes, ring.last_stage.load(std::memory_order_relaxed)});
  }
  return held;
}

WaitView CounterView::read_wait(uint32_t slot) const {
  WaitView wait;
  if (!load(Section::waits, slot, static_cast<WaitRecord&>(wait))) return {};
  if (wait.kind != WaitKind::rows) return wait;
  const auto* const words = &at<Counter>(Section::awaited, slot);
  for (uint32_t w = 0; w < header().worker_count; ++w) {
    if (words[w / 64].load(std::memory_order_acquire) >> (w % 64) & 1) wait.awaited.push_back(w);
  }
  return wait;
}

NodeView CounterView::read() {
  if (!fd_.valid()) return view(true);
  note_room();
  SparseLines fresh = make_lines(memory_.size());
  const bool whole = fresh != nullptr && copy_file(fresh.get(), 0, memory_.size()) &&
                     copy_again(Section::waits) && copy_again(Section::queries) &&
                     copy_again(Section::untaken) && copy_again(Section::operators);
  if (whole) {
    copy_ = std::move(fresh);
    memory_ = {reinterpret_cast<const std::byte*>(copy_.get()), memory_.size()};
  }
  return view(whole);
}

NodeView CounterView::view(bool whole) const {
  const Header& head = header();
  NodeView view;
  view.path = path_;
  view.alive = whole && (!fd_.valid() || is_locked(fd_.get()));
  const NodeCounters& node = at<NodeCounters>(Section::node, 0);
  view.open = node.open.load(std::memory_order_acquire) != 0;  // partner: CounterFile::opened
  view.pid = head.pid;
  view.stopped = view.alive && is_stopped(view.pid);
  view.cluster = text_of(head.cluster);
  view.node = head.node;
  view.created_ns = head.created_ns;
  view.lanes.ring_bytes = head.ring_bytes;
  view.lanes.threshold_bytes = head.threshold_bytes;
  view.lanes.rings_per_lane = head.rings_per_lane;
  view.read_ns = base::SystemClock::instance().now_ns();
  view.counters = values_of<NodeValues>(node);
  for (uint32_t n = 0; n < head.node_count; ++n) {
    const Peer& peer = at<Peer>(Section::peers, n);
    auto counted = values_of<PeerValues>(at<PeerCounters>(Section::peer_counters, n));
    count_until(view.read_ns, Scope::peer, counted);
    view.peers.push_back({n, text_of(peer.name), text_of(peer.transport), peer.incarnation,
                          peer.first_worker, peer.worker_count, counted});
  }
  view.lanes.end_at_workers = lanes_end_at_workers();
  view.lanes.end_at_nodes = lanes_end_at_nodes();
  if (view.lanes.end_at_nodes)
    view.node_end = values_of<NodeEndValues>(at<NodeEndCounters>(Section::node_end, 0));
  for (uint32_t slot = 0; slot < count(Section::untaken); ++slot) {
    UntakenStream stream;
    if (load(Section::untaken, slot, stream) && stream.frames != 0) view.untaken.push_back(stream);
  }
  for (uint32_t local = 0; local < head.local_worker_count; ++local) {
    view.workers.push_back(read_worker(local, view.read_ns));
    const uint32_t number = head.first_worker + local;
    uint32_t last = 0;
    for (const PeerView& peer : view.peers) {
      // No content of the file leads out of it, or through it twice.
      const uint64_t end = uint64_t{peer.first_worker} + peer.worker_count;
      if (!peer.was_linked() || peer.first_worker < last || end > head.worker_count) continue;
      last = static_cast<uint32_t>(end);
      for (uint32_t other = peer.first_worker; other < end; ++other) {
        if (view.incoming.size() >= lane_room_) return view;
        const uint32_t first = (local * head.worker_count + other) * head.rings_per_lane;
        if (view.lanes.end_at_workers || other == peer.first_worker) {
          const uint32_t receiving = view.lanes.end_at_workers ? other : peer.node;
          add(Section::outgoing, (local * receiving_ends() + receiving) * head.rings_per_lane,
              view.outgoing.emplace_back(OutgoingLane{number, other, {}}).counters);
        }
        IncomingLane& in = view.incoming.emplace_back(IncomingLane{other, number, {}, {}});
        add(Section::incoming, first, in.counters);
        if (view.lanes.end_at_nodes) in.held = read_held(first);
      }
    }
  }
  for (uint32_t slot = 0; slot < count(Section::queries); ++slot) {
    QueryState state;
    if (load(Section::queries, slot, state) && state.life != QueryLife::none)
      view.queries.push_back(state);
  }
  return view;
}

}  // namespace faro::counters
