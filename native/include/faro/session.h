// Session and Worker: a node's membership in a connected cluster, and its threads' handles.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faro/cancellation.h"
#include "faro/config.h"
#include "faro/exchange.h"
#include "faro/metrics.h"
#include "faro/outcome.h"
#include "faro/query.h"
#include "faro/query_scope.h"
#include "faro/shuffle.h"
#include "faro/status.h"
#include "faro/wait.h"

#pragma GCC visibility push(default)

namespace faro {

namespace node {
class NodeCore;
}
namespace shuffle {
class LocalWorker;
}

/// What Worker::arm tries.
enum class Progress : uint8_t {
  turn,  ///< everything that the worker could do now
  /// One call that is repeated until it is done, by a coroutine or fiber that does nothing else
  /// meanwhile. It may do what only a waiting call may: where a row to the worker itself finds no
  /// room, spill its own ring.
  call,
};

/// A worker of this node: one thread that runs query plans.
///
/// Threads: one at a time. The first thread that uses it owns it until release_ownership(); another
/// thread's calls answer wrong_state (if nobody is inside a call: two calls at the same time are
/// undefined). Several queries may run on one worker at the same time: their shuffles share its
/// rings, each wait moves on all of them, and rows of one are spilled (overflow) only while
/// another's wait needs the room. A reference stays valid as long as its Session.
class Worker {
 public:
  /// Number of this worker over the whole cluster, 0 … Session::worker_count()-1; UINT32_MAX if
  /// there is no such worker.
  uint32_t number() const noexcept;

  /// Opens a shuffle. Blocks: never (senders may start before their receivers have opened).
  /// Errors: invalid_argument (unknown worker, the same worker twice, one of a node that takes no
  /// part in the query, stage open already), limit_exceeded (shuffle.limit), wrong_state (wrong
  /// thread, or this worker has ended its part of the query): only this call is refused.
  /// stage_mismatch (another worker opened the stage with other row_bytes, senders or receivers):
  /// the query has failed, end it. query_ended, the query's failure, session_closed.
  Result<Shuffle> open_shuffle(const ShuffleSpec& spec);

  /// Waits until `condition` holds (a barrier or latch of the engine's own), moving on everything
  /// others need meanwhile. Whoever makes it true calls wake(). `condition` is called on this
  /// thread, repeatedly, and must neither throw nor wait: of this worker it may only call what is
  /// given Wait::none(), all else answers failed with wrong_state. Such a call only tries. It is
  /// this call that takes rows from the network, once for all calls of the condition, and then asks
  /// again. So a condition must not spin until rows or room come: within it they may never come.
  /// Answers done, would_wait, deadline, holding, or failed: session_closed, wrong_state,
  /// invalid_argument (a negative limit).
  Outcome wait_until(const std::function<bool()>& condition, Wait wait = Wait::forever());

  /// Makes a sleeping wait of this worker look again, or an armed worker ready. Threads: any.
  /// Blocks: never.
  void wake() noexcept;

  /// For engines with an event loop, which wait for this worker together with whatever else they
  /// wait for: a descriptor for epoll or poll that is readable when the worker should look again.
  /// The engine's loop:
  ///
  ///   const int descriptor = worker.ready_descriptor().value();  // once, into epoll for EPOLLIN
  ///   for (;;) {
  ///     Outcome outcome;
  ///     do outcome = worker.arm(turn);  // tries all sends and receives with Wait::none()
  ///     while (outcome == Outcome::done);
  ///     if (outcome != Outcome::would_wait) break;  // holding: release the batches; failed: stop
  ///     epoll_wait(...);
  ///   }
  ///
  /// The descriptor is an eventfd, made by the first call of this. It is the session's: nobody else
  /// closes it, and nobody needs to read it, since arm() resets it. In a forked child it is of no
  /// use. One thread of the session, which starts with the first arm() and ends with close(),
  /// sleeps in place of all workers that are armed. (If these are more than 127, or the kernel is
  /// older than 5.16, it wakes up each millisecond.)
  /// Threads: any. Blocks: never. Errors: system_error, wrong_state (on_ready() was called),
  /// invalid_argument (no such worker).
  Result<int> ready_descriptor();

  /// Instead of a descriptor: `callback` is called when the worker should look again. It comes from
  /// the session's readiness thread, which serves all its workers, and must neither throw nor
  /// block: it tells the thread that the worker belongs to. Replaces the callback before. None is
  /// called any more when close() has returned, unless it answers deadline_exceeded, or was called
  /// by the callback itself.
  /// Threads: any. Blocks: never. Errors: wrong_state (ready_descriptor() was called),
  /// invalid_argument (no callback, no such worker).
  Status on_ready(std::function<void()> callback);

  /// Goes on, or arms the worker. `progress` tries what there is to do, waits for nothing, and
  /// answers whether it has done anything. It is called on this thread, a few times at most: before
  /// the doorbell is armed and, if there was nothing to do, again afterwards, so that nothing that
  /// came before is missed. It may call what a condition of wait_until() may, and must not spin for
  /// rows or room either: this call takes them from the network, once for each turn.
  ///
  /// Answers
  /// - done: there was progress. The worker is not armed: let others have their turn, then call
  ///   again.
  /// - would_wait: it is armed. Exactly one readiness event comes: when rows, room, the end of a
  ///   query or a failure arrive, after wake(), when the session is closed, and after wait.sleep_ms
  ///   in any case. Then call again; or earlier, which takes the event back (a callback that has
  ///   just begun excepted).
  /// - holding: nothing could be done, but the worker holds batches, and is not armed: release or
  ///   detach them first.
  /// - failed, see status(): session_closed, wrong_state (neither ready_descriptor() nor on_ready()
  ///   was called; wrong thread), system_error (no thread). It is not armed.
  ///
  /// Between two calls of this any other call may be made; after one that waited, arm again before
  /// sleeping. Blocks: never.
  Outcome arm(const std::function<bool()>& progress, Progress what = Progress::turn);

  /// Sends and receives the rows of a shuffle at the same time, until both are done: the loop of a
  /// worker that is a sender and a receiver. Between two calls of `produce` it takes what others
  /// have sent, and gives it to `consume`; so the worker needs no more memory than its rings, and
  /// nobody waits for it (ExchangePart says what the functions do; the one of a side in which the
  /// worker takes no part is left out).
  ///
  ///   outcome = worker.exchange(
  ///       shuffle,
  ///       [&](const ShuffleSender& sender) {
  ///         for (int i = 0; i < 500; ++i) {
  ///           if (at == rows.size()) return Outcome::end_of_stream;
  ///           const Outcome sent = sender.send(receiver_of(rows[at]), rows[at], Wait::none());
  ///           if (sent != Outcome::done) return sent;
  ///           ++at;
  ///         }
  ///         return Outcome::done;
  ///       },
  ///       [&](Batch& batch) { use(batch); });
  ///
  /// Answers
  ///   end_of_stream  all was sent, finished, and received
  ///   deadline       the limit has passed. The same call goes on; so it does after would_wait and
  ///                  holding
  ///   would_wait     nothing could be done, and Wait::none() was given
  ///   done           with Wait::none(), which makes one turn: something was done. For an event
  ///                  loop, within the turn of arm()
  ///   holding        `consume` has moved a batch away; or it would have to send or to wait, but
  ///                  the worker holds batches: release or detach them
  ///   failed         see status(). The query has failed; or the call was refused: wrong_state
  ///                  (called by a function of exchange; of another thread; a function is missing,
  ///                  or is there for a side in which the worker takes no part), closed,
  ///                  invalid_argument
  /// Rows of these shuffles are not spilled at this worker while it waits in here. Throws: what a
  /// function has thrown; the query has failed then.
  Outcome exchange(Shuffle& shuffle, ExchangePart::Produce produce, ExchangePart::Consume consume,
                   Wait wait = Wait::forever());

  /// Does that with several shuffles in turns: a worker that receives of one and sends to the next,
  /// or joins two. It is done when all parts are.
  Outcome exchange(std::span<ExchangePart> parts, Wait wait = Wait::forever());

  /// This worker's part in a query is over: its shuffles of that query must be closed. Waits for
  /// the outcome, which the issuer decides when every participating worker has ended: done, or
  /// failed, of which status() is the first cause. To be repeated after would_wait, deadline or
  /// holding.
  ///
  /// `done` here is done on every node that learns the outcome. There is one case in which a node
  /// does not: the issuer's process dies, or is cut off, right after it has decided. Then its own
  /// workers, and those of nodes that were told, may have got `done`, while others get `failed`
  /// with peer_lost, which names the issuer: for them the outcome is not known. Nobody gets `done`
  /// of a query that the issuer has not decided so. (Every commit protocol without a log has this
  /// case.)
  Outcome end_query(const QueryId& query, Wait wait = Wait::forever());

  /// Ends this worker's part in a query after that part has failed: the query fails on every
  /// participant with `failure`, which a text "worker 3 failed: …" tells them, unless it has
  /// failed before. That this worker has closed shuffles of the query before their end, in the 100
  /// ms before and without another call since, is no failure before (see Shuffle). Shuffles of the
  /// query that are still open are closed: their calls answer errors from then on, and closing them
  /// later does nothing. A worker that fails before it opens a shuffle has to say so by this: the
  /// others wait for its rows. A failure of another category than `query` becomes query_failed; an
  /// ok one is none. It waits for the outcome, and answers, as end_query(query, wait) does.
  Outcome end_query(const QueryId& query, const Status& failure, Wait wait = Wait::forever());

  /// Why the last call of this worker (not of its shuffles) that answered `failed` did; ok if none
  /// did. No call clears it: the next one that fails replaces it.
  Status status() const;

  /// Releases the calling thread's ownership. The next thread that uses the worker takes it,
  /// together with the worker's shuffles, batches and claims.
  void release_ownership() noexcept;

  WorkerMetrics metrics() const;

 private:
  friend class Session;
  friend class WorkerAccess;
  Worker(shuffle::LocalWorker* core, uint32_t worker_count)
      : core_(core), worker_count_(worker_count) {}
  Status check_exists() const;
  shuffle::LocalWorker* core_;   // null: there is no such worker
  const uint32_t worker_count_;  // of the session
};

/// A bound, listening address that is made before the session, so that ports chosen by the system
/// can be told to the other nodes. It may be inherited over fork.
class ListeningSocket {
 public:
  /// Errors: address_in_use, config_invalid (no such address).
  static Result<ListeningSocket> bind(const std::string& address);
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&& other) noexcept;
  ~ListeningSocket();

  /// host:port with the port in use.
  const std::string& address() const noexcept { return address_; }

 private:
  friend class SessionAccess;
  ListeningSocket(int fd, std::string address) : fd_(fd), address_(std::move(address)) {}
  int fd_ = -1;
  std::string address_;
};

/// What a session tells its engine without being asked. What is empty is not called.
///
/// Threads: all come from the network thread, one after the other, in the order in which it
/// happened; they must not block, throw or wait for a worker. They may call what the session offers
/// for any thread, but not destroy it. None comes any more when close() has returned, unless that
/// was called by one of them. Nothing is told of what closing the own session ends.
struct SessionListener {
  /// A node is lost: it died, hangs or broke the protocol. Queries that contain it have failed;
  /// `cause` is what they were told, and names the node.
  std::function<void(uint32_t node, const Status& cause)> node_lost{};
  /// A node has closed its session. What needed it still has failed, as by a loss. If this node is
  /// drained, it may instead have let this node go.
  std::function<void(uint32_t node)> node_left{};
  /// A node that was lost, has left or was missing is there: queries may contain it, as after
  /// await_node(). It is told also, without a node_lost before, of another process of a node whose
  /// link was let go (link.idle_ms).
  std::function<void(uint32_t node)> node_returned{};
  /// A node that Nodes::add has added is linked for the first time: queries may contain it, as
  /// after await_node().
  std::function<void(uint32_t node)> node_added{};
  /// What Nodes::drain began is done: no query that was begun here, or by a node that is linked
  /// with this one, needs the node, and there is no link with it. If it is told of the own node, no
  /// other node is linked with that any more. Once every node has told this, also those whose links
  /// were let go before (link.idle_ms), its session can be closed, and no query fails by that.
  std::function<void(uint32_t node)> node_drained{};
  /// The session knows nothing of the node any more.
  std::function<void(uint32_t node)> node_removed{};
  /// A query that this node uses, has declared or has begun has failed here, for the first cause.
  /// Once per query; it still has to be ended.
  std::function<void(const QueryId& query, const Status& cause)> query_failed{};
};

/// A node's membership in a cluster; owns the memory that all queries use, the rings to other nodes
/// among it.
///
/// Threads: any, except where said. Closing and destruction must not come from a worker that is
/// inside a call.
///
/// Fork: a session stays its parent's. A child that was forked may call exec, _exit or exit; there
/// closing and destroying sessions and shuffles does nothing, and gives no memory back. It must not
/// send, receive or release batches: it would do so in memory that its parent shares with the
/// peers. A child that wants a session of its own opens one.
class Session {
 public:
  /// Connects to every node of cluster.nodes, and allocates the rings to them. With
  /// connect.wait_for = none it waits for nobody: nodes are linked, and rings to them allocated, as
  /// they come; with cluster.node_limit, when a query needs them.
  ///
  /// Blocks: until these nodes are connected, at most connect.timeout_ms, or until `cancellation`
  /// is cancelled: the others then go on waiting for this node, as if it had not started.
  /// Errors: config_invalid, resource_limit (what is needed, what the limit is), address_in_use,
  /// transport_unavailable, configuration_mismatch (the key and both values),
  /// authentication_failed, connect_failed (which nodes are missing, and why), cancelled,
  /// system_error.
  static Result<std::unique_ptr<Session>> open(const Config& config,
                                               const Cancellation& cancellation = {});
  static Result<std::unique_ptr<Session>> open(const Config& config, ListeningSocket socket,
                                               const Cancellation& cancellation = {});

  /// Calls open() in a thread of its own, which ends with `done`. `done` is called exactly once,
  /// with the session or the error: from that thread, or from the caller's if the system has no
  /// more threads (system_error). It may wait, and may destroy the session.
  /// Threads: any. Blocks: never.
  static void open_async(Config config, std::function<void(Result<std::unique_ptr<Session>>)> done,
                         Cancellation cancellation = {});
  static void open_async(Config config, ListeningSocket socket,
                         std::function<void(Result<std::unique_ptr<Session>>)> done,
                         Cancellation cancellation = {});

  /// Calls close(), then gives memory back once no shuffle or batch uses it any more.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  uint32_t node() const noexcept;
  /// How many numbers nodes have: as many as cluster.nodes lists or, if nodes can be added,
  /// cluster.node_limit.
  uint32_t node_count() const noexcept;
  /// The number of workers of the whole cluster, which are those of all numbers of nodes.
  uint32_t worker_count() const noexcept;
  /// Number of a node's first worker.
  uint32_t first_worker(uint32_t node) const noexcept;

  uint32_t local_worker_count() const noexcept;
  /// The i-th worker of this node. From local_worker_count() on there is none: all that this worker
  /// is asked for fails with invalid_argument.
  Worker& worker(uint32_t local_index) noexcept;

  /// Begins a new query, of which this node is the issuer.
  QueryId begin_query();

  /// Says which workers take part in a query, if not all of the cluster; with cluster.node_limit,
  /// of every query. It is called on every node that takes part and on the issuer, before any of
  /// its workers uses the query. Once this has answered ok each worker of this node that is named
  /// has to end the query (Worker::end_query), also one that never uses it, and also if the query
  /// has failed; with cluster.node_limit the query, and the links that it needs, stay until then,
  /// and on its issuer it keeps the drain of a node that takes part from being done. With
  /// cluster.node_limit it also has the nodes linked that the query needs. Until a node is linked,
  /// the rings to it are as full ones; if it is not within connect.timeout_ms and up to two
  /// heartbeats more, the query fails with peer_lost, which names it and the cause. Blocks: never.
  /// Errors: invalid_argument (on the issuer also a worker of a node that is drained: nothing was
  /// declared), wrong_state (it is in use, or declared, already: what was declared holds),
  /// query_ended, session_closed; the cause with which it has failed already. With
  /// cluster.node_limit a query that its issuer does not declare fails within
  /// query.unopened_timeout_ms of the first end that the issuer hears of, and names this call; the
  /// issuer of a query that a node is refused hears of it.
  Status declare_query(const QueryId& query, const std::vector<uint32_t>& workers);

  /// Fails a query on every participant with query_cancelled and this reason. It is called on a
  /// node that takes part, or on the issuer: others are not believed. A query that has failed
  /// already keeps its first cause. Errors: query_ended, also for a query that was never begun;
  /// peer_lost if its issuer is lost; session_closed, limit_exceeded.
  Status cancel_query(const QueryId& query, std::string_view reason);

  /// Whether a node is linked, so that queries may contain it; with cluster.node_limit they may
  /// also contain one that is not linked yet. Where the list is fixed it is linked with every node
  /// that is there. The own node is linked. Threads: any. Blocks: never for long.
  bool has_node(uint32_t node) const noexcept;
  /// Waits until has_node: for a node that was lost, has left, or was missing when this session
  /// opened, to start again (native/session/README.md). With cluster.node_limit it has it linked,
  /// as long as it waits. A query that contains it must be begun after that, or after the returning
  /// node's own `open` has returned; one begun before fails with peer_lost.
  /// Errors: deadline_exceeded, cancelled, session_closed, invalid_argument (no such node).
  /// Threads: any, but no worker's that others wait for. Blocks: as said.
  Status await_node(uint32_t node, Wait wait = Wait::forever(),
                    const Cancellation& cancellation = {});
  /// Calls await_node() in a thread of its own, which ends with `done`. `done` is called exactly
  /// once, with await_node's answer; if the system has no more threads, with system_error from the
  /// caller's. The session may be closed and destroyed meanwhile, also by `done`.
  /// Threads: any. Blocks: never.
  void await_node_async(uint32_t node, std::function<void(Status)> done,
                        Wait wait = Wait::forever(), Cancellation cancellation = {});

  /// Tells `listener` of nodes that come and go and of queries that fail, from now on; it replaces
  /// the one before, of which a call may still be under way. Threads: any. Blocks: never.
  void listen(SessionListener listener);

  /// All counters of this node. With a query also those of its shuffles, for EXPLAIN ANALYZE:
  /// whatever the workers of this node have opened in it, closed or not. They are kept until the
  /// query has ended everywhere, and at least as long as one of these workers has not called
  /// end_query; on the issuer until every node has confirmed the end. Later, and of a query that
  /// this node does not know, there are none. Threads: any. Blocks: never for long.
  SessionMetrics metrics(const QueryId& query = {}) const;

  /// Ends every wait and every query with session_closed, tells the peers, stops the network
  /// thread. Idempotent. Blocks: at most close.timeout_ms. Errors: deadline_exceeded if calls were
  /// still inside or frames still held: their memory then stays mapped until they are done.
  Status close();
  /// Closes and destroys the session in a thread of its own, which ends with `done`. `done` is
  /// called exactly once, with close's answer; if the system has no more threads, from the
  /// caller's, which waits then.
  /// Threads: any. Blocks: never, except then.
  static void close_async(std::unique_ptr<Session> session, std::function<void(Status)> done);

 private:
  friend class SessionAccess;
  friend class Nodes;
  explicit Session(std::shared_ptr<node::NodeCore> core);
  std::shared_ptr<node::NodeCore> core_;
  std::vector<std::unique_ptr<Worker>> workers_;  // one more than there are: the one that is none
};

}  // namespace faro

#pragma GCC visibility pop
