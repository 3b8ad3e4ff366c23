#include "lab/bench/one_stage_worker.h"

#include <utility>

#include "base/return_if_error.h"

namespace faro::bench {

Status OneStageWorker::open(const QueryId& query) {
  FARO_ASSIGN_OR_RETURN(shuffle_, worker_.open_shuffle({query, 0, row_bytes(), {}, {}}));
  FARO_ASSIGN_OR_RETURN(sender_, shuffle_.sender());
  FARO_ASSIGN_OR_RETURN(receiver_, shuffle_.receiver());
  sink_ = {};
  rest_ = {worker_.number() * rows_, (worker_.number() + 1) * rows_};
  finished_ = ended_ = failed_ = false;
  return begin();
}

Status OneStageWorker::close() {
  const Status status = failed_ ? shuffle_.status() : Status::Ok();
  shuffle_.close();
  return status;
}

bool OneStageWorker::turn() {
  bool moved = consume();
  if (!moved) moved = send();
  progress_.store(sink_.count, std::memory_order_relaxed);
  return moved || over();
}

bool OneStageWorker::consume() {
  bool moved = false;
  while (!ended_) {
    const Outcome outcome = receiver_.receive(batch_, Wait::none());
    if (outcome != Outcome::done) {
      ended_ = outcome == Outcome::end_of_stream;
      failed_ |= outcome == Outcome::failed;
      return moved || ended_;
    }
    sink_ += check(batch_);
    batch_.release();
    moved = true;
  }
  return moved;
}

bool OneStageWorker::send() {
  if (finished_) return false;
  Outcome outcome = Outcome::done;
  bool moved = produce(outcome);
  if (outcome == Outcome::done && is_sent()) {
    outcome = sender_.finish(Wait::none());
    finished_ = outcome == Outcome::done;
    moved |= finished_;
  }
  failed_ |= outcome == Outcome::failed;
  return moved;
}

}  // namespace faro::bench
