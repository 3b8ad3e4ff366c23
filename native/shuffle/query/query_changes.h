// QueryChanges: the lock of the query table, what is queued under it, and what is told when it has been given back.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "faro/query.h"
#include "faro/status.h"
#include "session/peers.h"
#include "shuffle/query/drains.h"
#include "shuffle/query/known_queries.h"
#include "shuffle/query/link_waits.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_context.h"
#include "wire/query_message.h"

namespace faro::shuffle {

/// What the table needs of the node. Not under the table's lock: alert_workers, query_failed and look_soon; all else is, and
/// only queues.
class QueryEnvironment {
 public:
  virtual ~QueryEnvironment() = default;
  /// Queues a control message to a node, also to the own one.
  virtual void send(uint32_t node, const wire::QueryMessage& message) = 0;
  /// Makes every local worker look at its queries again.
  virtual void alert_workers() = 0;
  /// QueryTable::next_due() has become sooner: the network thread is to look at it.
  virtual void look_soon() = 0;
  /// Ends the link to a peer that broke the rules. Repeatable.
  virtual void fail_peer(uint32_t node, const Status& cause) = 0;
  /// A query that this node has to do with has failed here. Once per query. Throws:
  /// std::bad_alloc, which has no consequence.
  virtual void query_failed(const QueryId& query, const Status& cause) = 0;
  /// No query needs the link to a node any more, which is drained (QueryTable::is_drained answers so from now on) or rests.
  virtual void let_go(uint32_t node) = 0;
  /// A query needs a node that is not linked yet. Repeatable.
  virtual void want_link(uint32_t node) = 0;
  /// A step on the way to a link that rests: asked, agreed, or stays (Peers::Event). After the first two the link is held, so that
  /// no rows are sent over it, after the last no longer. What the node is then; nothing, and the step is not done, if the link
  /// has to stay for a reason that queries do not know. Threads: the network thread.
  virtual std::optional<session::PeerView> rest(uint32_t node,
                                                session::Peers::Event step) noexcept = 0;
  /// Queries know that the link to a node has ended, and those that need it are about to fail: from
  /// now on the node is not present. Under the table's lock. Repeatable.
  virtual void link_has_ended(uint32_t node) noexcept = 0;
  /// Why a node is not linked, as a query that has waited for it in vain is told.
  virtual Status why_unlinked(uint32_t node) const = 0;
};

/// For how long queries wait.
struct QueryTimeouts {
  base::Nanoseconds unopened_ns = 0;  // for a worker to open a stage that rows have come for
  base::Nanoseconds link_ns = 0;      // for a node to be linked that is not
  base::Nanoseconds idle_ns = 0;  // not queries but links, for one that needs them; 0: links stay
};

/// Threads: any; one lock, never on the row path.
class QueryChanges {
 protected:
  QueryChanges(ClusterShape shape, QueryEnvironment& environment, const QueryTimeouts& timeouts);
  ~QueryChanges() = default;

  /// Does `part`, which says whether workers are to be alerted, and queues what it has put out, under the lock; then
  /// tells the workers and the engine.
  /// Also if it ends by an exception: what has happened to queries must be told.
  template <typename Part>
  void change(Part&& part);

  QueryEnvironment& environment_;
  mutable std::mutex mutex_;
  QueryContext context_;
  KnownQueries known_{context_};
  Drains drains_{context_, known_};
  LinkWaits link_waits_;
  Outbound unsent_;  // there was no memory for it

 private:
  void tell_failed(const Outbound& out);
  void queue_locked(Outbound& out);
};

template <typename Part>
void QueryChanges::change(Part&& part) {
  Outbound out;
  bool alert = false;
  try {
    const std::lock_guard lock(mutex_);
    alert = part(out);
    drains_.advance(out);
    link_waits_.hold(out);
    queue_locked(out);
  } catch (...) {
    {
      std::lock_guard lock(mutex_);
      unsent_.take(std::move(out));  // at the next tick
    }
    environment_.alert_workers();
    throw;
  }
  if (alert) environment_.alert_workers();
  tell_failed(out);
}

}  // namespace faro::shuffle
