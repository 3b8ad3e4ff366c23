// io.faro.Shuffle
#include <jni.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "faro/c.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

// In the order of Shuffle.java's `Layout`: sizeof cursor, offsets of at and end; offsets in the
// descriptor of bytes, row_count, sender, address, row_bytes; rows that can be staged.
void layout(JNIEnv* env, jclass, jintArray to) {
  const std::array<jint, 9> values{
      sizeof(faro_cursor),          offsetof(faro_cursor, at),      offsetof(faro_cursor, end),
      offsetof(faro_rows, bytes),   offsetof(faro_rows, row_count), offsetof(faro_rows, sender),
      offsetof(faro_rows, address), offsetof(faro_rows, row_bytes), ShuffleState::kStagedRows};
  env->SetIntArrayRegion(to, 0, values.size(), values.data());
}

// Stores the addresses of the descriptor, the staged rows, the cursors and the row counts, which
// all stay where they are until the shuffle is closed, and how many of the last two there are. The last three are 0 if this worker is no
// sender.
void addresses(JNIEnv* env, jclass, jlong handle, jlongArray to) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return;
  const std::array<jlong, 5> values{
      address_of(&state->descriptor), address_of(state->staged.data()),
      address_of(state->frames.cursors), address_of(state->frames.row_counts),
      state->frames.receiver_count};
  env->SetLongArrayRegion(to, 0, values.size(), values.data());
}

// The worker numbers of its receivers (else its senders), all of them, whether or not the spec has named them. Null if the
// shuffle was closed.
jintArray workers(JNIEnv* env, jclass, jlong handle, jboolean receivers) {
  const ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return nullptr;
  faro_shuffle_info info{};
  info.size = sizeof info;
  (void)faro_shuffle_describe(state->shuffle.get(), &info);  // both are there
  return receivers == JNI_TRUE ? numbers_of(env, info.receivers, info.receiver_count)
                               : numbers_of(env, info.senders, info.sender_count);
}

// --- what the rows are

// Names what the rows are. `reads`: these are the rows that are read, else those that are sent.
jint name_format(JNIEnv* env, jclass, jlong handle, jbyteArray format, jboolean reads) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  state->worker->enter();
  faro_shuffle* const shuffle = state->shuffle.get();
  const std::string text = text_of(env, format);
  return result(reads == JNI_TRUE ? faro_receiver_name_format(shuffle, text.c_str())
                                  : faro_sender_name_format(shuffle, text.c_str()));
}

// --- the query

// Whether the query still lives: a worker asks so that neither sends nor receives. A call that was
// refused does not end a query.
jint status(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  state->worker->enter();
  const faro_code code = faro_shuffle_status(state->shuffle.get());
  const bool lives = code == FARO_CODE_OK || last_error().category == FARO_CATEGORY_OPERATION;
  return lives ? 0 : result(code);
}

jint cancel(JNIEnv* env, jclass, jlong handle, jbyteArray reason) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return shuffle_closed();
  (void)faro_shuffle_cancel(state->shuffle.get(), text_of(env, reason).c_str());
  return 0;
}

// Closes; what it has counted can still be read.
void close(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return;
  state->worker->enter();
  state->batches.clear();
  (void)faro_shuffle_close(state->shuffle.get());  // there is one
}

// Closes if it is open, and ends the handle.
void destroy(JNIEnv*, jclass, jlong handle) {
  const std::unique_ptr<ShuffleState> state = shuffles().remove(handle);
  if (state == nullptr) return;
  state->worker->enter();
  state->batches.clear();
  state->shuffle.reset();
}

const std::array kMethods{
    method("layout", "([I)V", layout),    method("addresses", "(J[J)V", addresses),
    method("workers", "(JZ)[I", workers), method("nameFormat", "(J[BZ)I", name_format),
    method("status", "(J)I", status),     method("cancel", "(J[B)I", cancel),
    method("close", "(J)V", close),       method("destroy", "(J)V", destroy)};

}  // namespace

const Natives kShuffleNatives{"io/faro/Shuffle", kMethods};

}  // namespace faro::jni
