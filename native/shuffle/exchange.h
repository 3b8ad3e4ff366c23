// Exchange: one call of Worker::exchange.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <span>

#include "faro/exchange.h"
#include "faro/outcome.h"
#include "faro/shuffle.h"
#include "faro/status.h"
#include "shuffle/open_shuffle.h"
#include "shuffle/send/lanes.h"

namespace faro::shuffle {

/// It remembers nothing from one call to the next: how far each part is its shuffle knows.
///
/// Threads: the worker.
class Exchange {
 public:
  Exchange(std::span<ExchangePart> parts, const Lanes& lanes) : parts_(parts), lanes_(lanes) {}
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Checks all parts before anything is done. Errors: closed; invalid_argument; wrong_state if a function is missing, or is
  /// there without need. `worker`: whose shuffles they have to be.
  Status check(uint32_t worker);
  /// Takes what has come, and sends what there is room for; but nothing while the worker holds batches: without bound it would go
  /// to overflow (native/DESIGN.md#hc-5). Whether anything was done, or all is over, or failed.
  bool turn() noexcept;
  /// Every part is over.
  bool is_done() const noexcept { return is_done_; }
  /// A function has kept the batch that it was given.
  bool has_kept() const noexcept { return has_kept_; }
  bool has_failed() const noexcept { return has_failed_; }
  /// The call ends, for one of these reasons.
  bool is_over() const noexcept { return is_done_ || has_kept_ || has_failed_; }
  const Status& why() const noexcept { return why_; }
  /// The query that is to fail by that, if it has not failed already; null: none.
  const std::shared_ptr<Query>& failed_query() const noexcept { return failed_query_; }
  /// Throws the exception that a function has thrown, if one has.
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  static OpenShuffle& core(const ExchangePart& part);
  void mark_all(bool is_taken) noexcept;
  bool take(ExchangePart& part);
  bool produce(ExchangePart& part);
  bool finish(StageSender& sender, OpenShuffle& shuffle);
  bool fail(const Status& why);
  bool fail_query(OpenShuffle& shuffle, const Status& why);
  template <typename Do>
  bool guarded(ExchangePart& part, const Do& something) noexcept;

  std::span<ExchangePart> parts_;
  const Lanes& lanes_;
  bool is_checked_ = false;  // nothing of the parts is touched before
  bool is_done_ = false;
  bool has_kept_ = false;
  bool has_failed_ = false;
  Status why_;
  std::shared_ptr<Query> failed_query_;
  std::exception_ptr exception_;
};

}  // namespace faro::shuffle
