// io.faro.ShuffleSender
#include "faro/shuffle.h"

#include <jni.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"
#include "jni/shuffle_answers.h"
#include "shuffle/shuffle_access.h"

namespace faro::jni {
namespace {

// Opens a frame with room for a row, which Java then writes. A row above a frame's size, or that will be dropped, gets
// memory of its own, whose address the descriptor has, until the next call: which is `commit`, or ends the claim.
jint make_room(JNIEnv*, jclass, jlong handle, jint receiver, jint bytes, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  shuffle::OpenShuffle& core = ShuffleAccess::core(state->shuffle);
  const auto try_claim = [&](RowClaim& claim) {
    return state->sender.claim(static_cast<uint32_t>(receiver), static_cast<size_t>(bytes), claim,
                               Wait::none());
  };
  return answer(*state, state->worker->run(timeout_ns, [&] {
    {
      RowClaim claim;  // its destruction leaves the room in the frame, unless the query has failed
      const Outcome outcome = try_claim(claim);
      if (outcome != Outcome::done) return outcome;
      if (core.sender()->is_claim_apart()) {
        state->descriptor.address = address_of(claim.data().data());
        state->worker->claim = std::move(claim);
        return outcome;
      }
    }
    if (!core.query()->failed()) return Outcome::done;
    RowClaim none;
    return try_claim(none);
  }));
}

// Sends the first bytes of a row with memory of its own. Never waits.
jint commit(JNIEnv*, jclass, jlong handle, jint bytes) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->core.ownership().adopt();
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
    return state->sender.send(static_cast<uint32_t>(receiver), row, Wait::none());
  }));
}

// The same to several receivers; null: to all.
jint multicast(JNIEnv* env, jclass, jlong handle, jintArray to, jbyteArray from, jint begin,
               jint bytes, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  const std::vector<std::byte> row = row_of(env, from, begin, bytes);
  if (to == nullptr) {
    return answer(*state, state->worker->run(timeout_ns, [&] {
      return state->sender.broadcast(row, Wait::none());
    }));
  }
  const std::vector<uint32_t> receivers = numbers_of(env, to);
  return answer(*state, state->worker->run(timeout_ns, [&] {
    return state->sender.multicast(receivers, row, Wait::none());
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
  const Sent sent = partition == kFinalizerPartition
                        ? sender.send_all(rows, FinalizerHash{}, key_of, Wait::none())
                        : sender.send_all(rows, MultiplicativeHash{}, key_of, Wait::none());
  const jint answered = answer(*state, sent.outcome);
  return answered < 0 ? answered : (jlong{answered} << 32) | static_cast<jlong>(sent.rows);
}

jint flush(JNIEnv*, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  state->worker->enter();
  return answer(*state, state->sender.flush());
}

jint finish(JNIEnv*, jclass, jlong handle, jlong timeout_ns) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return closed();
  return answer(*state,
                state->worker->run(timeout_ns, [&] { return state->sender.finish(Wait::none()); }));
}

const std::array kMethods{method("makeRoom", "(JIIJ)I", make_room),
                          method("commit", "(JI)I", commit),
                          method("send", "(JI[BIIJ)I", send),
                          method("multicast", "(J[I[BIIJ)I", multicast),
                          method("sendStaged", "(JII)J", send_staged),
                          method("flush", "(J)I", flush),
                          method("finish", "(JJ)I", finish)};

}  // namespace

const Natives kShuffleSenderNatives{"io/faro/ShuffleSender", kMethods};

}  // namespace faro::jni
