// io.faro.ShuffleReceiver
#include "faro/shuffle.h"

#include <jni.h>

#include <array>
#include <cstddef>
#include <span>

#include "jni/natives.h"
#include "jni/objects.h"
#include "jni/shuffle_answers.h"

namespace faro::jni {
namespace {

void describe(ShuffleState& state, const Batch& batch) {
  FrameDescriptor& to = state.descriptor;
  const std::span<const std::byte> bytes = batch.bytes();
  to.bytes = static_cast<int64_t>(bytes.size());
  to.address = address_of(bytes.data());
  to.row_count = static_cast<int32_t>(batch.row_count());
  to.sender = static_cast<int32_t>(batch.sender());
  to.row_bytes = static_cast<int32_t>(batch.row_bytes());
}

// Polls into Java's batch `number`, after giving back what it held; `sender` -1: of any sender.
jint poll(JNIEnv*, jclass, jlong handle, jint number, jint sender, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  const auto index = static_cast<size_t>(number);
  if (index >= state->batches.size()) state->batches.resize(index + 1);
  Batch& batch = state->batches[index];
  const Outcome outcome = state->worker->run(timeout_ns, [&] {
    return sender < 0
               ? state->receiver.receive(batch, Wait::none())
               : state->receiver.receive_from(static_cast<uint32_t>(sender), batch, Wait::none());
  });
  if (outcome == Outcome::done) describe(*state, batch);
  return answer(*state, outcome);
}

jint release(JNIEnv*, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  if (static_cast<size_t>(number) < state->batches.size())
    state->batches[static_cast<size_t>(number)].release();
  return 0;
}

jint detach(JNIEnv*, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  if (static_cast<size_t>(number) >= state->batches.size()) return 0;
  Batch& batch = state->batches[static_cast<size_t>(number)];
  const Status detached = batch.detach();
  if (detached.ok()) describe(*state, batch);
  return result(detached);
}

jint stop(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  return answer(*state, state->receiver.stop());
}

const std::array kMethods{method("poll", "(JIIJ)I", poll), method("release", "(JI)I", release),
                          method("detach", "(JI)I", detach), method("stop", "(J)I", stop)};

}  // namespace

const Natives kShuffleReceiverNatives{"io/faro/ShuffleReceiver", kMethods};

}  // namespace faro::jni
