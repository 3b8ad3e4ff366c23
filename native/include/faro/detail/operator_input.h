// How rows are put into an operator: sent, or kept where they are, and what happens without room.
// Not part of the API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "faro/detail/operator_part.h"
#include "faro/detail/scatter.h"
#include "faro/outcome.h"
#include "faro/sender.h"
#include "faro/wait.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// Rows between two looks at whether the query is alive.
inline constexpr size_t kRowsAtOnce = 1024;

/// Adds the rows of one call, some at a time, and takes in what has come for the operator now and
/// then.
///
/// Threads: those of the worker.
class OperatorInput {
 public:
  /// `add_some(added)` adds the next rows, at most kRowsAtOnce, counts them in `added`, and waits
  /// for nothing. A time limit is for each time that there is no room. The operator may have failed
  /// when it answers failed.
  template <typename AddSome>
  Sent add(OperatorPart& part, size_t count, const AddSome& add_some, Wait wait) {
    Sent sent{0, Outcome::done};
    while (sent.rows < count && sent.outcome == Outcome::done) {
      const size_t before = sent.rows;
      sent.outcome = add_some(sent.rows);
      if (sent.outcome == Outcome::would_wait) {
        const auto attempt = [&] {
          const Outcome outcome = add_some(sent.rows);
          return sent.rows > before ? Outcome::done : outcome;
        };
        sent.outcome = part.wait(std::cref(attempt), wait);
      }
      since_intake_ += sent.rows - before;
      if (since_intake_ >= kRowsBetweenIntakes) {
        since_intake_ = 0;
        (void)part.take_in();
      }
      if (!part.is_alive()) sent.outcome = Outcome::failed;
    }
    return sent;
  }

 private:
  // Between two looks at what has come, while there is room.
  static constexpr size_t kRowsBetweenIntakes = 2048;

  size_t since_intake_ = 0;
};

/// Sends a row to every receiver, or to none. would_wait, holding: there is no room.
Outcome broadcast_in_ring_slow(shuffle::StageSender* sender, const void* row,
                               size_t bytes) noexcept;

/// Sends rows to receivers that the operator chooses. Nothing goes to the outgoing overflow: a
/// worker that holds batches is told so where there is no room.
template <typename Row>
class OperatorSender : public RowSender<Row> {
 public:
  OperatorSender() = default;
  explicit OperatorSender(const RowSender<Row>& sender) noexcept : RowSender<Row>(sender) {}

  /// Sends rows[i] to receiver_of(i), until one finds no room.
  template <typename ReceiverOf>
  Sent send_to(std::span<const Row> rows, ReceiverOf receiver_of) const noexcept {
    return send_or_keep(rows, receiver_of, [](size_t) { return false; });
  }
  /// Sends those for which keep(i) is false: the others stay here.
  template <typename ReceiverOf, typename Keep>
  Sent send_or_keep(std::span<const Row> rows, ReceiverOf receiver_of, Keep keep) const {
    FrameCursor* const cursors = this->cursors_;
    const uint32_t receivers = this->receiver_count_;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (keep(i)) continue;
      const uint32_t receiver = receiver_of(i);
      if (receiver < receivers && put_row(cursors[receiver], rows[i])) [[likely]]
        continue;
      const Outcome outcome =
          send_in_ring_slow(this->sender_, receiver, &rows[i], sizeof(Row), Wait::none());
      if (outcome != Outcome::done) return {i, outcome};
    }
    return {rows.size(), Outcome::done};
  }
  /// Sends every row, or the first ones, to every receiver.
  Sent send_to_everybody(std::span<const Row> rows) const noexcept {
    const std::span<FrameCursor> cursors(this->cursors_, this->receiver_count_);
    const auto has_room = [](const FrameCursor& cursor) {
      return static_cast<size_t>(cursor.end - cursor.at) >= sizeof(Row);
    };
    for (size_t i = 0; i < rows.size(); ++i) {
      if (std::all_of(cursors.begin(), cursors.end(), has_room)) [[likely]] {
        for (FrameCursor& cursor : cursors) (void)put_row(cursor, rows[i]);
        continue;
      }
      const Outcome outcome = broadcast_in_ring_slow(this->sender_, &rows[i], sizeof(Row));
      if (outcome != Outcome::done) return {i, outcome};
    }
    return {rows.size(), Outcome::done};
  }
};

}  // namespace faro::detail

#pragma GCC visibility pop
