// io.faro.Shuffle
#include "faro/shuffle.h"

#include <jni.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "api/shuffle_access.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

jint closed() { return fail(Code::closed, "the shuffle was closed"); }

jint answer(const ShuffleState& state, Outcome outcome) {
  return result(outcome, [&] {
    Status status = state.shuffle.status();
    if (status.ok() && state.session->ready_watch.stopped())
      return Status(Code::session_closed, "the session was closed");
    return status;
  });
}

// --- memory that Java reads and writes without a call

// In the order of Shuffle.java's `Layout`: sizeof cursor, offsets of at and end; sizeof descriptor,
// offsets of bytes, row_count, sender, ring, offset, row_bytes.
void layout(JNIEnv* env, jclass, jintArray to) {
  const std::array<jint, 10> values{
      sizeof(detail::OutboxCursor),        offsetof(detail::OutboxCursor, at),
      offsetof(detail::OutboxCursor, end), sizeof(FrameDescriptor),
      offsetof(FrameDescriptor, bytes),    offsetof(FrameDescriptor, row_count),
      offsetof(FrameDescriptor, sender),   offsetof(FrameDescriptor, ring),
      offsetof(FrameDescriptor, offset),   offsetof(FrameDescriptor, row_bytes)};
  env->SetIntArrayRegion(to, 0, values.size(), values.data());
}

jobject descriptor(JNIEnv* env, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return nullptr;
  return env->NewDirectByteBuffer(&state->descriptor, sizeof(FrameDescriptor));
}

template <typename Element>
jobject map(JNIEnv* env, std::vector<Element>& elements) {
  if (elements.empty()) return nullptr;  // no sender
  return env->NewDirectByteBuffer(elements.data(),
                                  static_cast<jlong>(elements.size() * sizeof(Element)));
}
jobject cursors(JNIEnv* env, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  return state == nullptr ? nullptr : map(env, ShuffleAccess::core(state->shuffle).cursors());
}
jobject frame_rows(JNIEnv* env, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  return state == nullptr ? nullptr : map(env, ShuffleAccess::core(state->shuffle).frame_rows());
}

// What is left of the open frame for a receiver, where it does not lie in its ring.
jobject open_frame(JNIEnv* env, jclass, jlong handle, jint receiver) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return nullptr;
  const auto& all = ShuffleAccess::core(state->shuffle).cursors();
  if (static_cast<size_t>(receiver) >= all.size()) return nullptr;
  const detail::OutboxCursor& cursor = all[static_cast<size_t>(receiver)];
  if (cursor.at == cursor.end) return nullptr;
  return env->NewDirectByteBuffer(cursor.at, cursor.end - cursor.at);
}

// --- sending

// Opens a frame with room for a row, which Java then writes. A row above a frame's size gets none:
// see `send`.
jint make_room(JNIEnv*, jclass, jlong handle, jint receiver, jint bytes, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  return answer(*state, state->worker->run(timeout_ns, [&] {
    RowClaim claim;  // its destruction leaves the room
    return state->shuffle.try_claim(static_cast<uint32_t>(receiver), static_cast<size_t>(bytes),
                                    claim);
  }));
}

std::vector<std::byte> row_of(JNIEnv* env, jbyteArray from, jint begin, jint bytes) {
  std::vector<std::byte> row(static_cast<size_t>(bytes));
  env->GetByteArrayRegion(from, begin, bytes, reinterpret_cast<jbyte*>(row.data()));
  return row;
}

// Sends one row, which lies in `from`.
jint send(JNIEnv* env, jclass, jlong handle, jint receiver, jbyteArray from, jint begin, jint bytes,
          jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  const std::vector<std::byte> row = row_of(env, from, begin, bytes);
  return answer(*state, state->worker->run(timeout_ns, [&] {
    return state->shuffle.try_send(static_cast<uint32_t>(receiver), row);
  }));
}

// The same to several receivers; null: to all.
jint multicast(JNIEnv* env, jclass, jlong handle, jintArray to, jbyteArray from, jint begin,
               jint bytes, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  const std::vector<std::byte> row = row_of(env, from, begin, bytes);
  if (to == nullptr) {
    return answer(
        *state, state->worker->run(timeout_ns, [&] { return state->shuffle.try_broadcast(row); }));
  }
  const std::vector<uint32_t> receivers = numbers_of(env, to);
  return answer(*state, state->worker->run(timeout_ns, [&] {
    return state->shuffle.try_multicast(receivers, row);
  }));
}

jobject staged_rows(JNIEnv* env, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  return state == nullptr ? nullptr : map(env, state->staged);
}

// Sends what Java has staged, each row to the receiver of its value. The number of rows taken, with the outcome above it (32 bits each); or the negative
// code.
jlong send_staged(JNIEnv*, jclass, jlong handle, jint count, jint partition) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->core.adopt();
  const Result<RowSender<jlong>> sender = state->shuffle.sender<jlong>();
  if (!sender.ok()) return fail(sender.status());
  const std::span<const jlong> rows(state->staged.data(), static_cast<size_t>(count));
  const auto key_of = [](jlong row) { return static_cast<uint64_t>(row); };
  Outcome outcome = Outcome::done;
  const size_t taken = partition == kFinalizerPartition
                           ? sender->try_send_all(rows, FinalizerHash{}, key_of, outcome)
                           : sender->try_send_all(rows, MultiplicativeHash{}, key_of, outcome);
  const jint answered = answer(*state, outcome);
  return answered < 0 ? answered : (jlong{answered} << 32) | static_cast<jlong>(taken);
}

jint flush(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->core.adopt();
  // Flushing answers nothing, but a loop that neither sends nor receives asks by it whether its query still lives.
  const bool failed = ShuffleAccess::core(state->shuffle).query()->failed();
  state->shuffle.flush();
  return failed ? answer(*state, Outcome::failed) : 0;
}

jint finish(JNIEnv*, jclass, jlong handle, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  return answer(*state,
                state->worker->run(timeout_ns, [&] { return state->shuffle.try_finish(); }));
}

// --- receiving

void describe(ShuffleState& state, const Batch& batch) {
  FrameDescriptor& to = state.descriptor;
  const std::span<const std::byte> bytes = batch.bytes();
  to.bytes = static_cast<int64_t>(bytes.size());
  to.row_count = static_cast<int32_t>(batch.row_count());
  to.sender = static_cast<int32_t>(batch.sender());
  to.row_bytes = static_cast<int32_t>(batch.row_bytes());
  to.ring = -1;
  detail::WorkerCore& worker = state.worker->core;
  const auto rings = static_cast<uint32_t>(worker.node().settings().rings_per_lane);
  for (uint32_t k = 0; k < rings; ++k) {
    const std::span<const std::byte> memory = worker.incoming_memory(batch.sender(), k);
    if (bytes.data() < memory.data() || bytes.data() >= memory.data() + memory.size()) continue;
    to.ring = static_cast<int32_t>(k);
    to.offset = static_cast<int32_t>(bytes.data() - memory.data());
  }
}

// Polls into Java's frame `number`, after giving back what it held; `sender` -1: of any sender.
jint poll(JNIEnv*, jclass, jlong handle, jint number, jint sender, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  const auto index = static_cast<size_t>(number);
  if (index >= state->frames.size()) state->frames.resize(index + 1);
  Batch& batch = state->frames[index];
  const Outcome outcome = state->worker->run(timeout_ns, [&] {
    return sender < 0 ? state->shuffle.try_poll(batch)
                      : state->shuffle.try_poll_from(static_cast<uint32_t>(sender), batch);
  });
  if (outcome == Outcome::done) describe(*state, batch);
  return answer(*state, outcome);
}

// The rows of a frame that lies in memory of its own.
jobject frame_memory(JNIEnv* env, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr || static_cast<size_t>(number) >= state->frames.size()) return nullptr;
  const std::span<const std::byte> bytes = state->frames[static_cast<size_t>(number)].bytes();
  return env->NewDirectByteBuffer(const_cast<std::byte*>(bytes.data()),
                                  static_cast<jlong>(bytes.size()));
}

// Copies them; `to` has room for them.
void copy_frame(JNIEnv* env, jclass, jlong handle, jint number, jobject to) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr || static_cast<size_t>(number) >= state->frames.size()) return;
  const std::span<const std::byte> bytes = state->frames[static_cast<size_t>(number)].bytes();
  std::memcpy(env->GetDirectBufferAddress(to), bytes.data(), bytes.size());
}

jint release(JNIEnv*, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->core.adopt();
  if (static_cast<size_t>(number) < state->frames.size())
    state->frames[static_cast<size_t>(number)].release();
  return 0;
}

jint detach(JNIEnv*, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->core.adopt();
  if (static_cast<size_t>(number) >= state->frames.size()) return 0;
  return result(state->frames[static_cast<size_t>(number)].detach());
}

jint stop(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->core.adopt();
  state->shuffle.stop();
  return 0;
}

// --- the query

jint cancel(JNIEnv* env, jclass, jlong handle, jbyteArray reason) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->shuffle.cancel(text_of(env, reason));
  return 0;
}

void close(JNIEnv*, jclass, jlong handle) {
  const std::unique_ptr<ShuffleState> state = shuffles().remove(handle);
  if (state == nullptr) return;
  state->worker->core.adopt();
  state->frames.clear();
  state->shuffle.close();
}

const std::array kMethods{method("layout", "([I)V", layout),
                          method("descriptor", "(J)Ljava/nio/ByteBuffer;", descriptor),
                          method("cursors", "(J)Ljava/nio/ByteBuffer;", cursors),
                          method("frameRows", "(J)Ljava/nio/ByteBuffer;", frame_rows),
                          method("openFrame", "(JI)Ljava/nio/ByteBuffer;", open_frame),
                          method("makeRoom", "(JIIJ)I", make_room),
                          method("send", "(JI[BIIJ)I", send),
                          method("multicast", "(J[I[BIIJ)I", multicast),
                          method("stagedRows", "(J)Ljava/nio/ByteBuffer;", staged_rows),
                          method("sendStaged", "(JII)J", send_staged),
                          method("flush", "(J)I", flush),
                          method("finish", "(JJ)I", finish),
                          method("poll", "(JIIJ)I", poll),
                          method("frameMemory", "(JI)Ljava/nio/ByteBuffer;", frame_memory),
                          method("copyFrame", "(JILjava/nio/ByteBuffer;)V", copy_frame),
                          method("release", "(JI)I", release),
                          method("detach", "(JI)I", detach),
                          method("stop", "(J)I", stop),
                          method("cancel", "(J[B)I", cancel),
                          method("close", "(J)V", close)};

}  // namespace

const Natives kShuffleNatives{"io/faro/Shuffle", kMethods};

}  // namespace faro::jni
