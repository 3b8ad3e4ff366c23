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
// A query needs a peer until the outcome is known: until then its loss fails the query (design,
// hard case 10). A participant that has ended its own part needs the issuer only: another participant
// may have got the outcome first and be gone.
#pragma once

#include <atomic>
#include <functional>
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
#include "shuffle/overflow.h"
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
  /// The first failure here, or that the issuer told; ok if there was none. Threads: any, after
  /// failed() or outcome_known().
  const Status& cause() const noexcept { return cause_; }

 private:
  friend class QueryTable;
  struct Stop {
    uint32_t stage, receiver;
  };
  struct Unopened {
    uint32_t worker, stage, sender;
    base::Nanoseconds since;
  };

  std::atomic<bool> failed_{false};
  std::atomic<bool> outcome_known_{false};
  Status cause_;  // written once, before failed_ or outcome_known_ is set

  // All below: under the table's mutex.
  std::optional<uint32_t> shown_in_;  // slot of the counter file
  bool forgotten_ = false;
  base::Nanoseconds since_ = 0;  // as of the tick before
  bool declared_ = false;
  bool used_ = false;                  // by a worker of this node
  std::vector<bool> nodes_;            // participants
  std::vector<bool> workers_pending_;  // local workers that take part and have not ended
  uint32_t workers_pending_count_ = 0;
  bool ended_sent_ = false;
  std::vector<Stop> stops_;
  std::vector<Unopened> unopened_;
  // The issuer's:
  std::vector<bool>
      nodes_pending_;  // ENDED still to come; after the outcome: CONFIRM still to come
};

/// What the table needs of the node.
class QueryEnvironment {
 public:
  virtual ~QueryEnvironment() = default;
  /// Queues a control message to a node, also to the own one.
  virtual void send(uint32_t node, const wire::QueryMessage& message) = 0;
  /// Makes every local worker look at its queries again.
  virtual void alert_workers() = 0;
};

/// Threads: any; one lock, never on the row path.
class QueryTable {
 public:
  struct Shape {
    uint32_t node = 0;
    std::vector<uint64_t> incarnations;  // per node
    std::vector<std::string> node_names;
    std::vector<uint32_t> first_worker;  // per node
    std::vector<uint32_t> worker_count;  // per node
  };

  QueryTable(Shape shape, QueryEnvironment& environment, base::Nanoseconds unopened_timeout_ns)
      : shape_(std::move(shape)),
        environment_(environment),
        unopened_timeout_ns_(unopened_timeout_ns),
        lost_(shape_.incarnations.size()) {}

  /// Shows its queries in `file` from now on; both outlive this. Threads: before any other call.
  void show_in(counters::CounterFile& file, base::Nanoseconds now);

  QueryId begin();
  Status declare(const QueryId& id, const std::vector<uint32_t>& workers);

  /// The query, made known if it was not; nullptr if it has ended, or never can have begun.
  std::shared_ptr<Query> find(const QueryId& id);
  /// The same for a worker that is going to use it. Errors: query_ended, limit_exceeded.
  Result<std::shared_ptr<Query>> use(const QueryId& id);

  /// Fails a query here and, unless it had failed already, on every participant.
  void fail(Query& query, const Status& cause);
  /// The same by id; also for a query not known yet. Nothing happens if it has ended.
  void cancel(const QueryId& id, const Status& cause);

  /// A local receiver needs no more: tells the nodes of the senders.
  void stop(Query& query, uint32_t stage, uint32_t receiver, std::span<const uint32_t> senders);
  /// The receivers of a stage that have stopped.
  std::vector<uint32_t> stops(Query& query, uint32_t stage);

  /// Rows came for a shuffle that is not open at a local worker; and: it is now.
  void add_unopened(Query& query, uint32_t worker, uint32_t stage, uint32_t sender,
                    base::Nanoseconds now);
  void remove_unopened(Query& query, uint32_t worker, uint32_t stage);

  /// A local worker's part is over. Repeatable.
  void end(Query& query, uint32_t worker);

  void on_message(uint32_t from_node, const wire::QueryMessage& message);
  /// `cause` names the peer. Also for a peer that left in order.
  void on_peer_lost(uint32_t node, const Status& cause);
  void on_tick(base::Nanoseconds now);
  /// Fails everything; nothing can begin any more.
  void close(const Status& cause);

  /// The query with the most bytes in overflow, or nullptr.
  std::shared_ptr<Query> biggest_overflow_user();

  uint64_t running_count() const;
  uint64_t failed_count() const { return failed_count_.load(std::memory_order_relaxed); }

 private:
  /// Most queries known at a time; a peer cannot make a node remember more.
  static constexpr size_t kQueryLimit = 65536;

  struct Ended {
    uint64_t low_water = 0;
    std::set<uint64_t> above;
    bool contains(uint64_t counter) const {
      return counter <= low_water || above.count(counter) != 0;
    }
    void add(uint64_t counter);
    void raise(uint64_t counter);
  };
  using Outbound = std::vector<std::pair<uint32_t, wire::QueryMessage>>;

  Status declare_locked(const QueryId& id, const std::vector<uint32_t>& workers, Outbound& out);
  std::shared_ptr<Query> find_locked(const QueryId& id);
  void set_participants(Query& query, const std::vector<uint32_t>& workers);
  void log_failure(const Query& query) const;
  bool fail_locked(Query& query, const Status& cause, bool tell_others, Outbound& out);
  void node_ended_locked(Query& query, uint32_t node, const Status& result, Outbound& out);
  void node_confirmed_locked(Query& query, uint32_t node);
  void decide_if_all_ended_locked(Query& query, Outbound& out);
  void forget_if_over_locked(Query& query);
  void flush(Outbound& out, bool alert);
  void show_locked(Query& query);
  void hide_locked(Query& query);

  uint32_t node_of_worker(uint32_t worker) const;
  bool has_worker(uint32_t node, uint32_t worker) const;
  uint32_t node_count() const { return static_cast<uint32_t>(shape_.incarnations.size()); }

  const Shape shape_;
  QueryEnvironment& environment_;
  const base::Nanoseconds unopened_timeout_ns_;

  counters::CounterFile* file_ = nullptr;

  mutable std::mutex mutex_;
  base::Nanoseconds ticked_at_ = 0;
  std::vector<uint32_t> free_slots_;  // of file_
  uint64_t counter_ = 0;
  std::unordered_map<QueryId, std::shared_ptr<Query>> queries_;
  std::map<uint32_t, Ended> ended_;  // per issuer
  std::vector<Status> lost_;         // per node: why it is gone
  Status closed_;
  std::atomic<uint64_t> failed_count_{0};
};

}  // namespace faro::shuffle
