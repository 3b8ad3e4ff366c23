// The native objects that Java holds by handle.
#pragma once

#include <jni.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "faro/cancellation.h"
#include "faro/outcome.h"
#include "faro/session.h"
#include "faro/shuffle.h"
#include "jni/handle_table.h"
#include "jni/owned_table.h"
#include "jni/session_events.h"
#include "node/session_access.h"
#include "shuffle/local_worker.h"

namespace faro::jni {

/// In place of a time limit: the call does not wait, but a thread of Java will, without being inside a
/// native call. If it would have to, it answers would_wait, and the worker's ReadyWatch.complete will be called.
inline constexpr int64_t kArm = -1;

/// Wait.java's nanoseconds.
inline Wait wait_of(int64_t timeout_ns) {
  return timeout_ns == INT64_MAX ? Wait::forever()
                                 : Wait::at_most(std::chrono::nanoseconds(timeout_ns));
}

/// A worker as Java drives it. Which thread owns it is checked by the Java class, by the identity of
/// the Java thread: a virtual thread may come on another native thread with each call. So each call
/// takes the native ownership over.
///
/// Threads: those of the worker; `interrupted`: any.
struct WorkerState {
  WorkerState(Worker& opened, shuffle::LocalWorker& its_core) : worker(opened), core(its_core) {}

  Worker& worker;
  shuffle::LocalWorker& core;
  std::atomic<bool> interrupted{false};  // a waiting call answers would_wait
  RowClaim claim;  // of a row that does not lie in a frame; the next call ends it
  Status
      refused;  // why the last call that answered failed could not wait; ok: it was its attempt that failed

  /// Before each call but that which commits the claim.
  void enter() {
    core.ownership().adopt();
    claim.abort();
  }
  /// Before a call that may wait.
  void begin() {
    enter();
    refused = Status::Ok();
  }

  void interrupt() noexcept {
    // Release: whoever sees it sees why (partner: the acquire in `run`). wake() makes it look.
    interrupted.store(true, std::memory_order_release);
    worker.wake();
  }

  /// Tries once, or (with a time limit above 0) again and again until the attempt answers something else than
  /// would_wait, the limit has passed, or somebody interrupts: then the answer is would_wait. With
  /// kArm as said there. Answers failed if the session was closed, whatever the attempt says.
  template <typename Attempt>
  Outcome run(int64_t timeout_ns, Attempt&& attempt) {
    begin();
    if (timeout_ns == kArm) return arm(attempt);
    if (timeout_ns == 0) return attempt();
    Outcome outcome = Outcome::would_wait;
    const Outcome waited = worker.wait_until(
        [&] {
          outcome = attempt();
          return outcome != Outcome::would_wait || interrupted.load(std::memory_order_acquire);
        },
        wait_of(timeout_ns));
    if (waited == Outcome::done) return outcome;
    if (waited == Outcome::failed) refused = worker.status();
    return waited == Outcome::failed ? why_failed(attempt) : waited;
  }

 private:
  template <typename Attempt>
  Outcome arm(Attempt& attempt) {
    Outcome outcome = Outcome::would_wait;
    const Outcome armed = worker.arm(
        [&] {
          outcome = attempt();
          return outcome != Outcome::would_wait;
        },
        Progress::call);
    if (armed == Outcome::done) return outcome;
    if (armed == Outcome::failed) refused = worker.status();
    if (armed == Outcome::failed) return why_failed(attempt);
    return armed;
  }

  // The attempt knows; one that would still wait must not: `refused`.
  template <typename Attempt>
  Outcome why_failed(Attempt& attempt) {
    const Outcome outcome = attempt();
    if (outcome == Outcome::would_wait) return Outcome::failed;
    refused = Status::Ok();
    return outcome;
  }
};

struct SessionState {
  explicit SessionState(std::unique_ptr<Session> opened) : session(std::move(opened)) {
    node::NodeCore& core = SessionAccess::core(*session);
    for (uint32_t i = 0; i < session->local_worker_count(); ++i)
      workers.emplace_back(session->worker(i), core.worker(i));
  }
  /// Null if there is no such worker.
  WorkerState* worker(jint local_index) {
    const auto index = static_cast<size_t>(local_index);
    return index < workers.size() ? &workers[index] : nullptr;
  }

  const std::shared_ptr<SessionEvents> events = std::make_shared<SessionEvents>();
  std::unique_ptr<Session> session;
  std::deque<WorkerState> workers;  // by local index; they do not move
};

/// Partition.java, by the numbers that it says.
inline constexpr jint kFinalizerPartition = 0;
inline constexpr jint kMultiplicativePartition = 1;

/// A received batch, as ShuffleReceiver.java reads it; its offsets are told by `Layout` of Shuffle.java.
struct FrameDescriptor {
  int64_t bytes = 0;
  int64_t address = 0;  // of the first row; valid until the batch is released, detached or closed
  int32_t row_count = 0;
  int32_t sender = 0;
  int32_t row_bytes = 0;
};
static_assert(sizeof(FrameDescriptor) == 32);

/// Threads: those of its worker. Keeps the session's memory as long as it exists.
struct ShuffleState {
  static constexpr jint kStagedRows = 1024;

  std::shared_ptr<SessionState> session;
  WorkerState* worker = nullptr;
  Shuffle shuffle;
  ShuffleSender sender;                   // of no shuffle if this worker is no sender
  ShuffleReceiver receiver;               // likewise
  std::optional<RowSender<jlong>> longs;  // once many rows were sent
  FrameDescriptor descriptor;             // of the batch received last
  /// Where Java puts rows that it sends many at a time: 8 KiB, in L1. (Pinning its array instead
  /// would hold up the collector; GetLongArrayRegion copies at half the speed of Java's own copy.)
  std::vector<jlong> staged = std::vector<jlong>(kStagedRows);
  std::deque<Batch> batches;  // by Java's number; they go before the shuffle
};

inline HandleTable<SessionState>& sessions() {
  // Never destroyed: Java threads may still call while the process ends.
  static auto* const table = new HandleTable<SessionState>;
  return *table;
}
inline HandleTable<Cancellation>& cancellations() {
  static auto* const table = new HandleTable<Cancellation>;
  return *table;
}
/// That of a handle; for 0 one that nobody cancels.
inline Cancellation cancellation_of(int64_t handle) {
  const std::shared_ptr<Cancellation> found = cancellations().find(handle);
  return found == nullptr ? Cancellation() : *found;
}
inline OwnedTable<ShuffleState>& shuffles() {
  static auto* const table = new OwnedTable<ShuffleState>;
  return *table;
}

}  // namespace faro::jni
