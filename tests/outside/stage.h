// Stage: one shuffle at one worker. Sends its rows in every way there is, and compares what arrives.
#pragma once

#include <faro/session.h>
#include <faro/shuffle.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "chance.h"
#include "round_plan.h"
#include "rows.h"
#include "taken_rows.h"

namespace outside {

/// What a worker's thread has around it.
struct Scene {
  const RoundPlan& plan;
  faro::Session& session;
  faro::Worker& worker;
  const uint32_t me;                               // number of the worker
  std::function<void(const std::string&)> broken;  // says that a promise was broken
  TakenRows& taken;                                // by all workers of the node
  Chance chance;                                   // the worker's own
  uint64_t rows = 0;                               // received and compared

  /// For a call that may wait: mostly none.
  faro::Wait how(bool wait) {
    const bool is_limited = chance.one_in(8);
    if (!wait) return faro::Wait::none();
    return is_limited ? faro::Wait::at_most(std::chrono::nanoseconds(chance.below(2'000'000)))
                      : faro::Wait::forever();
  }
};

/// Threads: its worker's.
class Stage {
 public:
  /// `enough`: stops receiving after that many rows.
  Stage(Scene& scene, const StagePlan& plan, uint64_t enough);

  faro::Status open(const faro::QueryId& id);
  faro::Shuffle& shuffle() { return shuffle_; }
  uint32_t number() const { return rows_.plan().number; }
  bool has_rows() const { return sends_ && made_ < count_; }
  bool finished() const { return finished_; }
  bool ended() const { return ended_; }
  bool stopped() const { return stopped_; }
  uint64_t made() const { return made_; }

  /// Sends some of its rows; in one of the ways.
  faro::Outcome send_some(uint64_t rows, bool wait);
  faro::Outcome finish(bool wait);
  /// The next rows, compared; at end_of_stream that all have come.
  faro::Outcome receive(bool wait, faro::Batch& batch);

 private:
  struct Source {
    uint64_t next = 0;  // number of its next row for this worker
    bool ended = false;
  };
  struct Row24 {
    uint64_t words[3];
  };

  faro::Outcome send_next(bool wait);
  faro::Outcome send_in_place(bool wait);
  faro::Outcome send_claimed(bool wait);
  template <typename Row, typename Key>
  faro::Outcome send_typed(uint64_t rows, bool wait, Key key);
  faro::Outcome sent(faro::Outcome outcome, faro::Wait how);
  faro::Outcome take(bool wait, faro::Batch& batch);
  template <typename Row>
  void check_typed(const faro::Batch& batch);
  void check(const faro::Batch& batch);
  void add_to_node(const faro::Batch& batch, uint32_t sender);
  void check_end();
  void check_node();
  void check_answer(faro::Outcome outcome, faro::Wait how, const char* call);
  void broken(const std::string& what);

  Scene& scene_;
  const Rows rows_;
  const bool sends_;
  const uint32_t my_place_;  // among the receivers, as senders number them; their number: none
  const bool one_by_one_;    // takes sender by sender
  const uint64_t enough_;
  uint64_t count_;
  uint64_t made_ = 0;
  uint64_t taken_ = 0;
  bool stopped_ = false;
  bool finished_;
  bool ended_;
  std::map<uint32_t, Source> sources_;
  std::vector<std::byte> row_;
  std::vector<uint32_t> to_;
  faro::Shuffle shuffle_;
  faro::ShuffleSender sender_;
};

}  // namespace outside
