// io.faro.Worker
#include <jni.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faro/c.h"
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

// The handle of the shuffle, or the negative code.
jlong open_shuffle(JNIEnv* env, jclass, jlong session, jint worker, jlong counter,
                   jlong incarnation, jint issuer, jint stage, jint row_bytes, jintArray senders,
                   jintArray receivers, jintArray group_members, jintArray group_sizes,
                   jint delivery) {
  Found found = find(session, worker);
  if (found.worker == nullptr) return session_closed();
  const std::vector<uint32_t> from = numbers_of(env, senders);
  const std::vector<uint32_t> to = numbers_of(env, receivers);
  const std::vector<uint32_t> members = numbers_of(env, group_members);
  const std::vector<uint32_t> sizes = numbers_of(env, group_sizes);
  faro_shuffle_spec spec{};
  spec.size = sizeof spec;
  spec.query = query_of(counter, incarnation, issuer);
  spec.stage = static_cast<uint32_t>(stage);
  spec.row_bytes = static_cast<uint32_t>(row_bytes);
  spec.senders = from.data();
  spec.receivers = to.data();
  spec.sender_count = static_cast<uint32_t>(from.size());
  spec.receiver_count = static_cast<uint32_t>(to.size());
  spec.group_members = members.data();
  spec.group_sizes = sizes.data();
  spec.group_count = static_cast<uint32_t>(sizes.size());
  spec.delivery = delivery;
  found.worker->enter();
  auto state = std::make_unique<ShuffleState>();
  state->session = std::move(found.session);
  state->worker = found.worker;
  faro_shuffle* shuffle = nullptr;
  const faro_code opened = faro_worker_open_shuffle(found.worker->handle, &spec, &shuffle);
  if (opened != FARO_CODE_OK) return result(opened);
  state->shuffle.reset(shuffle);
  state->descriptor.size = sizeof state->descriptor;
  state->frames.size = sizeof state->frames;
  (void)faro_sender_open_frames(shuffle, &state->frames);  // unless it is no sender
  return shuffles().add(std::move(state));
}

// Those of these handles that are still open.
std::vector<faro_shuffle*> shuffles_of(JNIEnv* env, jlongArray handles) {
  std::vector<faro_shuffle*> found;
  for (const jlong handle : longs_of(env, handles)) {
    const ShuffleState* const state = shuffles().find(handle);
    if (state != nullptr) found.push_back(state->shuffle.get());
  }
  return found;
}

// `taken`: handles of the shuffles whose rows the condition takes; null: none.
jint wait_until(JNIEnv* env, jclass, jlong session, jint worker, jlongArray taken,
                jobject condition, jlong timeout_ns) {
  const Found found = find(session, worker);
  if (found.worker == nullptr) return session_closed();
  found.worker->enter();
  const auto turn = [&] { return holds(env, condition); };
  const faro_outcome outcome = taken == nullptr
                                   ? found.worker->wait(timeout_ns, turn)
                                   : found.worker->wait(timeout_ns, turn, shuffles_of(env, taken));
  return env->ExceptionCheck() == JNI_TRUE ? 0 : answer(outcome);
}

// Done, or would_wait: then ReadyWatch.complete will be called.
jint arm(JNIEnv* env, jclass, jlong session, jint worker, jobject progress) {
  const Found found = find(session, worker);
  if (found.worker == nullptr) return session_closed();
  found.worker->enter();
  auto turn = [&] { return holds(env, progress); };
  const faro_outcome outcome =
      faro_worker_arm(found.worker->handle, call<decltype(turn)>, &turn, FARO_PROGRESS_TURN);
  return env->ExceptionCheck() == JNI_TRUE ? 0 : answer(outcome);
}

// `code` 0: well; else what failed, with `text` to tell it.
jint end_query(JNIEnv* env, jclass, jlong session, jint worker, jlong counter, jlong incarnation,
               jint issuer, jint code, jbyteArray text, jlong timeout_ns) {
  const Found found = find(session, worker);
  if (found.worker == nullptr) return session_closed();
  const faro_query_id query = query_of(counter, incarnation, issuer);
  const std::string message = code == 0 ? std::string() : text_of(env, text);
  return answer(found.worker->run(timeout_ns, [&] {
    return faro_worker_end_query(found.worker->handle, &query, code, message.c_str(),
                                 FARO_WAIT_NONE);
  }));
}

void wake(JNIEnv*, jclass, jlong session, jint worker) {
  if (const Found found = find(session, worker); found.worker != nullptr)
    (void)faro_worker_wake(found.worker->handle);
}

void interrupt(JNIEnv*, jclass, jlong session, jint worker) {
  if (const Found found = find(session, worker); found.worker != nullptr) found.worker->interrupt();
}

void clear_interrupt(JNIEnv*, jclass, jlong session, jint worker) {
  if (const Found found = find(session, worker); found.worker != nullptr)
    found.worker->interrupted.store(false, std::memory_order_relaxed);
}

const std::array kMethods{
    method("openShuffle", "(JIJJIII[I[I[I[II)J", open_shuffle),
    method("waitUntil", "(JI[JLjava/util/function/BooleanSupplier;J)I", wait_until),
    method("arm", "(JILjava/util/function/BooleanSupplier;)I", arm),
    method("endQuery", "(JIJJII[BJ)I", end_query),
    method("wake", "(JI)V", wake),
    method("interrupt", "(JI)V", interrupt),
    method("clearInterrupt", "(JI)V", clear_interrupt)};

}  // namespace

const Natives kWorkerNatives{"io/faro/Worker", kMethods};

}  // namespace faro::jni
