#include "shuffle/stage/stage_receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/planted.h"
#include "faro/batch.h"
#include "faro/receiver.h"
#include "shuffle/operation/file_warning.h"

namespace faro::shuffle {

using counters::count;

StageReceiver::StageReceiver(ShuffleContext& shuffle, WaitLoop& wait_loop, ReceiveSide& side,
                             Inbox& inbox) noexcept
    : shuffle_(shuffle), side_(shuffle), wait_loop_(wait_loop), receive_side_(side), inbox_(inbox) {
  inbox_.name_senders(shuffle.spec().senders);
  inbox_.row_bytes = shuffle.spec().row_bytes;
  inbox_.open = true;
}

Status StageReceiver::receive_as(std::string_view format) {
  return side_.guarded([&] {
    FARO_RETURN_IF_ERROR(shuffle_.name_format(inbox_.format, format, "reads the"));
    return receive_side_.agreement().on_own_format(inbox_);
  });
}

Outcome StageReceiver::receive(Batch& batch, const uint32_t* only_sender, Wait wait,
                               const RowMemory::Allocate* allocate) {
  batch.release();
  std::optional<RowMemory> into;
  if (allocate != nullptr) into.emplace(*allocate);
  const Outcome outcome = wait_loop_.operate(
      side_, [&] { return attempt(batch, only_sender, into ? &*into : nullptr); }, wait);
  if (into) into->rethrow();
  return outcome;
}

Outcome StageReceiver::attempt(Batch& batch, const uint32_t* only_sender, RowMemory* into) {
  if (const Outcome outcome = side_.enter(); outcome != Outcome::done) return outcome;
  if (stopped_) return Outcome::end_of_stream;
  Inbox::SenderQueue* only = nullptr;
  if (only_sender != nullptr) {
    if (shuffle_.spec().delivery == Delivery::node) {
      return side_.fail(Code::wrong_state,
                        "stage {}: receive_from with delivery = node: any worker of the node takes "
                        "the rows of a sender; call receive",
                        inbox_.stage());
    }
    const std::vector<uint32_t>& senders = shuffle_.spec().senders;
    if (*only_sender >= senders.size()) {
      return side_.fail(Code::invalid_argument, "stage {}: sender {} does not exist (0 … {})",
                        inbox_.stage(), *only_sender, senders.size() - 1);
    }
    only = &inbox_.queue(senders[*only_sender]);
  }
  const auto is_refused = [&] { return into != nullptr && !into->refusal().ok(); };
  FrameNode* const node = is_refused() ? nullptr : next_frame(only, into);
  if (is_refused()) {
    return side_.fail(into->refusal().code(), "stage {}: {}", inbox_.stage(),
                      into->refusal().message());
  }
  if (node == nullptr) return answer_without_frame(only);
  receive_side_.frames().handed_out(node);
  if (shuffle_.spec().delivery != Delivery::worker) leave_ring(*node);
  shuffle_.refer();
  batch.receiver_ = this;
  batch.frame_ = node;
  batch.data_ = node->payload;
  batch.bytes_ = node->payload_bytes;
  batch.row_count_ = node->row_count;
  batch.row_bytes_ = node->row_bytes;
  batch.sender_ = inbox_.find(node->sender)->index;
  count(shuffle_.worker().counters.rows_received, node->row_count);
  inbox_.received()->of(node->sender).add(node->row_count, node->payload_bytes);
  return Outcome::done;
}

// A ring stands behind a batch that is held, for all workers of the node. Who holds batches for long gets copies, until it is quick
// again; it keeps what there is no room for.
void StageReceiver::leave_ring(FrameNode& node) {
  if (holds_long_) (void)receive_side_.frames().detach(*shuffle_.query(), &node);
  if (timed_ != nullptr) return;
  timed_ = &node;
  timed_since_ = shuffle_.worker().now();
}

void StageReceiver::released(const FrameNode& node) noexcept {
  if (timed_ != &node) return;
  timed_ = nullptr;
  const base::Nanoseconds held = shuffle_.worker().now() - timed_since_;
  holds_long_ = held > shuffle_.worker().settings.drain_delay_us * 1000;
}

FrameNode* StageReceiver::next_frame(Inbox::SenderQueue* only, RowMemory* into) {
  wait_loop_.send_queued();  // HC-5: what can be sent goes before more is taken in
  if (FrameNode* const node = queued_frame(only, into)) return node;
  if (into != nullptr && !into->refusal().ok()) return nullptr;
  // Where rings end at the node, a look takes one frame, which may be a part of a row.
  while (receive_side_.poll({&inbox_, only})) {
    if (FrameNode* const node = queued_frame(only, into)) return node;
    if ((into != nullptr && !into->refusal().ok()) || receive_side_.at_node() == nullptr)
      return nullptr;
  }
  return nullptr;
}

// The next frame of a queue; if `only` is null that of any, and queues take turns. Null if none can be handed out now, or
// the query has failed.
FrameNode* StageReceiver::queued_frame(Inbox::SenderQueue* only, RowMemory* into) {
  for (;;) {
    Inbox::SenderQueue* const queue = only == nullptr          ? inbox_.active()
                                      : only->first != nullptr ? only
                                                               : nullptr;
    if (queue == nullptr || shuffle_.query()->failed()) return nullptr;
    const bool is_fragment = queue->first->kind == wire::FrameKind::fragment;
    FrameNode* const node =
        is_fragment ? receive_side_.fragments().assemble(inbox_, *queue, into) : take_whole(*queue);
    if (node == nullptr) {
      // The rest of the row has not come: other senders' turn. Else nothing can be read, or assembled, now.
      if (is_fragment && queue->first == nullptr) continue;
      return nullptr;
    }
    if (queue->ends()) receive_side_.inboxes().finish(inbox_, *queue);
    return node;
  }
}

FrameNode* StageReceiver::take_whole(Inbox::SenderQueue& queue) {
  FrameNode* const node = queue.first;
  ReceivedFrames& frames = receive_side_.frames();
  if (!frames.make_readable(*shuffle_.query(), *node)) return nullptr;
  inbox_.pop(queue);
  if (node->ring == nullptr) return node;
  node->ring->unlink(node);
  if (base::planted(base::Plant::read_position_too_early))
    frames.release_in_ring(*node->ring, node->token);
  return node;
}

Outcome StageReceiver::answer_without_frame(Inbox::SenderQueue* only) {
  if (shuffle_.query()->failed()) {
    shuffle_.drop_rows();
    return side_.fail(shuffle_.query()->cause());
  }
  const size_t senders = shuffle_.spec().senders.size();
  const bool is_end = only != nullptr ? only->finished : inbox_.finished_count == senders;
  if (!is_end) {
    const uint64_t peer =
        only != nullptr ? shuffle_.spec().senders[only->index] : counters::kAnyPeer;
    return shuffle_.operation().blocked_on().rows(shuffle_.counts(), peer, inbox_);
  }
  if (only == nullptr) {
    ends_told_ = static_cast<uint32_t>(senders);
  } else if (!std::exchange(only->end_told, true)) {
    ++ends_told_;
  }
  return Outcome::end_of_stream;
}

void StageReceiver::release(Batch& batch) noexcept {
  auto* const node = static_cast<FrameNode*>(batch.frame_);
  batch.frame_ = nullptr;
  batch.receiver_ = nullptr;
  batch.data_ = nullptr;
  batch.bytes_ = 0;
  batch.row_count_ = 0;
  released(*node);
  receive_side_.frames().release(node, true);
  shuffle_.release_reference();
}

Status StageReceiver::detach(Batch& batch) {
  return side_.guarded([&] {
    if (Status status = shuffle_.enter_worker(); !status.ok()) return status;
    auto* const node = static_cast<FrameNode*>(batch.frame_);
    if (Status status = receive_side_.frames().detach(*shuffle_.query(), node); !status.ok()) {
      // Only the copy is refused; the query goes on.
      if (status.code() != Code::overflow_exhausted) return status;
      return Status(Code::limit_exceeded, std::string(status.message()))
          .of_query(shuffle_.query()->id)
          .of_stage(shuffle_.spec().stage);
    }
    warn_if_in_file(shuffle_.worker(), *shuffle_.query(), shuffle_.spec().stage, node->stored);
    batch.data_ = node->payload;
    return Status::Ok();
  });
}

void StageReceiver::fail_by_width(uint32_t row_bytes, size_t read_as) noexcept {
  (void)side_.guarded([&] {
    const std::string width = row_bytes == 0 ? "a length each" : fmt::format("{} bytes", row_bytes);
    shuffle_.fail_query(
        base::error(Code::query_failed,
                    "worker {} reads the rows of stage {}, which have {}, as rows of {} bytes",
                    shuffle_.worker().number, shuffle_.spec().stage, width, read_as));
    return Status::Ok();
  });
}

Outcome StageReceiver::stop() noexcept {
  Outcome outcome = Outcome::failed;
  const Status status = side_.guarded([&] {
    outcome = side_.enter();
    if (outcome != Outcome::done || std::exchange(stopped_, true)) return Status::Ok();
    const ShuffleSpec& spec = shuffle_.spec();
    if (inbox_.finished_count == spec.senders.size()) return Status::Ok();
    receive_side_.inboxes().discard(inbox_);
    has_left();
    const WorkerContext& worker = shuffle_.worker();
    worker.queries.stop(*shuffle_.query(), spec.stage, worker.number, spec.senders);
    return Status::Ok();
  });
  return status.ok() ? outcome : Outcome::failed;
}

void StageReceiver::take_in_exchange(bool is_taken) noexcept {
  if (!closed_) inbox_.is_taken_in_exchange = is_taken;
}

void StageReceiver::has_left() noexcept {
  if (NodeShare* const share = receive_side_.at_node()) share->has_left(inbox_);
}

bool StageReceiver::is_done() const noexcept {
  return stopped_ || ends_told_ >= shuffle_.spec().senders.size();
}

void StageReceiver::drop_rows() noexcept {
  if (closed_) return;
  receive_side_.inboxes().discard(inbox_);
  has_left();
}

void StageReceiver::close() noexcept {
  closed_ = true;
  receive_side_.inboxes().close(inbox_);
  has_left();
}

}  // namespace faro::shuffle

// ------------------------------------------------------------------- faro::ShuffleReceiver, Batch

namespace faro {

// --- Batch

void Batch::release_frame() noexcept { receiver_->release(*this); }

void Batch::end() noexcept {
  if (!receiver_->forked()) release_frame();
}

Status Batch::detach() { return frame_ == nullptr ? Status::Ok() : receiver_->detach(*this); }

void Batch::fail_query_by_width(size_t bytes) const noexcept {
  if (frame_ != nullptr) receiver_->fail_by_width(row_bytes_, bytes);
}

Batch::RowRange Batch::each_row() const noexcept {
  RowIterator first;
  first.at_ = data_;
  first.end_ = data_ + bytes_;
  first.row_bytes_ = row_bytes_;
  if (row_bytes_ == 0) {
    first.left_ = row_count_ + 1;  // load() takes one
    first.load();
  } else {
    first.left_ = row_count_;
    first.row_ = {data_, row_bytes_};
  }
  return {first, RowIterator()};
}

uint32_t Batch::offsets(std::span<uint32_t> to) const noexcept {
  if (to.empty()) return 0;
  const auto rows = static_cast<uint32_t>(std::min<size_t>(row_count_, to.size() - 1));
  const std::byte* at = data_;
  const std::byte* const end = data_ + bytes_;
  to[0] = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    uint64_t bytes = row_bytes_;
    if (row_bytes_ == 0) {
      uint32_t length = 0;
      if (end - at < static_cast<ptrdiff_t>(sizeof length)) return row;
      std::memcpy(&length, at, sizeof length);
      bytes = sizeof length + uint64_t{length};
    }
    if (static_cast<uint64_t>(end - at) < bytes) return row;
    at += bytes;
    to[row + 1] = static_cast<uint32_t>(at - data_);
  }
  return rows;
}

// --- ShuffleReceiver

Outcome ShuffleReceiver::receive(Batch& batch, Wait wait) const {
  return receiver_ == nullptr ? Outcome::failed : receiver_->receive(batch, nullptr, wait);
}

Outcome ShuffleReceiver::receive_from(uint32_t sender, Batch& batch, Wait wait) const {
  return receiver_ == nullptr ? Outcome::failed : receiver_->receive(batch, &sender, wait);
}

Outcome ShuffleReceiver::receive_into(Batch& batch, const Allocate& allocate, Wait wait) const {
  return receiver_ == nullptr ? Outcome::failed
                              : receiver_->receive(batch, nullptr, wait, &allocate);
}

Outcome ShuffleReceiver::stop() const {
  return receiver_ == nullptr ? Outcome::failed : receiver_->stop();
}

Status ShuffleReceiver::status() const {
  return receiver_ == nullptr ? Status(Code::closed, "the receiver is of no shuffle")
                              : receiver_->status();
}

}  // namespace faro
