// NodeList: which numbers stand for nodes. It begins with cluster.nodes; where cluster.node_limit allows that, nodes are
// added and removed while the session is open.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/settings.h"
#include "faro/status.h"

namespace faro::session {

/// Threads: any. Blocks: never for long.
class NodeList {
 public:
  enum class Standing {
    none,     // no node has the number
    member,   // it may be linked
    drained,  // it has the number until it is removed, and is not linked any more
    removed,  // the network thread still has to forget it
  };

  /// `settings` outlive it.
  explicit NodeList(const base::Settings& settings);

  Standing standing(uint32_t node) const;
  /// Whether a node has the number.
  bool has(uint32_t node) const {
    const Standing now = standing(node);
    return now == Standing::member || now == Standing::drained;
  }

  /// Gives a number to a node. Errors: as Nodes::add.
  Status add(uint32_t node, const std::string& address);
  /// Takes the number of a node away. Errors: as Nodes::remove.
  Status remove(uint32_t node);
  /// That is done: the number can be given again.
  void forget(uint32_t node);
  /// No query needs the node any more; it may have been removed meanwhile.
  void drained(uint32_t node);

  /// There is no link with the node, for that reason.
  void note_unlinked(uint32_t node, std::string why);
  /// There is a link with it.
  void note_linked(uint32_t node);
  /// The last reason why there was no link with it; with the node's name.
  std::string why_unlinked(uint32_t node) const;
  /// What why_unlinked says; empty if no reason was noted since there was a link.
  std::string noted_unlinked(uint32_t node) const;

 private:
  Status check(uint32_t node) const;

  const base::Settings& settings_;
  mutable std::mutex mutex_;
  std::vector<Standing> standings_;  // by number
  std::map<uint32_t, std::string> unlinked_;
};

}  // namespace faro::session
