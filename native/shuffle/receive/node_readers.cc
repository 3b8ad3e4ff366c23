#include "shuffle/receive/node_readers.h"

#include <algorithm>
#include <utility>

#include "ring/doorbell.h"

namespace faro::shuffle {
namespace {

// Streams for which one worker is woken at the end of a look; for others at once.
constexpr size_t kStreamsToWake = 64;

}  // namespace

NodeReaders::NodeReaders(session::Membership& membership)
    : membership_(membership), waiting_(membership.nodes()[membership.node()].worker_count) {
  const uint32_t workers = membership.nodes()[membership.node()].worker_count;
  for (uint32_t worker = 0; worker < workers; ++worker) waiting_.emplace_back();
  to_wake_.reserve(workers);
  to_wake_one_.reserve(kStreamsToWake);
}

void NodeReaders::count_streams(uint32_t worker, int more) noexcept {
  counters::count(membership_.counters().reader(worker).streams, static_cast<uint64_t>(more));
}

void NodeReaders::list(NodeReader& reader) noexcept {
  if (std::exchange(reader.is_waiting, true)) return;
  Waiting& waiting = waiting_[reader.worker];
  reader.waiting_before = waiting.last;
  reader.waiting_next = nullptr;
  (waiting.last != nullptr ? waiting.last->waiting_next : waiting.first) = &reader;
  waiting.last = &reader;
  count_streams(reader.worker, 1);
}

void NodeReaders::unlist(NodeReader& reader) noexcept {
  if (!std::exchange(reader.is_waiting, false)) return;
  Waiting& waiting = waiting_[reader.worker];
  (reader.waiting_before != nullptr ? reader.waiting_before->waiting_next : waiting.first) =
      reader.waiting_next;
  (reader.waiting_next != nullptr ? reader.waiting_next->waiting_before : waiting.last) =
      reader.waiting_before;
  count_streams(reader.worker, -1);
}

// Who comes to the end of a stream by frames that others took may wait for just that.
void NodeReaders::stand_at(NodeReader& reader, NodeFrame* frame) noexcept {
  reader.next = frame;
  if (frame == nullptr) return unlist(reader);
  list(reader);
  if (frame->view.header.kind == wire::FrameKind::finish) note(reader.worker);
}

void NodeReaders::forget(NodeStream& stream) noexcept {
  for (NodeReader& reader : stream.readers) stand_at(reader, nullptr);
  std::erase(to_wake_one_, &stream);
}

void NodeReaders::note_who_could_not_look() noexcept {
  for (uint32_t worker = 0; worker < waiting_.size(); ++worker) {
    if (waiting_[worker].first != nullptr && waiting_[worker].wants.exchange(false)) note(worker);
  }
}

void NodeReaders::note(uint32_t worker) noexcept {
  if (std::exchange(waiting_[worker].is_noted, true)) return;
  to_wake_.push_back(worker);
}

void NodeReaders::note(NodeStream& stream) noexcept {
  stream.rings_left = static_cast<uint32_t>(stream.readers.size());
  if (std::ranges::find(to_wake_one_, &stream) != to_wake_one_.end()) return;
  if (to_wake_one_.size() < to_wake_one_.capacity()) {
    to_wake_one_.push_back(&stream);
  } else {
    wake_one(stream);
  }
}

void NodeReaders::wake() noexcept {
  for (const uint32_t worker : to_wake_) {
    waiting_[worker].is_noted = false;
    ring::ring_for_frames(membership_.doorbell(worker));
  }
  to_wake_.clear();
  for (NodeStream* const stream : to_wake_one_) wake_one(*stream);
  to_wake_one_.clear();
}

void NodeReaders::wake_one(NodeStream& stream) noexcept {
  const auto has_frame = [&](const NodeReader& reader) {
    const NodeFrame* const frame = stream.available(reader);
    return frame != nullptr && frame->has_rows();
  };
  if (stream.rings_left == 0 || std::ranges::none_of(stream.readers, has_frame)) return;
  while (stream.rings_left > 0) {
    --stream.rings_left;
    const NodeReader& reader = stream.readers[stream.turn++ % stream.readers.size()];
    if (!reader.has_left && ring::ring_for_frames(membership_.doorbell(reader.worker))) return;
  }
}

}  // namespace faro::shuffle
