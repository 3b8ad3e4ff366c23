// io.faro.ShuffleReceiver
#include <jni.h>

#include <array>
#include <cstddef>

#include "faro/c.h"
#include "jni/errors.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

// Polls into Java's batch `number`, after giving back what it held; `sender` -1: of any sender.
jint poll(JNIEnv*, jclass, jlong handle, jint number, jint sender, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  const auto index = static_cast<size_t>(number);
  if (index >= state->batches.size()) state->batches.resize(index + 1);
  Owned<faro_batch>& batch = state->batches[index];
  if (batch == nullptr) batch.reset(faro_batch_create());
  return answer(state->worker->run(timeout_ns, [&] {
    faro_shuffle* const shuffle = state->shuffle.get();
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

const std::array kMethods{method("poll", "(JIIJ)I", poll), method("release", "(JI)I", release),
                          method("detach", "(JI)I", detach), method("stop", "(J)I", stop)};

}  // namespace

const Natives kShuffleReceiverNatives{"io/faro/ShuffleReceiver", kMethods};

}  // namespace faro::jni
