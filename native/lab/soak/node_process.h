// NodeProcess: a node of a soak as its controller sees it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "faro/status.h"
#include "lab/soak/line_socket.h"
#include "lab/soak/plan.h"
#include "lab/soak/usage.h"

namespace faro::soak {

/// Threads: one without siblings. Owns: the process; it is killed and waited for by the destructor.
class NodeProcess {
 public:
  /// Forks a node. Errors: system_error.
  static Result<NodeProcess> start(uint32_t node, const Options& options,
                                   const std::string& folder);
  NodeProcess(NodeProcess&& other) noexcept;
  NodeProcess& operator=(NodeProcess&&) = delete;
  ~NodeProcess();

  void say(const std::string& line) { lines_.say(line); }
  std::optional<std::string> hear(base::Nanoseconds deadline) { return lines_.hear(deadline); }
  void signal(int number) const;
  Usage usage() const { return Usage::of(pid_); }
  /// More descriptors or threads than at the first call; in words, empty if not.
  std::string grown_since_first_look();

 private:
  NodeProcess(pid_t pid, LineSocket lines) : pid_(pid), lines_(std::move(lines)) {}

  pid_t pid_;
  LineSocket lines_;
  std::optional<Usage> first_;
};

}  // namespace faro::soak
