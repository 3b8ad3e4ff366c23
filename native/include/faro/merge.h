// MergingReceiver: sorted streams, merged.
#pragma once

#include "faro/detail/cxx20.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "faro/shuffle.h"

#pragma GCC visibility push(default)

namespace faro {

/// Receives the rows of a shuffle in one order, if each sender sends its own in that order.
///
///   auto merged = MergingReceiver<Row, ByKey>::make(shuffle);
///   Row row;
///   Outcome outcome;
///   while ((outcome = merged->next(row)) == Outcome::done) use(row);
///
/// Row: of the shuffle's fixed width; or std::span<const std::byte>, for rows with a length each:
/// such a row is valid until the next call. Before: `bool(const Row&, const Row&)`, whether the
/// first comes first; a strict weak ordering that does not throw. Where rows are equal, those of
/// the sender that ShuffleSpec::senders names first come first.
///
/// It merges by a tree of losers (Knuth, The Art of Computer Programming, vol. 3, 5.4.1): about
/// log2(senders) comparisons a row. Rows are copied out of the rings, a batch of each sender at a
/// time, so that nothing is held while it waits for one.
///
/// Threads: those of the worker. Valid as long as the shuffle is open. Nothing else may receive
/// from the shuffle.
template <typename Row, typename Before = std::less<Row>>
class MergingReceiver {
  using Clock = std::chrono::steady_clock;
  static constexpr bool kOfAnyLength = std::is_same_v<Row, std::span<const std::byte>>;
  static_assert(kOfAnyLength || std::is_trivially_copyable_v<Row>);

 public:
  /// Makes one for the receiving side of `shuffle`. Errors: as Shuffle::receiver; invalid_argument
  /// if the shuffle was opened with another row_bytes than sizeof(Row), or with Delivery::node: any
  /// worker of the node takes the rows of a sender then.
  static Result<MergingReceiver> make(const Shuffle& shuffle, Before before = {}) {
    const Result<ShuffleReceiver> receiver = shuffle.receiver();
    if (!receiver.ok()) return receiver.status();
    if (shuffle.spec().delivery == Delivery::node) {
      return Status(
          Code::invalid_argument,
          "stage " + std::to_string(shuffle.spec().stage) +
              ": rows with delivery = node cannot be merged: any worker of the node takes "
              "those of a sender");
    }
    const uint32_t row_bytes = shuffle.spec().row_bytes;
    if (!kOfAnyLength && row_bytes != sizeof(Row)) {
      return Status(Code::invalid_argument,
                    "stage " + std::to_string(shuffle.spec().stage) + ": rows of " +
                        std::to_string(sizeof(Row)) +
                        " bytes, but row_bytes = " + std::to_string(row_bytes));
    }
    return MergingReceiver(*receiver, shuffle.spec().senders.size(), std::move(before));
  }

  /// The next row of all.
  ///   done           `row` is set
  ///   end_of_stream  there are no more
  /// It answers all else as ShuffleReceiver::receive does, with the cause in Shuffle::status(); it
  /// may be called again then, and nothing is lost. Rows that were copied before the query failed
  /// are still handed out.
  Outcome next(Row& row, Wait wait = Wait::forever()) {
    const bool is_limited = !wait.is_none() && !wait.is_forever();
    const Clock::duration limit = wait.limit();
    const Clock::time_point begin = is_limited ? Clock::now() : Clock::time_point();
    while (!unfilled_.empty()) {
      Source& source = sources_[unfilled_.back()];
      if (!source.load()) {
        if (const Outcome outcome = fill(source, wait); outcome != Outcome::done) return outcome;
        if (is_limited) {
          const auto left = std::max(limit - (Clock::now() - begin), Clock::duration::zero());
          wait = Wait::at_most(left);
        }
        continue;
      }
      play(unfilled_.back());
      unfilled_.pop_back();
    }
    Source& winner = sources_[tree_[0]];
    if (winner.ended) return Outcome::end_of_stream;
    row = winner.row;
    unfilled_.push_back(tree_[0]);
    return Outcome::done;
  }

 private:
  /// One sender's rows: those of its last batch, and the first of them that was not handed out.
  struct Source {
    uint32_t sender = 0;  // index in ShuffleSpec::senders
    std::vector<std::byte> bytes{};
    size_t at = 0;
    uint32_t rows_left = 0;
    uint32_t row_bytes = 0;  // 0: rows have a length each
    Row row{};
    bool ended = false;

    /// The next row; false if a batch has to be received first.
    bool load() {
      if (ended) return true;
      if (rows_left == 0) return false;
      --rows_left;
      size_t length = row_bytes;
      if (row_bytes == 0) {
        uint32_t stored;
        std::memcpy(&stored, bytes.data() + at, sizeof stored);
        at += sizeof stored;
        length = stored;
      }
      if constexpr (kOfAnyLength) {
        row = {bytes.data() + at, length};
      } else {
        std::memcpy(&row, bytes.data() + at, sizeof row);
      }
      at += length;
      return true;
    }
  };

  MergingReceiver(ShuffleReceiver receiver, size_t sender_count, Before before)
      : receiver_(receiver), before_(std::move(before)), tree_(sender_count, kNobody) {
    for (uint32_t sender = 0; sender < sender_count; ++sender) {
      unfilled_.push_back(sender);
      sources_.push_back({sender});
    }
  }

  /// Receives a batch of one sender, and copies it.
  Outcome fill(Source& source, Wait wait) {
    if (batch_.empty()) {  // else there was no memory for its copy
      const Outcome outcome = receiver_.receive_from(source.sender, batch_, wait);
      source.ended = outcome == Outcome::end_of_stream;
      if (outcome != Outcome::done) return source.ended ? Outcome::done : outcome;
    }
    // Rows are copied one after the other by each_row, which checks their lengths; what is copied
    // cannot change any more.
    source.bytes.clear();
    source.at = 0;
    source.row_bytes = kOfAnyLength ? 0 : batch_.row_bytes();
    uint32_t rows = 0;
    if constexpr (kOfAnyLength) {
      for (const std::span<const std::byte> row : batch_.each_row()) {
        const auto length = static_cast<uint32_t>(row.size());
        const auto* const first = reinterpret_cast<const std::byte*>(&length);
        source.bytes.insert(source.bytes.end(), first, first + sizeof length);
        source.bytes.insert(source.bytes.end(), row.begin(), row.end());
        ++rows;
      }
    } else {
      const std::span<const std::byte> bytes = batch_.bytes();
      source.bytes.assign(bytes.begin(), bytes.end());
      rows = batch_.row_count();
    }
    source.rows_left = rows;
    batch_.release();
    return Outcome::done;
  }

  bool beats(uint32_t one, uint32_t other) const noexcept {
    const Source& a = sources_[one];
    const Source& b = sources_[other];
    if (a.ended || b.ended) return b.ended && (!a.ended || one < other);
    return one < other ? !before_(b.row, a.row) : before_(a.row, b.row);
  }

  /// A source has a new row: plays it up to the root. At first a node has no loser; then the source
  /// that comes stays there, and waits for the winner of the other side.
  void play(uint32_t source) noexcept {
    for (size_t node = (source + tree_.size()) / 2; node > 0; node /= 2) {
      if (tree_[node] == kNobody) {
        tree_[node] = source;
        return;
      }
      if (beats(tree_[node], source)) std::swap(tree_[node], source);
    }
    tree_[0] = source;
  }

  static constexpr uint32_t kNobody = UINT32_MAX;

  ShuffleReceiver receiver_;
  Batch batch_;  // of the source that is being filled; its release lets the ring move on
  Before before_;
  std::vector<Source> sources_;     // in the order of ShuffleSpec::senders
  std::vector<uint32_t> tree_;      // [0]: the winner; the others: the source that lost there
  std::vector<uint32_t> unfilled_;  // sources that wait for a row
};

}  // namespace faro

#pragma GCC visibility pop
