// io.faro.ShuffleSender
#include <jni.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "faro/c.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

// Opens a frame with room for a row, which Java then writes. A row above a frame's size, or that will be dropped, gets
// memory of its own, whose address the descriptor has, until the next call: which is `commit`, or ends the claim.
jint make_room(JNIEnv*, jclass, jlong handle, jint receiver, jint bytes, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  faro_shuffle* const shuffle = state->shuffle.get();
  return answer(state->worker->run(timeout_ns, [&] {
    faro_claim apart{};
    apart.size = sizeof apart;
    const faro_outcome outcome =
        faro_sender_make_room(shuffle, static_cast<uint32_t>(receiver), static_cast<size_t>(bytes),
                              FARO_WAIT_NONE, &apart);
    if (outcome == FARO_OUTCOME_DONE && apart.data != nullptr) {
      state->descriptor.address = apart.data;
      state->worker->claimed = shuffle;
    }
    return outcome;
  }));
}

// Sends the first bytes of a row with memory of its own. Never waits.
jint commit(JNIEnv*, jclass, jlong handle, jint bytes) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  faro_worker_take_ownership(state->worker->handle);
  state->worker->claimed = nullptr;
  const jint committed =
      result(faro_sender_commit(state->shuffle.get(), static_cast<size_t>(bytes)));
  if (committed < 0) faro_sender_abort(state->shuffle.get());
  return committed;
}

std::vector<std::byte> row_of(JNIEnv* env, jbyteArray from, jint begin, jint bytes) {
  std::vector<std::byte> row(static_cast<size_t>(bytes));
  env->GetByteArrayRegion(from, begin, bytes, reinterpret_cast<jbyte*>(row.data()));
  return row;
}

// Sends one row, which lies in `from`.
jint send(JNIEnv* env, jclass, jlong handle, jint receiver, jbyteArray from, jint begin, jint bytes,
          jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  const std::vector<std::byte> row = row_of(env, from, begin, bytes);
  return answer(state->worker->run(timeout_ns, [&] {
    return faro_sender_send(state->shuffle.get(), static_cast<uint32_t>(receiver), row.data(),
                            row.size(), FARO_WAIT_NONE);
  }));
}

// Sends one row, which lies in `from`, to several receivers; `to` is null: to all.
jint multicast(JNIEnv* env, jclass, jlong handle, jintArray to, jbyteArray from, jint begin,
               jint bytes, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  const std::vector<std::byte> row = row_of(env, from, begin, bytes);
  if (to == nullptr) {
    return answer(state->worker->run(timeout_ns, [&] {
      return faro_sender_broadcast(state->shuffle.get(), row.data(), row.size(), FARO_WAIT_NONE);
    }));
  }
  const std::vector<uint32_t> receivers = numbers_of(env, to);
  return answer(state->worker->run(timeout_ns, [&] {
    return faro_sender_multicast(state->shuffle.get(), receivers.data(), receivers.size(),
                                 row.data(), row.size(), FARO_WAIT_NONE);
  }));
}

// Sends what Java has staged, each row to the receiver of its value. The number of rows taken, with the outcome above it
// (32 bits each); or the negative code.
jlong send_staged(JNIEnv*, jclass, jlong handle, jint count, jint partition) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  state->worker->enter();
  size_t sent = 0;
  const jint answered = answer(faro_sender_send_all(
      state->shuffle.get(), state->staged.data(), state->staged.size() * sizeof(uint64_t), 0,
      static_cast<size_t>(count), 0, sizeof(uint64_t), partition, FARO_WAIT_NONE, &sent));
  return answered < 0 ? answered : (jlong{answered} << 32) | static_cast<jlong>(sent);
}

jint flush(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  state->worker->enter();
  return answer(faro_sender_flush(state->shuffle.get()));
}

jint finish(JNIEnv*, jclass, jlong handle, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  return answer(state->worker->run(
      timeout_ns, [&] { return faro_sender_finish(state->shuffle.get(), FARO_WAIT_NONE); }));
}

const std::array kMethods{method("makeRoom", "(JIIJ)I", make_room),
                          method("commit", "(JI)I", commit),
                          method("send", "(JI[BIIJ)I", send),
                          method("multicast", "(J[I[BIIJ)I", multicast),
                          method("sendStaged", "(JII)J", send_staged),
                          method("flush", "(J)I", flush),
                          method("finish", "(JJ)I", finish)};

}  // namespace

const Natives kShuffleSenderNatives{"io/faro/ShuffleSender", kMethods};

}  // namespace faro::jni
