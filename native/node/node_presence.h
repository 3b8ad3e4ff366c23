// NodePresence: which nodes queries may contain, for those who wait for one to return.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "faro/cancellation.h"
#include "faro/status.h"
#include "faro/wait.h"

namespace faro::node {

/// Threads: any.
class NodePresence {
 public:
  /// By number: who is there, and which are nodes at all.
  void begin(std::vector<bool> present, std::vector<bool> known);

  bool is_present(uint32_t node) const;
  /// As Session::await_node.
  Status await(uint32_t node, Wait wait, const Cancellation& cancellation);

  /// For which nodes somebody waits.
  std::set<uint32_t> awaited() const;

  void lost(uint32_t node);
  /// Returns whether it is there for the first time since it was added.
  bool returned(uint32_t node);
  void removed(uint32_t node);
  /// Ends every wait.
  void close();
  bool is_closed() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> present_;
  std::vector<bool> known_;  // was there, or in the list, since the number was given
  std::multiset<uint32_t> awaited_;
  bool closed_ = false;
};

}  // namespace faro::node
