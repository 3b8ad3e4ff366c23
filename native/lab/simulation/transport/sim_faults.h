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
    cuts_[{from, to, wire}].push_back(deliveries);
  }
  /// That many cuts, anywhere in what the two say to each other from now on; the second and later ones also while the first is
  /// mended. `chance`: one_in, below.
  template <typename Chance>
  void cut_somewhere(uint32_t a, uint32_t b, uint32_t count, Chance& chance) {
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_back = chance.one_in(2);
      const auto wire = chance.one_in(2) ? Wire::control : Wire::data;
      const auto deliveries = static_cast<uint32_t>(chance.below(wire == Wire::control ? 12 : 40));
      cut(is_back ? b : a, is_back ? a : b, wire, deliveries);
    }
  }
  /// No two nodes of which this is one are cut off any more.
  void spare(uint32_t node) {
    std::erase_if(cuts_, [node](const auto& each) {
      return std::get<0>(each.first) == node || std::get<1>(each.first) == node;
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
    cuts_.clear();
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
  /// Whether this delivery cuts its connection; counts it.
  bool take_cut(uint32_t from, uint32_t to, Wire wire) {
    const auto found = cuts_.find({from, to, wire});
    if (found == cuts_.end() || found->second.empty()) return false;
    if (found->second.front() != 0) {
      --found->second.front();
      return false;
    }
    found->second.pop_front();
    ++cut_count_;
    return true;
  }
  /// Connections that were cut.
  uint64_t cut_count() const { return cut_count_; }
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
  std::map<std::tuple<uint32_t, uint32_t, Wire>, std::deque<uint32_t>> cuts_;
  uint64_t cut_count_ = 0;
  std::set<uint32_t> unregistered_;
  std::map<uint32_t, uint32_t> lives_;
};

}  // namespace faro::sim
