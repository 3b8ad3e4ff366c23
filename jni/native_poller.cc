// io.faro.NativePoller. Most natives belong to the object, not to the class: so the JVM keeps the poller, and with it the
// endpoint, as long as a call is under way.
#include <jni.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "faro/c.h"
#include "jni/endpoint_objects.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

// Where the last claim is described, for as long as the poller exists.
jlong claim_address(JNIEnv*, jobject, jlong handle) {
  PollerState* const state = pollers().find(handle);
  return state == nullptr ? 0 : address_of(&state->claim);
}

// --- channels

jint connect(JNIEnv* env, jobject, jlong handle, jbyteArray address, jint send_bytes,
             jint receive_bytes, jbyteArray greeting, jboolean ends_when_broken, jlongArray to) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  const std::string said = text_of(env, greeting);
  faro_channel_spec spec{};
  spec.size = sizeof spec;
  spec.send_bytes = static_cast<uint32_t>(send_bytes);
  spec.receive_bytes = static_cast<uint32_t>(receive_bytes);
  spec.greeting = said.data();
  spec.greeting_bytes = said.size();
  spec.ends_when_broken = ends_when_broken == JNI_TRUE ? 1 : 0;
  faro_channel_id channel{};
  const jint connected =
      result(faro_poller_connect(state->handle, text_of(env, address).c_str(), &spec, &channel));
  const jlong number = long_of(channel);
  if (connected == 0) env->SetLongArrayRegion(to, 0, 1, &number);
  return connected;
}

jint close(JNIEnv*, jobject, jlong handle, jlong channel, jboolean drain) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  return result(faro_poller_close(state->handle, id_of(channel),
                                  drain == JNI_TRUE ? FARO_CLOSING_DRAIN : FARO_CLOSING_NOW));
}

jint status(JNIEnv*, jobject, jlong handle, jlong channel) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  return result(faro_poller_status(state->handle, id_of(channel)));
}

// Texts: peer, address, transport, greeting. Numbers: send_bytes, receive_bytes, least_frame_bytes, dialled,
// ends_when_broken.
jint info(JNIEnv* env, jobject, jlong handle, jlong channel, jobjectArray texts,
          jintArray numbers) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  faro_channel_info found{};
  found.size = sizeof found;
  const faro_code told = faro_poller_describe(state->handle, id_of(channel), &found);
  if (told != FARO_CODE_OK) return result(told);
  const std::array<jint, 5> values{
      static_cast<jint>(found.send_bytes), static_cast<jint>(found.receive_bytes),
      static_cast<jint>(found.least_frame_bytes), static_cast<jint>(found.dialled),
      static_cast<jint>(found.ends_when_broken)};
  env->SetIntArrayRegion(numbers, 0, values.size(), values.data());
  const std::array<std::string_view, 4> words{
      found.peer,
      found.address,
      found.transport,
      {static_cast<const char*>(found.greeting), found.greeting_bytes}};
  for (jsize i = 0; i < static_cast<jsize>(words.size()); ++i) {
    const jbyteArray bytes = bytes_of(env, words[i]);
    if (bytes == nullptr) return 0;  // an exception is pending
    env->SetObjectArrayElement(texts, i, bytes);
    env->DeleteLocalRef(bytes);
  }
  return 0;
}

// Makes a buffer over each ring, incoming and outgoing; with their addresses, and the handle that keeps these.
jint rings(JNIEnv* env, jobject, jlong handle, jlong channel, jobjectArray buffers,
           jlongArray numbers) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  faro_channel_rings found{};
  found.size = sizeof found;
  const faro_code told = faro_poller_rings(state->handle, id_of(channel), &found);
  if (told != FARO_CODE_OK) return result(told);
  auto memory = std::make_unique<RingMemoryState>();
  memory->memory.reset(found.memory);
  faro_ring_memory_give_back(found.memory);  // buffers keep the addresses alone
  const jobject incoming = env->NewDirectByteBuffer(const_cast<void*>(found.incoming),
                                                    static_cast<jlong>(found.incoming_bytes));
  const jobject outgoing =
      incoming == nullptr
          ? nullptr
          : env->NewDirectByteBuffer(found.outgoing, static_cast<jlong>(found.outgoing_bytes));
  if (outgoing == nullptr) return 0;  // an exception is pending
  env->SetObjectArrayElement(buffers, 0, incoming);
  env->SetObjectArrayElement(buffers, 1, outgoing);
  const std::array<jlong, 3> values{address_of(found.incoming), address_of(found.outgoing),
                                    ring_memories().add(std::move(memory))};
  env->SetLongArrayRegion(numbers, 0, values.size(), values.data());
  return 0;
}

jboolean has_rings(JNIEnv*, jobject, jlong handle, jlong channel) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return JNI_FALSE;
  faro_channel_rings found{};
  found.size = sizeof found;
  const bool has = faro_poller_rings(state->handle, id_of(channel), &found) == FARO_CODE_OK;
  if (has) faro_ring_memory_destroy(found.memory);
  return has ? JNI_TRUE : JNI_FALSE;
}

// --- frames

// How many events lie at the address now, or the negative code.
jint poll(JNIEnv*, jobject, jlong handle, jlong events, jint limit) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  size_t count = 0;
  const jint polled =
      result(faro_poller_poll(state->handle, reinterpret_cast<faro_channel_event*>(events),
                              static_cast<size_t>(limit), &count));
  return polled < 0 ? polled : static_cast<jint>(count);
}

jint release(JNIEnv*, jobject, jlong handle, jlong channel, jint token) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  return result(faro_poller_release(state->handle, id_of(channel), static_cast<uint32_t>(token)));
}

// The frames among that many events at the address.
jint release_all(JNIEnv*, jobject, jlong handle, jlong events, jint count) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  const std::span polled(reinterpret_cast<const faro_channel_event*>(events),
                         static_cast<size_t>(count));
  for (const faro_channel_event& event : polled) {
    if (event.kind != FARO_CHANNEL_FRAME) continue;
    const faro_code code = faro_poller_release(state->handle, event.channel, event.token);
    if (code != FARO_CODE_OK) return result(code);
  }
  return 0;
}

jint claim(JNIEnv*, jobject, jlong handle, jlong channel, jint least, jint most) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  return answer(faro_poller_claim(state->handle, id_of(channel), static_cast<size_t>(least),
                                  static_cast<size_t>(most), &state->claim));
}

jint commit(JNIEnv*, jobject, jlong handle, jlong channel, jint bytes, jboolean quiet) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  return result(faro_poller_commit(state->handle, id_of(channel), static_cast<size_t>(bytes),
                                   quiet == JNI_TRUE ? FARO_NOTICE_QUIET : FARO_NOTICE_LOUD));
}

// Commits a frame that its receiver is to be told of, posts, and claims the next one.
jint commit_and_claim(JNIEnv*, jobject, jlong handle, jlong channel, jint bytes, jint least,
                      jint most) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  return answer(faro_poller_commit_and_claim(
      state->handle, id_of(channel), static_cast<size_t>(bytes), FARO_NOTICE_LOUD,
      static_cast<size_t>(least), static_cast<size_t>(most), &state->claim));
}

jint post(JNIEnv*, jobject, jlong handle) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  return result(faro_poller_post(state->handle));
}

// --- waiting

// An outcome, or the negative code. Would_wait of a call with a time limit: it was interrupted. A wake-up or an event that
// came at the same time is not lost: the next wait ends.
jint await(JNIEnv*, jobject, jlong handle, jlong timeout_ns, jint wake_for) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  const faro_outcome waited =
      faro_poller_wait(state->handle, timeout_ns == 0 ? FARO_WAIT_NONE : timeout_ns, wake_for);
  // Partner: the release in interrupt().
  const bool is_interrupted = timeout_ns != 0 && state->interrupted.load(std::memory_order_acquire);
  if (waited != FARO_OUTCOME_DONE || !is_interrupted) return answer(waited);
  (void)faro_poller_wake(state->handle);
  return FARO_OUTCOME_WOULD_WAIT;
}

jint arm(JNIEnv*, jobject, jlong handle, jint wake_for) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  return answer(faro_poller_arm(state->handle, wake_for));
}

// Or the negative code.
jint descriptor(JNIEnv*, jobject, jlong handle) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return endpoint_closed();
  int32_t found = -1;
  const jint code = result(faro_poller_descriptor(state->handle, &found));
  return code < 0 ? code : found;
}

void wake(JNIEnv*, jobject, jlong handle) {
  if (PollerState* const state = pollers().find(handle)) (void)faro_poller_wake(state->handle);
}

void interrupt(JNIEnv*, jobject, jlong handle) {
  PollerState* const state = pollers().find(handle);
  if (state == nullptr) return;
  state->interrupted.store(true, std::memory_order_release);
  (void)faro_poller_wake(state->handle);
}

void clear_interrupt(JNIEnv*, jobject, jlong handle) {
  if (PollerState* const state = pollers().find(handle))
    state->interrupted.store(false, std::memory_order_relaxed);
}

jboolean try_enter(JNIEnv*, jobject, jlong handle) {
  PollerState* const state = pollers().find(handle);
  int32_t entered = 0;
  if (state != nullptr) (void)faro_poller_try_enter(state->handle, &entered);
  return entered != 0 ? JNI_TRUE : JNI_FALSE;
}

void leave(JNIEnv*, jobject, jlong handle) {
  if (PollerState* const state = pollers().find(handle)) (void)faro_poller_leave(state->handle);
}

// --- what belongs to the class

// In the order of NativePoller.java's `Layout`: sizeof event; offsets in it of index, generation, kind, token, data, bytes;
// offsets in a claim of data, bytes.
void layout(JNIEnv* env, jclass, jintArray to) {
  const std::array<jint, 9> values{
      sizeof(faro_channel_event),
      offsetof(faro_channel_event, channel) + offsetof(faro_channel_id, index),
      offsetof(faro_channel_event, channel) + offsetof(faro_channel_id, generation),
      offsetof(faro_channel_event, kind),
      offsetof(faro_channel_event, token),
      offsetof(faro_channel_event, data),
      offsetof(faro_channel_event, bytes),
      offsetof(faro_channel_claim, data),
      offsetof(faro_channel_claim, bytes)};
  env->SetIntArrayRegion(to, 0, values.size(), values.data());
}

// The last buffer over these rings is gone.
void destroy_rings(JNIEnv*, jclass, jlong handle) { ring_memories().remove(handle); }

const std::array kMethods{method("claimAddress", "(J)J", claim_address),
                          method("connect", "(J[BII[BZ[J)I", connect),
                          method("close", "(JJZ)I", close),
                          method("status", "(JJ)I", status),
                          method("info", "(JJ[[B[I)I", info),
                          method("rings", "(JJ[Ljava/nio/ByteBuffer;[J)I", rings),
                          method("hasRings", "(JJ)Z", has_rings),
                          method("poll", "(JJI)I", poll),
                          method("release", "(JJI)I", release),
                          method("releaseAll", "(JJI)I", release_all),
                          method("claim", "(JJII)I", claim),
                          method("commit", "(JJIZ)I", commit),
                          method("commitAndClaim", "(JJIII)I", commit_and_claim),
                          method("post", "(J)I", post),
                          method("await", "(JJI)I", await),
                          method("arm", "(JI)I", arm),
                          method("descriptor", "(J)I", descriptor),
                          method("wake", "(J)V", wake),
                          method("interrupt", "(J)V", interrupt),
                          method("clearInterrupt", "(J)V", clear_interrupt),
                          method("tryEnter", "(J)Z", try_enter),
                          method("leave", "(J)V", leave),
                          method("layout", "([I)V", layout),
                          method("destroyRings", "(J)V", destroy_rings)};

}  // namespace

const Natives kNativePollerNatives{"io/faro/NativePoller", kMethods};

}  // namespace faro::jni
