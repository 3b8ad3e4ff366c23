// AggregationOperator: how an aggregation adds, finishes and hands out, whatever its rows are. Not
// part of the API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faro/aggregation_spec.h"
#include "faro/detail/group_merge.h"
#include "faro/detail/group_table.h"
#include "faro/detail/operator_input.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "faro/detail/pre_aggregation.h"
#include "faro/session.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// What Aggregation and SchemaAggregation do (faro/aggregate.h); `Groups` says what their rows and
/// groups are (TypedGroups).
///
/// Threads: those of the worker.
template <typename Groups>
class AggregationOperator {
 public:
  using Row = typename Groups::Row;
  using Table = GroupTable<Groups>;

 private:
  using Before = PreAggregation<Groups>;
  using After = GroupMerge<Groups>;

 public:
  /// Before all groups were handed out, and without stop(), it fails the query.
  ~AggregationOperator() {
    if (part_ == nullptr) return;
    if (!has_stopped_ && !has_ended_) part_->leave("aggregation");
    if (after_) part_->publish();
  }
  AggregationOperator(const AggregationOperator&) = delete;
  AggregationOperator& operator=(const AggregationOperator&) = delete;

  static constexpr uint64_t reserve_bytes(const Groups& groups) noexcept {
    return std::max(OperatorPart::kLeastReserve, After::least_bytes(groups) +
                                                     Table::bytes(groups, TableRule::kLeastStates) +
                                                     Groups::Heap::kLeastBytes);
  }

  /// `format`: what the rows and groups are. `extra_bytes`: of the reserve, for what belongs to the
  /// operator beside this.
  static Result<std::unique_ptr<AggregationOperator>> make(Worker& worker,
                                                           const AggregationSpec& spec,
                                                           Groups groups, std::string format,
                                                           uint64_t extra_bytes = 0) {
    if (spec.table_states && !is_size_of_table(*spec.table_states)) {
      return Status(Code::invalid_argument,
                    "stage " + std::to_string(spec.stage) +
                        ": table_states = " + std::to_string(*spec.table_states) +
                        " is neither 0 nor a power of two from 4096 on");
    }
    try {
      std::unique_ptr<AggregationOperator> made(new AggregationOperator(std::move(groups)));
      if (Status status = made->open(worker, spec, std::move(format), extra_bytes); !status.ok())
        return status;
      return made;
    } catch (const std::bad_alloc&) {
      return Status(Code::overflow_exhausted, "the process has no memory left for an aggregation");
    }
  }

  Sent add(std::span<const Row> rows, Wait wait) {
    const OperatorPart::Call call(*part_);
    if (Outcome outcome = check_adding(); outcome != Outcome::done) return {0, outcome};
    const auto some = [&](size_t& added) { return add_some(rows, added); };
    Sent sent = input_.add(*part_, rows.size(), some, wait);
    if (sent.outcome == Outcome::failed) sent.outcome = failed();
    return sent;
  }

  Outcome finish(Wait wait) {
    const OperatorPart::Call call(*part_);
    if (!part_->is_alive()) return failed();
    if (has_finished_ || !sends_) {
      has_finished_ = true;
      return Outcome::done;
    }
    has_begun_to_finish_ = true;
    const auto attempt = [this] {
      const Outcome flushed = before_->flush();
      if (flushed != Outcome::done && flushed != Outcome::stopped) return flushed;
      before_->clear();  // nothing is sent any more once finish has begun
      return sender_.finish(Wait::none());
    };
    const Outcome outcome = part_->wait(attempt, wait);
    if (outcome == Outcome::failed) return failed();
    has_finished_ = outcome == Outcome::done;
    return outcome;
  }

  /// done: table() has the next groups, until the next call.
  Outcome next(Wait wait) {
    const OperatorPart::Call call(*part_);
    if (!part_->is_alive()) return failed();
    if (!has_finished_) {
      return part_->refuse(Status(Code::wrong_state,
                                  "an aggregation hands out no group before "
                                  "its finish is done")
                               .of_stage(stage_));
    }
    if (has_stopped_) return Outcome::end_of_stream;
    const bool is_limited = !wait.is_none() && !wait.is_forever();
    const uint64_t begin = is_limited ? part_->now_ns() : 0;
    Outcome outcome = wait_for_all(wait);
    if (outcome == Outcome::done) {
      outcome = guarded([&] {
        return after_->next([&] {
          return is_limited &&
                 part_->now_ns() - begin >= static_cast<uint64_t>(wait.limit().count());
        });
      });
    }
    has_ended_ = outcome == Outcome::end_of_stream;
    return outcome == Outcome::failed ? failed() : outcome;
  }

  const Table& table() const noexcept { return after_->table(); }

  Outcome stop() {
    if (!part_->is_alive()) return failed();
    has_stopped_ = true;
    after_->clear();
    return part_->stop(0);
  }

  Groups& groups() noexcept { return kind_; }
  OperatorPart& part() noexcept { return *part_; }
  uint32_t stage() const noexcept { return stage_; }
  const Status& status() const noexcept { return part_->status(); }

  AggregationMetrics metrics() const noexcept {
    AggregationMetrics told;
    told.rows = before_->rows();
    told.rows_passed = before_->rows_passed();
    told.states_sent = before_->states();
    told.states_received = after_->states();
    told.groups = after_->groups();
    told.table_states = before_->rule().states();
    told.most_table_states = before_->rule().most_used();
    told.partitions_split = after_->splits();
    told.spilled_bytes = part_->spilled_bytes();
    told.peak_bytes = part_->peak_bytes();
    return told;
  }

 private:
  explicit AggregationOperator(Groups groups) : kind_(std::move(groups)) {}

  static bool is_size_of_table(uint32_t states) noexcept {
    const bool is_power_of_two = (states & (states - 1)) == 0;
    return states == 0 ||
           (is_power_of_two && states >= TableRule::kLeastStates && states <= Table::kMostStates);
  }
  Status open(Worker& worker, const AggregationSpec& spec, std::string format,
              uint64_t extra_bytes) {
    std::vector<OperatorPart::Stage> stages;
    stages.push_back({{spec.query, spec.stage, kind_.shuffle_row_bytes(), spec.senders,
                       spec.receivers, std::move(format)},
                      [this](Batch& batch) { return take(batch); }});
    auto made = OperatorPart::make(worker, OperatorKind::aggregation,
                                   reserve_bytes(kind_) + extra_bytes, std::move(stages));
    if (!made.ok()) return made.status();
    part_ = std::move(*made);
    stage_ = spec.stage;
    has_ended_ = part_->has_ended(0);  // this worker receives nothing
    after_.emplace(*part_, kind_);
    before_.emplace(*part_, kind_, most_table_states(), part_->fair_bytes() / 4, spec.table_states);
    part_->tells([this](OperatorCounts& counts) {
      const AggregationMetrics now = metrics();
      counts.rows_in = now.rows;
      counts.rows_out = now.groups;
      counts.states_sent = now.states_sent;
      counts.rows_arrived = now.states_received;
      counts.partitions_split = now.partitions_split;
      counts.table_states = now.table_states;
    });
    const auto sender = kind_.sender(part_->shuffle(0));
    sends_ = sender.ok();
    if (!sends_) return Status::Ok();
    sender_ = *sender;
    before_->use(*sender);
    return Status::Ok();
  }

  /// A table takes at most half of this worker's share of the memory: the rest is for what arrives.
  uint32_t most_table_states() const noexcept {
    uint64_t states = TableRule::kLeastStates;
    while (2 * states <= Table::kMostStates &&
           Table::bytes(kind_, 2 * states) <= part_->fair_bytes() / 2)
      states *= 2;
    return static_cast<uint32_t>(states);
  }

  Outcome check_adding() {
    if (!part_->is_alive()) return failed();
    if (sends_ && !has_begun_to_finish_) return Outcome::done;
    return part_->refuse(
        Status(Code::wrong_state, sends_ ? "rows are added to an aggregation after finish"
                                         : "rows are added to an aggregation at a worker that is "
                                           "none of its senders")
            .of_stage(stage_));
  }

  bool take(Batch& batch) {
    const uint64_t begin = part_->now_ns();
    if (!after_->take(batch)) return false;
    before_->rule().taken(batch.row_count(), part_->now_ns() - begin);
    return true;
  }

  /// Adds the next rows, and counts them in `added`; it waits for nothing.
  Outcome add_some(std::span<const Row> rows, size_t& added) {
    Outcome outcome = Outcome::done;
    added += before_->add(rows.subspan(added, std::min(kRowsAtOnce, rows.size() - added)), outcome);
    return outcome;
  }

  Outcome wait_for_all(Wait wait) {
    if (part_->has_ended(0)) return Outcome::done;
    return part_->wait(
        [this] {
          if (!part_->is_alive()) return Outcome::failed;
          return part_->has_ended(0) ? Outcome::done : Outcome::would_wait;
        },
        wait);
  }

  template <typename Do>
  Outcome guarded(const Do& something) {
    try {
      return something();
    } catch (const std::bad_alloc&) {
      return part_->fail(
          Status(Code::overflow_exhausted, "no memory left for the groups of an aggregation"));
    }
  }

  /// Why, the sender knows, unless the operator does. What is of no use any more is let go.
  Outcome failed() {
    if (!part_->is_alive()) {
      before_->clear();
      after_->clear();
    } else if (sends_ && !sender_.status().ok()) {
      return part_->refuse(sender_.status());
    }
    return Outcome::failed;
  }

  Groups kind_;
  std::unique_ptr<OperatorPart> part_;
  std::optional<After> after_;
  std::optional<Before> before_;
  ShuffleSender sender_;
  uint32_t stage_ = 0;
  bool sends_ = false;
  bool has_begun_to_finish_ = false;
  bool has_finished_ = false;
  bool has_stopped_ = false;
  bool has_ended_ = false;  // all groups were handed out
  OperatorInput input_;
};

}  // namespace faro::detail

#pragma GCC visibility pop
