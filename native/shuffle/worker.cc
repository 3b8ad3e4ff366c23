// faro::Worker, over LocalWorker.
#include <fmt/format.h>

#include <utility>

#include "faro/session.h"
#include "shuffle/local_worker.h"

namespace faro {

namespace {

Outcome refused(Status status, Status* cause) {
  if (cause != nullptr) *cause = std::move(status);
  return Outcome::failed;
}

}  // namespace

Status Worker::check_exists() const {
  if (core_ != nullptr) return Status::Ok();
  return Status(Code::invalid_argument,
                fmt::format("there is no such worker on this node: it has {} (0 … {})",
                            worker_count_, worker_count_ - 1));
}

uint32_t Worker::number() const noexcept { return core_ == nullptr ? UINT32_MAX : core_->number(); }
Result<Shuffle> Worker::open_shuffle(const ShuffleSpec& spec) {
  FARO_RETURN_IF_ERROR(check_exists());
  Result<Shuffle> opened = core_->open_shuffle(spec);
  if (opened.ok()) return opened;
  const Status why = opened.status().of_query(spec.query);
  return why.category() == Category::operation ? why.of_stage(spec.stage) : why;
}
Outcome Worker::wait_until(const std::function<bool()>& condition, Timeout timeout, Status* cause) {
  if (core_ == nullptr) return refused(check_exists(), cause);
  return core_->wait_until(condition, timeout, cause);
}
Outcome Worker::try_until(const std::function<bool()>& condition, Status* cause) {
  if (core_ == nullptr) return refused(check_exists(), cause);
  return core_->try_until(condition, cause);
}
void Worker::wake() noexcept {
  if (core_ != nullptr) core_->ownership().wake();
}
Outcome Worker::end_query(const QueryId& query, Status* cause, Timeout timeout) {
  return end_query(query, Status::Ok(), cause, timeout);
}
Outcome Worker::try_end_query(const QueryId& query, Status* cause) {
  return try_end_query(query, Status::Ok(), cause);
}
Outcome Worker::end_query(const QueryId& query, const Status& failure, Status* cause,
                          Timeout timeout) {
  if (core_ == nullptr) return refused(check_exists(), cause);
  return core_->end_query(query, failure, cause, true, timeout);
}
Outcome Worker::try_end_query(const QueryId& query, const Status& failure, Status* cause) {
  if (core_ == nullptr) return refused(check_exists(), cause);
  return core_->end_query(query, failure, cause, false, kNoTimeout);
}
void Worker::release_ownership() noexcept {
  if (core_ != nullptr) core_->ownership().give_up();
}
WorkerMetrics Worker::metrics() const {
  return core_ == nullptr ? WorkerMetrics{} : core_->metrics();
}

}  // namespace faro
