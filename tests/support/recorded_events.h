// RecordedEvents: what a session tells its listener, line by line.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "faro/session.h"

namespace faro::test {

/// Lines as "lost 2", "left 2", "returned 2", "added 2", "drained 2", "removed 2" and "failed 0:17"; the first and the last with the cause behind.
/// Threads: any. The sessions that tell it share it.
class RecordedEvents : public std::enable_shared_from_this<RecordedEvents> {
 public:
  SessionListener listener() {
    const auto self = shared_from_this();
    return {.node_lost =
                [self](uint32_t node, const Status& cause) {
                  self->add(fmt::format("lost {} {}", node, cause.to_string()));
                },
            .node_left = [self](uint32_t node) { self->add(fmt::format("left {}", node)); },
            .node_returned = [self](uint32_t node) { self->add(fmt::format("returned {}", node)); },
            .node_added = [self](uint32_t node) { self->add(fmt::format("added {}", node)); },
            .node_drained = [self](uint32_t node) { self->add(fmt::format("drained {}", node)); },
            .node_removed = [self](uint32_t node) { self->add(fmt::format("removed {}", node)); },
            .query_failed =
                [self](const QueryId& query, const Status& cause) {
                  self->add(fmt::format("failed {} {}", query.to_string(), cause.to_string()));
                }};
  }

  /// The first line that begins so, or a later one of them. Blocks: until there is one.
  std::string await(const std::string& begin, uint64_t which = 1) {
    std::unique_lock lock(mutex_);
    std::string found;
    added_.wait(lock, [&] {
      uint64_t seen = 0;
      const auto line = std::ranges::find_if(
          lines_, [&](const auto& each) { return each.starts_with(begin) && ++seen == which; });
      if (line == lines_.end()) return false;
      found = *line;
      return true;
    });
    return found;
  }

  /// How many lines begin so.
  uint64_t count(const std::string& begin) const {
    const std::lock_guard lock(mutex_);
    return static_cast<uint64_t>(
        std::ranges::count_if(lines_, [&](const auto& each) { return each.starts_with(begin); }));
  }

 private:
  void add(std::string line) {
    {
      const std::lock_guard lock(mutex_);
      lines_.push_back(std::move(line));
    }
    added_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::vector<std::string> lines_;
};

}  // namespace faro::test
