// Rows that the engine writes in place before they are sent: ClaimedRow, StageSender's part of it, and faro::RowClaim over that.
#include "shuffle/stage/claimed_row.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/planted.h"
#include "faro/sender.h"
#include "shuffle/stage/stage_sender.h"

namespace faro::shuffle {

using counters::count;

Outcome ClaimedRow::begin(Target& to) noexcept {
  to_ = &to;
  lanes_.set_claim(true);
  return Outcome::done;
}

Target& ClaimedRow::end() noexcept {
  lanes_.set_claim(false);
  return *std::exchange(to_, nullptr);
}

Outcome ClaimedRow::claim_in_frame(Target& to, size_t bytes, std::span<std::byte>& data) {
  const auto framed = static_cast<uint32_t>(to.stage().framed_bytes(bytes));
  const Outcome outcome = to.make_room(framed, WhenFull::overflow);
  if (outcome != Outcome::done) return outcome;
  data = to.claim_row(bytes);
  return begin(to);
}

// What was sent before goes first. A commit needs no memory, so that there is some for each member.
Outcome ClaimedRow::claim_apart(Target& to, size_t bytes, std::span<std::byte>& data) {
  if (Group* const group = to.group()) {
    if (const Outcome outcome = group->send_block(WhenFull::overflow); outcome != Outcome::done)
      return outcome;
  }
  for (Destination* const member : to.members()) {
    if (member->stopped) continue;
    if (const Outcome outcome = member->lane.prepare(*member); outcome != Outcome::done)
      return outcome;
  }
  // One also if nobody needs it.
  Destination* const nobody = to.any_member();
  const std::span<Destination* const> members =
      to.members().empty() ? std::span<Destination* const>(&nobody, 1) : to.members();
  apart_.reserve(members.size());
  for (Destination* const member : members) {
    const Outcome outcome = make_apart(*member, bytes);
    if (outcome != Outcome::done) return apart_.clear(), outcome;
  }
  data = {apart_.front()->stored.memory, bytes};
  return begin(to);
}

// With room for a header and a length before the row, in case it is committed small enough for a frame.
Outcome ClaimedRow::make_apart(Destination& to, size_t bytes) {
  const uint64_t with_room = sizeof(wire::FrameHeader) + sizeof(wire::RowLength) + bytes;
  std::unique_ptr<QueuedFrame> made;
  const Outcome outcome = to.lane.make_queued(to, wire::FrameKind::fragment, with_room, made);
  if (outcome == Outcome::done) apart_.push_back(std::move(made));
  return outcome;
}

Status ClaimedRow::commit(size_t bytes) {
  Target& to = end();
  count(lanes_.worker().counters.rows_dropped,
        to.stopped() || is_apart() ? to.stopped_members() : 0);
  if (is_apart()) return commit_apart(bytes);
  if (!to.stopped()) {
    to.commit_row(bytes);
  } else {
    to.unclaim_row();
    to.drop_open();
  }
  return Status::Ok();
}

// To those that need rows.
Status ClaimedRow::commit_apart(size_t bytes) {
  std::vector<std::unique_ptr<QueuedFrame>> rows = std::exchange(apart_, {});
  for (size_t i = 1; i < rows.size(); ++i)
    std::memcpy(rows[i]->stored.memory, rows[0]->stored.memory, bytes);
  Status status;
  for (std::unique_ptr<QueuedFrame>& row : rows) {
    Destination& to = *row->to;
    if (to.stopped) continue;
    Status sent = send_apart(to, std::move(row), bytes);
    if (!sent.ok()) status = std::move(sent);
  }
  return status;
}

Status ClaimedRow::send_apart(Destination& to, std::unique_ptr<QueuedFrame> row, size_t bytes) {
  if (base::planted(base::Plant::lost_commit)) {
    const auto framed = static_cast<uint32_t>(to.stage.framed_bytes(bytes));
    const auto attempt = [&] { return to.lane.make_room(to, framed, WhenFull::overflow); };
    const Outcome room = wait_loop_.operate(to.stage.side, attempt, Wait::forever());
    const RowPieces::Piece written(row->stored.memory, bytes);
    if (room == Outcome::done) to.lane.write(to, RowPieces(written));
    return room == Outcome::failed ? to.stage.side.status() : Status::Ok();
  }
  if (!to.lane.is_large(to, bytes)) return to.lane.send_shrunk(std::move(row), bytes);
  to.lane.send_large(std::move(row), bytes);
  return Status::Ok();
}

void ClaimedRow::abort() noexcept {
  if (to_ == nullptr) return;
  Target& to = end();
  if (is_apart()) {
    apart_.clear();
    return;
  }
  to.unclaim_row();
  if (to.stage().shuffle.query()->failed() || to.stopped()) to.drop_open();
}

// --- StageSender

Outcome StageSender::claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data, Wait wait) {
  const auto attempt = [&] { return attempt_claim(receiver, bytes, data, true); };
  return wait_loop_.operate(side_, attempt, wait);
}

Outcome StageSender::make_room(uint32_t receiver, size_t bytes, std::span<std::byte>& data,
                               Wait wait) {
  data = {};
  const auto attempt = [&] { return attempt_claim(receiver, bytes, data, false); };
  return wait_loop_.operate(side_, attempt, wait);
}

// `in_frame`: a row that goes into a frame is claimed, too.
Outcome StageSender::attempt_claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data,
                                   bool in_frame) {
  if (const Outcome outcome = enter(); outcome != Outcome::done) return outcome;
  if (lanes_.has_row_claim()) {
    return side_.fail(Code::wrong_state, "worker {} has an open claim; commit or abort it first",
                      shuffle_.worker().number);
  }
  if (receiver >= targets_.count()) return fail_no_receiver(receiver);
  if (const Outcome outcome = check_row("claim", bytes); outcome != Outcome::done) return outcome;
  if (done_or_stopped() == Outcome::stopped) return Outcome::stopped;
  Target& to = targets_[receiver];
  const Destination& any = targets_.receivers().front();
  const bool lies_apart = to.stopped() || any.lane.is_large(any, bytes);
  if (!lies_apart && !in_frame) {
    return to.make_room(static_cast<uint32_t>(stage_.framed_bytes(bytes)), WhenFull::overflow);
  }
  const Outcome outcome =
      lies_apart ? claimed_.claim_apart(to, bytes, data) : claimed_.claim_in_frame(to, bytes, data);
  if (outcome == Outcome::done) shuffle_.refer();
  return outcome;
}

Status StageSender::commit_claim(std::span<std::byte> data, size_t bytes) {
  return side_.guarded([&] {
    if (claimed_.to() == nullptr)
      return Status(Code::wrong_state, "the claim was committed or aborted before");
    const ShuffleSpec& spec = shuffle_.spec();
    if (bytes > data.size() || (spec.row_bytes != 0 && bytes != spec.row_bytes)) {
      return base::error(Code::invalid_argument, "stage {}: commit of {} bytes of a claim of {}",
                         spec.stage, bytes, data.size());
    }
    if (side_.enter() == Outcome::done) return claimed_.commit(bytes);
    claimed_.abort();
    return side_.status();
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
