// Stage: one stage of a query at one worker. Makes rows, sends them in every way there is, and checks what arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "faro/outcome.h"
#include "faro/shuffle.h"
#include "lab/workload/participant.h"
#include "lab/workload/row_checker.h"
#include "lab/workload/row_generator.h"

namespace faro::workload {

/// How a worker treats a stage.
struct Habits {
  uint64_t rows = UINT64_MAX;         // that it makes, if it sends at all
  uint64_t enough_rows = UINT64_MAX;  // it stops receiving after that many rows
  bool one_by_one = false;            // takes sender by sender
};

/// Threads: the worker's. Calls that can wait do so with `wait`. They answer as the public API does, but `failed` also when what
/// arrived is wrong: status() says what, and so was Participant::broken told.
class Stage {
 public:
  Stage(Participant& participant, RowGenerator rows, Habits habits);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// The spec of the stage that the plan says.
  ShuffleSpec spec(const QueryId& id) const;
  /// With a spec that is not the plan's, nothing is compared at the end of stream.
  Status open(const ShuffleSpec& spec);

  const StagePlan& plan() const { return rows_.plan(); }
  bool sends() const { return sends_; }
  bool receives() const { return checker_.has_value(); }
  /// It and another of `workers` send or receive here, so that it is missed.
  bool is_shared_with(const std::vector<uint32_t>& workers) const;
  bool has_rows() const { return sends_ && made_ < habits_.rows; }
  uint64_t rows_made() const { return made_; }
  bool half_made() const { return made_ >= habits_.rows / 2; }
  uint64_t rows_taken() const { return taken_; }
  bool finished() const { return finished_; }
  bool ended() const { return ended_; }
  bool stopped() const { return stopped_; }
  Shuffle& shuffle() { return shuffle_; }
  /// Why something answered `failed`.
  Status status() const;

  /// Sends up to that many rows in one of the ways there are. Some may be sent whatever it answers: see rows_made. After
  /// `stopped` there is nothing more to send.
  Outcome send_some(uint64_t rows, bool wait);
  Outcome send_next(bool wait);
  /// By the typed path: Spread::by_key or one_key, rows of 24 bytes.
  Outcome send_typed(uint64_t rows, bool wait);
  /// The next row by a claim that may be too large, and in half of the cases by one that is given up before. Spread::by_key or
  /// one_key.
  Outcome send_by_claim(bool wait);
  Outcome finish(bool wait);

  /// The next batch, checked; `end_of_stream` once, with everything compared.
  Outcome receive(bool wait, Batch& batch);
  /// Parts of it, for those that take batches themselves. False: something is wrong.
  bool check(const Batch& batch);
  /// Who has sent it.
  uint32_t worker_of(const Batch& batch) const { return senders_[batch.sender()].worker; }
  bool check_end();
  void stop();

 private:
  /// A worker whose rows are taken.
  struct Source {
    uint32_t worker = 0;
    bool ended = false;  // seen where senders are taken one by one
  };

  Outcome take(bool wait, Batch& batch);
  bool names_members() const;
  uint32_t first_receiver() const;
  Outcome sent(Outcome outcome, uint64_t bytes);
  uint64_t draw_claimed_too_much();
  bool broken(const std::string& what);

  Participant& participant_;
  const RowGenerator rows_;
  const bool sends_;
  Habits habits_;
  std::optional<RowChecker> checker_;  // of a receiver
  std::vector<Source> senders_;        // by the index that the shuffle has for them
  uint64_t made_ = 0;
  uint64_t taken_ = 0;
  bool stopped_ = false;
  bool finished_;
  bool ended_;
  bool is_as_planned_ = true;
  Status broken_;
  std::vector<std::byte> row_;
  std::vector<uint32_t> to_;
  Shuffle shuffle_;
  ShuffleSender sender_;      // if it sends
  ShuffleReceiver receiver_;  // if it receives
};

}  // namespace faro::workload
