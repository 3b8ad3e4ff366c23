#include "counters/endpoint_view.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/return_if_error.h"
#include "counters/counter_view.h"
#include "counters/descriptions.h"
#include "counters/folder.h"

namespace faro::counters {
namespace {

// A channel moves its counts when it ends; this often a look is repeated for that.
constexpr int kLooks = 3;

Status bad(const std::string& path, std::string_view why) {
  return base::error(Code::invalid_argument, "{} is no counter file of an endpoint: {}", path, why);
}

}  // namespace

Result<FileKind> kind_of(const std::string& path, bool named) {
  FARO_ASSIGN_OR_RETURN(const auto fd, open_counter_file(path, named));
  Header header;
  if (!copy_file(fd.get(), std::as_writable_bytes(std::span(&header, 1)), 0) ||
      header.magic != kMagic)
    return base::error(Code::invalid_argument, "{} is no counter file: no magic number", path);
  return header.kind;
}

Result<std::unique_ptr<EndpointCounterView>> EndpointCounterView::open(const std::string& path,
                                                                       bool named) {
  FARO_ASSIGN_OR_RETURN(auto fd, open_counter_file(path, named));
  std::unique_ptr<EndpointCounterView> view(new EndpointCounterView({}, std::move(fd), path));
  FARO_RETURN_IF_ERROR(view->check());
  return view;
}

Result<std::unique_ptr<EndpointCounterView>> EndpointCounterView::over(Memory memory) {
  std::unique_ptr<EndpointCounterView> view(
      new EndpointCounterView(std::move(memory), {}, "memory"));
  FARO_RETURN_IF_ERROR(view->check());
  return view;
}

// The file may have grown since.
Status EndpointCounterView::take(Copy& copy) const {
  const auto memory = memory_ ? memory_() : std::span<const std::byte>();
  copy.bytes = memory.size();
  if (fd_.valid()) {
    struct stat state {};
    if (fstat(fd_.get(), &state) != 0) return bad(path_, "its size cannot be read");
    copy.bytes = static_cast<uint64_t>(state.st_size);
    // An endpoint allocates its file: one that claims more than it takes would cost its reader the memory.
    constexpr uint64_t kBlock = 512;
    const uint64_t taken = static_cast<uint64_t>(state.st_blocks) * kBlock;
    if (copy.bytes > CounterView::kFileLimit || taken < copy.bytes)
      return bad(path_, fmt::format("it claims {} bytes and takes {}", copy.bytes, taken));
  }
  copy.lines.resize((copy.bytes + sizeof(Line) - 1) / sizeof(Line));
  const auto to = std::as_writable_bytes(std::span(copy.lines)).first(copy.bytes);
  if (fd_.valid())
    return copy_file(fd_.get(), to, 0) ? Status::Ok() : bad(path_, "it was cut short");
  // Counters of this process are copied one by one. What is torn shows in its sequence.
  const auto* const words = reinterpret_cast<const Counter*>(memory.data());
  for (size_t i = 0; i < copy.bytes / sizeof(uint64_t); ++i) {
    const uint64_t word = words[i].load(std::memory_order_acquire);
    std::memcpy(to.data() + i * sizeof word, &word, sizeof word);
  }
  return Status::Ok();
}

// Checks the file as CounterView::check does: no content may make the reader leave its copy.
Status EndpointCounterView::check() {
  FARO_RETURN_IF_ERROR(take(first_));
  const auto memory = first_.memory();
  if (memory.size() < sizeof(Header)) return bad(path_, "too short");
  std::memcpy(&header_, memory.data(), sizeof header_);
  if (header_.magic != kMagic) return bad(path_, "no magic number");
  if (header_.version != kLayoutVersion) {
    return base::error(Code::invalid_argument,
                       "{} has version {} of the layout, this faro reads {}: use the faro of that "
                       "process's library",
                       path_, header_.version, kLayoutVersion);
  }
  if (header_.kind != FileKind::endpoint) return bad(path_, "it is not of an endpoint");
  for (uint32_t s = 0; s < kEndpointSections; ++s) {
    const SectionPlace& place = header_.sections[s];
    const bool grows = s == static_cast<uint32_t>(EndpointSection::channels);
    const uint64_t bytes = grows ? 0 : uint64_t{place.count} * place.stride_bytes;
    if (place.offset % 64 != 0 || place.stride_bytes % 64 != 0 ||
        place.stride_bytes < kEndpointRecordBytes[s] || place.offset > memory.size() ||
        bytes > memory.size() - place.offset) {
      return bad(path_, fmt::format("section {} lies outside of it", s));
    }
  }
  if (place(EndpointSection::about).count != 1 || place(EndpointSection::endpoint).count != 1 ||
      place(EndpointSection::ended).count != 1)
    return bad(path_, "its sections do not fit an endpoint");
  second_ = first_;
  return Status::Ok();
}

template <typename Record>
const Record& EndpointCounterView::at(const Copy& copy, EndpointSection section,
                                      uint32_t index) const {
  const SectionPlace& where = place(section);
  return *reinterpret_cast<const Record*>(copy.memory().data() + where.offset +
                                          uint64_t{index} * where.stride_bytes);
}

uint32_t EndpointCounterView::channel_count(const Copy& copy) const {
  const SectionPlace& channels = place(EndpointSection::channels);
  const uint64_t fit = (copy.bytes - channels.offset) / channels.stride_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(channels.count, fit));
}

// Two copies one after the other. Between them no channel must have moved what it counted.
bool EndpointCounterView::look() {
  Copy first, second;
  for (int looks = 0; looks < kLooks; ++looks) {
    if (!take(first).ok() || !take(second).ok()) return false;
    const uint64_t least = place(EndpointSection::channels).offset;
    if (first.bytes < least || second.bytes < first.bytes) return false;  // cut short
    const uint64_t moves = ended(first).moves.load(std::memory_order_relaxed);
    if (moves % 2 == 0 && moves == ended(second).moves.load(std::memory_order_relaxed)) break;
  }
  first_ = std::move(first);
  second_ = std::move(second);
  return true;
}

EndpointView EndpointCounterView::read() { return view(look()); }

ChannelCounts EndpointCounterView::counts_of(const Copy& copy, uint32_t index) const {
  const auto& record = at<ChannelRecord>(copy, EndpointSection::channels, index);
  return {values_of<OutgoingValues>(record.outgoing), values_of<IncomingValues>(record.incoming),
          values_of<ChannelValues>(record.counters)};
}

EndpointView EndpointCounterView::view(bool whole) const {
  EndpointView view;
  view.path = path_;
  view.alive = whole && (!fd_.valid() || is_locked(fd_.get()));
  view.pid = header_.pid;
  view.stopped = view.alive && is_stopped(view.pid);
  view.cluster = text_of(header_.cluster);
  view.created_ns = header_.created_ns;
  view.read_ns = base::SystemClock::instance().now_ns();
  const auto& about = at<EndpointAbout>(first_, EndpointSection::about, 0);
  view.name = text_of(about.name);
  view.address = text_of(about.address);
  view.incarnation = about.incarnation.load(std::memory_order_relaxed);
  view.counters =
      values_of<EndpointValues>(at<EndpointCounters>(first_, EndpointSection::endpoint, 0));
  for (uint32_t p = 0; p < place(EndpointSection::pollers).count; ++p) {
    auto poller = values_of<PollerValues>(at<PollerCounters>(first_, EndpointSection::pollers, p));
    count_until(view.read_ns, Scope::poller, poller);
    view.pollers.push_back(poller);
  }
  const EndedChannels& gone = ended(first_);
  view.all = {values_of<OutgoingValues>(gone.outgoing), values_of<IncomingValues>(gone.incoming),
              values_of<ChannelValues>(gone.counters)};
  for (uint32_t index = 0; index < channel_count(first_); ++index) {
    ChannelCounts counts = counts_of(first_, index);
    count_until(view.read_ns, Scope::channel, counts.counters);
    add_values(counts.sent, view.all.sent);
    add_values(counts.received, view.all.received);
    add_values(counts.counters, view.all.counters);
    const auto& record = at<ChannelRecord>(first_, EndpointSection::channels, index).state;
    const auto& later = at<ChannelRecord>(second_, EndpointSection::channels, index).state;
    ChannelState state;
    const bool is_whole = record.load(state) && later.sequence() == record.sequence();
    if (!is_whole || state.life == ChannelLife::none) continue;
    view.channels.push_back({index, state.generation, state.life, state.since_ns,
                             text_of(state.peer), text_of(state.address), state.incarnation,
                             text_of(state.transport), static_cast<uint32_t>(state.poller),
                             state.dialled != 0, state.send_bytes, state.receive_bytes,
                             text_of(state.failure), counts});
  }
  return view;
}

}  // namespace faro::counters
