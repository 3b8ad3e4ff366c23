// ShuffleCore, the receiving half: polling and batches.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "shuffle/node_core.h"
#include "shuffle/shuffle_core.h"
#include "transport/mirrored_ring.h"

namespace faro::detail {

using transport::count;

Outcome ShuffleCore::poll(Batch& batch, const uint32_t* only_sender, bool wait, Timeout timeout) {
  batch.release();
  auto attempt = [&] { return attempt_poll(batch, only_sender); };
  return operate(attempt, wait, timeout);
}

Outcome ShuffleCore::attempt_poll(Batch& batch, const uint32_t* only_sender) {
  if (const Outcome outcome = check(); outcome != Outcome::done) return outcome;
  if (inbox_ == nullptr || stopped_) return Outcome::end_of_stream;
  Inbox::Stream* only = nullptr;
  if (only_sender != nullptr) {
    if (*only_sender >= worker_.node().worker_count() || !inbox_->is_sender(*only_sender)) {
      return fail(Code::invalid_argument,
                  fmt::format("stage {}: worker {} is no sender", spec_.stage, *only_sender));
    }
    only = &inbox_->stream(*only_sender);
  }
  if (worker_.has_queued())
    worker_.pump_all();  // HC-5: what can be sent goes before more is taken in
  FrameNode* node = worker_.next_frame(*inbox_, only);
  if (node == nullptr && worker_.gather()) node = worker_.next_frame(*inbox_, only);
  if (node == nullptr) {
    if (query_->failed()) {
      query_failed();
      return fail(query_->cause());
    }
    const bool end =
        only != nullptr ? only->finished : inbox_->finished_count == spec_.senders.size();
    if (end) {
      if (only == nullptr) {
        ends_told_ = static_cast<uint32_t>(spec_.senders.size());
      } else if (!std::exchange(only->end_told, true)) {
        ++ends_told_;
      }
      return Outcome::end_of_stream;
    }
    return worker_.wants_rows(*this, only_sender != nullptr ? *only_sender : counters::kAnyPeer);
  }
  worker_.handed_out(node);
  ++held_;
  batch.core_ = this;
  batch.frame_ = node;
  batch.data_ = node->payload;
  batch.bytes_ = node->payload_bytes;
  batch.row_count_ = node->row_count;
  batch.row_bytes_ = node->row_bytes;
  batch.sender_ = node->sender;
  count(worker_.counters().rows_received, node->row_count);
  return Outcome::done;
}

void ShuffleCore::release(Batch& batch) noexcept {
  auto* const node = static_cast<FrameNode*>(batch.frame_);
  batch.frame_ = nullptr;
  batch.core_ = nullptr;
  batch.data_ = nullptr;
  batch.bytes_ = 0;
  batch.row_count_ = 0;
  worker_.release(node, true);
  --held_;
  reference_gone();
}

void ShuffleCore::reference_gone() noexcept {
  if (!closed_ || referenced()) return;
  const std::shared_ptr<NodeCore> last = std::move(keep_alive_);
  worker_.sweep();  // may destroy this object, `last` then the node
}

Status ShuffleCore::detach(Batch& batch) {
  return guarded([&] {
    if (Status status = worker_.enter(); !status.ok()) return status;
    auto* const node = static_cast<FrameNode*>(batch.frame_);
    if (Status status = worker_.detach(*query_, node); !status.ok()) {
      // Only the copy is refused; the query goes on.
      if (status.code() != Code::overflow_exhausted) return status;
      return Status(Code::limit_exceeded, std::string(status.message()))
          .of_query(query_->id)
          .of_stage(spec_.stage);
    }
    batch.data_ = node->payload;
    return Status::Ok();
  });
}

void ShuffleCore::stop() {
  (void)guarded([&] {
    if (check() != Outcome::done || inbox_ == nullptr || stopped_) return Status::Ok();
    stopped_ = true;
    if (inbox_->finished_count == spec_.senders.size()) return Status::Ok();
    worker_.discard(*inbox_);
    worker_.node().queries().stop(*query_, spec_.stage, worker_.number(), spec_.senders);
    return Status::Ok();
  });
}

}  // namespace faro::detail

namespace faro {

// Here, not in api/: a batch that is filled anew is released in this layer.
void Batch::release_frame() noexcept { core_->release(*this); }

}  // namespace faro
