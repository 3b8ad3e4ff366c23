// MemoryBudget: what the links of an endpoint or a session take together, checked for each before anything is allocated
// (native/DESIGN.md#inv-3).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "faro/status.h"
#include "links/limits.h"

namespace faro::links {

/// Threads: network thread. Shared by the links that take from it.
class MemoryBudget : public std::enable_shared_from_this<MemoryBudget> {
 public:
  /// What one link takes, until it is destroyed.
  class Share {
   public:
    Share(std::shared_ptr<MemoryBudget> budget, const Need& need)
        : budget_(std::move(budget)), bytes_(need.memory_bytes) {
      budget_->taken_bytes_ += bytes_;
    }
    ~Share() {
      budget_->taken_bytes_ -= bytes_;
      if (has_ended_) budget_->ended_bytes_ -= bytes_;
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    /// The link has ended, and still has its memory: somebody uses it.
    void note_ended() {
      if (!std::exchange(has_ended_, true)) budget_->ended_bytes_ += bytes_;
    }

   private:
    const std::shared_ptr<MemoryBudget> budget_;
    const uint64_t bytes_;
    bool has_ended_ = false;
  };

  /// `limit_bytes`: memory.limit_bytes; 0: only what the machine has limits it. `checks_machine`: not in a simulation.
  MemoryBudget(uint64_t limit_bytes, bool checks_machine)
      : limit_bytes_(limit_bytes), checks_machine_(checks_machine) {}

  /// Takes what a link needs. Errors: resource_limit with the figures; the links that stand are not touched.
  Result<std::shared_ptr<Share>> take(const Need& need);
  uint64_t taken_bytes() const { return taken_bytes_; }

 private:
  const uint64_t limit_bytes_;
  const bool checks_machine_;
  uint64_t taken_bytes_ = 0;
  uint64_t ended_bytes_ = 0;  // of it, by links that have ended
};

}  // namespace faro::links
