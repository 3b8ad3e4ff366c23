// CheckedShuffle: a shuffle whose rows are numbered, so that a receiver sees that each came once, whole
// and in order, and that all came.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "faro/session.h"

namespace faro::test {

/// Threads: its worker's. Every operation answers `failed` also for rows that are wrong; status() says.
class CheckedShuffle {
 public:
  static constexpr uint32_t kRowBytes = 64;

  /// `workers` send and receive.
  Status open(Worker& worker, const QueryId& query, const std::vector<uint32_t>& workers) {
    FARO_ASSIGN_OR_RETURN(shuffle_, worker.open_shuffle({query, 0, kRowBytes, workers, workers}));
    FARO_ASSIGN_OR_RETURN(sender_, shuffle_.sender<Row>());
    FARO_ASSIGN_OR_RETURN(receiver_, shuffle_.receiver());
    workers_ = workers;
    me_ = worker.number();
    sent_.assign(workers.size(), 0);
    sources_.assign(workers.size(), {});
    return Status::Ok();
  }

  Outcome send(uint32_t receiver, Wait wait = Wait::forever()) {
    return send_row(receiver, 0, wait);
  }
  Outcome flush() { return sender_.flush(); }
  /// The last row to each, which says so, and FINISH.
  Outcome finish() {
    Outcome outcome = Outcome::done;
    for (uint32_t to = 0; to < workers_.size() && outcome == Outcome::done; ++to)
      outcome = send_row(to, 1, Wait::forever());
    return outcome == Outcome::done ? sender_.finish() : outcome;
  }
  /// A batch, checked; `end_of_stream` only after the last row of each.
  Outcome take(Batch& batch, Wait wait = Wait::forever()) {
    const Outcome outcome = receiver_.receive(batch, wait);
    if (outcome == Outcome::done) {
      for (const std::span<const std::byte> row : batch.each_row()) check(batch.sender(), row);
    } else if (outcome == Outcome::end_of_stream) {
      for (const Source& source : sources_) {
        if (!source.ended) wrong("the end came before the last row");
      }
    }
    return wrong_.ok() ? outcome : Outcome::failed;
  }
  Outcome take_to_end() {
    Batch batch;
    Outcome outcome;
    while ((outcome = take(batch)) == Outcome::done) continue;
    return outcome;
  }
  void close() { shuffle_.close(); }
  Status status() const { return wrong_.ok() ? shuffle_.status() : wrong_; }

 private:
  struct Row {
    uint32_t sender, last;
    uint64_t number;
    uint64_t rest[6];
    bool operator==(const Row&) const = default;
  };
  static_assert(sizeof(Row) == kRowBytes);
  struct Source {
    uint64_t next = 0;
    bool ended = false;
  };

  static Row row_of(uint32_t sender, uint32_t receiver, uint32_t last, uint64_t number) {
    Row row{sender, last, number, {}};
    for (uint64_t& word : row.rest) {
      word = (uint64_t{sender} << 32 | receiver) ^ (number += 0x9E3779B97F4A7C15u);
    }
    return row;
  }
  Outcome send_row(uint32_t receiver, uint32_t last, Wait wait) {
    const Row row = row_of(me_, workers_[receiver], last, sent_[receiver]);
    const Outcome outcome = sender_.send(receiver, row, wait);
    if (outcome == Outcome::done) ++sent_[receiver];
    return outcome;
  }
  /// `index`: of the sender, in workers_.
  void check(uint32_t index, std::span<const std::byte> bytes) {
    if (index >= workers_.size()) return wrong("a row of somebody else");
    const uint32_t sender = workers_[index];
    Source& source = sources_[index];
    Row row;
    if (bytes.size() != sizeof row) return wrong("a row of another size");
    std::memcpy(&row, bytes.data(), sizeof row);
    if (source.ended || row != row_of(sender, me_, row.last, source.next)) {
      return wrong(fmt::format("row {} of worker {} came where row {} was due", row.number, sender,
                               source.next));
    }
    ++source.next;
    source.ended = row.last != 0;
  }
  void wrong(std::string what) {
    if (wrong_.ok()) wrong_ = Status(Code::internal_error, std::move(what));
  }

  Shuffle shuffle_;
  RowSender<Row> sender_;
  ShuffleReceiver receiver_;
  std::vector<uint32_t> workers_;
  uint32_t me_ = 0;
  std::vector<uint64_t> sent_;
  std::vector<Source> sources_;
  Status wrong_;
};

}  // namespace faro::test
