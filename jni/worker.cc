// io.faro.Worker
#include <jni.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "faro/c.h"
#include "faro/session.h"
#include "jni/callbacks.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

// A session and one of its workers; kept for the length of a call.
struct Found {
  std::shared_ptr<SessionState> session;
  WorkerState* worker = nullptr;
};

Found find(jlong session, jint local_index) {
  Found found{sessions().find(session), nullptr};
  if (found.session != nullptr) found.worker = found.session->worker(local_index);
  return found;
}

jint closed() { return fail(Code::session_closed, "the session was closed"); }

// The handle of the shuffle, or the negative code.
jlong open_shuffle(JNIEnv* env, jclass, jlong session, jint worker, jlong counter,
                   jlong incarnation, jint issuer, jint stage, jint row_bytes, jintArray senders,
                   jintArray receivers) {
  Found found = find(session, worker);
  if (found.worker == nullptr) return closed();
  const std::vector<uint32_t> from = numbers_of(env, senders);
  const std::vector<uint32_t> to = numbers_of(env, receivers);
  faro_shuffle_spec spec{};
  spec.size = sizeof spec;
  spec.query.counter = static_cast<uint64_t>(counter);
  spec.query.incarnation = static_cast<uint64_t>(incarnation);
  spec.query.issuer = static_cast<uint32_t>(issuer);
  spec.stage = static_cast<uint32_t>(stage);
  spec.row_bytes = static_cast<uint32_t>(row_bytes);
  spec.senders = from.data();
  spec.receivers = to.data();
  spec.sender_count = static_cast<uint32_t>(from.size());
  spec.receiver_count = static_cast<uint32_t>(to.size());
  found.worker->enter();
  auto state = std::make_unique<ShuffleState>();
  state->session = std::move(found.session);
  state->worker = found.worker;
  faro_shuffle* shuffle = nullptr;
  if (faro_worker_open_shuffle(found.worker->handle, &spec, &shuffle) != FARO_CODE_OK)
    return fail(failure_of_c());
  state->shuffle.reset(shuffle);
  state->descriptor.size = sizeof state->descriptor;
  state->frames.size = sizeof state->frames;
  (void)faro_sender_open_frames(shuffle, &state->frames);  // unless it is no sender
  return shuffles().add(std::move(state));
}

jint wait_until(JNIEnv* env, jclass, jlong session, jint worker, jobject condition,
                jlong timeout_ns) {
  const Found found = find(session, worker);
  if (found.worker == nullptr) return closed();
  WorkerState& state = *found.worker;
  bool is_true = false;
  const auto look = [&] { return is_true = holds(env, condition); };
  Outcome outcome;
  if (timeout_ns == kArm) {
    outcome = state.run(timeout_ns, [&] { return look() ? Outcome::done : Outcome::would_wait; });
  } else if (state.begin(); timeout_ns == 0) {
    outcome = state.worker.wait_until(look, Wait::none());
  } else {
    outcome = state.worker.wait_until(
        [&] { return look() || state.interrupted.load(std::memory_order_acquire); },
        wait_of(timeout_ns));
    if (outcome == Outcome::done && !is_true) outcome = Outcome::would_wait;
  }
  if (outcome == Outcome::failed && state.refused.ok()) state.refused = state.worker.status();
  if (env->ExceptionCheck() == JNI_TRUE) return 0;
  return result(outcome, [&] { return found.worker->refused; });
}

// Done, or would_wait: then ReadyWatch.complete will be called.
jint arm(JNIEnv* env, jclass, jlong session, jint worker, jobject progress) {
  const Found found = find(session, worker);
  if (found.worker == nullptr) return closed();
  found.worker->enter();
  const Outcome outcome =
      found.worker->worker.arm([&] { return holds(env, progress); }, Progress::turn);
  if (env->ExceptionCheck() == JNI_TRUE) return 0;
  return result(outcome, [&] { return found.worker->worker.status(); });
}

// `code` 0: well; else what failed, with `text` to tell it.
jint end_query(JNIEnv* env, jclass, jlong session, jint worker, jlong counter, jlong incarnation,
               jint issuer, jint code, jbyteArray text, jlong timeout_ns) {
  const Found found = find(session, worker);
  if (found.worker == nullptr) return closed();
  QueryId query;
  query.counter = static_cast<uint64_t>(counter);
  query.incarnation = static_cast<uint64_t>(incarnation);
  query.issuer = static_cast<uint32_t>(issuer);
  const Status failure =
      code == 0 ? Status::Ok() : Status(static_cast<Code>(code), text_of(env, text));
  Status cause;
  const Outcome outcome = found.worker->run(timeout_ns, [&] {
    const Outcome ended = found.worker->worker.end_query(query, failure, Wait::none());
    if (ended == Outcome::failed) cause = found.worker->worker.status();
    return ended;
  });
  return result(outcome, [&] { return cause.ok() ? found.worker->refused : cause; });
}

void wake(JNIEnv*, jclass, jlong session, jint worker) {
  if (const Found found = find(session, worker); found.worker != nullptr)
    found.worker->worker.wake();
}

void interrupt(JNIEnv*, jclass, jlong session, jint worker) {
  if (const Found found = find(session, worker); found.worker != nullptr) found.worker->interrupt();
}

void clear_interrupt(JNIEnv*, jclass, jlong session, jint worker) {
  if (const Found found = find(session, worker); found.worker != nullptr)
    found.worker->interrupted.store(false, std::memory_order_relaxed);
}

const std::array kMethods{
    method("openShuffle", "(JIJJIII[I[I)J", open_shuffle),
    method("waitUntil", "(JILjava/util/function/BooleanSupplier;J)I", wait_until),
    method("arm", "(JILjava/util/function/BooleanSupplier;)I", arm),
    method("endQuery", "(JIJJII[BJ)I", end_query),
    method("wake", "(JI)V", wake),
    method("interrupt", "(JI)V", interrupt),
    method("clearInterrupt", "(JI)V", clear_interrupt)};

}  // namespace

const Natives kWorkerNatives{"io/faro/Worker", kMethods};

}  // namespace faro::jni
