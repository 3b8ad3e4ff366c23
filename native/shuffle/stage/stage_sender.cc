#include "shuffle/stage/stage_sender.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/planted.h"
#include "faro/sender.h"
#include "shuffle/kernels/kernels.h"

namespace faro::shuffle {

using counters::count;

namespace {

Status check_pieces(const RowPieces& row) {
  switch (row.fault()) {
    case RowPieces::Fault::none:
      return Status::Ok();
    case RowPieces::Fault::too_many:
      return base::error(Code::invalid_argument, "a row of more than {} pieces",
                         RowPieces::kMostPieces);
    case RowPieces::Fault::null_piece:
      return Status(Code::invalid_argument, "a piece of a row has bytes, but no address");
    case RowPieces::Fault::overflow:
      break;
  }
  return Status(Code::row_too_large, "the bytes of all pieces of a row have no sum");
}

}  // namespace

StageSender::StageSender(ShuffleContext& shuffle, WaitLoop& wait_loop, Lanes& lanes,
                         RowFormat format, uint16_t slot, GroupBlocks blocks)
    : shuffle_(shuffle),
      side_(shuffle),
      wait_loop_(wait_loop),
      lanes_(lanes),
      stage_{shuffle, side_, std::move(format), slot},
      targets_(shuffle, lanes, stage_, std::move(blocks)),
      claimed_(wait_loop, lanes),
      many_(*this, shuffle, side_),
      share_lanes_(lanes.are_shared(shuffle.receivers(), shuffle.spec().delivery)),
      everyone_(targets_.count()),
      named_(targets_.count()) {
  std::iota(everyone_.begin(), everyone_.end(), 0u);
}

StageSender::~StageSender() { abandon_frames(); }

detail::SendKernels StageSender::kernels() const {
  return send_kernels(shuffle_.worker().settings.kernel_scatter, shuffle_.spec().row_bytes,
                      targets_.count());
}

Status StageSender::send_as(std::string_view format) {
  return side_.guarded([&] { return shuffle_.name_format(stage_.format, format, "sends its"); });
}

// --- what may be sent

Outcome StageSender::enter() {
  if (const Outcome outcome = side_.enter(); outcome != Outcome::done) return outcome;
  if (finish_called_)
    return side_.fail(Code::wrong_state, "stage {}: send after finish", shuffle_.spec().stage);
  return Outcome::done;
}

Outcome StageSender::fail_no_receiver(uint32_t receiver) {
  return side_.fail(Code::invalid_argument, "stage {}: {} {} does not exist (0 … {})",
                    shuffle_.spec().stage, targets_.noun(), receiver, targets_.count() - 1);
}

// That all exist, and each is named once.
Outcome StageSender::check_receivers(std::span<const uint32_t> receivers) {
  ++multicasts_;
  for (const uint32_t receiver : receivers) {
    if (receiver >= targets_.count()) return fail_no_receiver(receiver);
    if (std::exchange(named_[receiver], multicasts_) == multicasts_) {
      return side_.fail(Code::invalid_argument, "stage {}: {} {} is named twice",
                        shuffle_.spec().stage, targets_.noun(), receiver);
    }
  }
  return Outcome::done;
}

// `what`: "row" or "claim".
Outcome StageSender::check_row(std::string_view what, size_t bytes) {
  const ShuffleSpec& spec = shuffle_.spec();
  if (spec.row_bytes != 0 && bytes != spec.row_bytes) {
    return side_.fail(Code::invalid_argument, "stage {}: a {} of {} bytes, but row_bytes = {}",
                      spec.stage, what, bytes, spec.row_bytes);
  }
  const uint64_t limit = shuffle_.worker().settings.row_limit_bytes;
  if (bytes > limit) {
    return side_.fail(Code::row_too_large,
                      "stage {}: a {} of {} bytes is above row.limit_bytes = {}", spec.stage, what,
                      bytes, limit);
  }
  return Outcome::done;
}

// --- sending

Outcome StageSender::send(uint32_t receiver, std::span<const std::byte> row, Wait wait,
                          WhenFull when_full) noexcept {
  // A row for one receiver is a multicast to one.
  return multicast({&receiver, 1}, RowPieces(row), wait, when_full);
}

Outcome StageSender::broadcast(std::span<const std::byte> row, Wait wait, WhenFull when_full) {
  return multicast(everyone_, RowPieces(row), wait, when_full);
}

Outcome StageSender::multicast(std::span<const uint32_t> receivers, const RowPieces& row, Wait wait,
                               WhenFull when_full) noexcept {
  LargeRow cut(*this, shuffle_);
  const auto attempt = [&] {
    if (!cut.is_begun()) {
      const Outcome outcome =
          attempt_multicast(receivers, row, when_full, wait.is_forever() ? &cut : nullptr);
      if (!cut.is_begun()) return outcome;
    }
    const Outcome outcome = cut.go_on();
    return outcome == Outcome::done ? done_or_stopped() : outcome;
  };
  return wait_loop_.operate(side_, attempt, wait);
}

// `to_cut`: what a large row becomes that may be cut straight from where it lies; null: it may not.
Outcome StageSender::attempt_multicast(std::span<const uint32_t> receivers, const RowPieces& row,
                                       WhenFull when_full, LargeRow* to_cut) {
  if (const Outcome outcome = enter(); outcome != Outcome::done) return outcome;
  if (const Outcome outcome = check_receivers(receivers); outcome != Outcome::done) return outcome;
  if (Status fault = check_pieces(row); !fault.ok())
    return side_.fail(fault.of_query(shuffle_.query()->id).of_stage(shuffle_.spec().stage));
  if (const Outcome outcome = check_row("row", row.bytes()); outcome != Outcome::done)
    return outcome;
  const Destination& first = targets_.receivers().front();
  const bool large = first.lane.is_large(first, row.bytes());
  const bool is_cut = large && to_cut != nullptr && !receivers.empty() && !lanes_.holds_batches();
  // A ring has one open frame: room that was made for one receiver is gone when it is made for the next in the same ring.
  const bool is_apart = !large && share_lanes_ && receivers.size() > 1;
  const auto bytes = static_cast<uint32_t>(large ? 0 : stage_.framed_bytes(row.bytes()));
  // First room everywhere, then the row everywhere: to all or to none (DESIGN.md HC-7). Room that was
  // made stays: the block of a group is sent through rings, where it closes a frame, so that groups come first here, and
  // last where rows are written. A row that is cut needs no room at once, but a call that fails does so before it is begun.
  const auto make_room = [&](Target& target) {
    return target.stopped()    ? Outcome::done
           : large || is_apart ? prepare_large(target, is_cut)
                               : target.make_room(bytes, when_full);
  };
  if (const Outcome outcome = targets_.for_each(receivers, true, make_room);
      outcome != Outcome::done)
    return outcome;
  if (large || is_apart) return multicast_copies(receivers, row, is_cut ? to_cut : nullptr, large);
  const auto write = [&](Target& target) {
    if (target.stopped()) {
      count(shuffle_.worker().counters.rows_dropped, target.stopped_members());
    } else {
      target.write(row);
    }
    return Outcome::done;
  };
  (void)targets_.for_each(receivers, false, write);
  return done_or_stopped();
}

Outcome StageSender::prepare_large(Target& target, bool is_cut) {
  if (Group* const group = target.group()) {
    if (const Outcome outcome = group->send_block(WhenFull::overflow); outcome != Outcome::done)
      return outcome;
  }
  for (Destination* const to : target.members()) {
    const Outcome outcome = to->lane.prepare(*to);
    if (outcome != Outcome::done && !(is_cut && outcome == Outcome::would_wait)) return outcome;
  }
  return Outcome::done;
}

// would_wait: it is begun to be cut, if it may be. `are_large`: the rows are too large for a frame. Else each copy has room for what
// turns it into a frame, should it be queued.
Outcome StageSender::multicast_copies(std::span<const uint32_t> receivers, const RowPieces& row,
                                      LargeRow* to_cut, bool are_large) {
  const uint64_t beside = are_large ? 0 : sizeof(wire::FrameHeader) + sizeof(wire::RowLength);
  std::vector<Destination*> members = targets_.members_of(receivers);
  const bool is_cut = to_cut != nullptr && !members.empty();
  // All copies before the first is queued: to all or to none.
  std::vector<std::unique_ptr<QueuedFrame>> copies;
  copies.reserve(is_cut ? 0 : members.size());
  for (Destination* const to : is_cut ? std::span<Destination*>() : std::span(members)) {
    std::unique_ptr<QueuedFrame> copy;
    const Outcome outcome =
        to->lane.make_queued(*to, wire::FrameKind::fragment, beside + row.bytes(), copy);
    if (outcome != Outcome::done) return outcome;
    row.copy_to(copy->stored.memory);
    copies.push_back(std::move(copy));
  }
  if (is_cut) to_cut->begin(std::move(members), row);
  for (const uint32_t receiver : receivers)
    count(shuffle_.worker().counters.rows_dropped, targets_[receiver].stopped_members());
  for (std::unique_ptr<QueuedFrame>& copy : copies) {
    Lane& lane = copy->to->lane;
    if (are_large) {
      lane.send_large(std::move(copy), row.bytes());
    } else if (!lane.send_shrunk(std::move(copy), row.bytes()).ok()) {
      return Outcome::failed;  // with the query
    }
  }
  return is_cut ? Outcome::would_wait : done_or_stopped();
}

// The inlined path cannot get past a receiver that has stopped; this one skips it.
size_t StageSender::broadcast_past_stopped(std::span<const std::byte> rows) noexcept {
  if (!targets_.any_stopped() || rows.empty()) return 0;
  const uint32_t row_bytes = shuffle_.spec().row_bytes;
  size_t fitting = rows.size() / row_bytes;
  for (uint32_t t = 0; t < targets_.count(); ++t) {
    const auto room = static_cast<size_t>(targets_.cursors()[t].end - targets_.cursors()[t].at);
    if (!targets_[t].stopped()) fitting = std::min(fitting, room / row_bytes);
  }
  for (uint32_t t = 0; t < targets_.count(); ++t) {
    if (targets_[t].stopped()) {
      count(shuffle_.worker().counters.rows_dropped, fitting * targets_[t].stopped_members());
    } else if (fitting > 0) {
      std::memcpy(targets_.cursors()[t].at, rows.data(), fitting * row_bytes);
      targets_.cursors()[t].at += fitting * row_bytes;
    }
  }
  return fitting;
}

// --- the end

Outcome StageSender::flush() noexcept {
  Outcome outcome = Outcome::failed;
  const Status status = side_.guarded([&] {
    outcome = side_.enter();
    if (outcome == Outcome::done) lanes_.flush();
    return Status::Ok();
  });
  return status.ok() ? outcome : Outcome::failed;
}

Outcome StageSender::finish(Wait wait) {
  return wait_loop_.operate(
      side_, [&] { return attempt_finish(); }, wait);
}

Outcome StageSender::attempt_finish() {
  if (const Outcome outcome = side_.enter(); outcome != Outcome::done) return outcome;
  if (claimed_.to() != nullptr)
    return side_.fail(Code::wrong_state, "stage {}: finish with an open claim",
                      shuffle_.spec().stage);
  finish_called_ = true;
  const Outcome sent = targets_.send_blocks();
  if (sent != Outcome::done && sent != Outcome::would_wait) return sent;
  bool all = sent == Outcome::done;
  for (Destination& to : targets_.receivers()) {
    if (to.finished || to.owed_blocks > 0) continue;
    const Outcome outcome = to.lane.finish(to);
    if (outcome == Outcome::would_wait) {
      (void)to.lane.blocked(to);
      all = false;  // the others' receivers need not wait for this one
    } else if (outcome != Outcome::done) {
      return outcome;
    }
  }
  shuffle_.worker().network.flush();
  if (has_queued()) wait_loop_.send_queued();
  if (has_queued()) return lanes_.blocked_on_queues(*shuffle_.query());
  if (!all) return Outcome::would_wait;
  finish_done_ = true;
  return Outcome::done;
}

bool StageSender::has_queued() const noexcept {
  return std::ranges::any_of(targets_.receivers(), &Destination::has_queued);
}

void StageSender::receivers_stopped(std::span<const uint32_t> workers) {
  const auto has_stopped = [&](uint32_t worker) {
    return std::ranges::find(workers, worker) != workers.end();
  };
  for (const uint32_t worker : workers) {
    const uint32_t receiver = shuffle_.receivers().of_worker(worker);
    if (receiver == targets_.receivers().size()) continue;
    Destination& to = targets_.receivers()[receiver];
    const bool is_over = std::ranges::all_of(to.workers, has_stopped) ||
                         base::planted(base::Plant::first_stop_believed);
    if (!to.stopped && is_over) stop(to);
  }
}

void StageSender::stop(Destination& to) {
  targets_.stop(to);
  if (claimed_.is_of(to)) return;  // settled by commit or abort
  count(shuffle_.worker().counters.rows_dropped, to.lane.drop_open(to));
  to.lane.drop_queued(to, true);
}

void StageSender::drop_rows() {
  for (Destination& to : targets_.receivers()) {
    if (!claimed_.is_of(to) || claimed_.is_apart()) to.lane.drop_open(to);
    to.lane.drop_queued(to, false);
  }
  for (Group& group : targets_.groups()) {
    if (!claimed_.is_of(group) || claimed_.is_apart()) group.drop();
  }
}

void StageSender::abandon_frames() noexcept { targets_.abandon(); }

}  // namespace faro::shuffle

// ------------------------------------------------------------------------- faro::ShuffleSender, RowSender

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

Outcome broadcast_in_ring_slow(shuffle::StageSender* sender, const void* row,
                               size_t bytes) noexcept {
  if (sender == nullptr) return Outcome::failed;
  return sender->broadcast({static_cast<const std::byte*>(row), bytes}, Wait::none(),
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

Outcome ShuffleSender::multicast(std::span<const uint32_t> receivers,
                                 std::span<const std::byte> row, Wait wait) const {
  return sender_ == nullptr ? Outcome::failed
                            : sender_->multicast(receivers, shuffle::RowPieces(row), wait);
}

Outcome ShuffleSender::send_parts(std::span<const uint32_t> receivers,
                                  std::span<const std::span<const std::byte>> pieces,
                                  Wait wait) const {
  return sender_ == nullptr ? Outcome::failed
                            : sender_->multicast(receivers, shuffle::RowPieces(pieces), wait);
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
