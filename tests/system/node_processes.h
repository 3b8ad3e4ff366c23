// What tests need whose nodes are processes: listeners that are bound before these are made, and queries by lines.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "support/test_network.h"

namespace faro::test {

/// What the nodes of a cluster listen on.
struct BoundNodes {
  explicit BoundNodes(uint32_t count) {
    for (uint32_t n = 0; n < count; ++n) {
      Result<ListeningSocket> listener = ListeningSocket::bind(listen_address(n));
      if (!listener.ok()) std::abort();
      addresses += (n == 0 ? "" : ",") + listener->address();
      listeners.push_back(std::move(*listener));
    }
  }

  std::vector<ListeningSocket> listeners;
  std::string addresses;
};

/// A query's id as a line, or as a part of one.
inline std::string line_of(const QueryId& id) {
  return fmt::format("{} {} {}", id.counter, id.incarnation, id.issuer);
}
/// The id that begins there.
inline QueryId query_in(const std::string& line, size_t at = 0) {
  QueryId id;
  std::sscanf(line.c_str() + at, "%lu %lu %u", &id.counter, &id.incarnation, &id.issuer);
  return id;
}

}  // namespace faro::test
