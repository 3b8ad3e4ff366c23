// io.faro.Shuffle
#include "faro/shuffle.h"

#include <jni.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"
#include "jni/shuffle_answers.h"
#include "shuffle/shuffle_access.h"

namespace faro::jni {
namespace {

// In the order of Shuffle.java's `Layout`: sizeof cursor, offsets of at and end; offsets in the
// descriptor of bytes, row_count, sender, address, row_bytes; rows that can be staged.
void layout(JNIEnv* env, jclass, jintArray to) {
  const std::array<jint, 9> values{sizeof(detail::OutboxCursor),
                                   offsetof(detail::OutboxCursor, at),
                                   offsetof(detail::OutboxCursor, end),
                                   offsetof(FrameDescriptor, bytes),
                                   offsetof(FrameDescriptor, row_count),
                                   offsetof(FrameDescriptor, sender),
                                   offsetof(FrameDescriptor, address),
                                   offsetof(FrameDescriptor, row_bytes),
                                   ShuffleState::kStagedRows};
  env->SetIntArrayRegion(to, 0, values.size(), values.data());
}

// Of the descriptor, the staged rows, the cursors and the row counts, which all stay where they are
// until the shuffle is closed. The last two are 0 if this worker is no sender.
void addresses(JNIEnv* env, jclass, jlong handle, jlongArray to) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return;
  shuffle::StageSender* const sender = ShuffleAccess::core(state->shuffle).sender();
  const std::array<jlong, 4> values{address_of(&state->descriptor),
                                    address_of(state->staged.data()),
                                    sender == nullptr ? 0 : address_of(sender->cursors()),
                                    sender == nullptr ? 0 : address_of(sender->frame_rows())};
  env->SetLongArrayRegion(to, 0, values.size(), values.data());
}

// --- what the rows are

// As `format` says; and that is how rows are read (else how they are sent).
jint name_format(JNIEnv* env, jclass, jlong handle, jbyteArray format, jboolean reads) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  shuffle::OpenShuffle& core = ShuffleAccess::core(state->shuffle);
  const std::string text = text_of(env, format);
  return result(reads == JNI_TRUE ? core.receive_as(text) : core.send_as(text));
}

// --- the query

// Whether the query still lives, for who neither sends nor receives.
jint status(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  const auto& query = *ShuffleAccess::core(state->shuffle).query();
  return query.failed() ? result(query.cause()) : 0;
}

jint cancel(JNIEnv* env, jclass, jlong handle, jbyteArray reason) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  (void)state->shuffle.cancel(text_of(env, reason));
  return 0;
}

void close(JNIEnv*, jclass, jlong handle) {
  const std::unique_ptr<ShuffleState> state = shuffles().remove(handle);
  if (state == nullptr) return;
  state->worker->enter();
  state->batches.clear();
  state->shuffle.close();
}

const std::array kMethods{method("layout", "([I)V", layout),
                          method("addresses", "(J[J)V", addresses),
                          method("nameFormat", "(J[BZ)I", name_format),
                          method("status", "(J)I", status),
                          method("cancel", "(J[B)I", cancel),
                          method("close", "(J)V", close)};

}  // namespace

const Natives kShuffleNatives{"io/faro/Shuffle", kMethods};

}  // namespace faro::jni
