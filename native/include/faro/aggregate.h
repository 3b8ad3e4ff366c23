// Aggregation: rows are grouped by key over the workers of a query.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "faro/aggregation_spec.h"
#include "faro/columns.h"
#include "faro/detail/aggregation_operator.h"
#include "faro/detail/typed_groups.h"
#include "faro/session.h"

#pragma GCC visibility push(default)

namespace faro {

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
  using Groups = detail::TypedGroups<What>;
  using Operator = detail::AggregationOperator<Groups>;

 public:
  static_assert(std::is_trivially_copyable_v<Row> && std::is_trivially_copyable_v<Group>);
  static_assert(alignof(Group) <= 16, "rows of shuffles are aligned to 16 bytes");

  /// What one takes of operator.memory_bytes from its beginning to its end: 1 MiB, or what small
  /// tables and one block per partition take if that is more.
  static uint64_t reserve_bytes() noexcept { return Operator::reserve_bytes(Groups({})); }

  /// Opens the stage, and takes reserve_bytes() of operator.memory_bytes. Blocks: never. Errors:
  /// limit_exceeded (there is no such reserve left), resource_limit (this machine has less than
  /// operator.memory_bytes), invalid_argument (table_states), those of Worker::open_shuffle.
  static Result<std::unique_ptr<Aggregation>> make(Worker& worker, const AggregationSpec& spec,
                                                   What what = {}) {
    auto made = Operator::make(worker, spec, Groups(std::move(what)), format());
    if (!made.ok()) return made.status();
    return std::unique_ptr<Aggregation>(new Aggregation(std::move(*made)));
  }

  /// Adds rows, all or the first ones: `Sent::rows` tells how many, after every outcome. Rows are
  /// read before the call returns. It waits only for room for states; a time limit is for each time
  /// that there is none. Refused after finish, and at a worker that is no sender.
  Sent add(std::span<const Row> rows, Wait wait = Wait::forever()) {
    return operator_->add(rows, wait);
  }

  /// This worker adds no more rows: sends what it still has. Repeat it until it is done.
  Outcome finish(Wait wait = Wait::forever()) { return operator_->finish(wait); }

  /// The next groups, some thousand of them: when all senders have finished, it merges what has
  /// come. `groups` is valid until the next call. end_of_stream: there are no more, or stop() was
  /// called, or this worker is no receiver. Refused before finish is done.
  Outcome next(std::span<const Group>& groups, Wait wait = Wait::forever()) {
    const Outcome outcome = operator_->next(wait);
    groups = {};
    if (outcome == Outcome::done) groups = {operator_->table().groups(), operator_->table().size()};
    return outcome;
  }

  /// This worker needs no more groups (LIMIT): senders drop what is for it, and the query goes on.
  /// What it has to add it still adds. Blocks: never.
  Outcome stop() { return operator_->stop(); }

  /// Why the last call that answered failed did; ok if none did.
  const Status& status() const noexcept { return operator_->status(); }

  AggregationMetrics metrics() const noexcept { return operator_->metrics(); }

 private:
  explicit Aggregation(std::unique_ptr<Operator> made) : operator_(std::move(made)) {}

  static std::string format() {
    return "aggregation: key of " + std::to_string(sizeof(Key)) + " bytes, state of " +
           std::to_string(sizeof(State)) + ", together " + std::to_string(sizeof(Group));
  }

  std::unique_ptr<Operator> operator_;
};

// --- of a schema

/// What is computed of a group. All but count_rows pass over nulls.
enum class AggregateFunction : uint8_t {
  count_rows = 0,
  count = 1,  ///< rows in which the column is not null
  sum = 2,    ///< of integers and decimals, in 128 bits; of floats, in the order of arrival
  min = 3,    ///< NaN is the largest; strings and bytes compare byte by byte, without signs
  max = 4,
  any = 5,  ///< the value of any row
};

/// A function of a group's rows.
struct Aggregate {
  AggregateFunction function = AggregateFunction::count_rows;
  uint32_t column = 0;  ///< of the rows; of no use to count_rows
  /// The column that it becomes. By default: LONG for both counts and for sums of integers,
  /// DECIMAL_38 of the same scale for those of decimals, DOUBLE for those of floats, else the
  /// column that it is of. A count or a sum of integers or decimals may become any integer or
  /// decimal of the same scale; a value that does not fit it fails the query. All but counts may be
  /// null if their column may, or if there is no key.
  std::optional<Column> result{};
};

/// What to group, known only at run time.
struct Grouping {
  Schema rows;
  /// Columns of the rows. Nulls are one group, and so are all NaN; -0.0 is 0.0, and comes out so.
  /// Without keys there is one group, also if there is no row; it comes out at the first receiver.
  std::vector<uint32_t> keys;
  std::vector<Aggregate> aggregates;
};

/// Rows of a schema, one after the other: of its width, or each with its length of 4 bytes in
/// front, as in a Batch.
struct PackedRows {
  std::span<const std::byte> bytes;
  size_t count = 0;
};

/// Groups rows of a schema by key, as Aggregation does rows of a type: the same algorithm, answers
/// and rules, of which this says only what differs. Workers whose schema, keys or functions differ
/// fail by stage_mismatch.
///
/// The group of a key comes out at partition(hash, receivers). The hash of an integer, a boolean or
/// a decimal of up to 18 digits is FinalizerHash of it as a signed number of 64 bits; of a string
/// or bytes hash_bytes; with several keys h = FinalizerHash(h + 0x9e3779b97f4a7c15) + the hash of
/// the next.
///
/// Threads: those of the worker. Owns: its stage, its memory and what it has spilled, until
/// destruction, which comes before the query is ended.
class SchemaAggregation {
 public:
  ~SchemaAggregation();
  SchemaAggregation(const SchemaAggregation&) = delete;
  SchemaAggregation& operator=(const SchemaAggregation&) = delete;

  /// Blocks: never. Errors: those of Aggregation::make; invalid_argument also for keys and
  /// functions that the schema has not, which it names.
  static Result<std::unique_ptr<SchemaAggregation>> make(Worker& worker,
                                                         const AggregationSpec& spec,
                                                         const Grouping& grouping);

  /// The columns of groups: the keys, then the functions, in the order of the Grouping.
  const Schema& results() const noexcept;

  /// How many rows were added: the first ones, and where they end.
  struct [[nodiscard]] Added {
    size_t rows = 0;
    size_t bytes = 0;
    Outcome outcome = Outcome::done;
  };
  /// Adds rows, which lie as in PackedRows; those of a batch may be given where they lie. Go on
  /// with rows.subspan(added.bytes). Bytes that are no row of the schema are refused with
  /// invalid_argument, after the rows before.
  Added add(std::span<const std::byte> rows, Wait wait = Wait::forever());

  Outcome finish(Wait wait = Wait::forever());

  /// The next groups, as many as fit 64 KiB, and at least one; valid until the next call.
  Outcome next(PackedRows& groups, Wait wait = Wait::forever());

  Outcome stop();

  const Status& status() const noexcept;
  AggregationMetrics metrics() const noexcept;

 private:
  class Running;
  explicit SchemaAggregation(std::unique_ptr<Running> running);

  std::unique_ptr<Running> running_;
};

}  // namespace faro

#pragma GCC visibility pop
