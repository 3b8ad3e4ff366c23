// io.faro.MemorySender
#include <jni.h>

#include <array>
#include <cstddef>
#include <vector>

#include "faro/c.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

// Sends rows from number `from` on by send(shuffle, first, sent), which goes on from where it has ended before. How many are sent
// now, in the lower 32 bits; above them the number of the outcome, or the negative code.
template <typename Send>
jlong send_many(jlong handle, jint from, jlong timeout_ns, const Send& send) {
  auto sent = static_cast<size_t>(from);
  const auto told = [&](jint answered) {
    return jlong{answered} * (jlong{1} << 32) + static_cast<jlong>(sent);
  };
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return told(shuffle_closed());
  faro_shuffle* const shuffle = state->shuffle.get();
  return told(answer(state->worker->run(timeout_ns, [&] { return send(shuffle, sent, &sent); })));
}

// Sends rows `from` … `to`-1 of the fixed width, each to its receiver.
jlong send_rows(JNIEnv*, jclass, jlong handle, jlong rows, jlong bytes, jint from, jint to,
                jlong receivers, jlong timeout_ns) {
  return send_many(
      handle, from, timeout_ns, [&](faro_shuffle* shuffle, size_t first, size_t* sent) {
        return faro_sender_send_rows(shuffle, memory_at<const void>(rows),
                                     static_cast<size_t>(bytes), first, static_cast<size_t>(to),
                                     memory_at<const uint32_t>(receivers), FARO_WAIT_NONE, sent);
      });
}

// Sends rows `from` … `to`-1, whose offsets have `offset_bytes` bytes each, to their receivers.
jlong send_rows_at(JNIEnv*, jclass, jlong handle, jlong rows, jlong bytes, jlong offsets,
                   jint offset_bytes, jint from, jint to, jlong receivers, jlong timeout_ns) {
  return send_many(
      handle, from, timeout_ns, [&](faro_shuffle* shuffle, size_t first, size_t* sent) {
        return faro_sender_send_rows_at(
            shuffle, memory_at<const void>(rows), static_cast<size_t>(bytes),
            memory_at<const void>(offsets), static_cast<uint32_t>(offset_bytes), first,
            static_cast<size_t>(to), memory_at<const uint32_t>(receivers), FARO_WAIT_NONE, sent);
      });
}

// Sends rows `from` … `to`-1 of the fixed width, each to the receiver of its key.
jlong send_all(JNIEnv*, jclass, jlong handle, jlong rows, jlong bytes, jint from, jint to,
               jint key_offset, jint key_bytes, jint partition, jlong timeout_ns) {
  return send_many(handle, from, timeout_ns,
                   [&](faro_shuffle* shuffle, size_t first, size_t* sent) {
                     return faro_sender_send_all(
                         shuffle, memory_at<const void>(rows), static_cast<size_t>(bytes), first,
                         static_cast<size_t>(to), static_cast<uint32_t>(key_offset),
                         static_cast<uint32_t>(key_bytes), partition, FARO_WAIT_NONE, sent);
                   });
}

// Sends one row, whose pieces lie at these addresses, to several receivers.
jint send_parts(JNIEnv* env, jclass, jlong handle, jintArray to, jlongArray addresses,
                jlongArray bytes, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  const std::vector<uint32_t> receivers = numbers_of(env, to);
  const std::vector<jlong> places = longs_of(env, addresses);
  const std::vector<jlong> lengths = longs_of(env, bytes);
  std::vector<faro_piece> pieces(places.size());
  for (size_t i = 0; i < pieces.size(); ++i)
    pieces[i] = {memory_at<const void>(places[i]), static_cast<size_t>(lengths[i])};
  return answer(state->worker->run(timeout_ns, [&] {
    return faro_sender_send_parts(state->shuffle.get(), receivers.data(), receivers.size(),
                                  pieces.data(), pieces.size(), FARO_WAIT_NONE);
  }));
}

const std::array kMethods{method("sendParts", "(J[I[J[JJ)I", send_parts),
                          method("sendRows", "(JJJIIJJ)J", send_rows),
                          method("sendRowsAt", "(JJJJIIIJJ)J", send_rows_at),
                          method("sendAll", "(JJJIIIIIJ)J", send_all)};

}  // namespace

const Natives kMemorySenderNatives{"io/faro/MemorySender", kMethods};

}  // namespace faro::jni
