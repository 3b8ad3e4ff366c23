// NodeGroup: the nodes of a soak as its controller talks to them, by their numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "lab/soak/node_process.h"
#include "lab/soak/plan.h"

namespace faro::soak {

/// What a node answered about a query.
struct Ending {
  base::Nanoseconds at = 0;
  uint64_t rows = 0;
  std::string code;
  std::string text;
};

/// What a soak calls a violation.
Status broken(std::string what);

/// Threads: one without siblings. Owns: the processes.
class NodeGroup {
 public:
  NodeGroup(const Options& options, const std::string& folder)
      : options_(options), folder_(folder), nodes_(kNodeLimit) {}

  /// Forks a node, if there is none with this number. Errors: system_error.
  Status start(uint32_t node);
  bool has(uint32_t node) const { return nodes_[node].process.has_value(); }
  NodeProcess& operator[](uint32_t node) { return *nodes_[node].process; }
  /// Kills what there is.
  void forget(uint32_t node);
  /// Its number is free for another process; what it has not answered about queries is forgotten.
  NodeProcess let_go(uint32_t node);
  std::vector<uint32_t> all() const;

  void say(uint32_t node, const std::string& line) { nodes_[node].process->say(line); }
  /// What `line` is answered with, without the word that a good answer begins with. Endings that come before it are kept.
  /// Errors: a violation.
  Result<std::string> hear(uint32_t node, const std::string& line, const std::string& good);
  Result<std::string> ask(uint32_t node, const std::string& line, const std::string& good);
  /// What `line` is answered with by several, at once.
  Result<std::vector<std::string>> ask(std::span<const uint32_t> nodes, const std::string& line,
                                       const std::string& good);
  /// These close their sessions. Returns the bytes that the heap of `witness`, one of them, has in use then.
  Result<uint64_t> close(std::span<const uint32_t> nodes, uint32_t witness);

  /// Has a node run its part of a query; hear_ending has to follow, once.
  void run(uint32_t node, const std::string& line);
  Result<Ending> hear_ending(uint32_t node);
  /// Endings that a node still has to tell.
  uint32_t owed(uint32_t node) const { return nodes_[node].owed; }

 private:
  struct Node {
    std::optional<NodeProcess> process;
    uint32_t owed = 0;
    std::deque<std::string> endings;  // that came before what was asked for
  };

  Result<std::string> hear_line(uint32_t node);

  const Options& options_;
  const std::string& folder_;
  std::vector<Node> nodes_;
};

}  // namespace faro::soak
