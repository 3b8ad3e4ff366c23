// SimFaults: what is wrong between the nodes of a simulated world, told by whoever runs it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/clock.h"

namespace faro::sim {

/// Asked by data links and control connections at each delivery. Nodes are numbers in their
/// cluster. Without a call of the first part nothing is ever wrong.
/// Threads: its world's.
class SimFaults {
 public:
  /// Which connection of a link.
  enum class Wire : uint8_t { control, data };
  /// What a delivery does to its connection.
  enum class Break : uint8_t {
    none,
    cut,   // it ends, and both sides learn of that
    dark,  // nothing comes through any more, in this direction or in both, and nobody is told
  };

  // --- said by whoever runs the world

  /// Nothing that `from` sends from now on reaches `to` before `until`: a cable that was pulled. What
  /// was sent then arrives, as packets that were sent again do.
  void silence(uint32_t from, uint32_t to, base::Nanoseconds until) {
    base::Nanoseconds& silent = silent_until_[{from, to}];
    silent = std::max(silent, until);
  }
  /// The next deliveries, that many, from one node to another are not what the sender wrote, but what a
  /// hostile one could have written. None: nothing is changed, but the sender is not to be trusted.
  void corrupt(uint32_t from, uint32_t to, uint32_t deliveries) {
    hostile_[{from, to}] += deliveries;
  }
  /// The connection that carries the next delivery but `deliveries` from one node to another is cut by it, while both live.
  /// Further cuts of the same kind count from the last one.
  void cut(uint32_t from, uint32_t to, Wire wire, uint32_t deliveries) {
    breaks_[{from, to, wire}].push_back({Break::cut, deliveries});
  }
  /// The data connection that carries the next delivery but `deliveries` from one node to another
  /// goes dark by it.
  void darken(uint32_t from, uint32_t to, uint32_t deliveries) {
    breaks_[{from, to, Wire::data}].push_back({Break::dark, deliveries});
  }
  /// Until then each data connection between the two goes dark with the first rows that it is to carry; what is smaller comes
  /// through.
  void narrow(uint32_t a, uint32_t b, base::Nanoseconds until) {
    narrow_until_[std::minmax(a, b)] = until;
  }
  /// That many cuts, anywhere in what the two say to each other from now on; the second and later ones also while the first is
  /// mended. One data connection of the two may go dark instead, and no more: a link over which nothing gets further is lost after
  /// three breaks that take as long as another one that is dark (transport/mending_tally.h).
  /// `chance`: one_in, below.
  template <typename Chance>
  void cut_somewhere(uint32_t a, uint32_t b, uint32_t count, Chance& chance) {
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_back = chance.one_in(2);
      const auto wire = chance.one_in(2) ? Wire::control : Wire::data;
      const auto deliveries = static_cast<uint32_t>(chance.below(wire == Wire::control ? 12 : 40));
      const bool is_dark =
          wire == Wire::data && chance.one_in(3) && darkened_.insert(std::minmax(a, b)).second;
      breaks_[{is_back ? b : a, is_back ? a : b, wire}].push_back(
          {is_dark ? Break::dark : Break::cut, deliveries});
    }
  }
  /// No connection of the node is broken any more.
  void spare(uint32_t node) {
    std::erase_if(breaks_, [node](const auto& each) {
      return std::get<0>(each.first) == node || std::get<1>(each.first) == node;
    });
    std::erase_if(narrow_until_, [node](const auto& each) {
      return each.first.first == node || each.first.second == node;
    });
  }
  /// No connection between the two is made before `until`, and those that there are end with what they deliver next.
  void separate(uint32_t a, uint32_t b, base::Nanoseconds until) {
    for (const auto& [from, to] : {Direction{a, b}, Direction{b, a}}) {
      separate_until_[{from, to}] = until;
      for (const Wire wire : {Wire::control, Wire::data}) cut(from, to, wire, 0);
    }
  }
  /// The node's memory cannot be registered, until `allow_registration`.
  void refuse_registration(uint32_t node) { unregistered_.insert(node); }
  void allow_registration(uint32_t node) { unregistered_.erase(node); }
  /// The node's process dies: nothing of its data links is delivered any more. One that is started
  /// afterwards in its place is another life.
  void end_life(uint32_t node) { ++lives_[node]; }

  /// From now on lines are silent no more, and nobody is hostile.
  void heal() {
    silent_until_.clear();
    hostile_.clear();
    breaks_.clear();
    narrow_until_.clear();
    separate_until_.clear();
  }

  // --- asked at each delivery

  /// When what is sent now can arrive at the earliest.
  base::Nanoseconds silent_until(uint32_t from, uint32_t to) const {
    const auto found = silent_until_.find({from, to});
    return found == silent_until_.end() ? 0 : found->second;
  }
  /// Whether this delivery is to be a hostile one; counts it.
  bool take_hostile(uint32_t from, uint32_t to) {
    const auto found = hostile_.find({from, to});
    if (found == hostile_.end() || found->second == 0) return false;
    --found->second;
    return true;
  }
  /// What this delivery does to its connection; counts it.
  Break take_break(uint32_t from, uint32_t to, Wire wire) {
    const auto found = breaks_.find({from, to, wire});
    if (found == breaks_.end() || found->second.empty()) return Break::none;
    auto& [what, deliveries] = found->second.front();
    if (deliveries != 0) {
      --deliveries;
      return Break::none;
    }
    const Break now = what;
    found->second.pop_front();
    ++(now == Break::cut ? cut_count_ : dark_count_);
    return now;
  }
  /// Whether rows do not come through at that time.
  bool is_narrow(uint32_t a, uint32_t b, base::Nanoseconds now) const {
    const auto found = narrow_until_.find(std::minmax(a, b));
    return found != narrow_until_.end() && now < found->second;
  }
  /// Connections that were cut, and those that went dark by a count.
  uint64_t cut_count() const { return cut_count_; }
  uint64_t dark_count() const { return dark_count_; }
  bool separates(uint32_t from, uint32_t to, base::Nanoseconds now) const {
    const auto found = separate_until_.find({from, to});
    return found != separate_until_.end() && now < found->second;
  }
  /// Whether anything between the two was ever hostile, in either direction: then the sender may
  /// have been misled too.
  bool distrusted(uint32_t a, uint32_t b) const {
    return hostile_.count({a, b}) != 0 || hostile_.count({b, a}) != 0;
  }
  bool refuses_registration(uint32_t node) const { return unregistered_.count(node) != 0; }
  /// Differs between a node's process and the one that follows it.
  uint32_t life(uint32_t node) const {
    const auto found = lives_.find(node);
    return found == lives_.end() ? 0 : found->second;
  }

 private:
  using Direction = std::pair<uint32_t, uint32_t>;
  std::map<Direction, base::Nanoseconds> silent_until_;
  std::map<Direction, uint32_t> hostile_;
  std::map<Direction, base::Nanoseconds> separate_until_;
  std::map<Direction, base::Nanoseconds> narrow_until_;  // the lesser node first
  std::set<Direction> darkened_;                         // likewise
  std::map<std::tuple<uint32_t, uint32_t, Wire>, std::deque<std::pair<Break, uint32_t>>> breaks_;
  uint64_t cut_count_ = 0;
  uint64_t dark_count_ = 0;
  std::set<uint32_t> unregistered_;
  std::map<uint32_t, uint32_t> lives_;
};

}  // namespace faro::sim
