// io.faro.Shuffle
#include "faro/shuffle.h"

#include <jni.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
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
    const Status& refused = state.worker->refused;
    return refused.ok() ? state.shuffle.status() : refused;
  });
}

// --- memory that Java reads and writes without a call

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

jlong address_of(const void* memory) { return reinterpret_cast<jlong>(memory); }

// Of the descriptor, the staged rows, the cursors and the row counts, which all stay where they are
// until the shuffle is closed. The last two are 0 if this worker is no sender.
void addresses(JNIEnv* env, jclass, jlong handle, jlongArray to) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return;
  detail::ShuffleCore& core = ShuffleAccess::core(state->shuffle);
  const bool sends = !core.cursors().empty();
  const std::array<jlong, 4> values{address_of(&state->descriptor),
                                    address_of(state->staged.data()),
                                    sends ? address_of(core.cursors().data()) : 0,
                                    sends ? address_of(core.frame_rows().data()) : 0};
  env->SetLongArrayRegion(to, 0, values.size(), values.data());
}

// --- what the rows are

// As `format` says; and that is how rows are read (else how they are sent).
jint name_format(JNIEnv* env, jclass, jlong handle, jbyteArray format, jboolean reads) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  detail::ShuffleCore& core = ShuffleAccess::core(state->shuffle);
  const std::string text = text_of(env, format);
  return result(reads == JNI_TRUE ? core.receive_as(text) : core.send_as(text));
}

// --- sending

// Opens a frame with room for a row, which Java then writes. A row above a frame's size, or that will be dropped, gets
// memory of its own, whose address the descriptor has, until the next call: which is `commit`, or ends the claim.
jint make_room(JNIEnv*, jclass, jlong handle, jint receiver, jint bytes, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  return answer(*state, state->worker->run(timeout_ns, [&] {
    RowClaim claim;  // its destruction leaves the room in the frame
    const Outcome outcome = state->shuffle.try_claim(static_cast<uint32_t>(receiver),
                                                     static_cast<size_t>(bytes), claim);
    if (outcome == Outcome::done && ShuffleAccess::core(state->shuffle).is_claim_apart()) {
      state->descriptor.address = address_of(claim.data().data());
      state->worker->claim = std::move(claim);
    }
    return outcome;
  }));
}

// Sends the first bytes of a row with memory of its own. Never waits.
jint commit(JNIEnv*, jclass, jlong handle, jint bytes) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->core.adopt();
  return result(std::exchange(state->worker->claim, {}).commit(static_cast<size_t>(bytes)));
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

// Sends what Java has staged, each row to the receiver of its value. The number of rows taken, with the outcome above it
// (32 bits each); or the negative code.
jlong send_staged(JNIEnv*, jclass, jlong handle, jint count, jint partition) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  if (!state->longs) {
    const Result<RowSender<jlong>> made = state->shuffle.sender<jlong>();
    if (!made.ok()) return fail(made.status());
    state->longs = *made;
  }
  const RowSender<jlong> sender = *state->longs;
  const std::span<const jlong> rows(state->staged.data(), static_cast<size_t>(count));
  const auto key_of = [](jlong row) { return static_cast<uint64_t>(row); };
  Outcome outcome = Outcome::done;
  const size_t taken = partition == kFinalizerPartition
                           ? sender.try_send_all(rows, FinalizerHash{}, key_of, outcome)
                           : sender.try_send_all(rows, MultiplicativeHash{}, key_of, outcome);
  const jint answered = answer(*state, outcome);
  return answered < 0 ? answered : (jlong{answered} << 32) | static_cast<jlong>(taken);
}

jint flush(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
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
  to.address = address_of(bytes.data());
  to.row_count = static_cast<int32_t>(batch.row_count());
  to.sender = static_cast<int32_t>(batch.sender());
  to.row_bytes = static_cast<int32_t>(batch.row_bytes());
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

jint release(JNIEnv*, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  if (static_cast<size_t>(number) < state->frames.size())
    state->frames[static_cast<size_t>(number)].release();
  return 0;
}

jint detach(JNIEnv*, jclass, jlong handle, jint number) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  if (static_cast<size_t>(number) >= state->frames.size()) return 0;
  Batch& batch = state->frames[static_cast<size_t>(number)];
  const Status detached = batch.detach();
  if (detached.ok()) describe(*state, batch);
  return result(detached);
}

jint stop(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
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
  state->worker->enter();
  state->frames.clear();
  state->shuffle.close();
}

const std::array kMethods{method("layout", "([I)V", layout),
                          method("addresses", "(J[J)V", addresses),
                          method("nameFormat", "(J[BZ)I", name_format),
                          method("makeRoom", "(JIIJ)I", make_room),
                          method("commit", "(JI)I", commit),
                          method("send", "(JI[BIIJ)I", send),
                          method("multicast", "(J[I[BIIJ)I", multicast),
                          method("sendStaged", "(JII)J", send_staged),
                          method("flush", "(J)I", flush),
                          method("finish", "(JJ)I", finish),
                          method("poll", "(JIIJ)I", poll),
                          method("release", "(JI)I", release),
                          method("detach", "(JI)I", detach),
                          method("stop", "(J)I", stop),
                          method("cancel", "(J[B)I", cancel),
                          method("close", "(J)V", close)};

}  // namespace

const Natives kShuffleNatives{"io/faro/Shuffle", kMethods};

}  // namespace faro::jni
