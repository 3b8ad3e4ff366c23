// Calls: the calls that a program makes, each with what it answered and left behind, and with the
// oracle that follows it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "sim/send_path/effects.h"
#include "sim/send_path/nodes.h"
#include "sim/send_path/plan.h"
#include "sim/send_path/record.h"
#include "sim/send_path/rows.h"

namespace faro::send_path {

/// What programs were like, counted.
using Tally = std::map<std::string, uint64_t>;

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
  Calls(const Plan& plan, Record& record);
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  World& world() noexcept { return world_; }
  Nodes& nodes() noexcept { return nodes_; }
  Rows& rows() noexcept { return rows_; }
  Tally& tally() noexcept { return tally_; }
  std::vector<HeldBatch>& held(uint32_t worker) { return held_[worker]; }
  const std::optional<OpenClaim>& claim(uint32_t worker) const { return claims_[worker]; }

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

  // --- what happens beside them
  void deliver(uint32_t port, uint32_t ring, uint32_t frames, bool reads);
  void deliver_all();
  void pass(base::Nanoseconds time);
  void pump();
  void hold(uint32_t port, bool held);
  void cut(uint32_t port, bool data);
  void kill(uint32_t node);
  void close_node(uint32_t node);

 private:
  template <typename... Args>
  void begin(fmt::format_string<Args...> format, Args&&... args) {
    record_.begin_call(fmt::format("{} ", ++calls_) +
                       fmt::format(format, std::forward<Args>(args)...));
  }
  void answer(Outcome outcome, const Status& status);
  void answer_of(OpenStage& stage, Outcome outcome, size_t rows);
  void answer(const Status& status) { record_.note(Kind::answer, "{}", code_name(status.code())); }
  void end_call(uint32_t worker, const OpenStage* stage = nullptr);
  void count(const std::string& what, uint64_t by = 1) { tally_[what] += by; }
  std::span<const std::byte> make_row(uint64_t number, size_t bytes);
  void sent(const OpenStage& stage, uint32_t receiver, uint64_t number, size_t bytes,
            bool claimed = false);
  void lose_claim(uint32_t worker, const QueryRun& query, uint32_t stage);
  void take(OpenStage& stage, Batch& batch);
  template <size_t kBytes>
  Sent send_as(OpenStage& stage, Typed how, uint32_t receiver, uint32_t count, Wait wait);

  const Plan& plan_;
  Record& record_;
  Effects effects_;
  World world_;
  Nodes nodes_;
  Rows rows_;
  Tally tally_;
  std::vector<std::optional<OpenClaim>> claims_;  // by worker
  std::vector<std::vector<HeldBatch>> held_;      // by worker
  std::vector<std::byte> row_;
  uint64_t row_number_ = 0;
  uint64_t calls_ = 0;
};

}  // namespace faro::send_path
