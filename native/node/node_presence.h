// NodePresence: which nodes queries may contain, for those who wait for one to return.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "faro/cancellation.h"
#include "faro/status.h"
#include "faro/wait.h"

namespace faro::node {

/// Threads: any.
class NodePresence {
 public:
  /// `present`: by node.
  void begin(std::vector<bool> present);

  bool is_present(uint32_t node) const;
  /// As Session::await_node.
  Status await(uint32_t node, Wait wait, const Cancellation& cancellation);

  void lost(uint32_t node);
  void returned(uint32_t node);
  /// Ends every wait.
  void close();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> present_;
  bool closed_ = false;
};

}  // namespace faro::node
