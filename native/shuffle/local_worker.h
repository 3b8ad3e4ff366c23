// LocalWorker: one worker of this node, what is behind faro::Worker: composes the gate, the wait loop, the rings either
// way and the shuffles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "faro/metrics.h"
#include "faro/outcome.h"
#include "faro/session.h"
#include "ring/ready_watch.h"
#include "ring/waiter.h"
#include "shuffle/at_rest.h"
#include "shuffle/exchange.h"
#include "shuffle/link_lanes.h"
#include "shuffle/open_shuffle.h"
#include "shuffle/operation/operation.h"
#include "shuffle/operation/ownership.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/receive_side.h"
#include "shuffle/send/group_blocks.h"
#include "shuffle/send/lanes.h"
#include "shuffle/stage/wait_loop.h"

namespace faro::shuffle {

/// Threads: the worker's thread, except where said. Ownership is checked (Ownership::enter) on everything that
/// is not inlined.
class LocalWorker {
 public:
  /// What it uses of its node outlives it. `node_end`: null where lanes end at workers.
  LocalWorker(const WorkerContext& context, NodeEnd* node_end, ring::ReadyWatch& ready_watch,
              std::unique_ptr<ring::Waiter> waiter);
  ~LocalWorker();
  LocalWorker(const LocalWorker&) = delete;
  LocalWorker& operator=(const LocalWorker&) = delete;

  const WorkerContext& context() const noexcept { return context_; }
  uint32_t number() const noexcept { return context_.number; }
  uint32_t local_index() const noexcept { return context_.local_index; }
  /// Threads: any.
  WorkerMetrics metrics() const;

  /// Alerts and ownership.
  Ownership& ownership() noexcept { return ownership_; }
  AtRest& at_rest() noexcept { return at_rest_; }
  /// How an event loop learns that the worker should look again. Threads: any.
  ring::Readiness& readiness() noexcept { return readiness_; }

  Result<Shuffle> open_shuffle(const ShuffleSpec& spec);
  Outcome wait_until(const std::function<bool()>& condition, Wait wait);
  Outcome arm(const std::function<bool()>& progress, Progress what);
  /// Throws: what a function of a part has thrown.
  Outcome exchange(std::span<ExchangePart> parts, Wait wait);
  Outcome end_query(const QueryId& id, const Status& failure, Wait wait);
  /// Why the last of these answered failed.
  const Status& status() const noexcept { return status_; }

  /// Calls each(peer's worker number, whether this worker sends by it, its memory) for all rings as they are now.
  /// Answers where the number lies that grows whenever there are other rings, as long as there is the worker. Throws: what
  /// `each` does. Errors: those of Ownership::enter.
  using EachRing = std::function<void(uint32_t peer, bool outgoing, std::span<const std::byte>)>;
  Result<const uint64_t*> each_ring(const EachRing& each);

  /// A call of the worker waits, or the engine holds batches in place. Threads: any.
  bool is_busy() const noexcept { return lanes_.holds_batches() || operation_.is_waiting(); }

  /// For OpenShuffle, which is closed before its end: that is why the query fails if the worker gives no better cause.
  /// Throws: std::bad_alloc.
  void abandon(const std::shared_ptr<Query>& query, const Status& cause);
  /// For OpenShuffle: it is closed; nothing refers to it any more. May destroy it.
  void closed() noexcept;
  void sweep() noexcept;

 private:
  /// Around a call of the engine: it ends, however it does.
  class Call {
   public:
    explicit Call(LocalWorker& worker) : worker_(worker) {}
    ~Call() { worker_.call_ended(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    LocalWorker& worker_;
  };
  void call_ended() noexcept;

  /// The queries of which a call does not tell that the worker has closed shuffles of them before
  /// their end.
  enum class Spares : uint8_t {
    none,
    one,  // it ends that query, perhaps by a better cause
    all,  // what it is about is said by the calls of a condition
  };

  bool handle_alerts();
  Status enter(Spares spares, const QueryId& spared = {});
  Outcome look(const std::function<bool()>& condition, Spares spares);
  Status check_exchange(Exchange& exchange, Wait wait);
  Outcome run_exchange(Exchange& exchange, Wait wait);
  Outcome answer_exchange(Exchange& exchange, Outcome outcome);
  void tell_abandoned() noexcept;
  Outcome fail(Status status) noexcept;
  Status complete(ShuffleSpec& spec) const;
  Result<Shuffle> make_shuffle(ShuffleSpec spec);
  Status check_unopened(const ShuffleSpec& spec, const Query& query);
  uint16_t take_slot();
  Status check_closed(const QueryId& id) const;
  void fail_part(Query& query, const Status& failure);
  Result<std::shared_ptr<Query>> query_to_end(const QueryId& id);
  bool is_sending(const Query& query) const;
  Outcome attempt_end(const std::shared_ptr<Query>& query);

  const WorkerContext context_;
  Operation operation_;
  Ownership ownership_;
  ReceiveSide receive_side_;
  Lanes lanes_;
  WaitLoop wait_loop_;
  ring::Readiness readiness_;
  LinkLanes link_lanes_;
  std::vector<std::unique_ptr<OpenShuffle>> shuffles_;
  /// Among them is one that is closed, and was not over when they were swept last.
  bool has_closed_ = false;
  AtRest at_rest_;
  std::vector<bool> slots_;  // in use
  /// This worker's part of them is over, the outcome was not taken yet.
  std::vector<std::shared_ptr<Query>> ending_;
  /// It has closed shuffles of them before their end, and has given no better cause.
  std::vector<std::shared_ptr<Query>> abandoned_;
  bool in_exchange_ = false;
  Spares spares_ = Spares::none;
  QueryId spared_;
  Status status_;
};

}  // namespace faro::shuffle
