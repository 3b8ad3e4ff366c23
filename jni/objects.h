// The native objects that Java holds by handle.
#pragma once

#include <jni.h>

#include <atomic>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "faro/c.h"
#include "faro/c_handles.h"
#include "faro/cancellation.h"
#include "faro/outcome.h"
#include "faro/session.h"
#include "jni/handle_table.h"
#include "jni/owned_table.h"
#include "jni/session_events.h"

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
  WorkerState(Worker& opened, faro_worker* its_handle) : worker(opened), handle(its_handle) {}

  Worker& worker;
  faro_worker* const handle;             // of the same worker
  std::atomic<bool> interrupted{false};  // a waiting call answers would_wait
  faro_shuffle* claimed = nullptr;       // has a claim apart from its frames; the next call ends it
  Status
      refused;  // why the last call that answered failed could not wait; ok: it was its attempt that failed

  /// Before each call but that which commits the claim.
  void enter() {
    faro_worker_take_ownership(handle);
    if (claimed != nullptr) faro_sender_abort(std::exchange(claimed, nullptr));
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

struct Destroy {
  void operator()(faro_session* session) const noexcept { faro_session_destroy(session); }
  void operator()(faro_shuffle* shuffle) const noexcept { faro_shuffle_destroy(shuffle); }
  void operator()(faro_batch* batch) const noexcept { faro_batch_destroy(batch); }
  void operator()(faro_endpoint* endpoint) const noexcept { faro_endpoint_destroy(endpoint); }
  void operator()(faro_ring_memory* memory) const noexcept { faro_ring_memory_destroy(memory); }
};
template <typename Handle>
using Owned = std::unique_ptr<Handle, Destroy>;

struct SessionState {
  explicit SessionState(std::unique_ptr<Session> opened)
      : session(opened.get()), handle(handle_of(std::move(opened))) {
    for (uint32_t i = 0; i < session->local_worker_count(); ++i) {
      faro_worker* worker = nullptr;
      (void)faro_session_worker(handle.get(), i, &worker);  // there is one
      workers.emplace_back(session->worker(i), worker);
    }
  }
  /// Null if there is no such worker.
  WorkerState* worker(jint local_index) {
    const auto index = static_cast<size_t>(local_index);
    return index < workers.size() ? &workers[index] : nullptr;
  }

  const std::shared_ptr<SessionEvents> events = std::make_shared<SessionEvents>();
  Session* const session;
  const Owned<faro_session> handle;  // of the same session
  std::deque<WorkerState> workers;   // by local index; they do not move
};

/// Partition.java, by the numbers that it says.
inline constexpr jint kFinalizerPartition = FARO_HASH_FINALIZER;
inline constexpr jint kMultiplicativePartition = FARO_HASH_MULTIPLICATIVE;

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
