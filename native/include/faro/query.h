// QueryId: names a query over the life of a cluster.
#pragma once

#include "faro/detail/cxx20.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#pragma GCC visibility push(default)

namespace faro {

/// Given out by Session::begin_query on one node (the issuer) and carried by the engine to the
/// others together with the plan. A plain value of 24 bytes that may be copied as memory. Never
/// recurs.
struct QueryId {
  uint64_t counter = 0;      ///< counted by the issuer, from 1; 0 is no query
  uint64_t incarnation = 0;  ///< of the issuer, drawn when its process joined
  uint32_t issuer = 0;       ///< node number
  uint32_t reserved = 0;

  auto operator<=>(const QueryId&) const = default;
  /// "0:17": issuer and counter.
  std::string to_string() const { return std::to_string(issuer) + ":" + std::to_string(counter); }
};
static_assert(sizeof(QueryId) == 24);

}  // namespace faro

template <>
struct std::hash<faro::QueryId> {
  size_t operator()(const faro::QueryId& id) const noexcept {
    return static_cast<size_t>((id.counter * 0x9e3779b97f4a7c15ULL) ^ id.incarnation ^ id.issuer);
  }
};

#pragma GCC visibility pop
