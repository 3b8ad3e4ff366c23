// io.faro.Aggregation
#include <jni.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "faro/c.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

constexpr size_t kColumnInts = 4;
constexpr size_t kAggregateInts = 3 + kColumnInts;

faro_column column_at(const uint32_t* ints) {
  return {static_cast<int32_t>(ints[0]), static_cast<int32_t>(ints[1]), ints[2], ints[3]};
}

jint aggregation_closed() { return fail(FARO_CODE_CLOSED, "the aggregation was closed"); }

// The handle, or the negative code. A column is four numbers: type, nullable, scale, precision; an aggregate its function, its column,
// whether its result is named, and that result.
jlong make(JNIEnv* env, jclass, jlong session, jint worker, jlong counter, jlong incarnation,
           jint issuer, jint stage, jintArray senders, jintArray receivers, jintArray columns,
           jintArray keys, jintArray aggregates) {
  auto state = std::make_unique<AggregationState>();
  state->session = sessions().find(session);
  if (state->session != nullptr) state->worker = state->session->worker(worker);
  if (state->worker == nullptr) return session_closed();
  const std::vector<uint32_t> from = numbers_of(env, senders), to = numbers_of(env, receivers);
  const std::vector<uint32_t> of_keys = numbers_of(env, keys);
  const std::vector<uint32_t> column_ints = numbers_of(env, columns);
  const std::vector<uint32_t> aggregate_ints = numbers_of(env, aggregates);
  std::vector<faro_column> of_rows;
  for (size_t i = 0; i + kColumnInts <= column_ints.size(); i += kColumnInts)
    of_rows.push_back(column_at(&column_ints[i]));
  std::vector<faro_aggregate> functions;
  for (size_t i = 0; i + kAggregateInts <= aggregate_ints.size(); i += kAggregateInts) {
    const uint32_t* const ints = &aggregate_ints[i];
    functions.push_back({static_cast<int32_t>(ints[0]), ints[1], static_cast<int32_t>(ints[2]), 0,
                         column_at(ints + 3)});
  }
  faro_aggregation_spec spec{};
  spec.size = sizeof spec;
  spec.query = query_of(counter, incarnation, issuer);
  spec.stage = static_cast<uint32_t>(stage);
  spec.senders = from.data();
  spec.sender_count = static_cast<uint32_t>(from.size());
  spec.receivers = to.data();
  spec.receiver_count = static_cast<uint32_t>(to.size());
  spec.columns = of_rows.data();
  spec.column_count = static_cast<uint32_t>(of_rows.size());
  spec.keys = of_keys.data();
  spec.key_count = static_cast<uint32_t>(of_keys.size());
  spec.aggregates = functions.data();
  spec.aggregate_count = static_cast<uint32_t>(functions.size());
  state->worker->enter();
  faro_aggregation* made = nullptr;
  const faro_code code = faro_worker_make_aggregation(state->worker->handle, &spec, &made);
  if (code != FARO_CODE_OK) return result(code);
  state->aggregation.reset(made);
  state->added.size = sizeof state->added;
  state->groups.size = sizeof state->groups;
  return aggregations().add(std::move(state));
}

// The columns of groups, four numbers each.
jintArray columns(JNIEnv* env, jclass, jlong handle) {
  const AggregationState* const state = aggregations().find(handle);
  if (state == nullptr) return nullptr;
  faro_aggregation_info info{};
  info.size = sizeof info;
  (void)faro_aggregation_describe(state->aggregation.get(), &info);  // both are there
  std::vector<uint32_t> ints;
  for (uint32_t i = 0; i < info.column_count; ++i) {
    const faro_column& column = info.columns[i];
    ints.insert(ints.end(),
                {static_cast<uint32_t>(column.type), static_cast<uint32_t>(column.nullable),
                 column.scale, column.precision});
  }
  return numbers_of(env, ints.data(), static_cast<uint32_t>(ints.size()));
}

// Stores where Java reads what a call has told: how many rows and bytes were added, and of the groups that came their address, their
// bytes and how many they are.
void addresses(JNIEnv* env, jclass, jlong handle, jlongArray to) {
  AggregationState* const state = aggregations().find(handle);
  if (state == nullptr) return;
  const std::array<jlong, 5> values{address_of(&state->added.rows), address_of(&state->added.bytes),
                                    address_of(&state->groups.address),
                                    address_of(&state->groups.bytes),
                                    address_of(&state->groups.row_count)};
  env->SetLongArrayRegion(to, 0, values.size(), values.data());
}

// Adds rows, over all attempts, of which each goes on where the one before has ended.
jint add(JNIEnv*, jclass, jlong handle, jlong rows, jlong bytes, jlong timeout_ns) {
  AggregationState* const state = aggregations().find(handle);
  if (state == nullptr) return aggregation_closed();
  uint64_t added_rows = 0, at = 0;
  const faro_outcome outcome = state->worker->run(timeout_ns, [&] {
    const faro_outcome some =
        faro_aggregation_add(state->aggregation.get(), memory_at<const char>(rows) + at,
                             static_cast<size_t>(bytes) - at, FARO_WAIT_NONE, &state->added);
    added_rows += state->added.rows;
    at += state->added.bytes;
    return some;
  });
  state->added.rows = added_rows;
  state->added.bytes = at;
  return answer(outcome);
}

jint finish(JNIEnv*, jclass, jlong handle, jlong timeout_ns) {
  AggregationState* const state = aggregations().find(handle);
  if (state == nullptr) return aggregation_closed();
  return answer(state->worker->run(timeout_ns, [&] {
    return faro_aggregation_finish(state->aggregation.get(), FARO_WAIT_NONE);
  }));
}

jint next(JNIEnv*, jclass, jlong handle, jlong timeout_ns) {
  AggregationState* const state = aggregations().find(handle);
  if (state == nullptr) return aggregation_closed();
  return answer(state->worker->run(timeout_ns, [&] {
    return faro_aggregation_next(state->aggregation.get(), FARO_WAIT_NONE, &state->groups);
  }));
}

jint stop(JNIEnv*, jclass, jlong handle) {
  AggregationState* const state = aggregations().find(handle);
  if (state == nullptr) return aggregation_closed();
  state->worker->enter();
  return answer(faro_aggregation_stop(state->aggregation.get()));
}

// In the order of the components of AggregationMetrics.java.
jint metrics(JNIEnv* env, jclass, jlong handle, jlongArray to) {
  AggregationState* const state = aggregations().find(handle);
  if (state == nullptr) return aggregation_closed();
  faro_aggregation_metrics now{};
  now.size = sizeof now;
  (void)faro_aggregation_read_metrics(state->aggregation.get(), &now);  // both are there
  const std::array<uint64_t, 10> values{
      now.rows,          now.rows_passed,  now.states_sent,       now.states_received,
      now.groups,        now.table_states, now.most_table_states, now.partitions_split,
      now.spilled_bytes, now.peak_bytes};
  env->SetLongArrayRegion(to, 0, values.size(), reinterpret_cast<const jlong*>(values.data()));
  return 0;
}

void destroy(JNIEnv*, jclass, jlong handle) {
  const std::unique_ptr<AggregationState> state = aggregations().remove(handle);
  if (state == nullptr) return;
  state->worker->enter();
  state->aggregation.reset();
}

const std::array kMethods{method("make", "(JIJJII[I[I[I[I[I)J", make),
                          method("columns", "(J)[I", columns),
                          method("addresses", "(J[J)V", addresses),
                          method("add", "(JJJJ)I", add),
                          method("finish", "(JJ)I", finish),
                          method("next", "(JJ)I", next),
                          method("stop", "(J)I", stop),
                          method("metrics", "(J[J)I", metrics),
                          method("destroy", "(J)V", destroy)};

}  // namespace

const Natives kAggregationNatives{"io/faro/Aggregation", kMethods};

}  // namespace faro::jni
