// faro::ShuffleReceiver and Batch, over StageReceiver.
#include "faro/batch.h"
#include "faro/receiver.h"
#include "shuffle/receive/stage_receiver.h"

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

// --- ShuffleReceiver

Outcome ShuffleReceiver::receive(Batch& batch, Wait wait) const {
  return receiver_ == nullptr ? Outcome::failed : receiver_->receive(batch, nullptr, wait);
}

Outcome ShuffleReceiver::receive_from(uint32_t sender, Batch& batch, Wait wait) const {
  return receiver_ == nullptr ? Outcome::failed : receiver_->receive(batch, &sender, wait);
}

Outcome ShuffleReceiver::stop() const {
  return receiver_ == nullptr ? Outcome::failed : receiver_->stop();
}

Status ShuffleReceiver::status() const {
  return receiver_ == nullptr ? Status(Code::closed, "the receiver is of no shuffle")
                              : receiver_->status();
}

}  // namespace faro
