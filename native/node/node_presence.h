// NodePresence: which nodes queries may contain, for those who wait for one to return.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/clock.h"
#include "faro/cancellation.h"
#include "faro/status.h"
#include "faro/wait.h"

namespace faro::node {

/// Threads: any.
class NodePresence {
 public:
  /// By number: which nodes are there, and which are nodes at all. `keep`: for how long after
  /// somebody has asked for a node its link stays. `clock` outlives it.
  void begin(std::vector<bool> present, std::vector<bool> known, const base::Clock& clock,
             base::Nanoseconds keep);

  bool is_present(uint32_t node) const;
  /// Somebody asks for a node, and may need it soon.
  void ask_for(uint32_t node);
  bool is_asked_for(uint32_t node) const noexcept;
  /// Does what Session::await_node says. When the node has come it has just been asked for.
  Status await(uint32_t node, Wait wait, const Cancellation& cancellation);

  /// For which nodes somebody waits.
  std::set<uint32_t> awaited() const;

  /// What is told of a node that is there.
  enum class Return {
    first,      // since it was added
    again,      // after it was lost, or was missing
    from_rest,  // after its link was let go: nothing
  };

  /// Also of one whose link was let go.
  void lost(uint32_t node);
  /// Its link was let go.
  void rests(uint32_t node);
  /// The process that is linked now is not the one whose link was let go.
  void is_another(uint32_t node);
  Return returned(uint32_t node);
  void removed(uint32_t node);
  /// Ends every wait.
  void close();
  bool is_closed() const;

 private:
  mutable std::mutex mutex_;
  // Constant, like keep_, after begin(). Not read under the lock: a simulated clock may switch threads.
  const base::Clock* clock_ = nullptr;
  base::Nanoseconds keep_ = 0;
  std::condition_variable changed_;
  std::vector<bool> present_;
  std::vector<bool> known_;    // was there, or in the list, since the number was given
  std::vector<bool> resting_;  // by number: to note one takes no memory
  std::map<uint32_t, base::Nanoseconds> asked_for_;  // until when
  std::multiset<uint32_t> awaited_;
  bool closed_ = false;
};

}  // namespace faro::node
