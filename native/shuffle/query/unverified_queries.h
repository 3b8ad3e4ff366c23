// UnverifiedQueries: what peers have said of queries that this node does not use, and so cannot check
// (native/DESIGN.md#hc-17).
//
// It is kept for the time when this node uses them, at the expense of those who spoke: each peer has a quota of
// queries, and of stops and waiting receivers of them. The oldest query of a peer makes room for a new one, and
// what nobody mentions expires.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"

namespace faro::shuffle {

class TrackedQuery;

/// What a query takes of the quotas of peers, kept by UnverifiedQueries.
struct QuotaUse {
  uint32_t peer;                          // who has spoken of the query first
  std::list<TrackedQuery*> place;         // the query alone, until it stands in the peer's order
  std::list<TrackedQuery*>::iterator at;  // then: where
  std::map<uint32_t, uint32_t> more_by_peer;  // stops and waiting receivers
};

/// What one query has while it is unverified. Threads: under the table's lock.
class Unverified {
 public:
  Unverified(TrackedQuery& query, uint32_t peer, base::Nanoseconds now)
      : quota_{peer, {&query}, {}, {}}, mentioned_at_(now) {}

  QuotaUse& quota() { return quota_; }

  void mention(base::Nanoseconds now) { mentioned_at_ = now; }
  bool is_stale(base::Nanoseconds now, base::Nanoseconds timeout) const {
    return now >= mentioned_at_ && now - mentioned_at_ >= timeout;
  }

  /// The coordinator is asked whether the query is still failed.
  void ask(base::Nanoseconds now) {
    is_asked_ = true;
    mention(now);
  }
  void coordinator_answered() { is_asked_ = false; }
  bool is_asked() const { return is_asked_; }

  /// Failures told by nodes of which it is not known whether they take part; the first of each.
  void add_failure(uint32_t node, const Status& cause) { failures_.emplace(node, cause); }
  std::map<uint32_t, Status> take_failures() { return std::exchange(failures_, {}); }
  void forget_failure(uint32_t node) { failures_.erase(node); }

 private:
  QuotaUse quota_;
  base::Nanoseconds mentioned_at_;
  bool is_asked_ = false;
  std::map<uint32_t, Status> failures_;
};

/// The unverified queries of each peer in their order, and how much of its quota it has used.
/// Threads: under the table's lock.
class UnverifiedQueries {
 public:
  /// Most queries, stops and waiting receivers that are kept at a time because one peer spoke of them: about
  /// 30 MB with the longest causes. Honest ones are those which this node is about to use, mostly far fewer.
  static constexpr uint32_t kQuota = 16384;

  explicit UnverifiedQueries(uint32_t node_count) : used_(node_count), order_(node_count) {}

  size_t size() const { return size_; }
  bool has_room(uint32_t peer) const { return used_[peer] < kQuota; }
  /// Which query to forget for something new of `peer`; nullptr: there is none but `keep` and those for which
  /// rows wait at a worker, which lets only a few shuffles of a node wait.
  TrackedQuery* oldest(uint32_t peer, const TrackedQuery* keep) const;

  void add(QuotaUse& query) noexcept;
  void remove(QuotaUse& query) noexcept;
  /// A peer has spoken of one thing more of a query; and: what it said of that is forgotten.
  void charge(QuotaUse& query, uint32_t peer);
  void discharge(QuotaUse& query, uint32_t peer) noexcept;

 private:
  std::vector<uint32_t> used_;                   // by peer
  std::vector<std::list<TrackedQuery*>> order_;  // by peer, the oldest first
  size_t size_ = 0;
};

}  // namespace faro::shuffle
