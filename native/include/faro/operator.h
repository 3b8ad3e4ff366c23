// ShuffleOperator: the polling process of the paper (§2.1) as a ready operator.
#pragma once

#include "faro/detail/cxx20.h"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faro/session.h"

#pragma GCC visibility push(default)

namespace faro {

/// Stands between a child operator and its parent in a plan that every worker runs: rows of the
/// child go to the worker that their key belongs to, and rows for this worker come out, wherever
/// they were produced.
///
///   child.next() --> hash --> send - - other workers     other workers - -> poll --> next()
///                      |
///                      +------------> a row for this worker -----------------------> next()
///
/// `next` works as in the paper: it first looks at what has arrived, then takes rows of the child,
/// returning the first that belongs here and sending the others; it waits only when the child has
/// no rows left, or when there is no room to send and nothing has arrived. When there is no room,
/// rows that have arrived are handed out first: so a slow parent slows its senders down, and
/// nothing piles up.
///
/// Row is of one fixed width. Child has `bool next(Row&)`, which answers false at its end. Key is
/// `uint64_t(const Row&)`. Threads: those of the worker that opened the shuffle. Owns: the shuffle;
/// refers to the child. The shuffle must have this worker among its senders and receivers.
template <typename Row, typename Child, typename Key, typename Hash = FinalizerHash>
requires requires(Child& child, Row& row, Key key) {
  { child.next(row) } -> std::convertible_to<bool>;
  { key(row) } -> std::convertible_to<uint64_t>;
}
class ShuffleOperator {
 public:
  /// Takes the shuffle. Errors: as Shuffle::sender and Shuffle::receiver.
  static Result<ShuffleOperator> make(Worker& worker, Shuffle shuffle, Child& child, Key key,
                                      Hash hash = {}) {
    Result<RowSender<Row>> sender = shuffle.sender<Row>();
    if (!sender.ok()) return sender.status();
    Result<ShuffleReceiver> receiver = shuffle.receiver();
    if (!receiver.ok()) return receiver.status();
    return ShuffleOperator(worker, std::move(shuffle), *sender, *receiver, child, std::move(key),
                           hash);
  }

  /// The next row of this worker.
  ///   done           `row` is set
  ///   end_of_stream  there are no more, here or anywhere
  ///   holding        it would have to wait, but the worker holds batches of other shuffles:
  ///                  release or detach them
  ///   failed         see status()
  Outcome next(Row& row) {
    while (next_row_ == rows_.size()) {
      Outcome outcome = step(true);
      if (outcome == Outcome::would_wait) {
        // The condition is a step: whatever it could do ends the wait. Except the child: it may
        // wait itself, and waits do not nest; nobody waits while it could be asked.
        const Outcome waited = worker_->wait_until([&] {
          outcome = step(false);
          return outcome != Outcome::would_wait || (!child_ended_ && !pending_);
        });
        if (waited == Outcome::failed) status_ = worker_->status();
        if (waited != Outcome::done) return waited;
        if (outcome == Outcome::would_wait) continue;
      }
      if (outcome != Outcome::done) return outcome;
      if (own_row_) {
        row = *std::exchange(own_row_, std::nullopt);
        return Outcome::done;
      }
    }
    row = rows_[next_row_++];
    return Outcome::done;
  }

  Shuffle& shuffle() noexcept { return shuffle_; }
  /// Why next() answered `failed`.
  Status status() const { return status_.ok() ? shuffle_.status() : status_; }

 private:
  static uint32_t own_receiver(const ShuffleSpec& spec, uint32_t worker) {
    const auto own = std::find(spec.receivers.begin(), spec.receivers.end(), worker);
    return static_cast<uint32_t>(own - spec.receivers.begin());
  }
  ShuffleOperator(Worker& worker, Shuffle shuffle, RowSender<Row> sender, ShuffleReceiver receiver,
                  Child& child, Key key, Hash hash)
      : worker_(&worker),
        shuffle_(std::move(shuffle)),
        sender_(sender),
        receiver_(receiver),
        self_(own_receiver(shuffle_.spec(), worker.number())),
        child_(&child),
        key_(std::move(key)),
        hash_(hash) {}

  // One round of the polling process. done: `rows_` or `own_row_` is there. would_wait: nothing
  // could be done.
  Outcome step(bool ask_child) {
    for (;;) {
      Outcome outcome = receiver_.receive(batch_, Wait::none());
      if (outcome == Outcome::done) {
        // Copied, so that nothing is held in place while the parent, or an operator above, waits.
        const std::span<const Row> arrived = batch_.template rows<Row>();
        rows_.assign(arrived.begin(), arrived.end());
        next_row_ = 0;
        batch_.release();
        return outcome;
      }
      if (outcome == Outcome::failed || outcome == Outcome::deadline) return outcome;
      if (finished_) return outcome;
      if (!child_ended_) outcome = take_child_rows(ask_child);
      if (child_ended_ && (outcome = sender_.finish(Wait::none())) == Outcome::done) {
        finished_ = true;
        continue;
      }
      if (outcome != Outcome::stopped) return outcome;  // done, would_wait, failed
    }
  }

  // done: `own_row_` is set. would_wait: no room to send. stopped: sent what could be sent for one
  // round; look at what has arrived.
  Outcome take_child_rows(bool ask_child) {
    for (uint32_t taken = 0; taken < kRowsBetweenPolls; ++taken) {
      if (!pending_) {
        if (!ask_child) return Outcome::would_wait;
        Row row{};
        if (!child_->next(row)) {
          child_ended_ = true;
          return Outcome::stopped;
        }
        pending_ = row;
      }
      const uint32_t receiver = partition(hash_(key_(*pending_)), sender_.receiver_count());
      if (receiver == self_) {
        own_row_ = std::exchange(pending_, std::nullopt);
        return Outcome::done;
      }
      const Outcome outcome = sender_.send(receiver, *pending_, Wait::none());
      if (outcome != Outcome::done && outcome != Outcome::stopped) return outcome;
      pending_.reset();
    }
    return Outcome::stopped;
  }

  /// The number of rows that are taken of the child between two looks at what has arrived.
  static constexpr uint32_t kRowsBetweenPolls = 256;

  Worker* worker_;
  Shuffle shuffle_;
  RowSender<Row> sender_;
  ShuffleReceiver receiver_;
  uint32_t self_;
  Child* child_;
  Key key_;
  Hash hash_;
  Batch batch_;
  std::vector<Row> rows_;  // arrived, being handed out
  size_t next_row_ = 0;
  std::optional<Row> own_row_;  // of the child, for this worker
  std::optional<Row> pending_;  // of the child, not sent yet
  bool child_ended_ = false;
  bool finished_ = false;
  Status status_;  // why it could not wait
};

}  // namespace faro

#pragma GCC visibility pop
