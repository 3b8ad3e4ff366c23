// Byte arrays and memory, to and from Java.
#pragma once

#include <jni.h>

#include <string>
#include <string_view>
#include <vector>

namespace faro::jni {

/// A copy of a byte array of UTF-8 text.
inline std::string text_of(JNIEnv* env, jbyteArray bytes) {
  std::string text(static_cast<size_t>(env->GetArrayLength(bytes)), '\0');
  env->GetByteArrayRegion(bytes, 0, static_cast<jsize>(text.size()),
                          reinterpret_cast<jbyte*>(text.data()));
  return text;
}

/// A new byte array; null, with an exception pending, if there is no memory.
inline jbyteArray bytes_of(JNIEnv* env, std::string_view text) {
  const auto length = static_cast<jsize>(text.size());
  const jbyteArray bytes = env->NewByteArray(length);
  if (bytes != nullptr)
    env->SetByteArrayRegion(bytes, 0, length, reinterpret_cast<const jbyte*>(text.data()));
  return bytes;
}

/// The address of memory, as Java reads it.
inline jlong address_of(const void* memory) { return reinterpret_cast<jlong>(memory); }

/// The memory at an address that Java names.
template <typename T>
T* memory_at(jlong address) {
  return reinterpret_cast<T*>(address);
}

/// A copy of an array of handles, or of addresses.
inline std::vector<jlong> longs_of(JNIEnv* env, jlongArray array) {
  std::vector<jlong> longs(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetLongArrayRegion(array, 0, static_cast<jsize>(longs.size()), longs.data());
  return longs;
}

/// A copy of an array of worker numbers.
inline std::vector<uint32_t> numbers_of(JNIEnv* env, jintArray array) {
  std::vector<uint32_t> numbers(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetIntArrayRegion(array, 0, static_cast<jsize>(numbers.size()),
                         reinterpret_cast<jint*>(numbers.data()));
  return numbers;
}

/// A new array of them; null, with an exception pending, if there is no memory.
inline jintArray numbers_of(JNIEnv* env, const uint32_t* numbers, uint32_t count) {
  const auto length = static_cast<jsize>(count);
  const jintArray array = env->NewIntArray(length);
  if (array != nullptr)
    env->SetIntArrayRegion(array, 0, length, reinterpret_cast<const jint*>(numbers));
  return array;
}

}  // namespace faro::jni
