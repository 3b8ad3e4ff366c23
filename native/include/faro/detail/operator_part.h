// OperatorPart: an operator of one query at one worker: its stages, its memory, how it waits and
// fails. Not part of the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faro/batch.h"
#include "faro/metrics.h"
#include "faro/outcome.h"
#include "faro/session.h"
#include "faro/shuffle.h"
#include "faro/status.h"
#include "faro/wait.h"

#pragma GCC visibility push(default)

namespace faro::operators {
class Part;
}

namespace faro::detail {

class PartitionStore;

/// Threads: those of the worker.
class OperatorPart {
 public:
  /// Takes a batch that has come. False: the operator has failed (`fail` was called).
  using Take = std::function<bool(Batch& batch)>;
  struct Stage {
    ShuffleSpec spec;
    Take take;
  };
  /// Every operator has at least this much memory to itself.
  static constexpr uint64_t kLeastReserve = uint64_t{1} << 20;

  /// Takes `reserve_bytes`, or kLeastReserve if that is more, of operator.memory_bytes, and opens
  /// the stages. Errors: limit_exceeded (the reserve), resource_limit (this machine has less than
  /// operator.memory_bytes), those of Worker::open_shuffle.
  static Result<std::unique_ptr<OperatorPart>> make(Worker& worker, OperatorKind kind,
                                                    uint64_t reserve_bytes,
                                                    std::vector<Stage> stages);
  /// Closes its stages. What it has taken must have been given back.
  ~OperatorPart();
  OperatorPart(const OperatorPart&) = delete;
  OperatorPart& operator=(const OperatorPart&) = delete;

  Shuffle& shuffle(size_t stage) noexcept;
  /// Every sender of the stage has finished, and all that came was taken; or this worker receives
  /// nothing of it.
  bool has_ended(size_t stage) const noexcept;
  /// This worker needs no more rows of the stage.
  Outcome stop(size_t stage);
  /// A number that tells this operator from others, drawn where it was made.
  uint64_t number() const noexcept;
  /// Whether lanes end at nodes, so that a broadcast travels once to each (Delivery::replicate).
  static bool can_replicate(Worker& worker);
  /// By the clock of the session.
  uint64_t now_ns() const noexcept;

  // --- waiting

  /// A call of the operator, from its beginning to its end: what comes for operators of this worker
  /// is not spilled meanwhile.
  class Call {
   public:
    explicit Call(OperatorPart& part) noexcept : part_(part) { part_.begin_call(); }
    ~Call() { part_.end_call(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    OperatorPart& part_;
  };
  /// Says what the operator has done; what it has spilled and holds is known here.
  using Tell = std::function<void(OperatorCounts& counts)>;
  /// `tell` is asked at the end of each call, so that the session can show it (SessionMetrics).
  void tells(Tell tell);
  /// What was done outside of a call, before the operator is destroyed.
  void publish() noexcept;

  /// Takes what has come for this operator, some batches of it; whether there was anything.
  bool take_in() noexcept;
  /// Repeats `attempt` as long as it answers would_wait; meanwhile it takes in what comes for all
  /// operators of this worker, and moves on everything that others need (native/DESIGN.md#inv-2).
  /// `attempt` waits for nothing. It answers what `attempt` has answered, or deadline, holding, or
  /// failed.
  Outcome wait(const std::function<Outcome()>& attempt, Wait wait);

  // --- failing

  /// Whether the query and the session are alive; else why not, which status() says from then on.
  bool is_alive();
  /// Fails the query on every participant, unless it has failed. Answers failed.
  Outcome fail(const Status& cause) noexcept;
  /// The operator is destroyed before it has handed out all: the query fails, as where a receiver
  /// is closed before its end.
  void leave(const char* name) noexcept;
  /// Notes why a call was refused, or has failed by its shuffle. Answers failed.
  Outcome refuse(Status why) noexcept;
  /// Why the last call that answered failed did; ok if none did.
  const Status& status() const noexcept;

  // --- memory

  /// The part of operator.memory_bytes that one worker of this node has if all have as much.
  uint64_t fair_bytes() const noexcept;
  /// Takes memory of operator.memory_bytes; false: there is none left. `room`: as much can be taken
  /// beside these bytes as long as they are not given back, where what can be spilled is.
  bool try_take(uint64_t bytes, uint64_t room = 0) noexcept;
  /// Does so, and spills the largest partitions of this operator for it if need be. False: there is
  /// nothing left to spill; or overflow is full, by which the operator has failed.
  bool take(uint64_t bytes, uint64_t room = 0);
  void give(uint64_t bytes) noexcept;
  /// Fails the query because there is no memory for `what`, "the groups of one partition" for
  /// instance: names operator.memory_bytes, and what operators of this node have of it. If the
  /// operator has failed already, for instance as overflow was full, nothing is done. Answers
  /// failed.
  Outcome fail_for_memory(const std::string& what);
  /// What this operator has now.
  uint64_t used_bytes() const noexcept;
  /// Most that it had at a time.
  uint64_t peak_bytes() const noexcept;
  /// Bytes that it has spilled.
  uint64_t spilled_bytes() const noexcept;

 private:
  friend class PartitionStore;
  friend class PartitionReader;
  void begin_call() noexcept;
  void end_call() noexcept;
  explicit OperatorPart(std::unique_ptr<operators::Part> part);

  std::unique_ptr<operators::Part> part_;
};

}  // namespace faro::detail

#pragma GCC visibility pop
