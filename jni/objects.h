// The native objects that Java holds by handle.
#pragma once

#include <jni.h>

#include <atomic>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "faro/c.h"
#include "jni/handle_table.h"
#include "jni/owned_table.h"
#include "jni/session_events.h"

namespace faro::jni {

/// In place of a time limit: the call does not wait, but a thread of Java will, without being inside a
/// native call. If it would have to, it answers would_wait, and the worker's ReadyWatch.complete will be called.
inline constexpr int64_t kArm = -1;

/// A function object as faro/c.h calls it back: `condition` is its address.
template <typename Condition>
int32_t call(void* condition) {
  return (*static_cast<Condition*>(condition))() ? 1 : 0;
}

/// A worker as Java drives it. Which thread owns it is checked by the Java class, by the identity of
/// the Java thread: a virtual thread may come on another native thread with each call. So each call
/// takes the native ownership over.
///
/// Threads: those of the worker; `interrupted`: any.
struct WorkerState {
  explicit WorkerState(faro_worker* of_session) : handle(of_session) {}

  faro_worker* const handle;
  std::atomic<bool> interrupted{false};  // a waiting call answers would_wait
  faro_shuffle* claimed = nullptr;       // has a claim apart from its frames; the next call ends it

  /// Before each call but that which commits the claim.
  void enter() {
    faro_worker_take_ownership(handle);
    if (claimed != nullptr) faro_sender_abort(std::exchange(claimed, nullptr));
  }

  void interrupt() noexcept {
    // Release: whoever sees it sees why (partner: the acquire in `wait`). The wake makes it look.
    interrupted.store(true, std::memory_order_release);
    (void)faro_worker_wake(handle);
  }

  /// After `enter`: waits as faro_worker_wait_until does; would_wait also if somebody interrupts.
  /// Nanoseconds are those of Wait.java, where 0 is none; with kArm as said there. `taken`: as for
  /// faro_worker_wait_taking.
  template <typename Condition>
  faro_outcome wait(int64_t timeout_ns, const Condition& condition,
                    const std::vector<faro_shuffle*>& taken = {}) {
    bool holds = false;
    auto look = [&] {
      holds = condition();
      return holds || (timeout_ns != kArm && interrupted.load(std::memory_order_acquire));
    };
    const int64_t wait_ns = timeout_ns == 0 ? FARO_WAIT_NONE : timeout_ns;
    const faro_outcome waited =
        timeout_ns == kArm
            ? faro_worker_arm(handle, call<decltype(look)>, &look, FARO_PROGRESS_CALL)
        : taken.empty() ? faro_worker_wait_until(handle, call<decltype(look)>, &look, wait_ns)
                        : faro_worker_wait_taking(handle, taken.data(), taken.size(),
                                                  call<decltype(look)>, &look, wait_ns);
    return waited == FARO_OUTCOME_DONE && !holds ? FARO_OUTCOME_WOULD_WAIT : waited;
  }

  /// Enters, and tries once, or with another time limit than 0 again and again until the attempt
  /// answers something else than would_wait, or `wait` ends. Where that fails the attempt is made
  /// once more: it knows why, unless it would still wait. faro_last_error tells either.
  template <typename Attempt>
  faro_outcome run(int64_t timeout_ns, const Attempt& attempt) {
    enter();
    if (timeout_ns == 0) return attempt();
    faro_outcome outcome = FARO_OUTCOME_WOULD_WAIT;
    const faro_outcome waited = wait(timeout_ns, [&] {
      outcome = attempt();
      return outcome != FARO_OUTCOME_WOULD_WAIT;
    });
    if (waited == FARO_OUTCOME_DONE) return outcome;
    if (waited != FARO_OUTCOME_FAILED) return waited;
    outcome = attempt();
    return outcome == FARO_OUTCOME_WOULD_WAIT ? FARO_OUTCOME_FAILED : outcome;
  }
};

struct Destroy {
  void operator()(faro_config* config) const noexcept { faro_config_destroy(config); }
  void operator()(faro_session* session) const noexcept { faro_session_destroy(session); }
  void operator()(faro_shuffle* shuffle) const noexcept { faro_shuffle_destroy(shuffle); }
  void operator()(faro_aggregation* aggregation) const noexcept {
    faro_aggregation_destroy(aggregation);
  }
  void operator()(faro_batch* batch) const noexcept { faro_batch_destroy(batch); }
  void operator()(faro_endpoint* endpoint) const noexcept { faro_endpoint_destroy(endpoint); }
  void operator()(faro_ring_memory* memory) const noexcept { faro_ring_memory_destroy(memory); }
};
template <typename Handle>
using Owned = std::unique_ptr<Handle, Destroy>;

/// Threads: any; a worker: those of it.
struct SessionState {
  explicit SessionState(Owned<faro_session> opened) : handle(std::move(opened)) {
    topology.size = sizeof topology;
    (void)faro_session_describe(handle.get(), &topology);  // there is one
    for (uint32_t i = 0; i < topology.local_worker_count; ++i) {
      faro_worker* worker = nullptr;
      (void)faro_session_worker(handle.get(), i, &worker);  // there is one
      workers.emplace_back(worker);
    }
  }
  /// Null if there is no such worker.
  WorkerState* worker(jint local_index) {
    const auto index = static_cast<size_t>(local_index);
    return index < workers.size() ? &workers[index] : nullptr;
  }

  const std::shared_ptr<SessionEvents> events = std::make_shared<SessionEvents>();
  faro_topology topology{};
  const Owned<faro_session> handle;  // its listener refers to `events`
  std::deque<WorkerState> workers;   // by local index; they do not move
};

inline faro_query_id query_of(jlong counter, jlong incarnation, jint issuer) {
  return {static_cast<uint64_t>(counter), static_cast<uint64_t>(incarnation),
          static_cast<uint32_t>(issuer), 0};
}

/// Threads: those of its worker. Keeps the session's memory as long as it exists.
struct ShuffleState {
  static constexpr jint kStagedRows = 1024;

  std::shared_ptr<SessionState> session;
  WorkerState* worker = nullptr;
  Owned<faro_shuffle> shuffle;
  faro_open_frames frames{};  // without cursors if this worker is no sender
  /// Describes the batch received last, or has the address of a claim, as Java reads it: `Layout`
  /// of Shuffle.java.
  faro_rows descriptor{};
  /// Where Java puts rows that it sends many at a time: 8 KiB, in L1. (Pinning its array instead
  /// would hold up the collector; GetLongArrayRegion copies at half the speed of Java's own copy.)
  std::vector<uint64_t> staged = std::vector<uint64_t>(kStagedRows);
  std::deque<Owned<faro_batch>> batches;  // by Java's number; they go before the shuffle
};

/// Threads: those of its worker; or any, when nobody can use the worker any more. Keeps the session as long as it exists.
struct AggregationState {
  std::shared_ptr<SessionState> session;
  WorkerState* worker = nullptr;
  Owned<faro_aggregation> aggregation;
  // What its calls tell, as Java reads it.
  faro_added added{};
  faro_rows groups{};
};

inline HandleTable<SessionState>& sessions() {
  // Never destroyed: Java threads may still call while the process ends.
  static auto* const table = new HandleTable<SessionState>;
  return *table;
}
/// A call keeps what it has found: so nobody destroys the handle meanwhile. For 0 there is none.
inline HandleTable<faro_cancellation>& cancellations() {
  static auto* const table = new HandleTable<faro_cancellation>;
  return *table;
}
inline OwnedTable<AggregationState>& aggregations() {
  static auto* const table = new OwnedTable<AggregationState>;
  return *table;
}
inline OwnedTable<ShuffleState>& shuffles() {
  static auto* const table = new OwnedTable<ShuffleState>;
  return *table;
}

}  // namespace faro::jni
