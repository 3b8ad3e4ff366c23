// A job of a single shuffle: each worker makes rows and consumes those that arrive.
#pragma once

#include <atomic>
#include <cstdint>

#include "faro/shuffle.h"
#include "lab/bench/turn_worker.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {

/// Consumes before it produces, which makes room everywhere. Threads: that of its worker.
class OneStageWorker : public TurnWorker {
 public:
  Totals totals() const final { return sink_.totals(); }

 protected:
  /// Rows are numbered through the cluster; this worker makes `rows` of them. The rest as TurnWorker.
  OneStageWorker(uint64_t rows, Worker& worker, std::atomic<uint64_t>& progress)
      : TurnWorker(worker, progress), rows_(rows) {}

  /// The width of every row; 0: they have a length each.
  virtual uint32_t row_bytes() const = 0;
  /// A round begins; shuffle() is open and rest() complete.
  virtual Status begin() { return Status::Ok(); }
  /// The sum of rows that have arrived.
  virtual RowSum check(const Batch& batch) = 0;
  /// Sends a block of rest(), or what there is room for; false if that was nothing. Says why it stopped, done
  /// at the block's end.
  virtual bool produce(Outcome& outcome) = 0;
  /// Whether produce() has sent all.
  virtual bool is_sent() const { return rest_.empty(); }

  Shuffle& shuffle() { return shuffle_; }
  const ShuffleSender& sender() const { return sender_; }
  /// Rows that are still to be made.
  IntegerRange& rest() { return rest_; }
  const IntegerRange& rest() const { return rest_; }

 private:
  Status open(const QueryId& query) final;
  bool turn() final;
  bool over() const final { return failed_ || (finished_ && ended_); }
  Status close() final;
  bool consume();
  bool send();

  const uint64_t rows_;
  Shuffle shuffle_;
  ShuffleSender sender_;
  ShuffleReceiver receiver_;
  Batch batch_;
  RowSum sink_;
  IntegerRange rest_;
  bool finished_ = false;  // this worker has said that it sends no more
  bool ended_ = false;     // nobody sends it any more
  bool failed_ = false;
};

}  // namespace faro::bench
