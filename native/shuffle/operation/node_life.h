// NodeLife: whether a node is open, and who keeps its memory.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/over_fork.h"
#include "faro/status.h"

namespace faro::shuffle {

/// Threads: any, after `begin`.
class NodeLife {
 public:
  /// `node` keeps everything that a shuffle, a batch or a claim refers to.
  void begin(std::weak_ptr<const void> node, std::string name) {
    node_ = std::move(node);
    name_ = std::move(name);
  }
  std::shared_ptr<const void> keep_alive() const noexcept { return node_.lock(); }

  /// Whether this is a child that was forked since: all that a node shares with the kernel and with
  /// its peers is its parent's.
  bool forked() const noexcept { return made_in_.forked(); }

  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  Status closed_status() const {
    return base::error(Code::session_closed, "the session of {} was closed", name_);
  }
  /// False if it was closed before.
  bool close() noexcept { return !closed_.exchange(true, std::memory_order_acq_rel); }

 private:
  const base::Birthplace made_in_{};
  std::weak_ptr<const void> node_;
  std::string name_;
  std::atomic<bool> closed_{false};
};

}  // namespace faro::shuffle
