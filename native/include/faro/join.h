// RadixJoin: rows of two inputs are joined by key over the workers of a query.
#pragma once

#include "faro/detail/cxx20.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "faro/detail/join_list_sender.h"
#include "faro/detail/join_lists.h"
#include "faro/detail/join_loop.h"
#include "faro/detail/operator_hash.h"
#include "faro/detail/operator_input.h"
#include "faro/detail/operator_part.h"
#include "faro/detail/partition_join.h"
#include "faro/session.h"

#pragma GCC visibility push(default)

namespace faro {

/// How the rows of one side of a join come to the workers that join them.
enum class JoinInput : uint8_t {
  partition,   ///< each is sent to the receiver of its key
  everywhere,  ///< each is sent to every receiver; build rows of inner, left, semi and anti joins
  here,        ///< each stays at its worker, where those are that it has to meet: nothing is sent
};

/// What to join. Every worker that takes part makes one with an equal spec.
struct JoinSpec {
  QueryId query;
  uint32_t stage = 0;  ///< it takes this one and the next three, as a shuffle does
  JoinKind kind = JoinKind::inner;
  JoinInput build_input = JoinInput::partition;
  JoinInput probe_input = JoinInput::partition;
  std::vector<uint32_t> senders{};    ///< who adds rows of either side; as ShuffleSpec::senders
  std::vector<uint32_t> receivers{};  ///< who gets pairs; as ShuffleSpec::receivers
  /// Pairs come as soon as as many probe rows wait as there are build rows to meet them. Without
  /// it they wait as long as memory allows, which takes less time.
  bool output_early = false;
  /// Probe rows of a key that many of them have are joined at the workers that add them, to which
  /// the owner of the key sends its build rows. So pairs of such a key come out at several workers.
  /// Only where probe rows are partitioned and build rows not everywhere, and not in right and full
  /// joins. Without it each pair comes out at the owner of its key.
  bool hot_keys = true;
};

/// What a join has done at this worker until now.
struct JoinMetrics {
  uint64_t build_rows = 0;           ///< added here
  uint64_t probe_rows = 0;           ///< added here
  uint64_t build_rows_received = 0;  ///< from all senders; with JoinInput::here, its own
  uint64_t probe_rows_received = 0;
  uint64_t hot_keys = 0;          ///< of this worker, whose build rows it has sent to all
  uint64_t lists_held = 0;        ///< of other workers' hot keys, whose build rows came here
  uint64_t lists_dropped = 0;     ///< of such keys, for want of memory
  uint64_t probe_rows_kept = 0;   ///< added here, and joined here by a list
  uint64_t pairs = 0;             ///< handed out here; rows without a partner, too
  uint64_t gulps = 0;             ///< partitions probed before all probe rows had come
  uint64_t partitions_split = 0;  ///< they had more build rows than fit the cache
  uint64_t passes = 0;         ///< over probe rows once more: a partition of one key was too large
  uint64_t spilled_bytes = 0;  ///< of rows, through overflow
  uint64_t peak_bytes = 0;     ///< of operator.memory_bytes
};

/// Joins two inputs by key: each pair of a build row and a probe row whose keys are equal comes out
/// once, at the owner of the key, which is the worker to which partition() assigns its hash; or,
/// if the key is hot, at the worker that has added the probe row (JoinSpec::hot_keys).
///
///   struct Sales {
///     struct Build { uint32_t shop; uint32_t city; };
///     struct Probe { uint32_t shop; uint32_t amount; };
///     using Key = uint32_t;
///     uint32_t build_key(const Build& row) const { return row.shop; }
///     uint32_t probe_key(const Probe& row) const { return row.shop; }
///   };
///   auto sales = RadixJoin<Sales>::make(worker, {query, stage});
///   (*sales)->build(shops);         // as often as there are rows
///   (*sales)->finish_build();
///   (*sales)->probe(sold);          // as often as there are rows
///   (*sales)->finish_probe();
///   std::span<const RadixJoin<Sales>::Pair> pairs;
///   Outcome outcome;
///   while ((outcome = (*sales)->next(pairs)) == Outcome::done)
///     for (const auto& [shop, sale] : pairs) use(*shop, *sale);
///
/// `What` names Build, Probe and Key, all trivially copyable, and has functions that must not
/// throw: the two above, and, where it is needed,
///   bool matches(const Build&, const Probe&) const      a condition on pairs of equal keys: what
///                                                       fails it is no pair, and no partner
///   uint64_t hash(const Key&) const                     for a key that is no integer, and can be
///                                                       equal with other bytes; or an engine's own
///   bool is_null(const Key&) const                      a key that has no partner
///   uint32_t receiver_of(const Key&, uint32_t receivers) const
///                                                       instead of partition() of the hash
/// Keys are compared with ==. All of them have to agree on all workers.
///
/// Rows that arrive are kept by partition, and joined partition by partition in a table that stays
/// in the cache (Binnig et al., The End of Slow Networks, VLDB 2016, section 5). The side with
/// fewer rows should be the build side. If what a worker gets of it fits the cache, `next` hands
/// out pairs as probe rows come; otherwise when all have come, or before if they are more than
/// memory allows. What does not fit operator.memory_bytes is spilled through overflow. Pairs come
/// in no order. No worker takes partitions of another.
///
/// What calls answer:
///   done        it happened
///   would_wait  Wait::none() was given, and there is no room, or no pair yet
///   holding     it would have to wait, but the worker holds batches: release or detach them
///   stopped     every receiver has stopped: add no more; finish all the same
///   deadline    the limit of Wait::at_most has passed; the same call goes on
///   failed      see status(): the query has failed (destroy this, then end the query), or the call
///               was refused (wrong_state, invalid_argument)
/// A call that waits takes in what comes for every operator of the worker, and moves on all that
/// others need (native/DESIGN.md#inv-2): no plan deadlocks, even if all workers only add.
///
/// Threads: those of the worker. Owns: its stages, its memory and what it has spilled, until
/// destruction, which comes before the query is ended. Destroyed before its end it fails the query,
/// as a shuffle does that is closed.
template <typename What>
class RadixJoin {
 private:
  using Joined = detail::PartitionJoin<What>;
  using ListSender = detail::ListSender<What>;

 public:
  using Build = typename What::Build;
  using Probe = typename What::Probe;
  using Key = typename What::Key;
  /// Has `build` and `probe`, pointers to rows. Of a row without a partner the other one is null;
  /// so is `build` of semi and anti joins.
  using Pair = typename Joined::Pair;

  static_assert(std::is_trivially_copyable_v<Build> && std::is_trivially_copyable_v<Probe>);
  static_assert(alignof(Build) <= 16 && alignof(Probe) <= 16 && alignof(Key) <= 16,
                "rows of shuffles are aligned to 16 bytes");

  /// Before all pairs were handed out, and without stop(), it fails the query.
  ~RadixJoin() {
    if (part_ == nullptr) return;
    if (!has_stopped_ && !has_ended_) part_->leave("join");
    if (join_) part_->publish();
    if (held_) part_->give(ListSender::bytes());
  }
  RadixJoin(const RadixJoin&) = delete;
  RadixJoin& operator=(const RadixJoin&) = delete;

  /// What one takes of operator.memory_bytes from its beginning to its end: 1 MiB, or what a small
  /// table, one block per partition and the keys of lists take if that is more.
  static constexpr uint64_t reserve_bytes() noexcept {
    return std::max(detail::OperatorPart::kLeastReserve,
                    Joined::least_bytes() + ListSender::bytes());
  }

  /// Opens its stages, and takes reserve_bytes() of operator.memory_bytes. Blocks: never. Errors:
  /// limit_exceeded (there is no such reserve left), resource_limit (this machine has less than
  /// operator.memory_bytes), invalid_argument (an input that this kind of join cannot have), those
  /// of Worker::open_shuffle.
  static Result<std::unique_ptr<RadixJoin>> make(Worker& worker, const JoinSpec& spec,
                                                 What what = {}) {
    const bool is_everywhere = spec.build_input == JoinInput::everywhere;
    if (spec.probe_input == JoinInput::everywhere ||
        (is_everywhere && detail::keeps_build(spec.kind))) {
      return Status(Code::invalid_argument,
                    "rows everywhere are those of the build side of an inner, left, semi or anti "
                    "join: each worker would hand out the others without a partner")
          .of_stage(spec.stage);
    }
    if (spec.stage > ShuffleSpec::kStageLimit - (kStages - 1)) {
      return Status(Code::invalid_argument, "a join takes four stages, and there are fewer left")
          .of_stage(spec.stage);
    }
    try {
      std::unique_ptr<RadixJoin> made(new RadixJoin(std::move(what)));
      if (Status status = made->open(worker, spec); !status.ok()) return status;
      return made;
    } catch (const std::bad_alloc&) {
      return Status(Code::overflow_exhausted, "the process has no memory left for a join");
    }
  }

  /// Adds build rows, all or the first ones: `Sent::rows` tells how many, after every outcome. Rows
  /// are read before the call returns. It waits only for room; a time limit is for each time that
  /// there is none. Refused after finish_build, and at a worker that is no sender.
  Sent build(std::span<const Build> rows, Wait wait = Wait::forever()) {
    return add(build_, rows, wait);
  }
  /// Adds build rows, row i for receivers[i]: those of equal keys, of both sides, go to the same
  /// one. It is failed, after the rows before, for a receiver that does not exist.
  Sent build(std::span<const Build> rows, std::span<const uint32_t> receivers,
             Wait wait = Wait::forever()) {
    return add_to(build_, rows, receivers, wait);
  }
  /// This worker adds no more build rows. Repeat it until it is done.
  Outcome finish_build(Wait wait = Wait::forever()) { return finish(build_, wait); }

  /// Adds probe rows, as `build` does. Refused before finish_build is done and after finish_probe.
  Sent probe(std::span<const Probe> rows, Wait wait = Wait::forever()) {
    return add(probe_, rows, wait);
  }
  /// Adds probe rows, row i for receivers[i].
  Sent probe(std::span<const Probe> rows, std::span<const uint32_t> receivers,
             Wait wait = Wait::forever()) {
    return add_to(probe_, rows, receivers, wait);
  }
  /// This worker adds no more probe rows. Repeat it until it is done.
  Outcome finish_probe(Wait wait = Wait::forever()) { return finish(probe_, wait); }

  /// The next pairs, some hundred of them. `pairs`, and the rows that they refer to, are valid
  /// until the next call. Before finish_probe is done it waits for nothing: would_wait says that
  /// there is no pair now. end_of_stream: there are no more, or stop() was called, or this worker
  /// is no receiver. Refused before finish_build is done.
  Outcome next(std::span<const Pair>& pairs, Wait wait = Wait::forever()) {
    const detail::OperatorPart::Call call(*part_);
    pairs = {};
    if (!part_->is_alive()) return failed();
    if (!build_.has_finished)
      return refuse(Code::wrong_state, "a join hands out no pair before its finish_build is done");
    if (has_ended_) return Outcome::end_of_stream;
    if (has_stopped_ && !probe_.has_finished) return Outcome::end_of_stream;
    const bool is_limited = !wait.is_none() && !wait.is_forever();
    const uint64_t begin = is_limited ? part_->now_ns() : 0;
    const auto left = [&] {
      return wait.limit() - std::chrono::nanoseconds(static_cast<int64_t>(part_->now_ns() - begin));
    };
    const auto is_over = [&] { return is_limited && left().count() <= 0; };
    const bool may_wait = probe_.has_finished && !wait.is_none();
    bool has_looked = false;
    for (;;) {
      Outcome outcome = join_some(pairs, is_over);
      if (outcome == Outcome::would_wait) {
        if (may_wait) {
          outcome = wait_for_rows(is_limited ? Wait::at_most(std::max(left(), kNoTime)) : wait);
        } else if (!has_looked && part_->take_in()) {
          has_looked = true;
          continue;
        }
        if (outcome == Outcome::done) continue;
      }
      has_ended_ = outcome == Outcome::end_of_stream;
      return outcome == Outcome::failed ? failed() : outcome;
    }
  }

  /// This worker needs no more pairs (LIMIT): senders drop what is for it, and the query goes on.
  /// What it has to add it still adds. Blocks: never. would_wait, holding: if finish_probe is done,
  /// others have to be told that no more build rows of hot keys come, and there is no room: repeat
  /// it, or call next, before it is destroyed.
  Outcome stop() {
    if (!part_->is_alive()) return failed();
    has_stopped_ = true;
    let_go();
    for (size_t stage = 0; stage < kStages; ++stage) {
      if (part_->stop(stage) == Outcome::failed) return Outcome::failed;
    }
    return probe_.has_finished ? end_lists() : Outcome::done;
  }

  /// Why the last call that answered failed did; ok if none did.
  const Status& status() const noexcept { return part_->status(); }

  JoinMetrics metrics() const noexcept {
    const detail::PartitionJoinCounts& counts = join_->counts();
    JoinMetrics metrics;
    metrics.build_rows = build_.rows;
    metrics.probe_rows = probe_.rows;
    metrics.build_rows_received = counts.build_rows;
    metrics.probe_rows_received = counts.probe_rows;
    metrics.hot_keys = list_sender_ ? list_sender_->keys() : 0;
    metrics.lists_held = held_ ? held_->adopted() : 0;
    metrics.lists_dropped = held_ ? held_->dropped() : 0;
    metrics.probe_rows_kept = counts.probe_rows_kept;
    metrics.pairs = counts.pairs;
    metrics.gulps = counts.gulps;
    metrics.partitions_split = counts.splits;
    metrics.passes = counts.passes;
    metrics.spilled_bytes = part_->spilled_bytes();
    metrics.peak_bytes = part_->peak_bytes();
    return metrics;
  }

 private:
  static constexpr std::chrono::nanoseconds kNoTime{0};
  using Lists = detail::HeldLists<What>;
  using ListRow = typename Lists::Row;
  // Build rows, probe rows; build rows of hot keys, which the receivers of rows send to all
  // senders; and one that is kept for what these tell of them. Nothing is sent by that yet.
  static constexpr size_t kBuild = 0, kProbe = 1, kLists = 2, kReports = 3, kStages = 4;

  /// What is added of one side at this worker.
  template <size_t kStage, typename SideRow>
  struct Side {
    using Row = SideRow;
    static constexpr size_t stage = kStage;
    static constexpr bool is_build = kStage == kBuild;
    static constexpr const char* name = is_build ? "build" : "probe";
    JoinInput input = JoinInput::partition;
    bool sends = false;
    bool has_begun_to_finish = false;
    bool has_finished = false;
    uint64_t rows = 0;
    detail::OperatorSender<Row> sender{};
    detail::OperatorInput adding{};
  };

  explicit RadixJoin(What what) : what_(std::move(what)) {}

  static std::string format(const JoinSpec& spec, const char* stage) {
    constexpr const char* kKinds[] = {"inner", "left", "right", "full", "semi", "anti"};
    constexpr const char* kInputs[] = {"partition", "everywhere", "here"};
    return std::string(kKinds[static_cast<size_t>(spec.kind)]) + " join, " + stage + ": key of " +
           std::to_string(sizeof(Key)) + " bytes, build rows of " + std::to_string(sizeof(Build)) +
           " (" + kInputs[static_cast<size_t>(spec.build_input)] + "), probe rows of " +
           std::to_string(sizeof(Probe)) + " (" + kInputs[static_cast<size_t>(spec.probe_input)] +
           "), hot keys " + (spec.hot_keys ? "on" : "off");
  }
  Status open(Worker& worker, const JoinSpec& spec) {
    std::vector<detail::OperatorPart::Stage> stages;
    const auto add_stage = [&](const char* name, uint32_t row_bytes, const auto& senders,
                               const auto& receivers, detail::OperatorPart::Take take) {
      stages.push_back({{spec.query, spec.stage + static_cast<uint32_t>(stages.size()), row_bytes,
                         senders, receivers, format(spec, name)},
                        std::move(take)});
    };
    const auto drop = [](Batch&) { return true; };
    add_stage("build rows", sizeof(Build), spec.senders, spec.receivers,
              [this](Batch& batch) { return join_->take_build(batch.rows<Build>()); });
    if (spec.build_input == JoinInput::everywhere && detail::OperatorPart::can_replicate(worker))
      stages.back().spec.delivery = Delivery::replicate;
    add_stage("probe rows", sizeof(Probe), spec.senders, spec.receivers, [this](Batch& batch) {
      const std::span<const Probe> rows = batch.rows<Probe>();
      if (list_sender_) list_sender_->look(rows);
      return join_->take_probe(rows);
    });
    add_stage("lists", sizeof(ListRow), spec.receivers, spec.senders, [this](Batch& batch) {
      held_->take(batch.rows<ListRow>());
      return true;
    });
    add_stage("reports", 0, spec.senders, spec.receivers, drop);
    build_.input = spec.build_input;
    probe_.input = spec.probe_input;
    stage_ = spec.stage;
    auto made =
        detail::OperatorPart::make(worker, OperatorKind::join, reserve_bytes(), std::move(stages));
    if (!made.ok()) return made.status();
    part_ = std::move(*made);
    receives_ = !part_->has_ended(kProbe);
    has_ended_ = !receives_;
    join_.emplace(*part_, what_, spec.kind, spec.output_early);
    part_->tells([this](OperatorCounts& counts) {
      const JoinMetrics now = metrics();
      counts.rows_in = now.build_rows + now.probe_rows;
      counts.rows_out = now.pairs;
      counts.rows_arrived = now.build_rows_received + now.probe_rows_received + now.probe_rows_kept;
      counts.partitions_split = now.partitions_split;
      counts.passes = now.passes;
    });
    find_sender(build_);
    find_sender(probe_);
    for (size_t stage = 0; stage < kStages; ++stage) {
      if (Result<ShuffleSender> sender = part_->shuffle(stage).sender(); sender.ok())
        finishing_[stage] = *sender;
    }
    open_lists(spec);
    // Nothing comes by these that is needed: their ends are not waited for.
    const bool is_unused[] = {build_.input == JoinInput::here, probe_.input == JoinInput::here,
                              !holds_lists_, true};
    for (size_t stage = 0; stage < kStages; ++stage) {
      if (is_unused[stage] && part_->stop(stage) == Outcome::failed) return part_->status();
    }
    return Status::Ok();
  }
  template <typename OneSide>
  void find_sender(OneSide& side) {
    using Row = typename OneSide::Row;
    const Result<RowSender<Row>> sender = part_->shuffle(side.stage).template sender<Row>();
    side.sends = sender.ok();
    if (side.sends) side.sender = detail::OperatorSender<Row>(*sender);
  }

  // --- hot keys

  void open_lists(const JoinSpec& spec) {
    const auto sender = part_->shuffle(kLists).template sender<ListRow>();
    if (!spec.hot_keys || detail::keeps_build(spec.kind) || spec.receivers.size() == 1 ||
        spec.probe_input != JoinInput::partition || !sender.ok())
      return;
    // Everybody has the build rows of every key: a list would double them.
    if (spec.build_input == JoinInput::everywhere) return;
    const bool is_alone = probe_.sends && sender->receiver_count() == 1;
    if (is_alone || !part_->try_take(ListSender::bytes())) return;
    holds_lists_ = probe_.sends;
    held_ = std::make_unique<Lists>(*part_, what_);
    list_sender_.emplace(*part_, what_, *held_, *sender);
  }
  /// Notes what has come, lets lists that are whole join, and sends own ones. It may move rows that
  /// pairs refer to. Answers done, or failed: the operator has.
  Outcome catch_up() {
    return guarded([this] {
      if (has_come(build_)) join_->build_ended();
      if (has_come(probe_)) join_->probe_ended();
      if (list_sender_ && !has_stopped_) {
        held_->adopt_whole([this](std::span<const Build> rows) { return join_->adopt(rows); });
        const auto lookup = [this](const Key& key, uint64_t mixed, const auto& each) {
          return join_->each_build_row(key, mixed, each);
        };
        // What fails here fails the query, or is a row that is too large.
        if (list_sender_->send(lookup) == Outcome::failed) list_sender_->end();
      }
      return part_->is_alive() ? Outcome::done : Outcome::failed;
    });
  }
  /// Says that this worker has no more lists, when all probe rows have come.
  Outcome end_lists() {
    if (!finishing_[kLists]) return Outcome::done;
    const Outcome outcome = finishing_[kLists]->finish(Wait::none());
    return outcome == Outcome::failed ? failed(kLists) : outcome;
  }

  // --- adding

  template <typename OneSide>
  Key key_of(const OneSide&, const typename OneSide::Row& row) const {
    if constexpr (OneSide::is_build) {
      return what_.build_key(row);
    } else {
      return what_.probe_key(row);
    }
  }
  template <typename OneSide>
  Sent add(OneSide& side, std::span<const typename OneSide::Row> rows, Wait wait) {
    const uint32_t count = side.sender.receiver_count();
    return add_by(side, rows, wait, [&, count](size_t i) {
      const Key key = key_of(side, rows[i]);
      if constexpr (requires { what_.receiver_of(key, count); }) {
        return what_.receiver_of(key, count);
      } else {
        return faro::partition(detail::hash_of_key(what_, key), count);
      }
    });
  }
  template <typename OneSide>
  Sent add_to(OneSide& side, std::span<const typename OneSide::Row> rows,
              std::span<const uint32_t> receivers, Wait wait) {
    if (receivers.size() != rows.size() || side.input != JoinInput::partition) {
      return {0, refuse(Code::invalid_argument,
                        "rows of a join come with a receiver for each, if they are partitioned")};
    }
    return add_by(side, rows, wait, [&](size_t i) { return receivers[i]; });
  }
  /// Adds rows[i] for receiver_of(i).
  template <typename OneSide, typename ReceiverOf>
  Sent add_by(OneSide& side, std::span<const typename OneSide::Row> rows, Wait wait,
              const ReceiverOf& receiver_of) {
    const detail::OperatorPart::Call call(*part_);
    if (Outcome outcome = check_adding(side); outcome != Outcome::done) return {0, outcome};
    const auto add_some = [&](size_t& added) {
      if (!OneSide::is_build && catch_up() == Outcome::failed) return Outcome::failed;
      const auto some = rows.subspan(added, std::min(detail::kRowsAtOnce, rows.size() - added));
      const size_t before = added;
      const Sent sent = send(side, some, [&](size_t i) { return receiver_of(before + i); });
      added += sent.rows;
      return sent.outcome;
    };
    const Sent sent = side.adding.add(*part_, rows.size(), add_some, wait);
    side.rows += sent.rows;
    return {sent.rows, sent.outcome == Outcome::failed ? failed(side.stage) : sent.outcome};
  }
  template <typename OneSide, typename ReceiverOf>
  Sent send(OneSide& side, std::span<const typename OneSide::Row> rows,
            const ReceiverOf& receiver_of) {
    switch (side.input) {
      case JoinInput::partition:
        if constexpr (!OneSide::is_build) {
          if (holds_lists_ && held_->adopted() > 0) return send_or_keep(rows, receiver_of);
        }
        return side.sender.send_to(rows, receiver_of);
      case JoinInput::everywhere:
        return side.sender.broadcast_all(rows, Wait::none());
      case JoinInput::here:
        return keep(side, rows) ? Sent{rows.size(), Outcome::done} : Sent{0, Outcome::failed};
    }
    return {0, Outcome::failed};
  }
  /// Probe rows of keys whose build rows are here stay here.
  template <typename ReceiverOf>
  Sent send_or_keep(std::span<const Probe> rows, const ReceiverOf& receiver_of) {
    return probe_.sender.send_or_keep(rows, receiver_of, [&](size_t i) {
      const Key key = what_.probe_key(rows[i]);
      const typename Lists::Held held = held_->find(key);
      // Without memory the operator has failed.
      if (held.joins) (void)join_->keep_probe(rows[i], held.mixed, held.has_rows);
      return held.joins;
    });
  }
  template <typename OneSide>
  bool keep(OneSide&, std::span<const typename OneSide::Row> rows) {
    if (has_stopped_) return true;
    if constexpr (OneSide::is_build) {
      return join_->take_build(rows);
    } else {
      return join_->take_probe(rows);
    }
  }
  template <typename OneSide>
  Outcome check_adding(const OneSide& side) {
    if (!part_->is_alive()) return failed();
    const auto refused = [&](const char* why) {
      return refuse(Code::wrong_state, std::string(side.name) + " rows are added to a join " + why);
    };
    if (!side.sends) return refused("at a worker that is none of its senders");
    if (side.input == JoinInput::here && !receives_)
      return refused("where they are, at a worker that is none of its receivers");
    if (!OneSide::is_build && !build_.has_finished) return refused("before finish_build is done");
    if (side.has_begun_to_finish) return refused("after their finish");
    return Outcome::done;
  }

  template <typename OneSide>
  Outcome finish(OneSide& side, Wait wait) {
    const detail::OperatorPart::Call call(*part_);
    if (!part_->is_alive()) return failed();
    if (!OneSide::is_build && !build_.has_finished)
      return refuse(Code::wrong_state,
                    "the probe side of a join is finished before its build side");
    side.has_begun_to_finish = true;
    if (!OneSide::is_build && holds_lists_) {  // it needs no more of them
      holds_lists_ = false;
      held_->clear();
      if (part_->stop(kLists) == Outcome::failed) return failed();
    }
    size_t stage = kBuild;
    const auto attempt = [&] {
      if (!OneSide::is_build && catch_up() == Outcome::failed) return Outcome::failed;
      for (stage = 0; stage < kStages; ++stage) {
        if (!finishing_[stage] || !ends_with<OneSide>(stage)) continue;
        const Outcome outcome = finishing_[stage]->finish(Wait::none());
        if (outcome != Outcome::done) return outcome;
      }
      return Outcome::done;
    };
    const Outcome outcome = part_->wait(std::cref(attempt), wait);
    if (outcome == Outcome::failed) return failed(stage);
    side.has_finished = outcome == Outcome::done;
    return outcome;
  }

  /// Whether a stage ends with what this worker adds of a side. Lists, if there may be any, end
  /// with the last probe row of all, unless this worker has stopped.
  template <typename OneSide>
  bool ends_with(size_t stage) const noexcept {
    if (stage == kLists) return OneSide::is_build ? !list_sender_ : list_sender_ && has_stopped_;
    return stage == OneSide::stage || (!OneSide::is_build && stage == kReports);
  }

  // --- joining

  template <typename OneSide>
  bool has_come(const OneSide& side) const noexcept {
    return side.input == JoinInput::here ? side.has_finished : part_->has_ended(side.stage);
  }
  template <typename IsOver>
  Outcome join_some(std::span<const Pair>& pairs, const IsOver& is_over) {
    if (catch_up() == Outcome::failed) return Outcome::failed;
    return guarded([&] {
      const Outcome outcome = join_->next(pairs, is_over);
      if (outcome != Outcome::end_of_stream) return outcome;
      const Outcome ended = end_lists();
      return ended == Outcome::done ? Outcome::end_of_stream : ended;
    });
  }
  Outcome wait_for_rows(Wait wait) {
    const auto attempt = [this] {
      if (catch_up() == Outcome::failed) return Outcome::failed;
      if (join_->has_ended()) return end_lists();
      return join_->can_go_on() ? Outcome::done : Outcome::would_wait;
    };
    return part_->wait(std::cref(attempt), wait);
  }

  // --- failing

  /// What work() answers, which may find no memory of the process.
  template <typename Work>
  Outcome guarded(Work work) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return part_->fail(Status(Code::overflow_exhausted, "no memory left for the rows of a join"));
    }
  }
  Outcome refuse(Code code, std::string why) {
    return part_->refuse(Status(code, std::move(why)).of_stage(stage_));
  }
  /// What is of no use any more is let go.
  Outcome failed() {
    if (!part_->is_alive()) let_go();
    return Outcome::failed;
  }
  void let_go() noexcept {
    join_->clear();
    if (held_) held_->clear();
    if (list_sender_) list_sender_->end();
  }
  /// Why, the sender of a stage knows, unless the operator does.
  Outcome failed(size_t stage) {
    if (part_->is_alive() && finishing_[stage] && !finishing_[stage]->status().ok())
      return part_->refuse(finishing_[stage]->status());
    return failed();
  }

  const What what_;
  std::unique_ptr<detail::OperatorPart> part_;
  std::optional<Joined> join_;
  std::unique_ptr<Lists> held_;  // null, and so is the next one: there are no lists
  std::optional<ListSender> list_sender_;
  bool holds_lists_ = false;  // those of others
  Side<kBuild, Build> build_;
  Side<kProbe, Probe> probe_;
  std::array<std::optional<ShuffleSender>, kStages> finishing_;  // by stage
  uint32_t stage_ = 0;
  bool receives_ = false;
  bool has_stopped_ = false;
  bool has_ended_ = false;  // all pairs were handed out
};

}  // namespace faro

#pragma GCC visibility pop
