// PaperNotes: in paper order, the WRITTENs that a path owes, since they wait for their WRITEs.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "transport/pending_rings.h"

namespace faro::transport::verbs {

/// Threads: "poster" and "poller" as in verbs_path.h. Everything is seq_cst: it is part of the
/// argument there.
class PaperNotes {
 public:
  explicit PaperNotes(uint32_t ring_count) : rings_(ring_count) {}

  /// That many bytes were posted; of that many the WRITTEN was. Threads: poster.
  void posted(uint64_t bytes) noexcept { unnoted_.fetch_add(bytes, std::memory_order_seq_cst); }
  void noted(uint64_t bytes) noexcept { unnoted_.fetch_sub(bytes, std::memory_order_seq_cst); }
  /// Something is posted whose WRITTEN is not. Threads: any.
  bool owed() const noexcept { return unnoted_.load(std::memory_order_seq_cst) != 0; }

  /// A WRITE of the ring has completed, so that there is a WRITTEN to send. Threads: poller.
  void mark(uint32_t ring) noexcept { rings_.mark(ring); }
  /// They answer what those of PendingRings do. Threads: any; poster.
  bool any() const noexcept { return rings_.any(); }
  template <typename Visit>
  void take(Visit&& visit) noexcept {
    rings_.take(std::forward<Visit>(visit));
  }

  /// Nothing is under way any more. Threads: poster and poller in one.
  void restart() noexcept { unnoted_.store(0, std::memory_order_seq_cst); }

 private:
  PendingRings rings_;                // with a WRITTEN to send
  std::atomic<uint64_t> unnoted_{0};  // bytes posted whose WRITTEN is not
};

}  // namespace faro::transport::verbs
