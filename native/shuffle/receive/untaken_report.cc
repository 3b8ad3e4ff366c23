#include "shuffle/receive/untaken_report.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "counters/counter_file.h"
#include "shuffle/receive/node_link.h"
#include "wire/frame.h"

namespace faro::shuffle {
namespace {

struct InRingBytes {
  uint64_t frames = 0;
  uint64_t bytes = 0;
};

// What lies in the ring of what the reader has not passed: the newest frames, since the oldest are moved to overflow first.
InRingBytes lying_for(const NodeReader& reader) noexcept {
  InRingBytes lying;
  if (reader.next == nullptr || reader.stream->available(reader) == nullptr) return lying;
  for (const NodeFrame* frame = reader.stream->last; frame != nullptr; frame = frame->before) {
    if (frame->has_rows() && !frame->is_in_ring()) break;
    if (frame->has_rows()) {
      ++lying.frames;
      lying.bytes += wire::padded(frame->view.header.length);
    }
    if (frame == reader.next) break;
  }
  return lying;
}

// What any of several may take is shown once.
bool stands_for_all(const NodeReader& reader) noexcept {
  const NodeStream& stream = *reader.stream;
  return !stream.is_for_any() ||
         &*std::ranges::find_if(stream.readers, &NodeReader::is_waiting) == &reader;
}

}  // namespace

// Those that nobody has taken of for longest, of all that are added.
class UntakenReport::Longest {
 public:
  void add(const counters::UntakenStream& stream) noexcept {
    if (count_ < streams_.size()) {
      streams_[count_++] = stream;
    } else if (stream.since_ns < streams_.front().since_ns) {
      std::pop_heap(streams_.begin(), streams_.end(), is_older);
      streams_.back() = stream;
    } else {
      return;
    }
    std::push_heap(streams_.begin(), streams_.begin() + count_, is_older);
  }
  std::span<const counters::UntakenStream> all() const noexcept {
    return {streams_.data(), count_};
  }

 private:
  static bool is_older(const counters::UntakenStream& a,
                       const counters::UntakenStream& b) noexcept {
    return a.since_ns < b.since_ns;
  }

  std::array<counters::UntakenStream, counters::kUntakenSlots> streams_;
  uint32_t count_ = 0;
};

counters::UntakenStream UntakenReport::record_of(const NodeReader& reader) const noexcept {
  const NodeStream& stream = *reader.stream;
  const NodeLink& link = stream.ring->link();
  const uint32_t first_worker = membership_.nodes()[membership_.node()].first_worker;
  const InRingBytes lying = lying_for(reader);
  counters::UntakenStream record;
  record.query = stream.query->id;
  record.stage = stream.stage_number;
  record.sender = membership_.nodes()[link.node()].first_worker + link.sender_of(*stream.ring);
  record.ring = link.ring_of_lane(*stream.ring);
  if (!stream.is_for_any()) record.reader = first_worker + reader.worker;
  for (const NodeReader& each : stream.readers) {
    if (!each.has_left && each.worker < 64) record.readers |= uint64_t{1} << each.worker;
  }
  record.frames = lying.frames;
  record.bytes = lying.bytes;
  record.since_ns = stream.untaken_since;
  if (stream.is_for_any()) record.since_ns = std::max(record.since_ns, stream.stage->taken_at());
  return record;
}

// Since when something lies there for the worker; 0: nothing does.
base::Nanoseconds UntakenReport::look_at(uint32_t worker, Longest& longest) noexcept {
  base::Nanoseconds since = 0;
  for (const NodeReader* reader = readers_.first(worker); reader != nullptr;
       reader = reader->waiting_next) {
    const counters::UntakenStream record = record_of(*reader);
    if (record.frames == 0) continue;
    if (since == 0 || record.since_ns < since) since = record.since_ns;
    if (stands_for_all(*reader)) longest.add(record);
  }
  return since;
}

void UntakenReport::show() noexcept {
  counters::CounterFile& file = membership_.counters();
  Longest longest;
  for (uint32_t worker = 0; worker < readers_.worker_count(); ++worker)
    counters::set(file.reader(worker).untaken_ns, look_at(worker, longest));
  uint32_t slot = 0;
  for (const counters::UntakenStream& stream : longest.all()) file.untaken(slot++).store(stream);
  const uint32_t last_shown = std::exchange(shown_, slot);
  for (; slot < last_shown; ++slot) file.untaken(slot).store({});
}

}  // namespace faro::shuffle
