#include "shuffle/shuffle_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>

#include "base/log.h"
#include "shuffle/kernels/kernels.h"
#include "shuffle/node_core.h"
#include "transport/mirrored_ring.h"

namespace faro::detail {

using transport::count;
using wire::FrameHeader;
using wire::FrameKind;

SendKernels ShuffleCore::kernels() const {
  return shuffle::send_kernels(worker_.node().settings().kernel_scatter, spec_.row_bytes,
                               receiver_count());
}

ShuffleCore::ShuffleCore(WorkerCore& worker, std::shared_ptr<shuffle::Query> query,
                         ShuffleSpec spec, shuffle::StageLists lists, shuffle::RowFormat format)
    : worker_(worker),
      keep_alive_(worker.node().shared_from_this()),
      query_(std::move(query)),
      spec_(std::move(spec)),
      lists_(std::move(lists)),
      format_(std::move(format)) {}

ShuffleCore::~ShuffleCore() {
  for (uint32_t r = 0; r < outboxes_.size(); ++r) abandon_frame(r);
}

void ShuffleCore::make_sender() {
  is_sender_ = true;
  cursors_.resize(spec_.receivers.size());
  outboxes_.resize(spec_.receivers.size());
  frame_rows_.resize(spec_.receivers.size());
  named_.resize(spec_.receivers.size());
  everyone_.resize(spec_.receivers.size());
  std::iota(everyone_.begin(), everyone_.end(), 0u);
  for (size_t r = 0; r < outboxes_.size(); ++r)
    outboxes_[r].lane = &worker_.lane_to(spec_.receivers[r], spec_.stage);
}

void ShuffleCore::make_receiver(Inbox* inbox) noexcept {
  inbox_ = inbox;
  inbox_->senders = &spec_.senders;
  inbox_->row_bytes = spec_.row_bytes;
  inbox_->open = true;
}

Status ShuffleCore::say(shuffle::RowFormat& known, std::string_view format,
                        std::string_view what) const {
  shuffle::RowFormat said = shuffle::RowFormat::of(format);
  if (!known.agrees(said)) {
    return Status(Code::invalid_argument,
                  fmt::format("stage {}: worker {} {} rows as {}, not as {}", spec_.stage,
                              worker_.number(), what, known.beside(said), said.beside(known)));
  }
  if (said.digest != 0) known = std::move(said);
  return Status::Ok();
}

Status ShuffleCore::send_as(std::string_view format) {
  FARO_RETURN_IF_ERROR(worker_.enter());
  return guarded([&] { return say(format_, format, "sends its"); });
}

Status ShuffleCore::receive_as(std::string_view format) {
  FARO_RETURN_IF_ERROR(worker_.enter());
  if (inbox_ == nullptr) return Status::Ok();
  return guarded([&] {
    FARO_RETURN_IF_ERROR(say(inbox_->format, format, "reads the"));
    return worker_.check_formats(*inbox_);
  });
}

Outcome ShuffleCore::fail(const Status& status) {
  status_ = status;
  return Outcome::failed;
}
Outcome ShuffleCore::fail(Code code, std::string message) {
  return fail(Status(code, std::move(message)).of_query(query_->id).of_stage(spec_.stage));
}

Status ShuffleCore::lack_memory() noexcept {
  worker_.node().queries().fail_for_memory(*query_);
  return status_ = worker_.node().queries().no_memory();
}

Outcome ShuffleCore::check() {
  if (Status status = worker_.enter(); !status.ok()) return fail(status);
  worker_.operates_on(*query_, &status_);
  if (query_->failed()) {
    query_failed();
    return fail(query_->cause());
  }
  return Outcome::done;
}

Outcome ShuffleCore::check_send() {
  if (const Outcome outcome = check(); outcome != Outcome::done) return outcome;
  if (!is_sender_)
    return fail(Code::wrong_state,
                fmt::format("worker {} is no sender of stage {}", worker_.number(), spec_.stage));
  if (finish_called_)
    return fail(Code::wrong_state, fmt::format("stage {}: send after finish", spec_.stage));
  return Outcome::done;
}

void ShuffleCore::query_failed() {
  if (failed_handled_) return;
  failed_handled_ = true;
  for (uint32_t r = 0; r < outboxes_.size(); ++r) {
    Outbox& box = outboxes_[r];
    if (!(claim_.open && !claim_.large && claim_.receiver == r)) abandon_frame(r);
    worker_.drop_queued(*box.lane, *this, false);
  }
  if (inbox_ != nullptr) worker_.discard(*inbox_);
}

void ShuffleCore::cancel(std::string_view reason) {
  (void)guarded([&] {
    worker_.node().queries().fail(
        *query_, Status(Code::query_cancelled,
                        fmt::format("cancelled by worker {}: {}", worker_.number(), reason))
                     .of_stage(spec_.stage));
    return Status::Ok();
  });
}

// Closed by whoever has not seen it to its end: the others would wait forever, or take what is missing for the end.
void ShuffleCore::abandon(std::string_view what) {
  worker_.node().queries().fail(
      *query_, Status(Code::query_cancelled,
                      fmt::format("worker {} closed its {}{}", worker_.number(), what,
                                  std::uncaught_exceptions() > 0 ? ", by an exception" : ""))
                   .of_stage(spec_.stage));
}

void ShuffleCore::fail_by_width(uint32_t row_bytes, size_t read_as) noexcept {
  (void)guarded([&] {
    const std::string width = row_bytes == 0 ? "a length each" : fmt::format("{} bytes", row_bytes);
    worker_.node().queries().fail(
        *query_, Status(Code::query_failed,
                        fmt::format("worker {} reads the rows of stage {}, which have {}, as rows "
                                    "of {} bytes",
                                    worker_.number(), spec_.stage, width, read_as)));
    return Status::Ok();
  });
}

uint32_t ShuffleCore::own_receiver() const noexcept {
  const auto found = std::find(spec_.receivers.begin(), spec_.receivers.end(), worker_.number());
  return static_cast<uint32_t>(found - spec_.receivers.begin());
}

void ShuffleCore::close() noexcept {
  if (closed_ || worker_.node().forked()) return;
  // Also from a thread that does not own the worker: whoever destroys a shuffle after its worker's
  // thread has ended. That nobody is inside a call is the caller's promise.
  worker_.adopt();
  abort_claim();
  const bool live = !query_->failed() && !worker_.node().closed();
  (void)guarded([&] {
    if (live && is_sender_ && !finish_done_)
      abandon(fmt::format("sender of stage {} without finish", spec_.stage));
    if (live && inbox_ != nullptr && !stopped_ && ends_told_ < spec_.senders.size())
      abandon(
          fmt::format("receiver of stage {} before its end of stream, without stop", spec_.stage));
    return Status::Ok();
  });
  if (query_->failed()) query_failed();
  for (uint32_t r = 0; r < outboxes_.size(); ++r) abandon_frame(r);
  closed_ = true;
  std::shared_ptr<NodeCore> last;
  if (!referenced()) last = std::move(keep_alive_);
  worker_.closed(*this);  // may destroy this object, `last` then the node
}

}  // namespace faro::detail

namespace faro {

// Here, not in api/: a Result<Shuffle> that is dropped in this layer needs it.
void Shuffle::close() noexcept {
  if (core_ != nullptr) std::exchange(core_, nullptr)->close();
}

}  // namespace faro
