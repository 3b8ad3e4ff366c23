// Aggregation: rows are grouped by key over the workers of a query.
#pragma once

#include "faro/detail/cxx20.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "faro/detail/group_merge.h"
#include "faro/detail/group_table.h"
#include "faro/detail/operator_input.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_store.h"
#include "faro/detail/pre_aggregation.h"
#include "faro/session.h"

#pragma GCC visibility push(default)

namespace faro {

/// What to aggregate. Every worker that takes part makes one with an equal spec.
struct AggregationSpec {
  QueryId query;
  uint32_t stage = 0;                 ///< it takes this one, as a shuffle does
  std::vector<uint32_t> senders{};    ///< who adds rows; as ShuffleSpec::senders
  std::vector<uint32_t> receivers{};  ///< who gets groups; as ShuffleSpec::receivers
  /// For measurements: rows meet a table of exactly that many states, a power of two from 4096
  /// on, before they are sent; with 0 they pass. Without it that is decided by what is measured.
  std::optional<uint32_t> table_states{};
};

/// What an aggregation has done at this worker until now.
struct AggregationMetrics {
  uint64_t rows = 0;             ///< added here
  uint64_t rows_passed = 0;      ///< of these: sent without meeting a table
  uint64_t states_sent = 0;      ///< rows that passed, and groups of full tables
  uint64_t states_received = 0;  ///< from all senders
  uint64_t groups = 0;           ///< handed out here
  uint64_t table_states = 0;     ///< of the table that rows meet now; 0: they pass
  uint64_t most_table_states = 0;
  uint64_t partitions_split = 0;  ///< they had more groups than fit the cache
  uint64_t spilled_bytes = 0;     ///< of states, through overflow
  uint64_t peak_bytes = 0;        ///< of operator.memory_bytes
};

/// Groups rows by key: each worker adds its rows, and each group comes out once, at the worker to
/// which partition() assigns the hash of its key.
///
///   struct Sum {
///     struct Row { uint32_t key; uint32_t value; };
///     using Key = uint32_t;
///     using State = uint64_t;
///     uint32_t key(const Row& row) const { return row.key; }
///     void add(uint64_t& sum, const Row& row) const { sum += row.value; }
///     void merge(uint64_t& sum, const uint64_t& other) const { sum += other; }
///   };
///   auto sums = Aggregation<Sum>::make(worker, {query, stage});
///   (*sums)->add(rows);    // as often as there are rows
///   (*sums)->finish();
///   std::span<const Aggregation<Sum>::Group> groups;
///   Outcome outcome;
///   while ((outcome = (*sums)->next(groups)) == Outcome::done)
///     for (const auto& [key, sum] : groups) use(key, sum);
///
/// `What` names Row, Key and State, all trivially copyable, and has three functions, which must not
/// throw. State{} is the state of no row; `merge` is commutative and associative, as far as the
/// engine cares. Keys are compared with ==. A key that is no integer, and can be equal with other
/// bytes, needs a function `uint64_t hash(const Key&) const`, equal on all workers.
///
/// Rows meet a table in which they are aggregated before they are sent, or pass it. Which, and how
/// large the table is, is decided while rows come, by what both cost in this run
/// (native/operators/README.md). States that arrive are kept by partition, and merged partition by
/// partition when all have come (Binnig et al., The End of Slow Networks, VLDB 2016, section 5).
/// What does not fit operator.memory_bytes is spilled through overflow.
///
/// What calls answer:
///   done        it happened
///   would_wait  Wait::none() was given, and there is no room, or not everything has come
///   holding     it would have to wait, but the worker holds batches: release or detach them
///   stopped     every receiver has stopped: add no more; finish all the same
///   deadline    the limit of Wait::at_most has passed; the same call goes on
///   failed      see status(): the query has failed (destroy this, then end the query), or the call
///               was refused (wrong_state, invalid_argument)
/// A call that waits takes in what comes for every operator of the worker, and moves on all that
/// others need (native/DESIGN.md#inv-2): no plan deadlocks, even if all workers only add.
///
/// Threads: those of the worker. Owns: its stage, its memory and what it has spilled, until
/// destruction, which comes before the query is ended. Destroyed before its end it fails the query,
/// as a shuffle does that is closed.
template <typename What>
class Aggregation {
 public:
  using Row = typename What::Row;
  using Key = typename What::Key;
  using State = typename What::State;
  /// Has a `key` and a `state`.
  using Group = detail::KeyedState<Key, State>;

 private:
  using Before = detail::PreAggregation<What, Group>;
  using After = detail::GroupMerge<What, Group>;
  using Table = detail::GroupTable<Group>;

 public:
  static_assert(std::is_trivially_copyable_v<Row> && std::is_trivially_copyable_v<Group>);
  static_assert(alignof(Group) <= 16, "rows of shuffles are aligned to 16 bytes");

  /// Before all groups were handed out, and without stop(), it fails the query.
  ~Aggregation() {
    if (part_ != nullptr && !has_stopped_ && !has_ended_) part_->leave("aggregation");
  }
  Aggregation(const Aggregation&) = delete;
  Aggregation& operator=(const Aggregation&) = delete;

  /// What one takes of operator.memory_bytes from its beginning to its end: 1 MiB, or what small
  /// tables and one block per partition take if that is more.
  static constexpr uint64_t reserve_bytes() noexcept {
    return std::max(detail::OperatorPart::kLeastReserve,
                    After::least_bytes() + Table::bytes(detail::TableRule::kLeastStates));
  }

  /// Opens the stage, and takes reserve_bytes() of operator.memory_bytes. Blocks: never. Errors:
  /// limit_exceeded (there is no such reserve left), resource_limit (this machine has less than
  /// operator.memory_bytes), invalid_argument (table_states), those of Worker::open_shuffle.
  static Result<std::unique_ptr<Aggregation>> make(Worker& worker, const AggregationSpec& spec,
                                                   What what = {}) {
    if (spec.table_states && !is_size_of_table(*spec.table_states)) {
      return Status(Code::invalid_argument,
                    "stage " + std::to_string(spec.stage) +
                        ": table_states = " + std::to_string(*spec.table_states) +
                        " is neither 0 nor a power of two from 4096 on");
    }
    try {
      std::unique_ptr<Aggregation> made(new Aggregation(std::move(what)));
      if (Status status = made->open(worker, spec); !status.ok()) return status;
      return made;
    } catch (const std::bad_alloc&) {
      return Status(Code::overflow_exhausted, "the process has no memory left for an aggregation");
    }
  }

  /// Adds rows, all or the first ones: `Sent::rows` tells how many, after every outcome. Rows are
  /// read before the call returns. It waits only for room for states; a time limit is for each time
  /// that there is none. Refused after finish, and at a
  /// worker that is no sender.
  Sent add(std::span<const Row> rows, Wait wait = Wait::forever()) {
    const detail::OperatorPart::Call call(*part_);
    if (Outcome outcome = check_adding(); outcome != Outcome::done) return {0, outcome};
    const auto some = [&](size_t& added) { return add_some(rows, added); };
    Sent sent = input_.add(*part_, rows.size(), some, wait);
    if (sent.outcome == Outcome::failed) sent.outcome = failed();
    return sent;
  }

  /// This worker adds no more rows: sends what it still has. Repeat it until it is done.
  Outcome finish(Wait wait = Wait::forever()) {
    const detail::OperatorPart::Call call(*part_);
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

  /// The next groups, some thousand of them: when all senders have finished, it merges what has
  /// come. `groups` is valid until the next call. end_of_stream: there are no more, or stop() was
  /// called, or this worker is no receiver. Refused before finish is done.
  Outcome next(std::span<const Group>& groups, Wait wait = Wait::forever()) {
    const detail::OperatorPart::Call call(*part_);
    groups = {};
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
        return after_->next(groups, [&] {
          return is_limited &&
                 part_->now_ns() - begin >= static_cast<uint64_t>(wait.limit().count());
        });
      });
    }
    has_ended_ = outcome == Outcome::end_of_stream;
    return outcome == Outcome::failed ? failed() : outcome;
  }

  /// This worker needs no more groups (LIMIT): senders drop what is for it, and the query goes on.
  /// What it has to add it still adds. Blocks: never.
  Outcome stop() {
    if (!part_->is_alive()) return failed();
    has_stopped_ = true;
    after_->clear();
    return part_->stop(0);
  }

  /// Why the last call that answered failed did; ok if none did.
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
  explicit Aggregation(What what) : what_(std::move(what)) {}

  static bool is_size_of_table(uint32_t states) noexcept {
    const bool is_power_of_two = (states & (states - 1)) == 0;
    return states == 0 || (is_power_of_two && states >= detail::TableRule::kLeastStates &&
                           states <= Table::kMostStates);
  }
  static std::string format() {
    return "aggregation: key of " + std::to_string(sizeof(Key)) + " bytes, state of " +
           std::to_string(sizeof(State)) + ", together " + std::to_string(sizeof(Group));
  }
  Status open(Worker& worker, const AggregationSpec& spec) {
    std::vector<detail::OperatorPart::Stage> stages;
    stages.push_back(
        {{spec.query, spec.stage, sizeof(Group), spec.senders, spec.receivers, format()},
         [this](Batch& batch) { return take(batch); }});
    auto made =
        detail::OperatorPart::make(worker, "an aggregation", reserve_bytes(), std::move(stages));
    if (!made.ok()) return made.status();
    part_ = std::move(*made);
    stage_ = spec.stage;
    has_ended_ = part_->has_ended(0);  // this worker receives nothing
    after_.emplace(*part_, what_);
    before_.emplace(*part_, what_, most_table_states(), spec.table_states);
    const Result<RowSender<Group>> sender = part_->shuffle(0).template sender<Group>();
    sends_ = sender.ok();
    if (!sends_) return Status::Ok();
    sender_ = *sender;
    before_->use(*sender);
    return Status::Ok();
  }

  /// A table takes at most half of this worker's share of the memory: the rest is for what arrives.
  uint32_t most_table_states() const noexcept {
    uint64_t states = detail::TableRule::kLeastStates;
    while (2 * states <= Table::kMostStates && Table::bytes(2 * states) <= part_->fair_bytes() / 2)
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
    added += before_->add(rows.subspan(added, std::min(detail::kRowsAtOnce, rows.size() - added)),
                          outcome);
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

  const What what_;
  std::unique_ptr<detail::OperatorPart> part_;
  std::optional<After> after_;
  std::optional<Before> before_;
  ShuffleSender sender_;
  uint32_t stage_ = 0;
  bool sends_ = false;
  bool has_begun_to_finish_ = false;
  bool has_finished_ = false;
  bool has_stopped_ = false;
  bool has_ended_ = false;  // all groups were handed out
  detail::OperatorInput input_;
};

}  // namespace faro

#pragma GCC visibility pop
