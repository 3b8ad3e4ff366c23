// ShuffleContext: what the sending and the receiving side of an open shuffle share. ShuffleSide: what each has.
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
#include "shuffle/operation/worker_context.h"
#include "shuffle/query/logical_receivers.h"
#include "shuffle/query/query.h"
#include "shuffle/query/row_format.h"
#include "shuffle/query/shuffle_counts.h"
#include "shuffle/query/stage_lists.h"

namespace faro::shuffle {

class ShuffleSide;

/// Threads: those of the worker.
class ShuffleContext {
 public:
  ShuffleContext(Ownership& ownership, std::shared_ptr<Query> query, ShuffleSpec spec,
                 StageLists lists, LogicalReceivers receivers,
                 std::shared_ptr<ShuffleCounts> counts)
      : ownership_(ownership),
        worker_(ownership.worker()),
        operation_(ownership.operation()),
        query_(std::move(query)),
        spec_(std::move(spec)),
        lists_(std::move(lists)),
        receivers_(std::move(receivers)),
        counts_(std::move(counts)) {}
  virtual ~ShuffleContext() = default;
  ShuffleContext(const ShuffleContext&) = delete;
  ShuffleContext& operator=(const ShuffleContext&) = delete;

  const WorkerContext& worker() const noexcept { return worker_; }
  const std::shared_ptr<Query>& query() const noexcept { return query_; }
  const ShuffleSpec& spec() const noexcept {
    return spec_;
  }  // senders and receivers are filled in: never empty
  const StageLists& lists() const noexcept { return lists_; }
  const LogicalReceivers& receivers() const noexcept { return receivers_; }
  ShuffleCounts& counts() const noexcept { return *counts_; }
  Operation& operation() noexcept { return operation_; }
  /// Why the last call that answered failed did, of either side; ok if none did.
  const Status& status() const noexcept;

  Status enter_worker() { return ownership_.enter(); }
  /// Where `part` finds no memory, this query fails.
  template <typename Part>
  Status guarded(Part&& part) {
    try {
      return part();
    } catch (const std::bad_alloc&) {
      return lack_memory();
    }
  }

  /// Notes in `known` what the engine says its rows are. Errors: invalid_argument if it has said something else before.
  Status name_format(RowFormat& known, std::string_view format, std::string_view what) const;

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

  Ownership& ownership_;

 private:
  friend class ShuffleSide;

  Status lack_memory() noexcept;

  const WorkerContext& worker_;
  Operation& operation_;
  const std::shared_ptr<Query> query_;
  const ShuffleSpec spec_;
  const StageLists lists_;
  const LogicalReceivers receivers_;
  const std::shared_ptr<ShuffleCounts> counts_;
  const ShuffleSide* failed_last_ = nullptr;
  uint32_t references_ = 0;
};

/// The sending or the receiving side of an open shuffle: how its calls begin and fail.
///
/// Threads: those of the worker.
class ShuffleSide {
 public:
  explicit ShuffleSide(ShuffleContext& shuffle) : shuffle_(shuffle) {}
  ShuffleSide(const ShuffleSide&) = delete;
  ShuffleSide& operator=(const ShuffleSide&) = delete;

  /// The first step of every attempt: takes or checks the ownership of the worker, handles alerts, and checks that session
  /// and query are alive.
  Outcome enter();
  /// Where `part` finds no memory, the query fails, and status() says so.
  template <typename Part>
  Status guarded(Part&& part) {
    try {
      return part();
    } catch (const std::bad_alloc&) {
      (void)fail(shuffle_.lack_memory());
      return status_;
    }
  }

  /// Notes why, and answers failed.
  Outcome fail(Status status) noexcept;
  /// Notes a failure of this stage, and answers failed; `text` is a format of fmt::format.
  template <typename... Args>
  [[gnu::cold, gnu::noinline]] Outcome fail(Code code, fmt::format_string<Args...> text,
                                            Args&&... args) {
    const Status status = base::error(code, text, std::forward<Args>(args)...);
    return fail(status.of_query(shuffle_.query()->id).of_stage(shuffle_.spec().stage));
  }
  /// Why the last call of this side that answered failed did; ok if none did. Nothing else changes it.
  const Status& status() const noexcept { return status_; }

 private:
  ShuffleContext& shuffle_;
  Status status_;
};

inline const Status& ShuffleContext::status() const noexcept {
  static const Status kOk;
  return failed_last_ == nullptr ? kOk : failed_last_->status();
}

}  // namespace faro::shuffle
