// ShuffleContext: what the sending and the receiving side of an open shuffle share.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "faro/outcome.h"
#include "faro/shuffle.h"
#include "faro/status.h"
#include "shuffle/operation/operation.h"
#include "shuffle/operation/ownership.h"
#include "shuffle/operation/wait_loop.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/query/query.h"
#include "shuffle/query/row_format.h"
#include "shuffle/query/shuffle_counts.h"
#include "shuffle/query/stage_lists.h"

namespace faro::shuffle {

/// What calls of a worker go through.
struct WorkerGate {
  const WorkerContext& worker;
  Operation& operation;
  Ownership& ownership;
  WaitLoop& wait_loop;
};

/// Threads: those of the worker.
class ShuffleContext {
 public:
  ShuffleContext(const WorkerGate& gate, std::shared_ptr<Query> query, ShuffleSpec spec,
                 StageLists lists, std::shared_ptr<ShuffleCounts> counts)
      : gate_(gate),
        query_(std::move(query)),
        spec_(std::move(spec)),
        lists_(std::move(lists)),
        counts_(std::move(counts)) {}
  virtual ~ShuffleContext() = default;
  ShuffleContext(const ShuffleContext&) = delete;
  ShuffleContext& operator=(const ShuffleContext&) = delete;

  const WorkerContext& worker() const noexcept { return gate_.worker; }
  const std::shared_ptr<Query>& query() const noexcept { return query_; }
  const ShuffleSpec& spec() const noexcept {
    return spec_;
  }  // senders and receivers are filled in: never empty
  const StageLists& lists() const noexcept { return lists_; }
  ShuffleCounts& counts() const noexcept { return *counts_; }
  Operation& operation() noexcept { return gate_.operation; }
  /// Why the last call answered failed.
  const Status& status() const noexcept { return status_; }

  /// The first step of every attempt: takes or checks the ownership of the worker, handles alerts, and checks that session
  /// and query are alive.
  Outcome enter();
  Status enter_worker() { return gate_.ownership.enter(); }
  /// Runs an attempt once, or until it can be done.
  template <typename Attempt>
  Outcome operate(const Attempt& attempt, Wait wait) {
    if (wait.is_none()) return polled(gate_.wait_loop.run(attempt));
    if (Status status = gate_.ownership.check_may_wait(wait); !status.ok()) return fail(status);
    return polled(gate_.wait_loop.wait(attempt, wait));
  }
  /// Where `part` finds no memory, this query fails.
  template <typename Part>
  Status guarded(Part&& part) {
    try {
      return part();
    } catch (const std::bad_alloc&) {
      return lack_memory();
    }
  }

  /// Moves on what waits for room in the worker's outgoing rings.
  void send_queued() { gate_.wait_loop.send_queued(); }

  /// Notes in `known` what the engine says its rows are. Errors: invalid_argument if it has said something else before.
  Status name_format(RowFormat& known, std::string_view format, std::string_view what) const;

  /// Notes why, and answers failed.
  Outcome fail(const Status& status);
  /// Notes a failure of this stage, and answers failed; `text` is a format of fmt::format.
  template <typename... Args>
  Outcome fail(Code code, fmt::format_string<Args...> text, Args&&... args) {
    const Status status = base::error(code, text, std::forward<Args>(args)...);
    return fail(status.of_query(query_->id).of_stage(spec_.stage));
  }
  /// Fails the query, everywhere, because of this stage.
  void fail_query(const Status& cause) {
    worker().queries.fail(*query_, cause.of_stage(spec_.stage));
  }

  /// A batch or a claim refers to this shuffle, which lives as long.
  void refer() noexcept { ++references_; }
  void release_reference() noexcept {
    if (--references_ == 0) unreferenced();
  }
  bool is_referenced() const noexcept { return references_ > 0; }

  /// The query has failed: drops all rows of this shuffle, either way. Repeatable.
  virtual void drop_rows() = 0;

 protected:
  virtual void unreferenced() noexcept = 0;

  const WorkerGate gate_;

 private:
  /// Counts a call that could not be done, unless it is part of a wait: that counts itself.
  Outcome polled(Outcome outcome) noexcept {
    const bool is_blocked = outcome == Outcome::holding ||
                            (outcome == Outcome::would_wait && !gate_.wait_loop.call_waits());
    if (is_blocked) operation().blocked_on().count();
    return outcome;
  }
  Status lack_memory() noexcept;

  const std::shared_ptr<Query> query_;
  const ShuffleSpec spec_;
  const StageLists lists_;
  const std::shared_ptr<ShuffleCounts> counts_;
  Status status_;
  uint32_t references_ = 0;
};

}  // namespace faro::shuffle
