// Told: what a session has told its engine, and whether it may: of each node that comes, goes and
// is let go, in an order that makes sense, and once.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "faro/query.h"

namespace faro::node_state {

/// The rules that a program has to keep to.
///
/// Threads: one.
class Rules {
 public:
  void violated(std::string what) {
    if (violation_.empty()) violation_ = std::move(what);
  }
  /// The first one that was broken; empty: none was.
  const std::string& violation() const noexcept { return violation_; }

 private:
  std::string violation_;
};

/// Threads: one.
class Told {
 public:
  /// `who` has told this; both outlive it. `rests`: links may be let go, and nobody is told.
  Told(Rules& rules, const std::string& who, bool rests)
      : rules_(rules), who_(who), rests_(rests) {}

  /// The session has opened. By number: in its list, and there.
  void begin(const std::vector<bool>& known, const std::vector<bool>& there);

  // --- what the engine has done
  void draining(uint32_t node) { ++nodes_[node].drains; }
  void removing(uint32_t node) { nodes_[node].is_leaving = true; }
  /// It declares or cancels a query, which may be one that the session does not know any more.
  void uses(const QueryId& query) { failed_.erase(query); }

  // --- what it was told; `has`: Session::has_node at that time
  void added(uint32_t node, bool has);
  void returned(uint32_t node, bool has);
  /// Lost, or left.
  void gone(uint32_t node, bool has);
  void drained(uint32_t node, bool has, bool is_own);
  void removed(uint32_t node, bool has);
  void failed(const QueryId& query);

 private:
  struct Node {
    bool is_known = false;
    bool is_there = false;
    bool is_leaving = false;
    uint64_t drains = 0;  // begun, and not told to be done
  };
  void check(bool holds, uint32_t node, const char* what);

  Rules& rules_;
  const std::string& who_;
  const bool rests_;
  std::vector<Node> nodes_;
  std::set<QueryId> failed_;
};

}  // namespace faro::node_state
