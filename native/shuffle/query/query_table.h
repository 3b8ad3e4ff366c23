// QueryTable: which queries live on this node, how they fail and how they end. query_changes.h has its lock; known_queries.h
// has the queries, tracked_query.h each of them.
//
// A query's life on a node: known from its first use here (a shuffle opened, rows or a message of
// it arrived), failed at any time by anyone, ended by the coordinator's decision:
// native/DESIGN.md, the commit protocol of a query. Its messages by their names on the wire:
//
//   participant (participant.h)              coordinator (coordinator.h)
//   all its workers have ended  --ENDED-->   all participants have voted, or are lost
//   remembers it as ended      <--OUTCOME--  decides: done, or the first failure
//                               --CONFIRM--> forgets it when all have confirmed; moves the
//                               low-water mark
//
// Peers are not trusted: README.md says who may say what about which query, peer_messages.h judges it.
// What a peer says of a query that this node does not use is kept, within limits (unverified_queries.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "counters/counter_file.h"
#include "faro/query.h"
#include "faro/shuffle.h"
#include "faro/status.h"
#include "shuffle/query/abandoned_queries.h"
#include "shuffle/query/idle_links.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query.h"
#include "shuffle/query/stage_lists.h"
#include "wire/query_message.h"

namespace faro::shuffle {

/// Threads: any; one lock, never on the row path.
class QueryTable : public AbandonedQueries {
 public:
  using Shape = ClusterShape;

  QueryTable(Shape shape, QueryEnvironment& environment, const QueryTimeouts& timeouts);

  /// Shows its queries in `file` from now on; both outlive this. Threads: before any other call.
  void show_in(counters::CounterFile& file, base::Nanoseconds now);

  QueryId begin();
  Status declare(const QueryId& id, const std::vector<uint32_t>& workers);

  /// The query, if it is known.
  std::shared_ptr<Query> find(const QueryId& id);
  /// The query of which a worker of a peer opens a shuffle, made known if it was not. nullptr, and
  /// whatever comes of it is to be thrown away, if it has ended, never can have begun or does not concern
  /// that peer.
  std::shared_ptr<Query> hear(const QueryId& id, uint32_t from_node);
  /// The query for a worker that is going to use it. Errors: query_ended, limit_exceeded; its cause, if it has failed and was
  /// over before a worker of this node has used it.
  Result<std::shared_ptr<Query>> use(const QueryId& id);
  uint32_t node_of_worker(uint32_t worker) const { return context_.cluster.node_of_worker(worker); }
  /// Those of a shuffle for which none are named; none: it has those that were declared for its query.
  const std::vector<uint32_t>& default_workers() const {
    return context_.cluster.default_workers();
  }
  /// Whether a node does; all do in a query that was not declared.
  bool takes_part(const Query& query, uint32_t node) const;

  /// Fails a query here and, unless it had failed already, on every participant.
  void fail(Query& query, const Status& cause);
  /// Fails a query because there is no memory for something, also not for failing it at once: then
  /// it fails at a later tick.
  void fail_for_memory(Query& query) noexcept;
  /// Why it fails then; made beforehand.
  const Status& no_memory() const noexcept { return context_.no_memory; }
  /// Fails a query where something that a peer sent is the cause: a peer that takes no part in the
  /// query cannot fail it.
  void fail_by_sender(Query& query, uint32_t node, const Status& cause);
  /// Rows of a query for a lost node were thrown away: fails it with the cause of the loss.
  void lose_rows(Query& query, uint32_t node);
  /// Fails a query by its id, also one that is not known yet. Others believe it of a node that
  /// takes part, and of the issuer. Errors: query_ended, and as `use`.
  Status cancel(const QueryId& id, const Status& cause);

  /// A local receiver needs no more: tells the nodes of the senders.
  void stop(Query& query, uint32_t stage, uint32_t receiver, std::span<const uint32_t> senders);
  /// The receivers of a stage that have stopped.
  std::vector<uint32_t> stops(Query& query, uint32_t stage);

  /// Rows came for a shuffle that is not open at a local worker; and: it is now.
  void add_unopened(Query& query, uint32_t worker, uint32_t stage, uint32_t sender,
                    base::Nanoseconds now);
  void remove_unopened(Query& query, uint32_t worker, uint32_t stage);
  /// The rows of one sender are thrown away: its node was lost.
  void remove_unopened(Query& query, uint32_t worker, uint32_t stage, uint32_t sender) noexcept;

  /// A local worker opens a stage. Errors: wrong_state if its part has ended, invalid_argument if a node that
  /// it names takes no part; stage_mismatch if others have opened it otherwise: then the query fails.
  Status open_stage(Query& query, uint32_t worker, const ShuffleSpec& spec,
                    const StageLists& lists);
  /// A local worker has waited for long for senders that have not opened its stage. Their nodes fail the query
  /// if these cannot open it any more, or do it otherwise. Repeatable.
  void await(Query& query, uint32_t worker, uint32_t stage, std::span<const uint32_t> senders,
             const StageLists& lists);

  /// A local worker's part is over. Repeatable.
  void end(Query& query, uint32_t worker);

  void on_message(uint32_t from_node, const wire::QueryMessage& message);
  /// Its link has ended. `cause` names the peer. Also for a peer that left in order, and for a drained one. Nothing is lost if it
  /// is parted now: the link rests, and can be made again.
  void on_peer_lost(uint32_t node, const session::PeerView& now, const Status& cause);
  /// A node that was lost or missing is there: queries may contain it, except those that this node uses already. What its
  /// former life said of others is forgotten.
  void on_peer_joined(uint32_t node, const session::PeerView& now);
  void on_tick(base::Nanoseconds now);

  /// A node was added: from now on queries may contain it, and have it linked.
  void on_node_added(uint32_t node, const session::PeerView& now);
  /// Drains a node, as Nodes::drain says. Repeatable.
  void drain(uint32_t node);
  /// It is drained, and no query of any node that is linked needs it.
  bool is_drained(uint32_t node) const;
  /// What Drains::is_own_node_released_by answers.
  bool is_own_node_released_by(uint32_t peer) const;
  void on_node_removed(uint32_t node, const session::PeerView& now);
  /// Fails everything; nothing can begin any more.
  void close(const Status& cause);

  /// The query with the most bytes in overflow, or nullptr.
  std::shared_ptr<Query> biggest_overflow_user();

  uint64_t running_count() const;
  uint64_t failed_count() const { return context_.report.failed_count(); }

 private:
  Result<KnownQueries::Pointer> make_or_refuse(const QueryId& id);
  Status declare_locked(const QueryId& id, const std::vector<uint32_t>& workers, Outbound& out);
  bool tick_locked(Outbound& out);

  IdleLinks idle_links_;
  Status closed_;
  std::atomic<bool> some_must_fail_{false};
};

}  // namespace faro::shuffle
