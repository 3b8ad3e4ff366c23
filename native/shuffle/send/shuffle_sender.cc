// faro::ShuffleSender, RowSender and RowClaim, over StageSender.
#include <utility>

#include "faro/sender.h"
#include "shuffle/send/stage_sender.h"

namespace faro {

namespace detail {

Outcome send_slow(shuffle::StageSender* sender, uint32_t receiver, const void* row, size_t bytes,
                  Wait wait) noexcept {
  if (sender == nullptr) return Outcome::failed;
  return sender->send(receiver, {static_cast<const std::byte*>(row), bytes}, wait);
}

Outcome send_in_ring_slow(shuffle::StageSender* sender, uint32_t receiver, const void* row,
                          size_t bytes, Wait wait) noexcept {
  if (sender == nullptr) return Outcome::failed;
  return sender->send(receiver, {static_cast<const std::byte*>(row), bytes}, wait,
                      shuffle::WhenFull::nowhere);
}

Sent broadcast_slow(shuffle::StageSender* sender, const void* rows, size_t row_bytes, size_t count,
                    Wait wait) noexcept {
  if (sender == nullptr) return {0, Outcome::failed};
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(rows), row_bytes * count);
  const Outcome outcome = sender->broadcast(bytes.first(row_bytes), wait);
  if (outcome != Outcome::done) return {0, outcome};
  return {1 + sender->broadcast_past_stopped(bytes.subspan(row_bytes)), outcome};
}

}  // namespace detail

// --- RowClaim

Status RowClaim::commit(size_t bytes) {
  if (sender_ == nullptr) return Status(Code::wrong_state, "the claim is empty");
  Status status = sender_->commit_claim(data_, bytes == kAll ? data_.size() : bytes);
  if (status.code() != Code::invalid_argument) {
    data_ = {};
    std::exchange(sender_, nullptr)->claim_gone();
  }
  return status;
}

void RowClaim::abort() noexcept {
  data_ = {};
  if (sender_ != nullptr) end();
}

void RowClaim::end() noexcept {
  shuffle::StageSender* const sender = std::exchange(sender_, nullptr);
  if (!sender->forked()) sender->claim_gone();  // else the row is the parent's
}

// --- ShuffleSender

Outcome ShuffleSender::claim(uint32_t receiver, size_t bytes, RowClaim& row, Wait wait) const {
  row.abort();
  if (sender_ == nullptr) return Outcome::failed;
  const Outcome outcome = sender_->claim(receiver, bytes, row.data_, wait);
  if (outcome == Outcome::done) row.sender_ = sender_;
  return outcome;
}

Outcome ShuffleSender::multicast(std::span<const uint32_t> receivers,
                                 std::span<const std::byte> row, Wait wait) const {
  return sender_ == nullptr ? Outcome::failed : sender_->multicast(receivers, row, wait);
}

Outcome ShuffleSender::flush() const {
  return sender_ == nullptr ? Outcome::failed : sender_->flush();
}

Outcome ShuffleSender::finish(Wait wait) const {
  return sender_ == nullptr ? Outcome::failed : sender_->finish(wait);
}

Status ShuffleSender::status() const {
  return sender_ == nullptr ? Status(Code::closed, "the sender is of no shuffle")
                            : sender_->status();
}

}  // namespace faro
