#include "sim/node_state/told.h"

#include <fmt/format.h>

namespace faro::node_state {

void Told::begin(const std::vector<bool>& known, const std::vector<bool>& there) {
  nodes_.resize(known.size());
  for (size_t n = 0; n < known.size(); ++n) {
    nodes_[n].is_known = known[n];
    nodes_[n].is_there = there[n];
  }
}

void Told::check(bool holds, uint32_t node, const char* what) {
  if (!holds) rules_.violated(fmt::format("process {}, of node {}: {}", who_, node, what));
}

void Told::added(uint32_t node, bool has) {
  check(!nodes_[node].is_known, node, "added, and known already");
  check(has, node, "added, and not there");
  nodes_[node].is_known = nodes_[node].is_there = true;
}

void Told::returned(uint32_t node, bool has) {
  check(nodes_[node].is_known, node, "returned, and never known");
  check(rests_ || !nodes_[node].is_there, node, "returned, and there already");
  check(has, node, "returned, and not there");
  nodes_[node].is_there = true;
}

// It may have been linked, and never there: its opening has failed.
void Told::gone(uint32_t node, bool has) {
  check(!has, node, "lost, and there");
  nodes_[node].is_there = false;
}

// What was begun twice may be done twice.
void Told::drained(uint32_t node, bool has, bool is_own) {
  check(nodes_[node].drains > 0, node, "drained, and nobody has begun that");
  if (nodes_[node].drains > 0) --nodes_[node].drains;
  check(is_own || !has, node, "drained, and there");
  if (!is_own) nodes_[node].is_there = false;
}

void Told::removed(uint32_t node, bool has) {
  check(nodes_[node].is_leaving, node, "removed, and nobody has asked for that");
  check(!nodes_[node].is_there || rests_, node, "removed, and not lost before");
  check(!has, node, "removed, and there");
  nodes_[node] = {};
}

void Told::failed(const QueryId& query) {
  if (!failed_.insert(query).second)
    rules_.violated(fmt::format("process {}: query {} failed twice", who_, query.to_string()));
}

}  // namespace faro::node_state
