#include "lab/bench/one_stage_worker.h"

#include <utility>

namespace faro::bench {

Status OneStageWorker::open(const QueryId& query) {
  ShuffleSpec spec;
  spec.query = query;
  spec.row_bytes = row_bytes();
  Result<Shuffle> shuffle = worker_.open_shuffle(spec);
  if (!shuffle) return shuffle.status();
  shuffle_ = std::move(shuffle).value();
  Result<ShuffleSender> sender = shuffle_.sender();
  if (!sender) return sender.status();
  sender_ = *sender;
  Result<ShuffleReceiver> receiver = shuffle_.receiver();
  if (!receiver) return receiver.status();
  receiver_ = *receiver;
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
