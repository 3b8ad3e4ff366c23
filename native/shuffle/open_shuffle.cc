#include "shuffle/open_shuffle.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/error.h"
#include "shuffle/local_worker.h"

namespace faro::shuffle {

OpenShuffle::OpenShuffle(LocalWorker& worker, Ownership& ownership, std::shared_ptr<Query> query,
                         ShuffleSpec spec, StageLists lists, LogicalReceivers receivers,
                         std::shared_ptr<ShuffleCounts> counts)
    : ShuffleContext(ownership, std::move(query), std::move(spec), std::move(lists),
                     std::move(receivers), std::move(counts)),
      local_worker_(worker),
      keep_alive_(ownership.worker().node.keep_alive()) {}

OpenShuffle::~OpenShuffle() = default;

void OpenShuffle::become_sender(WaitLoop& wait_loop, Lanes& lanes, RowFormat format, uint16_t slot,
                                GroupBlocks blocks) {
  sender_.emplace(*this, wait_loop, lanes, std::move(format), slot, std::move(blocks));
  sender_->receivers_stopped(worker().queries.stops(*query(), spec().stage));
}

void OpenShuffle::become_receiver(WaitLoop& wait_loop, ReceiveSide& side, Inbox& inbox) {
  receiver_.emplace(*this, wait_loop, side, inbox);
}

uint32_t OpenShuffle::own_receiver() const noexcept {
  return receivers().of_worker(worker().number);
}

Status OpenShuffle::check_open() {
  FARO_RETURN_IF_ERROR(enter_worker());
  return closed_ ? query()->cause() : Status::Ok();
}

Status OpenShuffle::send_as(std::string_view format) {
  FARO_RETURN_IF_ERROR(check_open());
  return sender_ ? sender_->send_as(format) : Status::Ok();
}

Status OpenShuffle::receive_as(std::string_view format) {
  FARO_RETURN_IF_ERROR(check_open());
  return receiver_ ? receiver_->receive_as(format) : Status::Ok();
}

void OpenShuffle::drop_rows() {
  if (std::exchange(rows_dropped_, true)) return;
  if (sender_) sender_->drop_rows();
  if (receiver_) receiver_->drop_rows();
}

Status OpenShuffle::cancel(std::string_view reason) {
  return guarded([&] {
    if (query()->failed()) return query()->cause();
    fail_query(
        base::error(Code::query_cancelled, "cancelled by worker {}: {}", worker().number, reason));
    return Status::Ok();
  });
}

// Closed by whoever has not seen it to its end: the others would wait forever, or take what is missing for the end.
// Why it did not is mostly said later.
void OpenShuffle::abandon(std::string_view what) {
  const Status cause =
      base::error(Code::query_cancelled, "worker {} closed its {}{}", worker().number, what,
                  std::uncaught_exceptions() > 0 ? ", by an exception" : "");
  local_worker_.abandon(query(), cause.of_stage(spec().stage));
}

void OpenShuffle::cancel_if_unfinished() {
  if (query()->failed() || worker().node.closed()) return;
  if (sender_ && !sender_->is_done())
    abandon(fmt::format("sender of stage {} without finish", spec().stage));
  if (receiver_ && !receiver_->is_done())
    abandon(
        fmt::format("receiver of stage {} before its end of stream, without stop", spec().stage));
}

void OpenShuffle::leave(std::string_view what) noexcept {
  if (worker().node.forked() || query()->failed() || worker().node.closed()) return;
  const Ownership::Loan loan(ownership_);  // as for close()
  try {
    abandon(what);
  } catch (const std::bad_alloc&) {
    worker().queries.fail_for_memory(*query());
  }
}

void OpenShuffle::close() noexcept {
  if (worker().node.forked()) return;
  has_handle_ = false;
  const std::shared_ptr<const void> node = keep_alive_;  // outlives this object
  LocalWorker& worker = local_worker_;
  if (left_to_handle_) {
    delete this;
    return worker.at_rest().call_ended();  // it may have been called since it was closed
  }
  // Also from a thread that does not own the worker: a collector's, or that of whoever destroys a shuffle after its worker's
  // thread has ended.
  const Ownership::Loan loan(ownership_);
  if (!is_referenced()) keep_alive_ = nullptr;
  closed_ ? local_worker_.sweep() : end();
  worker.at_rest().call_ended();
}

void OpenShuffle::end() noexcept {
  if (sender_) sender_->abort_claim();
  (void)guarded([&] {
    cancel_if_unfinished();
    return Status::Ok();
  });
  if (query()->failed()) drop_rows();
  if (sender_) sender_->abandon_frames();
  if (receiver_) receiver_->close();
  operation().blocked_on().forget(counts());
  closed_ = true;
  local_worker_.closed();  // may destroy this object
}

void OpenShuffle::unreferenced() noexcept {
  if (!closed_) return;
  const std::shared_ptr<const void> node = keep_alive_;  // outlives this object
  if (!has_handle_) keep_alive_ = nullptr;
  LocalWorker& worker = local_worker_;
  worker.sweep();  // may destroy this object
  worker.at_rest().call_ended();
}

}  // namespace faro::shuffle
