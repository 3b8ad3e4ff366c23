// io.faro.Endpoint
#include <jni.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "faro/c.h"
#include "jni/endpoint_objects.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/session_config.h"

namespace faro::jni {
namespace {

void ask(void* acceptor, const faro_channel_request* request, faro_channel_acceptance* answer) {
  static_cast<Acceptor*>(acceptor)->ask(*request, *answer);
}

// The handle, or the negative code. `accept_call`: null, or the object that is asked for channels.
jlong open(JNIEnv* env, jclass, jbyteArray settings, jboolean environment, jbyteArray name,
           jint poller_count, jint channel_limit, jobject accept_call,
           jbyteArray answer_to_others) {
  const Owned<faro_config> config = config_of(env, settings, environment);
  if (config == nullptr) return failed();
  if (poller_count == 0 || channel_limit == 0)  // the default in C
    return fail(FARO_CODE_INVALID_ARGUMENT, "an endpoint without pollers, or without channels");
  const std::string known_as = text_of(env, name);
  const std::string answer = text_of(env, answer_to_others);
  faro_endpoint_spec spec{};
  spec.size = sizeof spec;
  spec.name = known_as.c_str();
  spec.poller_count = static_cast<uint32_t>(poller_count);
  spec.channel_limit = static_cast<uint32_t>(channel_limit);
  spec.answer_to_others = answer.data();
  spec.answer_to_others_bytes = answer.size();
  auto state = std::make_shared<EndpointState>();
  if (accept_call != nullptr) {
    state->acceptor = std::make_unique<Acceptor>(env, accept_call);
    spec.accept = ask;
    spec.context = state->acceptor.get();
  }
  faro_endpoint* endpoint = nullptr;
  const faro_code opened = faro_endpoint_open(config.get(), &spec, &endpoint);
  if (opened != FARO_CODE_OK) return result(opened);
  state->handle.reset(endpoint);
  return endpoints().add(std::move(state));
}

// Writes the numbers and returns 0, or the negative code.
jint channel_memory(JNIEnv* env, jclass, jbyteArray settings, jboolean environment,
                    jintArray send_bytes, jintArray receive_bytes, jlongArray memory_bytes) {
  const Owned<faro_config> config = config_of(env, settings, environment);
  if (config == nullptr) return failed();
  const std::vector<uint32_t> sends = numbers_of(env, send_bytes);
  const std::vector<uint32_t> receives = numbers_of(env, receive_bytes);
  std::vector<uint64_t> memory(sends.size());
  const faro_code told = faro_endpoint_channel_memory(config.get(), sends.data(), receives.data(),
                                                      memory.size(), memory.data());
  if (told == FARO_CODE_OK)
    env->SetLongArrayRegion(memory_bytes, 0, static_cast<jsize>(memory.size()),
                            reinterpret_cast<const jlong*>(memory.data()));
  return result(told);
}

jbyteArray address(JNIEnv* env, jclass, jlong handle) {
  const std::shared_ptr<EndpointState> state = endpoints().find(handle);
  return bytes_of(env, state == nullptr ? "" : faro_endpoint_address(state->handle.get()));
}

// The handle of the i-th poller, or the negative code.
jlong poller(JNIEnv*, jclass, jlong handle, jint index) {
  const std::shared_ptr<EndpointState> state = endpoints().find(handle);
  if (state == nullptr) return endpoint_closed();
  auto found = std::make_unique<PollerState>();
  const faro_code told =
      faro_endpoint_poller(state->handle.get(), static_cast<uint32_t>(index), &found->handle);
  if (told != FARO_CODE_OK) return result(told);
  found->endpoint = state;
  return pollers().add(std::move(found));
}

// What the acceptor refers to may be collected then. Nothing happens if the endpoint was destroyed.
void close(JNIEnv*, jclass, jlong handle) {
  const std::shared_ptr<EndpointState> state = endpoints().find(handle);
  if (state == nullptr) return;
  (void)faro_endpoint_close(state->handle.get());
  if (state->acceptor != nullptr) state->acceptor->forget();
}

// Nothing in Java refers to it or to a poller of it any more. Buffers may: they keep addresses, and no memory.
void destroy(JNIEnv* env, jclass, jlong handle, jlongArray poller_handles) {
  std::vector<jlong> each(static_cast<size_t>(env->GetArrayLength(poller_handles)));
  env->GetLongArrayRegion(poller_handles, 0, static_cast<jsize>(each.size()), each.data());
  for (const jlong poller_handle : each) pollers().remove(poller_handle);
  endpoints().remove(handle);
}

const std::array kMethods{method("open", "([BZ[BIILio/faro/AcceptCall;[B)J", open),
                          method("channelMemory", "([BZ[I[I[J)I", channel_memory),
                          method("address", "(J)[B", address),
                          method("poller", "(JI)J", poller),
                          method("close", "(J)V", close),
                          method("destroy", "(J[J)V", destroy)};

}  // namespace

const Natives kEndpointNatives{"io/faro/Endpoint", kMethods};

}  // namespace faro::jni
