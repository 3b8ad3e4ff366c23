// io.faro.Endpoint
#include "faro/endpoint.h"

#include <jni.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "faro/c_handles.h"
#include "jni/endpoint_objects.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/session_config.h"

namespace faro::jni {
namespace {

jint closed() { return fail(Code::closed, "the endpoint was closed"); }

// The handle, or the negative code. `accept_call`: null, or the object that is asked for channels.
jlong open(JNIEnv* env, jclass, jbyteArray settings, jboolean environment, jbyteArray name,
           jint poller_count, jint channel_limit, jobject accept_call,
           jbyteArray answer_to_others) {
  const Result<Config> config = config_of(env, settings, environment);
  if (!config.ok()) return fail(config.status());
  EndpointSpec spec;
  spec.name = text_of(env, name);
  spec.poller_count = static_cast<uint32_t>(poller_count);
  spec.channel_limit = static_cast<uint32_t>(channel_limit);
  const std::string answer = text_of(env, answer_to_others);
  const auto* const bytes = reinterpret_cast<const std::byte*>(answer.data());
  spec.answer_to_others.assign(bytes, bytes + answer.size());
  auto state = std::make_shared<EndpointState>();
  if (accept_call != nullptr) {
    state->acceptor = std::make_shared<Acceptor>(env, accept_call);
    spec.accept = [acceptor = state->acceptor](const ChannelRequest& request) {
      return acceptor->ask(request);
    };
  }
  Result<std::unique_ptr<Endpoint>> endpoint = Endpoint::open(*config, std::move(spec));
  if (!endpoint.ok()) return fail(endpoint.status());
  state->handle.reset(handle_of(std::move(*endpoint)));
  return endpoints().add(std::move(state));
}

// Writes the numbers and returns 0, or the negative code.
jint channel_memory(JNIEnv* env, jclass, jbyteArray settings, jboolean environment,
                    jintArray send_bytes, jintArray receive_bytes, jlongArray memory_bytes) {
  const Result<Config> config = config_of(env, settings, environment);
  if (!config.ok()) return fail(config.status());
  const std::vector<uint32_t> sends = numbers_of(env, send_bytes);
  const std::vector<uint32_t> receives = numbers_of(env, receive_bytes);
  std::vector<ChannelSpec> channels(sends.size());
  for (size_t i = 0; i < channels.size(); ++i) {
    channels[i].send_bytes = sends[i];
    channels[i].receive_bytes = receives[i];
  }
  const Result<std::vector<uint64_t>> memory = Endpoint::channel_memory(*config, channels);
  if (!memory.ok()) return fail(memory.status());
  env->SetLongArrayRegion(memory_bytes, 0, static_cast<jsize>(memory->size()),
                          reinterpret_cast<const jlong*>(memory->data()));
  return 0;
}

jbyteArray address(JNIEnv* env, jclass, jlong handle) {
  const std::shared_ptr<EndpointState> state = endpoints().find(handle);
  return bytes_of(env, state == nullptr ? "" : faro_endpoint_address(state->handle.get()));
}

// The handle of the i-th poller, or the negative code.
jlong poller(JNIEnv*, jclass, jlong handle, jint index) {
  const std::shared_ptr<EndpointState> state = endpoints().find(handle);
  if (state == nullptr) return closed();
  auto found = std::make_unique<PollerState>();
  if (faro_endpoint_poller(state->handle.get(), static_cast<uint32_t>(index), &found->handle) !=
      FARO_CODE_OK)
    return fail(failure_of_c());
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
