// faro::Worker, over LocalWorker.

#include <utility>

#include "base/error.h"
#include "faro/session.h"
#include "shuffle/local_worker.h"

namespace faro {

Status Worker::check_exists() const {
  if (core_ != nullptr) return Status::Ok();
  return base::error(Code::invalid_argument,
                     "there is no such worker on this node: it has {} (0 … {})", worker_count_,
                     worker_count_ - 1);
}

uint32_t Worker::number() const noexcept { return core_ == nullptr ? UINT32_MAX : core_->number(); }
Result<Shuffle> Worker::open_shuffle(const ShuffleSpec& spec) {
  FARO_RETURN_IF_ERROR(check_exists());
  Result<Shuffle> opened = core_->open_shuffle(spec);
  if (opened.ok()) return opened;
  const Status why = opened.status().of_query(spec.query);
  return why.category() == Category::operation ? why.of_stage(spec.stage) : why;
}
Outcome Worker::wait_until(const std::function<bool()>& condition, Wait wait) {
  return core_ == nullptr ? Outcome::failed : core_->wait_until(condition, wait);
}
Result<int> Worker::ready_descriptor() {
  FARO_RETURN_IF_ERROR(check_exists());
  return core_->readiness().descriptor();
}
Status Worker::on_ready(std::function<void()> callback) {
  FARO_RETURN_IF_ERROR(check_exists());
  return core_->readiness().call(std::move(callback));
}
Outcome Worker::arm(const std::function<bool()>& progress, Progress what) {
  return core_ == nullptr ? Outcome::failed : core_->arm(progress, what);
}
Outcome Worker::exchange(std::span<ExchangePart> parts, Wait wait) {
  return core_ == nullptr ? Outcome::failed : core_->exchange(parts, wait);
}
Outcome Worker::exchange(Shuffle& shuffle, ExchangePart::Produce produce,
                         ExchangePart::Consume consume, Wait wait) {
  ExchangePart part{&shuffle, std::move(produce), std::move(consume)};
  return exchange({&part, 1}, wait);
}
void Worker::wake() noexcept {
  if (core_ != nullptr) core_->ownership().wake();
}
Outcome Worker::end_query(const QueryId& query, Wait wait) {
  return end_query(query, Status::Ok(), wait);
}
Outcome Worker::end_query(const QueryId& query, const Status& failure, Wait wait) {
  return core_ == nullptr ? Outcome::failed : core_->end_query(query, failure, wait);
}
Status Worker::status() const { return core_ == nullptr ? check_exists() : core_->status(); }
void Worker::release_ownership() noexcept {
  if (core_ != nullptr) core_->ownership().give_up();
}
WorkerMetrics Worker::metrics() const {
  return core_ == nullptr ? WorkerMetrics{} : core_->metrics();
}

}  // namespace faro
