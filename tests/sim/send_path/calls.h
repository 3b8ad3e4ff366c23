// Calls: the calls that a program makes, each with what it answered and left behind, and with the
// oracle that follows it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "faro/session.h"
#include "sim/send_path/plan.h"
#include "sim/send_path/rows.h"
#include "sim/send_path/scene.h"

namespace faro::send_path {

/// A query of a program.
struct QueryRun {
  uint32_t index = 0;
  const QueryPlan* plan = nullptr;
  QueryId id;
  bool failed = false;  // somebody was told so
  bool over = false;
};

/// A stage of a query at one worker.
struct OpenStage {
  QueryRun* query = nullptr;
  uint32_t stage = 0;
  uint32_t worker = 0;
  const StagePlan* plan = nullptr;
  Shuffle shuffle;
  std::optional<ShuffleSender> sender;
  std::optional<ShuffleReceiver> receiver;
  bool finished = false;  // all receivers know the end
  bool ended = false;     // all senders have ended
  bool stopped = false;   // it needs no more
  bool closed = false;

  Way way_to(uint32_t receiver_index) const {
    return {query->index, stage, worker, plan->receivers[receiver_index]};
  }
};

struct HeldBatch {
  OpenStage* of = nullptr;
  Batch batch;
  uint64_t digest = 0;  // of its bytes, which must not change
};

/// A row that is written in place.
struct OpenClaim {
  OpenStage* of = nullptr;
  uint32_t receiver = 0;
  uint64_t number = 0;
  RowClaim claim;
  bool is_gone = false;  // with its shuffle: nothing can be written there
};

/// Threads: one.
class Calls {
 public:
  Calls(const Plan& plan, Record& record, Scene& scene);
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  Rows& rows() noexcept { return rows_; }
  std::vector<HeldBatch>& held(uint32_t worker) { return held_[worker]; }
  const std::optional<OpenClaim>& claim(uint32_t worker) const { return claims_[worker]; }

  /// How many were sent and received, at the end.
  void count_rows();

  // --- queries
  void begin_query(QueryRun& query);
  std::unique_ptr<OpenStage> open(QueryRun& query, uint32_t stage, uint32_t worker);
  void close(OpenStage& stage);
  void cancel(OpenStage& stage);
  Outcome end_query(QueryRun& query, uint32_t worker, const Status& failure);

  // --- sending
  /// That many rows of that many bytes, one after the other, until one is not sent.
  void send(OpenStage& stage, uint32_t receiver, size_t bytes, uint32_t count, Wait wait);
  void write(OpenStage& stage, uint32_t receiver, size_t bytes, Wait wait);
  enum class Typed { send, send_all, write_all, broadcast_all };
  /// Sends on a stage whose rows have 8, 24 or 100 bytes.
  void send_typed(OpenStage& stage, Typed how, uint32_t receiver, uint32_t count, Wait wait);
  void multicast(OpenStage& stage, std::span<const uint32_t> receivers, size_t bytes, Wait wait);
  void broadcast(OpenStage& stage, size_t bytes, Wait wait);
  void begin_claim(OpenStage& stage, uint32_t receiver, size_t bytes, Wait wait);
  void commit_claim(uint32_t worker, size_t bytes);
  void abort_claim(uint32_t worker);
  void flush(OpenStage& stage);
  Outcome finish(OpenStage& stage, Wait wait);

  // --- receiving
  /// From one sender, if one is named. What has come is held if `keeps`.
  Outcome receive(OpenStage& stage, std::optional<uint32_t> sender, bool keeps, Wait wait);
  void release(uint32_t worker, size_t index);
  void detach(uint32_t worker, size_t index);
  void stop(OpenStage& stage);
  /// A look at everything, for nothing.
  void look(uint32_t worker);
  /// Calls of a sender and a claim that are of no shuffle.
  void call_nothing(uint32_t worker);

 private:
  void answer(Outcome outcome, const Status& status);
  void answer_of(OpenStage& stage, Outcome outcome, size_t rows);
  void answer(const Status& status) { record_.note(Kind::answer, "{}", code_name(status.code())); }
  void end_call(uint32_t worker, const OpenStage* stage = nullptr);
  std::span<const std::byte> make_row(uint64_t number, size_t bytes);
  void sent(const OpenStage& stage, uint32_t receiver, uint64_t number, size_t bytes,
            bool claimed = false);
  void lose_claim(uint32_t worker, const QueryRun& query, uint32_t stage);
  void take(OpenStage& stage, Batch& batch);
  template <size_t kBytes>
  Sent send_as(OpenStage& stage, Typed how, uint32_t receiver, uint32_t count, Wait wait);

  const Plan& plan_;
  Record& record_;
  Scene& scene_;
  Rows rows_;
  std::vector<std::optional<OpenClaim>> claims_;  // by worker
  std::vector<std::vector<HeldBatch>> held_;      // by worker
  std::vector<std::byte> row_;
  uint64_t row_number_ = 0;
};

}  // namespace faro::send_path
