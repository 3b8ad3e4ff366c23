// io.faro.ShuffleReceiver
#include <jni.h>

#include <array>
#include <cstddef>

#include "faro/c.h"
#include "jni/callbacks.h"
#include "jni/errors.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

// A RowMemory of Java, for the length of a call.
struct Memory {
  JNIEnv* env;
  jobject memory;
};

void* allocate(void* context, size_t bytes, size_t* room) {
  const auto* const from = static_cast<const Memory*>(context);
  *room = bytes;
  return row_memory(from->env, from->memory, bytes);
}

// Polls into Java's batch `number`, after giving back what it held; `sender` -1: of any sender. `into`: null, or a RowMemory, for
// rows of any sender. If that throws, so does this.
jint poll(JNIEnv* env, jclass, jlong handle, jint number, jint sender, jobject into,
          jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  const auto index = static_cast<size_t>(number);
  if (index >= state->batches.size()) state->batches.resize(index + 1);
  Owned<faro_batch>& batch = state->batches[index];
  if (batch == nullptr) batch.reset(faro_batch_create());
  Memory memory{env, into};
  return answer(state->worker->run(timeout_ns, [&] {
    faro_shuffle* const shuffle = state->shuffle.get();
    if (into != nullptr)
      return faro_receiver_receive_into(shuffle, batch.get(), allocate, &memory, FARO_WAIT_NONE,
                                        &state->descriptor);
    return sender < 0
               ? faro_receiver_receive(shuffle, batch.get(), FARO_WAIT_NONE, &state->descriptor)
               : faro_receiver_receive_from(shuffle, static_cast<uint32_t>(sender), batch.get(),
                                            FARO_WAIT_NONE, &state->descriptor);
  }));
}

// Null: nothing was received into it yet.
faro_batch* batch_of(const ShuffleState& state, jint number) {
  const auto index = static_cast<size_t>(number);
  return index < state.batches.size() ? state.batches[index].get() : nullptr;
}

jint release(JNIEnv*, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  state->worker->enter();
  faro_batch* const batch = batch_of(*state, number);
  return batch == nullptr ? 0 : result(faro_batch_release(batch));
}

jint detach(JNIEnv*, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  state->worker->enter();
  faro_batch* const batch = batch_of(*state, number);
  if (batch == nullptr) return 0;
  const faro_code detached = faro_batch_detach(batch);
  return result(detached == FARO_CODE_OK ? faro_batch_describe(batch, &state->descriptor)
                                         : detached);
}

jint stop(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  state->worker->enter();
  return answer(faro_receiver_stop(state->shuffle.get()));
}

const std::array kMethods{method("poll", "(JIILio/faro/RowMemory;J)I", poll),
                          method("release", "(JI)I", release), method("detach", "(JI)I", detach),
                          method("stop", "(J)I", stop)};

}  // namespace

const Natives kShuffleReceiverNatives{"io/faro/ShuffleReceiver", kMethods};

}  // namespace faro::jni
