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
  /// By number: who is there, and which are nodes at all.
  void begin(std::vector<bool> present, std::vector<bool> known);

  bool is_present(uint32_t node) const;
  /// As Session::await_node.
  Status await(uint32_t node, Wait wait, const Cancellation& cancellation);

  /// Somebody asks for a node, and may need it until then.
  void ask_for(uint32_t node, base::Nanoseconds until);
  bool is_asked_for(uint32_t node, base::Nanoseconds now) const noexcept;

  /// For which nodes somebody waits.
  std::set<uint32_t> awaited() const;

  /// What is told of a node that is there.
  enum class Return {
    first,      // since it was added
    again,      // after it was lost, or was missing
    from_rest,  // after its link was let go: nothing
  };

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
  std::condition_variable changed_;
  std::vector<bool> present_;
  std::vector<bool> known_;  // was there, or in the list, since the number was given
  std::set<uint32_t> resting_;
  std::map<uint32_t, base::Nanoseconds> asked_for_;  // until when
  std::multiset<uint32_t> awaited_;
  bool closed_ = false;
};

}  // namespace faro::node
