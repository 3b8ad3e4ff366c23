// Query and QueryTable: which queries live on this node, how they fail and how they end.
//
// A query's life on a node: known from its first use here (a shuffle opened, rows or a message of
// it arrived), failed at any time by anyone, ended by the issuer's OUTCOME.
//
//   participant                              issuer
//   all its workers have ended  --ENDED-->   all participants have ended, or are lost
//   remembers it as ended      <--OUTCOME--  decides: done, or the first failure
//                               --CONFIRM--> forgets it when all have confirmed; moves the
//                               low-water mark
//
// A query needs a peer until the outcome is known: until then its loss fails the query (native/DESIGN.md
// HC-10). A participant that has ended its own part needs the issuer only: another participant
// may have got the outcome first and be gone. Nor can it fail the query any more, only ask the issuer
// to: so whatever crosses the outcome, a query ends alike on all nodes. A node that starts again in the
// place of a lost one takes part only in queries that were begun after that, as their issuers see it.
//
// Peers are not trusted: README.md says who may say what about which query. What a peer says of a query
// that this node does not use is hearsay: it is kept for the time when it does, at the expense of that
// peer, who has a limited share, and until it expires.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "counters/counter_file.h"
#include "faro/query.h"
#include "faro/status.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/query/stage_lists.h"
#include "wire/query_message.h"

namespace faro::shuffle {

wire::QueryKey to_key(const QueryId& id);
QueryId to_id(const wire::QueryKey& key);

/// One query on this node. Shared by the table and by the workers that use it.
class Query {
 public:
  explicit Query(const QueryId& query_id) : id(query_id) {}

  const QueryId id;
  OverflowUsage usage;

  /// Threads: any. Acquire: cause() is set when this is true.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  bool outcome_known() const noexcept { return outcome_known_.load(std::memory_order_acquire); }
  /// The first failure here, or that the issuer told. Threads: any, after failed().
  const Status& cause() const noexcept { return cause_; }
  /// The issuer's answer, or why there will be none. Threads: any, after outcome_known().
  const Status& outcome() const noexcept { return outcome_; }

 private:
  friend class QueryTable;
  struct Stop {
    uint32_t stage, receiver;
    auto operator<=>(const Stop&) const = default;
  };
  struct Unopened {
    uint32_t worker, stage, sender;
    base::Nanoseconds since;
  };
  /// A stage as workers of this node have opened it.
  struct Stage {
    StageLists lists;
    uint32_t opened_first = 0;  // worker number
    std::vector<bool> opened;   // by local worker
  };
  /// A local worker for whose rows somebody on `node` waits.
  struct Awaited {
    uint32_t sender, stage, node;
    auto operator<=>(const Awaited&) const = default;
  };
  struct Awaiting {
    uint64_t lists = 0;  // digest, as the receiver opened the stage
    std::string text;    // who it is, and those lists
  };

  std::atomic<bool> failed_{false};
  std::atomic<bool> outcome_known_{false};
  std::atomic<bool> must_fail_{false};  // for memory, when there is some
  Status cause_;                        // written once, before failed_ is set
  Status outcome_;                      // written once, before outcome_known_ is set

  // All below: under the table's mutex.
  std::optional<uint32_t> shown_in_;  // slot of the counter file
  bool forgotten_ = false;
  base::Nanoseconds since_ = 0;         // as of the tick before
  std::optional<uint32_t> heard_from_;  // hearsay: who spoke of it first
  std::list<Query*>::iterator place_;   // and its place in what is kept of that peer
  base::Nanoseconds heard_at_ = 0;      // and when anybody did last
  bool declared_ = false;
  bool used_ = false;        // by a worker of this node
  std::vector<bool> nodes_;  // participants
  // Nodes that were lost, and why, when it became known here or since; of hearsay, while they are.
  std::map<uint32_t, Status> lost_;
  std::vector<bool> workers_;          // local workers that take part
  std::vector<bool> workers_pending_;  // of them, those that have not ended
  uint32_t workers_pending_count_ = 0;
  bool ended_sent_ = false;
  /// The issuer was asked then to fail it, or whether it still is failed, and has not answered.
  std::optional<base::Nanoseconds> asked_at_;
  Status asked_cause_;
  bool gave_up_asking_ = false;  // it is failed here, whatever the issuer answers
  std::set<Stop> stops_;
  std::vector<Unopened> unopened_;
  std::map<uint32_t, Stage> stages_;  // by number
  std::map<Awaited, Awaiting> awaited_;
  /// Over all workers of a query these add up to 0: each member of a stage has added the stage's share, and
  /// one of them has taken off what all of them are to add.
  uint64_t balance_ = 0;
  // The issuer's:
  std::vector<bool>
      nodes_pending_;  // ENDED still to come; after the outcome: CONFIRM still to come
  std::map<uint32_t, Status>
      early_failures_;  // hearsay: by nodes of which nobody knows if they take part
  std::map<uint32_t, uint64_t> balances_;  // by node, with ENDED
  std::optional<int> ticks_to_balance_;    // all have ended, but the balances do not add up
};

/// What the table needs of the node.
class QueryEnvironment {
 public:
  virtual ~QueryEnvironment() = default;
  /// Queues a control message to a node, also to the own one.
  virtual void send(uint32_t node, const wire::QueryMessage& message) = 0;
  /// Makes every local worker look at its queries again.
  virtual void alert_workers() = 0;
  /// Ends the link to a peer that broke the rules. Repeatable.
  virtual void fail_peer(uint32_t node, const Status& cause) = 0;
};

/// Threads: any; one lock, never on the row path.
class QueryTable {
 public:
  struct Shape {
    uint32_t node = 0;
    std::vector<uint64_t> incarnations;  // per node; 0: it is missing
    std::vector<std::string> node_names;
    std::vector<uint32_t> first_worker;  // per node
    std::vector<uint32_t> worker_count;  // per node
  };

  QueryTable(Shape shape, QueryEnvironment& environment, base::Nanoseconds unopened_timeout_ns);

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
  /// The query for a worker that is going to use it. Errors: query_ended, limit_exceeded.
  Result<std::shared_ptr<Query>> use(const QueryId& id);
  uint32_t node_of_worker(uint32_t worker) const;
  /// Whether a node does; all do in a query that was not declared.
  bool takes_part(const Query& query, uint32_t node) const;

  /// Fails a query here and, unless it had failed already, on every participant.
  void fail(Query& query, const Status& cause);
  /// The same because there is no memory for something, also not for failing it at once: then it fails at
  /// a later tick.
  void fail_for_memory(Query& query) noexcept;
  /// Why it fails then; made beforehand.
  const Status& no_memory() const noexcept { return no_memory_; }
  /// The same where something that a peer sent is the cause: a peer that takes no part in the query cannot
  /// fail it.
  void fail_by_sender(Query& query, uint32_t node, const Status& cause);
  /// Rows of a query for a lost node were thrown away: fails it with the cause of the loss.
  void lose_rows(Query& query, uint32_t node);
  /// As fail, by id; also for a query not known yet. Nothing happens if it has ended. Others believe it
  /// of a node that takes part, and of the issuer.
  void cancel(const QueryId& id, const Status& cause);

  /// A local receiver needs no more: tells the nodes of the senders.
  void stop(Query& query, uint32_t stage, uint32_t receiver, std::span<const uint32_t> senders);
  /// The receivers of a stage that have stopped.
  std::vector<uint32_t> stops(Query& query, uint32_t stage);

  /// Rows came for a shuffle that is not open at a local worker; and: it is now.
  void add_unopened(Query& query, uint32_t worker, uint32_t stage, uint32_t sender,
                    base::Nanoseconds now);
  void remove_unopened(Query& query, uint32_t worker, uint32_t stage);

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
  /// `cause` names the peer. Also for a peer that left in order.
  void on_peer_lost(uint32_t node, const Status& cause);
  /// A node that was lost or missing is there, under this incarnation: queries may contain it, but
  /// for those that this node uses already. What its former life said of others is forgotten.
  void on_peer_joined(uint32_t node, uint64_t incarnation);
  void on_tick(base::Nanoseconds now);
  /// Fails everything; nothing can begin any more.
  void close(const Status& cause);

  /// The query with the most bytes in overflow, or nullptr.
  std::shared_ptr<Query> biggest_overflow_user();

  uint64_t running_count() const;
  uint64_t failed_count() const { return failed_count_.load(std::memory_order_relaxed); }

 private:
  /// Most queries that this node uses at a time, and most stops of each.
  static constexpr size_t kQueryLimit = 65536;
  /// Most queries, and stops and waiting receivers of them, that are kept at a time because one peer spoke of
  /// them: about 30 MB with the longest causes. Honest ones are those which this node is about to use, mostly far
  /// fewer. The oldest makes room for a new one.
  static constexpr uint32_t kHearsayLimit = 16384;
  /// Most ended queries of an issuer above its low-water mark that are remembered on its word alone.
  static constexpr size_t kHeardEndsLimit = 65536;

  struct Ended {
    uint64_t low_water = 0;
    std::set<uint64_t> above;
    bool contains(uint64_t counter) const {
      return counter <= low_water || above.count(counter) != 0;
    }
    void add(uint64_t counter);
    void raise(uint64_t counter);
  };
  /// What is done when the lock has been given back.
  struct Outbound {
    std::list<std::pair<uint32_t, wire::QueryMessage>> messages;  // to whom
    std::list<std::pair<uint32_t, Status>> offenders;             // whose link ends, and why
    bool empty() const { return messages.empty() && offenders.empty(); }
    void send(uint32_t node, wire::QueryMessage message) {
      messages.emplace_back(node, std::move(message));
    }
    void take(Outbound&& more) noexcept {
      messages.splice(messages.end(), more.messages);
      offenders.splice(offenders.end(), more.offenders);
    }
  };

  Status declare_locked(const QueryId& id, const std::vector<uint32_t>& workers, Outbound& out);
  std::shared_ptr<Query> find_locked(const QueryId& id) const;
  bool can_live_locked(const QueryId& id);
  std::shared_ptr<Query> make_locked(const QueryId& id);
  std::shared_ptr<Query> find_or_make_own_locked(const QueryId& id);
  void make_own_locked(Query& query, Outbound& out);
  std::shared_ptr<Query> hear_locked(const QueryId& id, uint32_t from_node, Outbound& out);
  bool charge_locked(uint32_t node, const Query* keep, Outbound& out);
  void drop_hearsay_locked(Query& query, Outbound& out);
  void forget_hearsay_locked(Query& query);
  void discharge_locked(Query& query);
  void set_participants(Query& query, const std::vector<uint32_t>& workers);
  void log_failures_locked(std::vector<QueryId> ids, const Status& cause) const;
  void note_lost_locked(Query& query);
  void fail_if_lost_locked(Query& query, Outbound& out);
  bool fail_locked(Query& query, const Status& cause, bool tell_others, Outbound& out);
  /// The same without a line in the log.
  bool fail_quietly_locked(Query& query, const Status& cause, bool tell_others, Outbound& out);
  bool fail_here_locked(Query& query, const Status& cause, Outbound& out);
  void forget_former_life_locked(Query& query, uint32_t node);
  bool fail_by_sender_locked(Query& query, uint32_t node, const Status& cause, Outbound& out);
  bool fail_by_peer_locked(Query& query, uint32_t from_node, const Status& cause, Outbound& out);
  bool stop_by_peer_locked(const QueryId& id, uint32_t from_node, const Query::Stop& stop,
                           Outbound& out);
  bool await_by_peer_locked(const QueryId& id, uint32_t from_node,
                            const wire::QueryMessage& message, Outbound& out);
  /// nullopt: it may still come right.
  std::optional<Status> judge_awaited(const Query& query, const Query::Awaited& awaited,
                                      const Query::Awaiting& awaiting) const;
  bool judge_awaited_of_locked(Query& query, uint32_t worker, Outbound& out);
  bool fail_what_is_unopened_locked(Query& query, uint32_t worker, Outbound& out);
  Status check_stage_locked(Query& query, uint32_t worker, const ShuffleSpec& spec,
                            const StageLists& lists, Outbound& out);
  void end_locked(Query& query, uint32_t worker, Outbound& out);
  bool has_ended_locked(const Query& query, uint32_t worker) const;
  bool is_balanced(const Query& query) const;
  void dismiss_locked(const Query& query, uint32_t node, Outbound& out);
  bool outcome_by_issuer_locked(Query& query, const Status& outcome, Outbound& out);
  bool expire_unopened_locked(Query& query, base::Nanoseconds now, Outbound& out);
  bool expire_question_locked(Query& query, base::Nanoseconds now, Outbound& out);
  bool expire_hearsay_locked(Query& query, base::Nanoseconds now, Outbound& out);
  void settle_locked(Query& query, const Status& outcome);
  void node_ended_locked(Query& query, uint32_t node, uint64_t balance, Outbound& out);
  void node_confirmed_locked(Query& query, uint32_t node);
  void decide_if_all_ended_locked(Query& query, Outbound& out);
  void forget_if_over_locked(Query& query);
  void forget_locked(Query& query);
  void flush(Outbound& out, bool alert);
  /// Does `part`, which says whether workers are to be alerted, under the lock; then sends what it has put out. Also if it
  /// ends by an exception: what has happened to queries must be told.
  template <typename Part>
  void change(Part&& part);
  void show_locked(Query& query);
  void hide_locked(Query& query);

  bool has_worker(uint32_t node, uint32_t worker) const;
  uint32_t node_count() const { return static_cast<uint32_t>(shape_.incarnations.size()); }

  Status why_over(const QueryId& id) const;

  Shape shape_;  // incarnations: under the mutex
  QueryEnvironment& environment_;
  const base::Nanoseconds unopened_timeout_ns_;

  counters::CounterFile* file_ = nullptr;

  mutable std::mutex mutex_;
  base::Nanoseconds ticked_at_ = 0;
  std::vector<uint32_t> free_slots_;  // of file_
  uint64_t counter_ = 0;
  std::unordered_map<QueryId, std::shared_ptr<Query>> queries_;
  size_t own_count_ = 0;                  // of them no hearsay
  std::map<uint32_t, Ended> ended_;       // per issuer
  std::vector<Status> lost_;              // per node: why it is gone; ok: it is there
  std::vector<uint64_t> joined_at_;       // per node: queries begun here when it joined, again
  std::vector<uint32_t> heard_count_;     // per node: its part of kHearsayLimit
  std::vector<std::list<Query*>> heard_;  // per node: what is kept of it, the oldest first
  Status closed_;
  const Status no_memory_;
  Outbound unsent_;  // there was no memory for it
  std::atomic<bool> some_must_fail_{false};
  std::atomic<uint64_t> failed_count_{0};
};

}  // namespace faro::shuffle
