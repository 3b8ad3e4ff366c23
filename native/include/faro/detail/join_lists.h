// HeldLists: the build rows of hot keys that other workers have sent here. Not part of the API.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "faro/detail/join_loop.h"
#include "faro/detail/operator_hash.h"
#include "faro/detail/operator_part.h"

#pragma GCC visibility push(default)

namespace faro::detail {

/// What a list of a hot key is sent as: each of its build rows with the key and their number. A key
/// without build rows has one that says 0.
template <typename Key, typename Build>
struct JoinListRow {
  Key key;
  uint32_t count;
  Build row;
};

/// What came of an attempt to let the rows of a list join.
enum class Adoption : uint8_t {
  done,
  not_now,
  no_memory,
};

/// The lists of one worker. A list is collected as its rows come; when it is whole, the worker can
/// join its own probe rows of the key where they are. Keys whose lists this worker has sent itself
/// are noted here as well.
///
/// Threads: those of the worker. Owns: the rows of lists that nobody has adopted yet, in memory of
/// the operator; those for which there is none are dropped.
template <typename What>
class HeldLists {
 public:
  using Key = typename What::Key;
  using Build = typename What::Build;
  using Row = JoinListRow<Key, Build>;
  /// Most keys of one worker, its own included; and most rows of a list.
  static constexpr size_t kMostKeys = 1024;
  static constexpr uint32_t kMostRows = 4096;

  HeldLists(OperatorPart& part, const What& what) : part_(part), what_(what) {
    lists_.reserve(kMostKeys);
    whole_.reserve(kMostKeys);
  }
  ~HeldLists() { clear(); }
  HeldLists(const HeldLists&) = delete;
  HeldLists& operator=(const HeldLists&) = delete;

  /// What it takes beside itself and rows.
  static constexpr uint64_t bytes_of_keys() noexcept {
    return kMostKeys * (sizeof(List) + sizeof(uint16_t));
  }
  /// Keys whose probe rows are joined here.
  uint64_t adopted() const noexcept { return adopted_; }
  /// Lists for which there was no memory.
  uint64_t dropped() const noexcept { return dropped_; }

  /// Whether probe rows of a key are joined here; and whether it has build rows.
  struct Held {
    bool joins = false;
    bool has_rows = false;
    uint64_t mixed = 0;
  };
  Held find(const Key& key) const noexcept {
    const uint64_t mixed = mixed_of(key);
    const List* const list = find(key, mixed);
    if (list == nullptr || list->state != State::adopted) return {};
    return {true, list->count > 0, mixed};
  }
  /// Whether there is anything to be known of a key.
  bool knows(const Key& key, uint64_t mixed) const noexcept { return find(key, mixed) != nullptr; }
  /// Notes a key of this worker, whose list it sends, or never will. False: there is no room.
  bool add_own(const Key& key, uint64_t mixed) {
    return add({key, mixed, 0, 0, State::own, nullptr}) != nullptr;
  }

  /// Takes rows that have come. The bytes may be a peer's: each is copied before it is looked at.
  void take(std::span<const Row> rows) {
    for (const Row& each : rows) {
      std::array<std::byte, sizeof(Row)> bytes;
      std::memcpy(bytes.data(), static_cast<const void*>(&each), sizeof(Row));
      Row row = std::bit_cast<Row>(bytes);
      const bool is_odd = part_.number() % 2 != 0;
      if (is_odd && planted(what_, JoinBug::hot_key_at_some_workers)) row.count = 0;
      take_row(row);
    }
  }
  /// Lets whole lists join: adopt(rows) says what came of it. Their rows are let go of.
  template <typename Adopt>
  void adopt_whole(Adopt adopt) {
    for (; next_whole_ < whole_.size(); ++next_whole_) {
      List& list = lists_[whole_[next_whole_]];
      if (list.state != State::whole) continue;
      const Adoption adoption = adopt(std::span<const Build>(list.rows, list.count));
      if (adoption == Adoption::not_now) return;
      give_rows(list);
      if (adoption == Adoption::done) {
        list.state = State::adopted;
        ++adopted_;
      } else {
        drop(list);
      }
    }
  }
  /// Lets go of all rows. From now on this worker joins no row of a key of another.
  void clear() noexcept {
    for (List& list : lists_) {
      give_rows(list);
      if (list.state != State::own) list.state = State::dropped;
    }
  }

 private:
  enum class State : uint8_t {
    coming,
    whole,    // all its rows have come
    adopted,  // they join
    dropped,
    own,  // a key of this worker
  };
  struct List {
    Key key;
    uint64_t mixed;
    uint32_t count;  // of its rows
    uint32_t come;
    State state;
    Build* rows;  // null: there are none, or they are held elsewhere
  };
  // So that most keys that have no list are told from others by one look.
  static constexpr size_t kPlaces = 4 * kMostKeys;

  uint64_t mixed_of(const Key& key) const noexcept {
    return mix(hash_of_key(what_, key), part_.number());
  }
  const List* find(const Key& key, uint64_t mixed) const noexcept {
    for (size_t at = mixed % kPlaces; places_[at] != 0; at = (at + 1) % kPlaces) {
      const List& list = lists_[places_[at] - 1u];
      if (list.mixed == mixed && list.key == key) return &list;
    }
    return nullptr;
  }
  List* add(const List& list) {
    if (lists_.size() == kMostKeys) return nullptr;
    lists_.push_back(list);
    size_t at = list.mixed % kPlaces;
    while (places_[at] != 0) at = (at + 1) % kPlaces;
    places_[at] = static_cast<uint16_t>(lists_.size());
    return &lists_.back();
  }

  void take_row(const Row& row) {
    const uint64_t mixed = mixed_of(row.key);
    auto* list = const_cast<List*>(find(row.key, mixed));
    if (list == nullptr) {
      list = add({row.key, mixed, row.count, 0, State::coming, nullptr});
      if (list == nullptr) return;
      if (!take_memory(*list)) drop(*list);
    }
    if (list->state != State::coming) return;
    if (list->count > 0) new (list->rows + list->come++) Build(row.row);
    if (list->come < list->count) return;
    list->state = State::whole;
    whole_.push_back(static_cast<uint16_t>(list - lists_.data()));
  }
  bool take_memory(List& list) noexcept {
    const uint64_t bytes = list.count * sizeof(Build);
    if (list.count == 0) return true;
    if (list.count > kMostRows || !part_.try_take(bytes)) return false;
    list.rows = static_cast<Build*>(::operator new(bytes, std::nothrow));
    if (list.rows == nullptr) part_.give(bytes);
    return list.rows != nullptr;
  }
  void give_rows(List& list) noexcept {
    if (list.rows == nullptr) return;
    ::operator delete(std::exchange(list.rows, nullptr));
    part_.give(list.count * sizeof(Build));
  }
  void drop(List& list) noexcept {
    list.state = State::dropped;
    ++dropped_;
  }

  OperatorPart& part_;
  const What& what_;
  std::vector<List> lists_;
  std::array<uint16_t, kPlaces> places_{};  // the number of a list + 1, by its hash
  std::vector<uint16_t> whole_;             // numbers of lists, as they became whole
  size_t next_whole_ = 0;
  uint64_t adopted_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace faro::detail

#pragma GCC visibility pop
