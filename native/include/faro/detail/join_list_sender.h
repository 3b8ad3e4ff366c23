// ListSender: which keys of a worker are hot among the probe rows that come, and their build rows
// for everybody. Not part of the API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "faro/detail/hot_keys.h"
#include "faro/detail/join_lists.h"
#include "faro/detail/operator_hash.h"
#include "faro/detail/operator_input.h"
#include "faro/detail/operator_part.h"
#include "faro/outcome.h"
#include "faro/sender.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// Whether the build rows of a key could be looked at.
enum class JoinLookup : uint8_t {
  done,
  not_now,  // they are being joined, or have not all come
  spilled,
};

/// A sketch takes votes of a sample of the probe rows that come, over the last 64 Ki; less at the
/// beginning, so that a key that has most rows is found soon. The build rows of a key that it finds
/// hot are sent to all workers, one list after the other, as there is room.
///
/// Threads: those of the worker. Owns: the list that is being sent, in memory of the operator.
template <typename What>
class ListSender {
 public:
  using Build = typename What::Build;
  using Probe = typename What::Probe;
  using Key = typename What::Key;
  using Lists = HeldLists<What>;
  using Row = typename Lists::Row;

  /// `lists`: where the keys of this worker are noted.
  ListSender(OperatorPart& part, const What& what, Lists& lists, const RowSender<Row>& sender)
      : part_(part), what_(what), lists_(lists), sender_(sender) {}
  ~ListSender() { let_go(); }
  ListSender(const ListSender&) = delete;
  ListSender& operator=(const ListSender&) = delete;

  /// What it takes beside rows, together with the lists of its worker.
  static constexpr uint64_t bytes() noexcept {
    return sizeof(ListSender) + sizeof(Lists) + Lists::bytes_of_keys();
  }
  /// Keys whose build rows were sent.
  uint64_t keys() const noexcept { return keys_; }

  /// Looks at probe rows that have come. The bytes may be a peer's.
  void look(std::span<const Probe> rows) noexcept {
    size_t at = until_vote_;
    for (; at < rows.size(); at += kRowsOfAVote) {
      Probe row;
      std::memcpy(static_cast<void*>(&row), static_cast<const void*>(&rows[at]), sizeof row);
      const Key key = what_.probe_key(row);
      const uint64_t mixed = mix(hash_of_key(what_, key), part_.number());
      sketch_.vote(mixed);
      if (sketch_.is_hot(mixed)) [[unlikely]]
        propose(key, mixed);
    }
    until_vote_ = at - rows.size();
    rows_ += rows.size();
    if (rows_ < window_) return;
    sketch_.decide(kRowsOfHot);
    rows_ = 0;
    window_ = std::min(2 * window_, kMostRowsOfWindow);
  }

  /// Sends what there is. `lookup(key, mixed, each)` calls each(row) for all build rows of a key.
  /// done: there is nothing left. would_wait, holding: there is no room. failed: see the sender.
  template <typename Lookup>
  Outcome send(Lookup lookup) {
    for (;;) {
      if (rows_of_list_ != nullptr) {
        const Outcome outcome = send_list();
        if (outcome != Outcome::done) return outcome;
      }
      if (proposed_ == 0 || !make_list(lookup)) return Outcome::done;
    }
  }
  /// Nothing more is sent.
  void end() noexcept {
    let_go();
    proposed_ = 0;
    keys_left_ = 0;
  }

 private:
  // A prime: a key that comes by turns with others is seen, whatever their number.
  static constexpr size_t kRowsOfAVote = 17;
  static constexpr size_t kRowsOfFirstWindow = 4096;
  static constexpr size_t kMostRowsOfWindow = 65'536;
  // What burdens a worker: one row of 256 of those that it gets.
  static constexpr uint64_t kRowsOfHot = 256;
  static constexpr size_t kMostProposed = 16;
  static constexpr uint64_t kMostKeys = 256;  // of a worker

  struct Proposal {
    Key key;
    uint64_t mixed;
  };

  void propose(const Key& key, uint64_t mixed) noexcept {
    if (proposed_ == kMostProposed || keys_left_ == 0 || lists_.knows(key, mixed)) return;
    for (size_t i = 0; i < proposed_; ++i) {
      if (proposal(i).key == key) return;
    }
    new (&proposal(proposed_++)) Proposal{key, mixed};
  }
  Proposal& proposal(size_t index) noexcept {
    return *std::launder(reinterpret_cast<Proposal*>(proposals_ + index * sizeof(Proposal)));
  }

  /// Makes the list of the key that was proposed last. False: not now.
  template <typename Lookup>
  bool make_list(Lookup lookup) {
    const Proposal last = proposal(proposed_ - 1);
    const bool is_null = is_null_key(last.key);
    uint64_t count = 0;
    JoinLookup found = JoinLookup::done;
    if (!is_null) found = lookup(last.key, last.mixed, [&](const Build&) { ++count; });
    if (found == JoinLookup::not_now) return false;
    if (found == JoinLookup::spilled || count > Lists::kMostRows) {
      --proposed_;  // it stays where it is
      (void)lists_.add_own(last.key, last.mixed);
      return true;
    }
    const uint64_t rows = std::max<uint64_t>(count, 1), bytes = rows * sizeof(Row);
    if (!part_.try_take(bytes)) return false;
    auto* const made = static_cast<Row*>(::operator new(bytes, std::nothrow));
    if (made == nullptr || !lists_.add_own(last.key, last.mixed)) {
      ::operator delete(made);
      part_.give(bytes);
      proposed_ = 0;
      return false;
    }
    --proposed_;
    --keys_left_;
    std::memset(static_cast<void*>(made), 0, bytes);
    for (uint64_t i = 0; i < rows; ++i) {
      std::memcpy(static_cast<void*>(&made[i].key), &last.key, sizeof(Key));
      made[i].count = static_cast<uint32_t>(count);
    }
    rows_of_list_ = made;
    count_ = rows;
    sent_ = 0;
    if (count == 0) return true;
    uint64_t at = 0;
    (void)lookup(last.key, last.mixed, [&](const Build& row) {
      std::memcpy(static_cast<void*>(&made[at++].row), &row, sizeof(Build));
    });
    return true;
  }
  bool is_null_key(const Key& key) const noexcept {
    if constexpr (requires { what_.is_null(key); }) return what_.is_null(key);
    return false;
  }
  Outcome send_list() {
    const Sent sent = sender_.send_to_everybody({rows_of_list_ + sent_, count_ - sent_});
    sent_ += sent.rows;
    if (sent.outcome == Outcome::stopped) {  // nobody has probe rows any more
      end();
      return Outcome::done;
    }
    if (sent.outcome != Outcome::done) return sent.outcome;
    ++keys_;
    let_go();
    return sender_.flush();
  }
  void let_go() noexcept {
    if (rows_of_list_ == nullptr) return;
    ::operator delete(std::exchange(rows_of_list_, nullptr));
    part_.give(count_ * sizeof(Row));
  }

  OperatorPart& part_;
  const What& what_;
  Lists& lists_;
  OperatorSender<Row> sender_;
  HotKeys sketch_;
  size_t until_vote_ = 0;  // rows that come before it
  size_t rows_ = 0;        // of the window that is open
  size_t window_ = kRowsOfFirstWindow;
  alignas(Proposal) std::byte proposals_[kMostProposed * sizeof(Proposal)];
  size_t proposed_ = 0;
  uint64_t keys_left_ = kMostKeys;
  uint64_t keys_ = 0;
  Row* rows_of_list_ = nullptr;  // of the list that is being sent
  size_t count_ = 0;
  size_t sent_ = 0;
};

}  // namespace faro::detail

#pragma GCC visibility pop
