// EndedQueries: which queries have ended, by issuer: all up to a low-water mark, and some above it; and why the last ones
// that failed have, for whoever asks late. So late messages cannot revive a query (native/DESIGN.md#hc-8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>

#include "faro/query.h"
#include "faro/status.h"

namespace faro::shuffle {

/// Marks are of one incarnation of each issuer, the last one of which a query was added. Threads: under the table's lock.
class EndedQueries {
 public:
  /// Failures that are kept: some hundred bytes each, at most 2 KiB.
  static constexpr size_t kFailureLimit = 256;

  bool contains(const QueryId& id) const;
  void add(const QueryId& id);
  /// Adds a query that has ended on the word of the issuer alone: what is remembered above its mark
  /// has a limit.
  void add_unverified(const QueryId& id);
  /// The query and all that its issuer has begun before have ended.
  void raise(const QueryId& id);
  uint64_t low_water(uint32_t issuer) const;

  /// A query is over, which workers of this node have used or not. Nothing is remembered if it went well, or if there is no
  /// memory for it.
  void remember_failure(const QueryId& id, const Status& outcome, bool was_used) noexcept;
  /// Why it failed; nullptr: it did not, or too many have since.
  const Status* failure(const QueryId& id) const;
  /// Why it failed, for a worker of this node that comes late; nullptr also if its workers have
  /// used it, and so have ended it.
  const Status* failure_before_use(const QueryId& id) const;

 private:
  static constexpr size_t kUnverifiedLimit = 65536;

  struct Ended {
    uint64_t incarnation = 0;
    uint64_t low_water = 0;
    std::set<uint64_t> above;
  };
  struct Failure {
    QueryId id;
    Status cause;
    bool was_used;
  };
  /// Those of the incarnation that has begun it: another one begins with none.
  Ended& of_life(const QueryId& id);
  static void join(Ended& ended);
  const Failure* find(const QueryId& id) const;

  std::map<uint32_t, Ended> of_issuer_;
  std::deque<Failure> failures_;  // the last one at the end
};

}  // namespace faro::shuffle
