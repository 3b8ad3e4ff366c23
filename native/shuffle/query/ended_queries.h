// EndedQueries: which queries have ended, by issuer: all up to a low-water mark, and some above it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "faro/query.h"

namespace faro::shuffle {

/// Of the present incarnation of each issuer. Threads: under the table's lock.
class EndedQueries {
 public:
  bool contains(const QueryId& id) const;
  void add(const QueryId& id);
  /// The same on the word of the issuer alone: what is remembered above its mark has a limit.
  void add_unverified(const QueryId& id);
  /// All queries of an issuer up to `counter` have ended.
  void raise(uint32_t issuer, uint64_t counter);
  uint64_t low_water(uint32_t issuer) const;
  /// A new incarnation begins with none.
  void forget(uint32_t issuer) { of_issuer_.erase(issuer); }

 private:
  static constexpr size_t kUnverifiedLimit = 65536;

  struct Ended {
    uint64_t low_water = 0;
    std::set<uint64_t> above;
  };
  static void join(Ended& ended);

  std::map<uint32_t, Ended> of_issuer_;
};

}  // namespace faro::shuffle
