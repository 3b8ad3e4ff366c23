#include "lab/soak/query_part.h"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "lab/simulation/chance.h"
#include "lab/simulation/row_generator.h"

namespace faro::soak {
namespace {

using simulation::RowGenerator;
using simulation::Spread;

/// One stage at one worker.
class StagePart {
 public:
  StagePart(const QueryPlan& plan, size_t number, uint32_t worker_count, Worker& worker)
      : generator_(plan.row_seed, plan.stages[number], worker_count),
        me_(worker.number()),
        receiver_(generator_.receiver_of(me_)),
        rows_(generator_.sends(me_) ? plan.rows[number] : 0),
        rows_of_each_(plan.rows[number]) {}

  Status open(Worker& worker, const QueryId& id) {
    const simulation::StagePlan& plan = generator_.plan();
    Result<Shuffle> opened = worker.open_shuffle(
        {id, plan.stage, plan.row_bytes, generator_.senders(), generator_.receivers()});
    if (!opened.ok()) return opened.status();
    shuffle_ = std::move(*opened);
    if (!receives()) return Status::Ok();
    for (const uint32_t sender : generator_.senders())
      next_[sender] = generator_.next_for(receiver_, sender, 0);
    return Status::Ok();
  }

  bool has_rows() const { return made_ < rows_; }
  bool half_way() const { return made_ == rows_ / 2; }
  bool ended() const { return ended_; }
  uint64_t rows_taken() const { return taken_; }
  Shuffle& shuffle() { return shuffle_; }

  Status send_next() {
    row_.resize(generator_.length(me_, made_));
    generator_.fill(me_, made_, row_);
    generator_.destinations(me_, made_, to_);
    const Spread spread = generator_.plan().spread;
    const Outcome outcome = spread == Spread::broadcast   ? shuffle_.broadcast(row_)
                            : spread == Spread::multicast ? shuffle_.multicast(to_, row_)
                                                          : shuffle_.send(to_[0], row_);
    ++made_;
    return outcome == Outcome::done ? Status::Ok() : failure("send", outcome);
  }
  Status finish() {
    if (!generator_.sends(me_)) return Status::Ok();
    const Outcome outcome = shuffle_.finish();
    return outcome == Outcome::done ? Status::Ok() : failure("finish", outcome);
  }
  /// The next batch into `batch`, if there is one; `wait`: there is, or the end.
  Status take(Batch& batch, bool wait) {
    if (!receives() || ended_) return Status::Ok();
    const Outcome outcome = wait ? shuffle_.take(batch) : shuffle_.try_poll(batch);
    if (outcome == Outcome::done) return check(batch);
    if (outcome == Outcome::end_of_stream) return check_end();
    return outcome == Outcome::would_wait ? Status::Ok() : failure("take", outcome);
  }
  Status take_to_end() {
    Batch batch;
    while (receives() && !ended_) FARO_RETURN_IF_ERROR(take(batch, true));
    return Status::Ok();
  }

 private:
  bool receives() const { return receiver_ < generator_.receivers().size(); }

  Status check(const Batch& batch) {
    const auto source = next_.find(batch.sender());
    if (source == next_.end()) return wrong(batch.sender(), "no sender of this stage");
    uint64_t& next = source->second;
    for (const std::span<const std::byte> row : batch.each_row()) {
      if (next >= rows_of_each_) return wrong(batch.sender(), "a row too many");
      expected_.resize(generator_.length(batch.sender(), next));
      generator_.fill(batch.sender(), next, expected_);
      if (row.size() != expected_.size() ||
          (!row.empty() && std::memcmp(row.data(), expected_.data(), row.size()) != 0))
        return wrong(batch.sender(), fmt::format("something else instead of row {}", next));
      next = generator_.next_for(receiver_, batch.sender(), next + 1);
      ++taken_;
    }
    return Status::Ok();
  }
  Status check_end() {
    ended_ = true;
    for (const auto& [sender, next] : next_) {
      if (next < rows_of_each_) return wrong(sender, fmt::format("the end before row {}", next));
    }
    return Status::Ok();
  }
  Status wrong(uint32_t sender, const std::string& what) const {
    return Status(Code::internal_error, fmt::format("stage {} at worker {}: worker {} sent {}",
                                                    generator_.plan().stage, me_, sender, what));
  }
  Status failure(const char* what, Outcome outcome) const {
    if (outcome == Outcome::failed && !shuffle_.status().ok()) return shuffle_.status();
    return Status(Code::internal_error,
                  fmt::format("stage {} at worker {}: {} answered {}", generator_.plan().stage, me_,
                              what, outcome_name(outcome)));
  }

  const RowGenerator generator_;
  const uint32_t me_;
  const uint32_t receiver_;
  const uint64_t rows_;
  const uint64_t rows_of_each_;
  uint64_t made_ = 0;
  uint64_t taken_ = 0;
  bool ended_ = false;
  std::map<uint32_t, uint64_t> next_;  // by sender: its next row for this worker
  std::vector<std::byte> row_, expected_;
  std::vector<uint32_t> to_;
  Shuffle shuffle_;
};

// All stages at once; rows are taken between those that are sent, or all of them afterwards.
Status use(std::deque<StagePart>& stages, const QueryPlan& plan, Worker& worker,
           const QueryId& id) {
  simulation::Chance chance(simulation::mix(plan.row_seed, worker.number(), 3));
  const uint64_t between = chance.one_in(3) ? 0 : chance.between(1, 100);
  for (StagePart& stage : stages) FARO_RETURN_IF_ERROR(stage.open(worker, id));
  const bool cancels = plan.cancelled_by == worker.number();
  for (StagePart& stage : stages) {
    while (stage.has_rows()) {
      if (cancels && stage.half_way()) stage.shuffle().cancel("as the plan says");
      FARO_RETURN_IF_ERROR(stage.send_next());
      if (!chance.one_in(between)) continue;
      Batch batch;
      for (StagePart& other : stages) FARO_RETURN_IF_ERROR(other.take(batch, false));
    }
    FARO_RETURN_IF_ERROR(stage.finish());
  }
  for (StagePart& stage : stages) FARO_RETURN_IF_ERROR(stage.take_to_end());
  return Status::Ok();
}

}  // namespace

Status run_part(Worker& worker, const QueryId& id, const QueryPlan& plan, uint32_t worker_count,
                uint64_t& rows) {
  std::deque<StagePart> stages;
  for (size_t s = 0; s < plan.stages.size(); ++s)
    stages.emplace_back(plan, s, worker_count, worker);
  const Status used = use(stages, plan, worker, id);
  for (StagePart& stage : stages) {
    rows += stage.rows_taken();
    stage.shuffle().close();
  }
  Status cause;
  const Outcome ended = worker.end_query(id, &cause);
  worker.hand_over();
  if (used.code() == Code::internal_error) return used;
  if (ended != Outcome::done) return cause;
  return used;
}

}  // namespace faro::soak
