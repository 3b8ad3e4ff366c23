// faro::Shuffle, over OpenShuffle.
#include "faro/shuffle.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "shuffle/open_shuffle.h"

namespace faro {
namespace {

Status check_open(const shuffle::OpenShuffle* core) {
  if (core == nullptr) return Status(Code::closed, "the shuffle is not open");
  if (!core->is_closed()) return Status::Ok();
  return base::error(Code::closed,
                     "the shuffle of stage {} was closed as worker {} has ended query {}",
                     core->spec().stage, core->worker().number, core->query()->id.to_string());
}

Status check_side(const shuffle::OpenShuffle& core, bool is_there, std::string_view what) {
  if (is_there) return Status::Ok();
  return base::error(Code::wrong_state, "worker {} is no {} of stage {}", core.worker().number,
                     what, core.spec().stage)
      .of_query(core.query()->id)
      .of_stage(core.spec().stage);
}

}  // namespace

Result<ShuffleSender> Shuffle::sender() const {
  FARO_RETURN_IF_ERROR(check_open(core_));
  FARO_RETURN_IF_ERROR(check_side(*core_, core_->sender() != nullptr, "sender"));
  ShuffleSender made;
  describe(made);
  return made;
}

Status Shuffle::check_sender(size_t row_bytes) const {
  FARO_RETURN_IF_ERROR(check_open(core_));
  FARO_RETURN_IF_ERROR(check_side(*core_, core_->sender() != nullptr, "sender"));
  if (spec().row_bytes == row_bytes) return Status::Ok();
  return base::error(Code::invalid_argument, "stage {}: rows of {} bytes, but row_bytes = {}",
                     spec().stage, row_bytes, spec().row_bytes);
}

void Shuffle::describe(ShuffleSender& sender) const {
  sender.sender_ = core_->sender();
  sender.cursors_ = core_->sender()->targets().cursors();
  sender.frame_rows_ = core_->sender()->targets().frame_rows();
  sender.receiver_count_ = core_->sender()->targets().count();
  if (spec().row_bytes == 0) {
    sender.length_end_ = UINT32_MAX;
  } else {
    sender.width_ = detail::RowWidth::of(spec().row_bytes);
  }
}

detail::SendKernels Shuffle::kernels() const { return core_->sender()->kernels(); }

Result<ShuffleReceiver> Shuffle::receiver() const {
  FARO_RETURN_IF_ERROR(check_open(core_));
  FARO_RETURN_IF_ERROR(check_side(*core_, core_->receiver() != nullptr, "receiver"));
  ShuffleReceiver made;
  made.receiver_ = core_->receiver();
  return made;
}

bool Shuffle::is_open() const noexcept { return core_ != nullptr && !core_->is_closed(); }

const ShuffleSpec& Shuffle::spec() const noexcept {
  static const ShuffleSpec none;
  return core_ == nullptr ? none : core_->spec();
}

ShuffleMetrics Shuffle::metrics() const {
  return counts_ == nullptr ? ShuffleMetrics{} : counts_->metrics();
}

Status Shuffle::status() const {
  if (core_ == nullptr) return check_open(core_);
  const bool has_failed = core_->status().ok() && core_->query()->failed();
  return has_failed ? core_->query()->cause() : core_->status();
}

Status Shuffle::cancel(std::string_view reason) {
  return core_ == nullptr ? check_open(core_) : core_->cancel(reason);
}

void Shuffle::close() noexcept {
  if (core_ != nullptr) std::exchange(core_, nullptr)->close();
}

}  // namespace faro
