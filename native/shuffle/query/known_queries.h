// KnownQueries: which queries this node knows, from their first mention here until they are forgotten
// (native/DESIGN.md#inv-7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "faro/query.h"
#include "faro/status.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_context.h"
#include "shuffle/query/tracked_query.h"
#include "shuffle/query/unverified_queries.h"

namespace faro::shuffle {

/// Threads: under the table's lock.
class KnownQueries {
 public:
  /// The most queries that this node uses at a time.
  static constexpr size_t kLimit = 65536;

  using Pointer = std::shared_ptr<TrackedQuery>;
  using Map = std::unordered_map<QueryId, Pointer>;

  explicit KnownQueries(QueryContext& context)
      : context_(context), unverified_(context.cluster.node_count()) {}

  QueryId begin();
  uint64_t begun() const { return begun_; }

  const Map& all() const { return queries_; }
  /// nullptr: it is not known.
  Pointer find(const QueryId& id) const;
  /// Those that wait for the link with a node.
  std::vector<Pointer> waiting_for(uint32_t node) const;
  /// Those that this node has begun, and of which it has not said who takes part since others have ended theirs, for so long.
  std::vector<Pointer> undeclared_for(base::Nanoseconds limit) const;
  /// These, and what the node has begun and others have told of, if the node was not lost to them.
  std::vector<Pointer> not_lost_with(uint32_t node) const;
  /// For what this node does itself; made known if it was not. Errors: limit_exceeded, peer_lost, query_ended.
  Result<Pointer> find_or_make(const QueryId& id);
  /// For what a peer says of it; made known if it was not. nullptr: it is nothing that the peer may speak of,
  /// or there is no room.
  Pointer hear(const QueryId& id, uint32_t peer, Outbound& out);
  /// Why hear() did not make it known; ok if it has ended, or never began.
  Status why_not_heard(const QueryId& id) const;
  /// Whether a query can be known: it has begun, as far as can be told, and has not ended.
  bool can_live(const QueryId& id) const;
  /// Whether it is known who takes part, where that has to be declared. Errors: wrong_state.
  Status check_declared(const QueryId& id) const;
  /// Why a query that is not known cannot be used: it cannot live, or else there are too many.
  Status why_not(const QueryId& id) const;
  /// What a peer is told that asks for a query which cannot live: why it failed, if that is still known.
  Status why_over(const QueryId& id) const;

  /// This node has to do with it from now on.
  void verify(TrackedQuery& query, Outbound& out);
  /// A peer has said one thing more of a query. Whether there is room for it.
  bool charge(TrackedQuery& query, uint32_t peer, Outbound& out);
  /// This node has something to tell the issuer, which may be out of reach.
  void await_issuer(TrackedQuery& query, Outbound& out) const;
  /// What a peer said of others' queries in its former life is forgotten: these may begin now. If one is older
  /// than the peer's return, its coordinator knows.
  void forget_former_life(uint32_t peer);

  /// A node is lost to all queries.
  void lose(uint32_t node, const Status& cause, Outbound& out);
  /// A node that has never been there is lost to a query.
  void lose(TrackedQuery& query, uint32_t node, const Status& cause, Outbound& out);

  /// One of these ends: whoever knows of it is told.
  void give_up_undeclared(TrackedQuery& query, Outbound& out);

  void forget_if_over(TrackedQuery& query);
  /// What peers have said of another node's query. If that has said how it ended, whoever comes later is told
  /// that it has.
  void forget_unverified(TrackedQuery& query);
  /// The session closes: nobody comes any more to be told how unverified queries ended.
  void forget_settled_unverified();

 private:
  void forget(TrackedQuery& query);
  bool make_room(uint32_t peer, const TrackedQuery* keep, Outbound& out);
  void drop(TrackedQuery& query, Outbound& out);
  void end_undeclared(TrackedQuery& query, const Status& cause, Outbound& out);
  void add(const Pointer& query);
  size_t used_count() const { return queries_.size() - unverified_.size(); }

  QueryContext& context_;
  uint64_t begun_ = 0;
  Map queries_;
  UnverifiedQueries unverified_;
};

}  // namespace faro::shuffle
