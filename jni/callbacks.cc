#include "jni/callbacks.h"

#include <array>
#include <string_view>
#include <utility>

#include "jni/java_bytes.h"
#include "jni/natives.h"

namespace faro::jni {
namespace {

JavaVM* machine = nullptr;
jmethodID get_as_boolean = nullptr;
jmethodID complete_stage = nullptr;
jmethodID accept_channel = nullptr;

/// Detaches the thread from the JVM when it ends, if it was attached here.
struct Attachment {
  bool attached = false;
  ~Attachment() {
    if (attached) machine->DetachCurrentThread();
  }
};

// The calling thread's. If the JVM does not know the thread it does from now on, by this name, until the thread ends. Null
// if the JVM is ending.
JNIEnv* environment(const std::string& thread_name) noexcept {
  void* env = nullptr;
  if (machine->GetEnv(&env, kJniVersion) == JNI_OK) return static_cast<JNIEnv*>(env);
  thread_local Attachment attachment;
  JavaVMAttachArgs arguments{kJniVersion, const_cast<char*>(thread_name.c_str()), nullptr};
  attachment.attached = machine->AttachCurrentThreadAsDaemon(&env, &arguments) == JNI_OK;
  return attachment.attached ? static_cast<JNIEnv*>(env) : nullptr;
}

}  // namespace

// The ids stay valid without references to the classes: one is of the boot loader, which is never unloaded, the others of
// the loader that this library goes with.
bool find_callbacks(JNIEnv* env) {
  if (env->GetJavaVM(&machine) != JNI_OK) return false;
  const auto find = [env](const char* class_name, const char* name, const char* signature) {
    const jclass found = env->FindClass(class_name);
    if (found == nullptr) return jmethodID{nullptr};
    const jmethodID method = env->GetMethodID(found, name, signature);
    env->DeleteLocalRef(found);
    return method;
  };
  get_as_boolean = find("java/util/function/BooleanSupplier", "getAsBoolean", "()Z");
  if (get_as_boolean == nullptr) return false;
  complete_stage = find("io/faro/ReadyWatch", "complete", "(I)V");
  if (complete_stage == nullptr) return false;
  accept_channel = find("io/faro/AcceptCall", "accept", "([B[B[BII[I)[B");
  return accept_channel != nullptr;
}

bool holds(JNIEnv* env, jobject condition) {
  const jboolean value = env->CallBooleanMethod(condition, get_as_boolean);
  return env->ExceptionCheck() == JNI_TRUE || value == JNI_TRUE;
}

ReadyStages::ReadyStages(JNIEnv* env, jobject ready_watch, std::string thread_name)
    : thread_name_(std::move(thread_name)), ready_watch_(env->NewGlobalRef(ready_watch)) {}

ReadyStages::~ReadyStages() {
  if (JNIEnv* const env = environment(thread_name_)) env->DeleteGlobalRef(ready_watch_);
}

void ReadyStages::complete(jint worker) const noexcept {
  JNIEnv* const env = environment(thread_name_);
  if (env == nullptr) return;
  env->CallVoidMethod(ready_watch_, complete_stage, worker);
  // What dependents throw is in their stages. There may be no memory to complete one: nothing can be done about that here.
  env->ExceptionClear();
}

ChannelAcceptance Acceptor::ask(const ChannelRequest& request) const {
  constexpr jint kMostReferences = 8;
  // In the order of AcceptCall.java: poller, send_bytes, receive_bytes, ends_when_broken.
  std::array<jint, 4> numbers{};
  ChannelAcceptance answer{.refusal = "the endpoint could not ask its acceptor"};
  JNIEnv* const env = environment("faro-net");
  if (env == nullptr || env->PushLocalFrame(kMostReferences) != JNI_OK) return answer;
  const jobject accept_call = local(env);
  const jbyteArray peer = bytes_of(env, request.peer);
  const jbyteArray address = bytes_of(env, request.address);
  const jbyteArray greeting = bytes_of(
      env, {reinterpret_cast<const char*>(request.greeting.data()), request.greeting.size()});
  const jintArray to = env->NewIntArray(numbers.size());
  if (accept_call != nullptr && env->ExceptionCheck() == JNI_FALSE) {
    const auto refusal = static_cast<jbyteArray>(env->CallObjectMethod(
        accept_call, accept_channel, peer, address, greeting, static_cast<jint>(request.send_bytes),
        static_cast<jint>(request.receive_bytes), to));
    if (env->ExceptionCheck() == JNI_FALSE) {
      env->GetIntArrayRegion(to, 0, numbers.size(), numbers.data());
      answer = {.poller = static_cast<uint32_t>(numbers[0]),
                .send_bytes = static_cast<uint32_t>(numbers[1]),
                .receive_bytes = static_cast<uint32_t>(numbers[2]),
                .refusal = refusal == nullptr ? std::string() : text_of(env, refusal),
                .ends_when_broken = numbers[3] != 0};
    }
  }
  env->ExceptionClear();  // no memory: the peer is refused
  env->PopLocalFrame(nullptr);
  return answer;
}

jobject Acceptor::local(JNIEnv* env) const {
  const std::lock_guard lock(mutex_);
  return env->NewLocalRef(accept_call_);
}

void Acceptor::forget() noexcept {
  JNIEnv* const env = environment("faro-net");
  const std::lock_guard lock(mutex_);
  if (env != nullptr) env->DeleteGlobalRef(std::exchange(accept_call_, nullptr));
}

}  // namespace faro::jni
