#include "shuffle/send/stage_sender.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "shuffle/kernels/kernels.h"

namespace faro::shuffle {

using counters::count;

StageSender::StageSender(ShuffleContext& shuffle, SendSide& side, RowFormat format, uint16_t slot)
    : shuffle_(shuffle),
      side_(side),
      slot_(slot),
      writer_(shuffle, side, std::move(format)),
      cursors_(shuffle.spec().receivers.size()),
      frame_rows_(cursors_.size()),
      claimed_row_(shuffle, side, writer_),
      everyone_(cursors_.size()),
      named_(cursors_.size()) {
  std::iota(everyone_.begin(), everyone_.end(), 0u);
  streams_.reserve(cursors_.size());
  const ShuffleSpec& spec = shuffle.spec();
  for (size_t r = 0; r < cursors_.size(); ++r) {
    OutRing& ring = side.ring_to(spec.receivers[r], spec.stage);
    streams_
        .emplace_back(shuffle, ring, shuffle.counts().sent(static_cast<uint32_t>(r)), cursors_[r],
                      frame_rows_[r])
        .slot = slot;
  }
}

StageSender::~StageSender() { abandon_frames(); }

detail::SendKernels StageSender::kernels() const {
  return send_kernels(shuffle_.worker().settings.kernel_scatter, shuffle_.spec().row_bytes,
                      receiver_count());
}

Status StageSender::send_as(std::string_view format) {
  return shuffle_.guarded(
      [&] { return shuffle_.name_format(writer_.format(), format, "sends its"); });
}

// --- what may be sent

Outcome StageSender::enter() {
  if (const Outcome outcome = shuffle_.enter(); outcome != Outcome::done) return outcome;
  if (finish_called_)
    return shuffle_.fail(Code::wrong_state, "stage {}: send after finish", shuffle_.spec().stage);
  return Outcome::done;
}

Outcome StageSender::fail_no_receiver(uint32_t receiver) {
  return shuffle_.fail(Code::invalid_argument, "stage {}: receiver {} does not exist (0 … {})",
                       shuffle_.spec().stage, receiver, receiver_count() - 1);
}

// That all exist, and each is named once.
Outcome StageSender::check_receivers(std::span<const uint32_t> receivers) {
  ++multicasts_;
  for (const uint32_t receiver : receivers) {
    if (receiver >= receiver_count()) return fail_no_receiver(receiver);
    if (std::exchange(named_[receiver], multicasts_) == multicasts_) {
      return shuffle_.fail(Code::invalid_argument, "stage {}: receiver {} is named twice",
                           shuffle_.spec().stage, receiver);
    }
  }
  return Outcome::done;
}

// `what`: "row" or "claim".
Outcome StageSender::check_row(std::string_view what, size_t bytes) {
  const ShuffleSpec& spec = shuffle_.spec();
  if (spec.row_bytes != 0 && bytes != spec.row_bytes) {
    return shuffle_.fail(Code::invalid_argument, "stage {}: a {} of {} bytes, but row_bytes = {}",
                         spec.stage, what, bytes, spec.row_bytes);
  }
  const uint64_t limit = shuffle_.worker().settings.row_limit_bytes;
  if (bytes > limit) {
    return shuffle_.fail(Code::row_too_large,
                         "stage {}: a {} of {} bytes is above row.limit_bytes = {}", spec.stage,
                         what, bytes, limit);
  }
  return Outcome::done;
}

// --- sending

Outcome StageSender::send(uint32_t receiver, std::span<const std::byte> row, Wait wait,
                          WhenFull when_full) noexcept {
  // A row for one receiver is a multicast to one.
  const auto attempt = [&] { return attempt_multicast({&receiver, 1}, row, when_full); };
  return shuffle_.operate(attempt, wait);
}

Outcome StageSender::multicast(std::span<const uint32_t> receivers, std::span<const std::byte> row,
                               Wait wait) {
  const auto attempt = [&] { return attempt_multicast(receivers, row, WhenFull::overflow); };
  return shuffle_.operate(attempt, wait);
}

Outcome StageSender::broadcast(std::span<const std::byte> row, Wait wait) {
  return multicast(everyone_, row, wait);
}

Outcome StageSender::attempt_multicast(std::span<const uint32_t> receivers,
                                       std::span<const std::byte> row, WhenFull when_full) {
  if (const Outcome outcome = enter(); outcome != Outcome::done) return outcome;
  if (const Outcome outcome = check_receivers(receivers); outcome != Outcome::done) return outcome;
  if (const Outcome outcome = check_row("row", row.size()); outcome != Outcome::done)
    return outcome;
  const bool large = writer_.is_large(row.size(), streams_.front());
  const auto bytes = static_cast<uint32_t>(large ? 0 : writer_.framed_bytes(row.size()));
  // First room everywhere, then the row everywhere: to all or to none (DESIGN.md HC-7). Room that was
  // made stays.
  for (const uint32_t receiver : receivers) {
    OutStream& stream = streams_[receiver];
    if (stream.stopped) continue;
    const Outcome outcome =
        large ? writer_.prepare_large(stream) : writer_.make_room(stream, bytes, when_full);
    if (outcome != Outcome::done) return outcome;
  }
  if (large) return multicast_large(receivers, row);
  for (const uint32_t receiver : receivers) {
    if (streams_[receiver].stopped) {
      count(shuffle_.worker().counters.rows_dropped);
    } else {
      writer_.write(streams_[receiver], row);
    }
  }
  return done_or_stopped();
}

Outcome StageSender::multicast_large(std::span<const uint32_t> receivers,
                                     std::span<const std::byte> row) {
  // All copies before the first is queued: to all or to none.
  std::vector<std::unique_ptr<QueuedFrame>> copies;
  copies.reserve(receivers.size());
  for (const uint32_t receiver : receivers) {
    if (streams_[receiver].stopped) continue;
    std::unique_ptr<QueuedFrame> copy;
    const Outcome outcome =
        writer_.make_queued(streams_[receiver], wire::FrameKind::fragment, row.size(), copy);
    if (outcome != Outcome::done) return outcome;
    std::memcpy(copy->stored.memory, row.data(), row.size());
    copies.push_back(std::move(copy));
  }
  count(shuffle_.worker().counters.rows_dropped, receivers.size() - copies.size());
  for (std::unique_ptr<QueuedFrame>& copy : copies) writer_.send_large(std::move(copy), row.size());
  return done_or_stopped();
}

// The inlined path cannot get past a receiver that has stopped; this one skips it.
size_t StageSender::broadcast_past_stopped(std::span<const std::byte> rows) noexcept {
  if (stopped_count_ == 0 || rows.empty()) return 0;
  const uint32_t row_bytes = shuffle_.spec().row_bytes;
  size_t fitting = rows.size() / row_bytes;
  for (uint32_t r = 0; r < receiver_count(); ++r) {
    const auto room = static_cast<size_t>(cursors_[r].end - cursors_[r].at);
    if (!streams_[r].stopped) fitting = std::min(fitting, room / row_bytes);
  }
  for (uint32_t r = 0; r < receiver_count(); ++r) {
    if (streams_[r].stopped) {
      count(shuffle_.worker().counters.rows_dropped, fitting);
    } else if (fitting > 0) {
      std::memcpy(cursors_[r].at, rows.data(), fitting * row_bytes);
      cursors_[r].at += fitting * row_bytes;
    }
  }
  return fitting;
}

// --- rows written in place

Outcome StageSender::claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data, Wait wait) {
  const auto attempt = [&] { return attempt_claim(receiver, bytes, data); };
  return shuffle_.operate(attempt, wait);
}

Outcome StageSender::attempt_claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data) {
  if (const Outcome outcome = enter(); outcome != Outcome::done) return outcome;
  if (side_.has_row_claim()) {
    return shuffle_.fail(Code::wrong_state, "worker {} has an open claim; commit or abort it first",
                         shuffle_.worker().number);
  }
  if (receiver >= receiver_count()) return fail_no_receiver(receiver);
  if (const Outcome outcome = check_row("claim", bytes); outcome != Outcome::done) return outcome;
  if (done_or_stopped() == Outcome::stopped) return Outcome::stopped;
  const Outcome outcome = claimed_row_.claim(streams_[receiver], bytes, data);
  if (outcome == Outcome::done) shuffle_.refer();
  return outcome;
}

Status StageSender::commit_claim(std::span<std::byte> data, size_t bytes) {
  return shuffle_.guarded([&] {
    if (!claimed_row_.is_open())
      return Status(Code::wrong_state, "the claim was committed or aborted before");
    const ShuffleSpec& spec = shuffle_.spec();
    if (bytes > data.size() || (spec.row_bytes != 0 && bytes != spec.row_bytes)) {
      return base::error(Code::invalid_argument, "stage {}: commit of {} bytes of a claim of {}",
                         spec.stage, bytes, data.size());
    }
    if (shuffle_.enter() == Outcome::done) return claimed_row_.commit(bytes);
    claimed_row_.abort();
    return shuffle_.status();
  });
}

void StageSender::claim_gone() noexcept {
  claimed_row_.abort();
  shuffle_.release_reference();
}

// --- the end

Outcome StageSender::flush() noexcept {
  Outcome outcome = Outcome::failed;
  const Status status = shuffle_.guarded([&] {
    outcome = shuffle_.enter();
    if (outcome == Outcome::done) side_.flush();
    return Status::Ok();
  });
  return status.ok() ? outcome : Outcome::failed;
}

Outcome StageSender::finish(Wait wait) {
  return shuffle_.operate([&] { return attempt_finish(); }, wait);
}

Outcome StageSender::attempt_finish() {
  if (const Outcome outcome = shuffle_.enter(); outcome != Outcome::done) return outcome;
  if (claimed_row_.is_open())
    return shuffle_.fail(Code::wrong_state, "stage {}: finish with an open claim",
                         shuffle_.spec().stage);
  finish_called_ = true;
  bool all = true;
  for (OutStream& stream : streams_) {
    if (stream.finished) continue;
    const Outcome outcome = finish_stream(stream);
    if (outcome == Outcome::would_wait) {
      (void)side_.blocked_on_room(stream);
      all = false;  // the others' receivers need not wait for this one
    } else if (outcome != Outcome::done) {
      return outcome;
    }
  }
  shuffle_.worker().membership.flush_network();
  if (has_queued()) shuffle_.send_queued();
  if (has_queued()) return side_.blocked_on_queues(*shuffle_.query());
  if (!all) return Outcome::would_wait;
  finish_done_ = true;
  return Outcome::done;
}

Outcome StageSender::finish_stream(OutStream& stream) {
  OutRing& ring = stream.ring;
  // Another shuffle's open claim on this ring: its frame cannot be closed now.
  if (ring.is_row_claimed()) return writer_.fail_by_claim(ring);
  side_.close_open_frame(ring);
  if (!ring.queue_empty() && !side_.send_queued(ring) && !side_.holds_batches())
    return Outcome::would_wait;
  const Outcome outcome = writer_.finish(stream);
  // Along with that of the next receiver, if both are on one node.
  if (outcome == Outcome::done) ring.transport->post_soon();
  return outcome;
}

bool StageSender::has_queued() const noexcept {
  return std::ranges::any_of(streams_, [](const OutStream& stream) { return stream.queued > 0; });
}

void StageSender::receivers_stopped(std::span<const uint32_t> workers) {
  const std::vector<uint32_t>& receivers = shuffle_.spec().receivers;
  for (const uint32_t worker : workers) {
    const auto found = std::find(receivers.begin(), receivers.end(), worker);
    if (found == receivers.end()) continue;
    OutStream& stream = streams_[static_cast<size_t>(found - receivers.begin())];
    if (!stream.stopped) stop(stream);
  }
}

void StageSender::stop(OutStream& stream) {
  stream.stopped = true;
  ++stopped_count_;
  if (claimed_row_.is_for(stream)) return;  // settled by commit or abort
  if (stream.frame.is_open()) {
    count(shuffle_.worker().counters.rows_dropped, stream.frame.rows());
    side_.abandon(stream);
  }
  side_.drop_queued(stream, true);
}

void StageSender::drop_rows() {
  for (OutStream& stream : streams_) {
    if (!claimed_row_.is_open_in(stream)) side_.abandon(stream);
    side_.drop_queued(stream, false);
  }
}

void StageSender::abandon_frames() noexcept {
  for (OutStream& stream : streams_) side_.abandon(stream);
}

}  // namespace faro::shuffle
