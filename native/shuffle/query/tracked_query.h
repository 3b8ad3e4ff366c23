// TrackedQuery: a query as this node tracks it: who takes part, the parts of this node in it, and how it fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "counters/counter_file.h"
#include "faro/shuffle.h"
#include "faro/status.h"
#include "shuffle/query/coordinator.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/participant.h"
#include "shuffle/query/query.h"
#include "shuffle/query/query_context.h"
#include "shuffle/query/query_nodes.h"
#include "shuffle/query/stage_lists.h"
#include "shuffle/query/unverified_queries.h"

namespace faro::shuffle {

/// Functions that fail a query return whether it fails by this call: then workers are to be alerted. A change for
/// which there is no memory does not happen. Threads: under the table's lock.
class TrackedQuery final : public Query {
 public:
  TrackedQuery(const QueryId& query_id, QueryContext& context);
  /// One of which `peer` has spoken, and that this node does not use.
  TrackedQuery(const QueryId& query_id, QueryContext& context, uint32_t peer);

  QueryNodes& nodes() { return nodes_; }
  const QueryNodes& nodes() const { return nodes_; }
  Participant& part() { return part_; }
  const Participant& part() const { return part_; }
  /// nullptr: another node has begun it.
  Coordinator* coordinator() { return coordinator_ ? &*coordinator_ : nullptr; }
  /// nullptr: this node uses it, or has declared it.
  Unverified* unverified() { return unverified_ ? &*unverified_ : nullptr; }

  /// Who takes part becomes known.
  void declare(const std::vector<uint32_t>& workers);
  /// This node has to do with it from now on: what peers said before is judged.
  void verify(Outbound& out);

  /// A failure that was found here.
  bool fail_here(const Status& cause, Outbound& out);
  /// Fails the query if `cause` is a failure that was found here.
  bool fail_if(const Status& cause, Outbound& out) { return !cause.ok() && fail_here(cause, out); }
  /// A node that takes part is lost.
  bool fail_if_lost(Outbound& out);
  /// A failure that a peer tells. Only nodes that take part are believed, and while it is not known
  /// which do, only the coordinator, which passes on what it believes.
  bool fail_by_peer(uint32_t peer, const Status& cause, Outbound& out);
  /// A failure that is the fault of what a node sent. While unverified it is kept until it is known whether
  /// that node takes part; one that does fails the query itself when it is told.
  bool fail_by_sender(uint32_t node, const Status& cause, Outbound& out);
  /// There was no memory for failing it at once: fails at the next tick. Threads: any.
  void mark_for_memory() noexcept { must_fail_.store(true, std::memory_order_relaxed); }
  bool fail_if_marked(Outbound& out);
  /// The session closes.
  bool close(const Status& cause, Outbound& out);

  /// Errors as QueryTable::open_stage.
  Status open_stage(uint32_t worker, const ShuffleSpec& spec, const StageLists& lists,
                    Outbound& out);
  bool add_unopened(const UnopenedRows& rows, Outbound& out);
  void remove_unopened(uint32_t worker, uint32_t stage);
  void remove_unopened(uint32_t worker, uint32_t stage, uint32_t sender) noexcept;
  /// A local worker has ended. When all have, this node votes.
  void end(uint32_t worker, Outbound& out);

  // These three are for the coordinator.
  void vote(uint32_t node, uint64_t balance, Outbound& out);
  void decide_if_all_voted(Outbound& out);
  /// A node that takes no part has asked for a failure, and would remember that forever.
  void dismiss(uint32_t node, Outbound& out);

  /// The coordinator has decided. Whether this is believed, and was not known.
  bool learn_outcome(const Status& outcome, Outbound& out);
  /// It is over here, whatever its coordinator decides.
  void settle(const Status& outcome) { set_outcome(outcome); }
  /// It has failed, and local workers may still come that are to be told why: it is unverified; or it is declared, none of
  /// them has used it, and not all that are declared have ended it. So the outcome alone does not end it here.
  bool is_for_late_workers() const;
  /// It can be forgotten: its outcome is known, every local worker that takes part has ended it if one has used it, and all that
  /// its coordinator, this node, tells have confirmed that. Where queries have to be declared, each local worker that is has
  /// to have ended it, whether or not one has used it.
  bool is_over() const;

  /// A node is lost, which nodes() knows already: the query fails if it needs the node (native/DESIGN.md#inv-5). Answers
  /// whether it fails by that, and is not unverified.
  bool lose_node(uint32_t node, const Status& cause, Outbound& out);
  void forget_former_life(uint32_t node);
  /// What is due by now. Whether workers are to be alerted.
  bool tick(Outbound& out);
  /// Whether it is unverified and nobody has mentioned it for long. A failure is kept while the coordinator
  /// says that it is one.
  bool expires(Outbound& out);

  /// Shows its state in the counter file.
  void show();
  /// Takes it out for good.
  void hide();

 private:
  bool fail(const Status& cause, bool tell_others, Outbound& out);
  bool fail_unlogged(const Status& cause, bool tell_others, Outbound& out);
  bool expire_unopened(Outbound& out);
  counters::QueryState state() const;

  QueryContext& context_;
  const base::Nanoseconds since_;
  QueryNodes nodes_;
  Participant part_;
  std::optional<Coordinator> coordinator_;
  std::optional<Unverified> unverified_;
  std::optional<uint32_t> slot_;  // of the counter file
  bool hidden_ = false;
  std::atomic<bool> must_fail_{false};
};

/// Every Query is one that the table has made.
inline TrackedQuery& tracked(Query& query) { return static_cast<TrackedQuery&>(query); }
inline const TrackedQuery& tracked(const Query& query) {
  return static_cast<const TrackedQuery&>(query);
}

}  // namespace faro::shuffle
