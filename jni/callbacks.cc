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
jmethodID take_row_memory = nullptr;
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
  take_row_memory = find("io/faro/RowMemory", "take", "(I)J");
  if (take_row_memory == nullptr) return false;
  complete_stage = find("io/faro/ReadyWatch", "complete", "(I)V");
  if (complete_stage == nullptr) return false;
  accept_channel = find("io/faro/AcceptCall", "accept", "([B[B[BII[I)[B");
  return accept_channel != nullptr;
}

bool holds(JNIEnv* env, jobject condition) {
  const jboolean value = env->CallBooleanMethod(condition, get_as_boolean);
  return env->ExceptionCheck() == JNI_TRUE || value == JNI_TRUE;
}

void* row_memory(JNIEnv* env, jobject memory, size_t bytes) {
  const jlong address = env->CallLongMethod(memory, take_row_memory, static_cast<jint>(bytes));
  return env->ExceptionCheck() == JNI_TRUE ? nullptr : memory_at<void>(address);
}

ReadyStage::ReadyStage(JNIEnv* env, jobject ready_watch, jint worker, std::string thread_name)
    : thread_name_(std::move(thread_name)),
      ready_watch_(env->NewGlobalRef(ready_watch)),
      worker_(worker) {}

ReadyStage::~ReadyStage() {
  if (JNIEnv* const env = environment(thread_name_)) env->DeleteGlobalRef(ready_watch_);
}

void ReadyStage::complete() const noexcept {
  JNIEnv* const env = environment(thread_name_);
  if (env == nullptr) return;
  env->CallVoidMethod(ready_watch_, complete_stage, worker_);
  // What dependents throw is in their stages. There may be no memory to complete one: nothing can be done about that here.
  env->ExceptionClear();
}

void Acceptor::ask(const faro_channel_request& request, faro_channel_acceptance& answer) {
  constexpr jint kMostReferences = 8;
  // In the order of AcceptCall.java: poller, send_bytes, receive_bytes, ends_when_broken.
  std::array<jint, 4> numbers{};
  answer.refusal = "the endpoint could not ask its acceptor";
  JNIEnv* const env = environment("faro-net");
  if (env == nullptr || env->PushLocalFrame(kMostReferences) != JNI_OK) return;
  const jobject accept_call = local(env);
  const jbyteArray peer = bytes_of(env, request.peer);
  const jbyteArray address = bytes_of(env, request.address);
  const jbyteArray greeting =
      bytes_of(env, {static_cast<const char*>(request.greeting), request.greeting_bytes});
  const jintArray to = env->NewIntArray(numbers.size());
  if (accept_call != nullptr && env->ExceptionCheck() == JNI_FALSE) {
    const auto refusal = static_cast<jbyteArray>(env->CallObjectMethod(
        accept_call, accept_channel, peer, address, greeting, static_cast<jint>(request.send_bytes),
        static_cast<jint>(request.receive_bytes), to));
    if (env->ExceptionCheck() == JNI_FALSE) {
      env->GetIntArrayRegion(to, 0, numbers.size(), numbers.data());
      answer.poller = static_cast<uint32_t>(numbers[0]);
      answer.send_bytes = static_cast<uint32_t>(numbers[1]);
      answer.receive_bytes = static_cast<uint32_t>(numbers[2]);
      answer.ends_when_broken = static_cast<uint32_t>(numbers[3]);
      if (refusal != nullptr) refusal_ = text_of(env, refusal);
      answer.refusal = refusal == nullptr ? nullptr : refusal_.c_str();
    }
  }
  env->ExceptionClear();  // no memory: the peer is refused
  env->PopLocalFrame(nullptr);
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
