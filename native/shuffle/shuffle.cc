// faro::Shuffle, Batch and RowClaim, over OpenShuffle and its two sides.
#include "faro/shuffle.h"

#include <fmt/format.h>

#include <utility>

#include "shuffle/open_shuffle.h"

namespace faro {

namespace detail {

Outcome send_slow(shuffle::StageSender& sender, uint32_t receiver, const void* row, size_t bytes,
                  bool wait) noexcept {
  return sender.send(receiver, {static_cast<const std::byte*>(row), bytes}, wait, kNoTimeout);
}

Outcome send_in_ring_slow(shuffle::StageSender& sender, uint32_t receiver, const void* row,
                          size_t bytes, bool wait) noexcept {
  return sender.send(receiver, {static_cast<const std::byte*>(row), bytes}, wait, kNoTimeout,
                     shuffle::WhenFull::nowhere);
}

size_t broadcast_slow(shuffle::StageSender& sender, const void* rows, size_t row_bytes,
                      size_t count, bool wait, Outcome& outcome) noexcept {
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(rows), row_bytes * count);
  outcome = sender.broadcast(bytes.first(row_bytes), wait, kNoTimeout);
  if (outcome != Outcome::done) return 0;
  return 1 + sender.broadcast_into_open_frames(bytes.subspan(row_bytes));
}

Outcome claim_slow(shuffle::StageSender& sender, uint32_t receiver, size_t bytes, bool wait,
                   Timeout timeout, RowClaim& claim) {
  const Outcome outcome = sender.claim(receiver, bytes, claim.data_, wait, timeout);
  if (outcome == Outcome::done) claim.sender_ = &sender;
  return outcome;
}

}  // namespace detail

// --- RowClaim

Status RowClaim::commit(size_t bytes) {
  if (sender_ == nullptr) return Status(Code::wrong_state, "the claim is empty");
  Status status = sender_->commit_claim(data_, bytes);
  if (status.code() != Code::invalid_argument) {
    data_ = {};
    std::exchange(sender_, nullptr)->claim_gone();
  }
  return status;
}

void RowClaim::abort() noexcept {
  data_ = {};
  if (sender_ != nullptr) std::exchange(sender_, nullptr)->claim_gone();
}

// --- Batch

void Batch::release_frame() noexcept { receiver_->release(*this); }

Status Batch::detach() { return frame_ == nullptr ? Status::Ok() : receiver_->detach(*this); }

void Batch::fail_query_by_width(size_t bytes) const noexcept {
  if (frame_ != nullptr) receiver_->fail_by_width(row_bytes_, bytes);
}

Batch::RowRange Batch::each_row() const noexcept {
  RowRange range;
  range.first.at_ = data_;
  range.first.end_ = data_ + bytes_;
  range.first.row_bytes_ = row_bytes_;
  range.first.left_ = row_count_ + 1;  // load() below takes one
  range.first.load();
  return range;
}

// --- Shuffle

uint32_t Shuffle::receiver_count() const noexcept {
  return core_ == nullptr ? 0 : core_->receiver_count();
}
uint32_t Shuffle::own_receiver() const noexcept {
  return core_ == nullptr ? 0 : core_->own_receiver();
}
uint32_t Shuffle::stage() const noexcept { return core_ == nullptr ? 0 : core_->spec().stage; }
QueryId Shuffle::query() const noexcept {
  return core_ == nullptr ? QueryId{} : core_->query()->id;
}
Status Shuffle::status() const {
  return core_ == nullptr ? Status(Code::closed, "the shuffle is not open") : core_->status();
}
detail::OutboxCursor* Shuffle::cursors() const noexcept { return core_->sender()->cursors(); }

uint32_t* Shuffle::frame_rows() const noexcept { return core_->sender()->frame_rows(); }

detail::SendKernels Shuffle::kernels() const { return core_->sender()->kernels(); }

Result<VariableRowSender> Shuffle::variable_sender() {
  if (Status status = check_sender(0); !status.ok()) return status;
  VariableRowSender made;
  made.sender_ = sending();
  made.cursors_ = cursors();
  made.frame_rows_ = frame_rows();
  made.receiver_count_ = receiver_count();
  return made;
}

Status Shuffle::check_sender(size_t row_bytes) const {
  if (core_ == nullptr) return Status(Code::closed, "the shuffle is not open");
  if (sending() == nullptr) {
    return Status(Code::wrong_state,
                  fmt::format("stage {}: this worker is no sender", core_->spec().stage));
  }
  if (core_->spec().row_bytes != row_bytes) {
    return Status(Code::invalid_argument,
                  fmt::format("stage {}: rows of {} bytes, but row_bytes = {}", core_->spec().stage,
                              row_bytes, core_->spec().row_bytes));
  }
  return Status::Ok();
}

// --- sending

namespace {

template <typename Send>
Outcome if_sender(shuffle::OpenShuffle* core, const Send& send) {
  if (core == nullptr) return Outcome::failed;
  return core->sender() == nullptr ? core->refuse_send() : send(*core->sender());
}

}  // namespace

shuffle::StageSender* Shuffle::sending() const noexcept {
  return core_ == nullptr ? nullptr : core_->sender();
}

Outcome Shuffle::try_send(uint32_t receiver, std::span<const std::byte> row) {
  return if_sender(core_, [&](auto& to) { return to.send(receiver, row, false, kNoTimeout); });
}
Outcome Shuffle::send(uint32_t receiver, std::span<const std::byte> row, Timeout timeout) {
  return if_sender(core_, [&](auto& to) { return to.send(receiver, row, true, timeout); });
}
Outcome Shuffle::try_multicast(std::span<const uint32_t> receivers,
                               std::span<const std::byte> row) {
  return if_sender(core_,
                   [&](auto& to) { return to.multicast(receivers, row, false, kNoTimeout); });
}
Outcome Shuffle::multicast(std::span<const uint32_t> receivers, std::span<const std::byte> row,
                           Timeout timeout) {
  return if_sender(core_, [&](auto& to) { return to.multicast(receivers, row, true, timeout); });
}
Outcome Shuffle::try_broadcast(std::span<const std::byte> row) {
  return if_sender(core_, [&](auto& to) { return to.broadcast(row, false, kNoTimeout); });
}
Outcome Shuffle::broadcast(std::span<const std::byte> row, Timeout timeout) {
  return if_sender(core_, [&](auto& to) { return to.broadcast(row, true, timeout); });
}
Outcome Shuffle::try_claim(uint32_t receiver, size_t bytes, RowClaim& claim) {
  claim.abort();
  return if_sender(core_, [&](auto& to) {
    return detail::claim_slow(to, receiver, bytes, false, kNoTimeout, claim);
  });
}
Outcome Shuffle::claim(uint32_t receiver, size_t bytes, RowClaim& claim, Timeout timeout) {
  claim.abort();
  return if_sender(core_, [&](auto& to) {
    return detail::claim_slow(to, receiver, bytes, true, timeout, claim);
  });
}

void Shuffle::flush() {
  if (core_ != nullptr) core_->flush();
}
Outcome Shuffle::try_finish() {
  return core_ == nullptr ? Outcome::failed : core_->finish(false, kNoTimeout);
}
Outcome Shuffle::finish(Timeout timeout) {
  return core_ == nullptr ? Outcome::failed : core_->finish(true, timeout);
}

// --- receiving

Outcome Shuffle::try_poll(Batch& batch) {
  return core_ == nullptr ? Outcome::failed : core_->receive(batch, nullptr, false, kNoTimeout);
}
Outcome Shuffle::take(Batch& batch, Timeout timeout) {
  return core_ == nullptr ? Outcome::failed : core_->receive(batch, nullptr, true, timeout);
}
Outcome Shuffle::try_poll_from(uint32_t sender, Batch& batch) {
  return core_ == nullptr ? Outcome::failed : core_->receive(batch, &sender, false, kNoTimeout);
}
Outcome Shuffle::take_from(uint32_t sender, Batch& batch, Timeout timeout) {
  return core_ == nullptr ? Outcome::failed : core_->receive(batch, &sender, true, timeout);
}
void Shuffle::stop() {
  if (core_ != nullptr && core_->receiver() != nullptr) core_->receiver()->stop();
}

// --- the query

void Shuffle::cancel(std::string_view reason) {
  if (core_ != nullptr) core_->cancel(reason);
}
void Shuffle::close() noexcept {
  if (core_ != nullptr) std::exchange(core_, nullptr)->close();
}

}  // namespace faro
