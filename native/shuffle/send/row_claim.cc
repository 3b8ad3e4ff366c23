// Rows that the engine writes in place before they are sent: StageSender's part of it, and faro::RowClaim over that.
#include <utility>

#include "base/error.h"
#include "faro/sender.h"
#include "shuffle/send/stage_sender.h"

namespace faro::shuffle {

Outcome StageSender::claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data, Wait wait) {
  const auto attempt = [&] { return attempt_claim(receiver, bytes, data, true); };
  return shuffle_.operate(attempt, wait);
}

Outcome StageSender::make_room(uint32_t receiver, size_t bytes, std::span<std::byte>& data,
                               Wait wait) {
  data = {};
  const auto attempt = [&] { return attempt_claim(receiver, bytes, data, false); };
  return shuffle_.operate(attempt, wait);
}

// `in_frame`: a row that goes into a frame is claimed, too.
Outcome StageSender::attempt_claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data,
                                   bool in_frame) {
  if (const Outcome outcome = enter(); outcome != Outcome::done) return outcome;
  if (lanes_.has_row_claim()) {
    return shuffle_.fail(Code::wrong_state, "worker {} has an open claim; commit or abort it first",
                         shuffle_.worker().number);
  }
  if (receiver >= receiver_count()) return fail_no_receiver(receiver);
  if (const Outcome outcome = check_row("claim", bytes); outcome != Outcome::done) return outcome;
  if (done_or_stopped() == Outcome::stopped) return Outcome::stopped;
  Destination& to = destinations_[receiver];
  const bool lies_apart = to.stopped || to.lane.is_large(to, bytes);
  if (!lies_apart && !in_frame) {
    return to.lane.make_room(to, static_cast<uint32_t>(stage_.framed_bytes(bytes)),
                             WhenFull::overflow);
  }
  const Outcome outcome =
      lies_apart ? claimed_.claim_apart(to, bytes, data) : claimed_.claim_in_frame(to, bytes, data);
  if (outcome == Outcome::done) shuffle_.refer();
  return outcome;
}

Status StageSender::commit_claim(std::span<std::byte> data, size_t bytes) {
  return shuffle_.guarded([&] {
    if (claimed_.to() == nullptr)
      return Status(Code::wrong_state, "the claim was committed or aborted before");
    const ShuffleSpec& spec = shuffle_.spec();
    if (bytes > data.size() || (spec.row_bytes != 0 && bytes != spec.row_bytes)) {
      return base::error(Code::invalid_argument, "stage {}: commit of {} bytes of a claim of {}",
                         spec.stage, bytes, data.size());
    }
    if (shuffle_.enter() == Outcome::done) return claimed_.commit(bytes);
    claimed_.abort();
    return shuffle_.status();
  });
}

void StageSender::abort_claim() noexcept { claimed_.abort(); }

void StageSender::claim_gone() noexcept {
  claimed_.abort();
  shuffle_.release_reference();
}

}  // namespace faro::shuffle

namespace faro {

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

Outcome ShuffleSender::claim(uint32_t receiver, size_t bytes, RowClaim& row, Wait wait) const {
  row.abort();
  if (sender_ == nullptr) return Outcome::failed;
  const Outcome outcome = sender_->claim(receiver, bytes, row.data_, wait);
  if (outcome == Outcome::done) row.sender_ = sender_;
  return outcome;
}

}  // namespace faro
