// io.faro.NativeMetrics
#include <jni.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "faro/c.h"
#include "jni/endpoint_objects.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"

namespace faro::jni {
namespace {

template <typename Metrics>
struct Counter {
  const char* name;
  uint64_t Metrics::*value;
};

#define FARO_COUNTER(name) \
  Counter<Metrics> { #name, &Metrics::name }

// The counters of each kind, in the order of its record in Java.
template <typename T>
struct Counters;

template <>
struct Counters<faro_session_metrics> {
  using Metrics = faro_session_metrics;
  static constexpr std::array kAll{
      FARO_COUNTER(overflow_memory_bytes), FARO_COUNTER(overflow_memory_peak_bytes),
      FARO_COUNTER(overflow_file_bytes),   FARO_COUNTER(overflow_file_peak_bytes),
      FARO_COUNTER(queries_running),       FARO_COUNTER(queries_failed),
      FARO_COUNTER(untaken_frames),        FARO_COUNTER(untaken_streams)};
};

template <>
struct Counters<faro_worker_metrics> {
  using Metrics = faro_worker_metrics;
  static constexpr std::array kAll{FARO_COUNTER(rows_sent),
                                   FARO_COUNTER(rows_received),
                                   FARO_COUNTER(rows_dropped),
                                   FARO_COUNTER(waits),
                                   FARO_COUNTER(sleeps),
                                   FARO_COUNTER(blocked_ns),
                                   FARO_COUNTER(frames_spilled),
                                   FARO_COUNTER(bytes_spilled),
                                   FARO_COUNTER(frames_out_overflow),
                                   FARO_COUNTER(bytes_out_overflow),
                                   FARO_COUNTER(open_shuffles),
                                   FARO_COUNTER(operations),
                                   FARO_COUNTER(held_frames)};
};

template <>
struct Counters<faro_ring_traffic> {
  using Metrics = faro_ring_traffic;
  static constexpr std::array kAll{
      FARO_COUNTER(frames_sent),        FARO_COUNTER(bytes_sent),
      FARO_COUNTER(transfers),          FARO_COUNTER(no_room),
      FARO_COUNTER(frames_received),    FARO_COUNTER(bytes_received),
      FARO_COUNTER(read_notifications), FARO_COUNTER(unreleased_bytes)};
};

// After those of its rings.
template <>
struct Counters<faro_link_metrics> {
  using Metrics = faro_link_metrics;
  static constexpr std::array kAll{
      FARO_COUNTER(posts),          FARO_COUNTER(writes),          FARO_COUNTER(notifications),
      FARO_COUNTER(credit_returns), FARO_COUNTER(signalled_posts), FARO_COUNTER(completions),
      FARO_COUNTER(network_events), FARO_COUNTER(turns),           FARO_COUNTER(turn_bytes)};
};

template <>
struct Counters<faro_operator_metrics> {
  using Metrics = faro_operator_metrics;
  static constexpr std::array kAll{FARO_COUNTER(rows_in),
                                   FARO_COUNTER(rows_out),
                                   FARO_COUNTER(states_sent),
                                   FARO_COUNTER(rows_arrived),
                                   FARO_COUNTER(partitions_spilled),
                                   FARO_COUNTER(spilled_bytes),
                                   FARO_COUNTER(partitions_split),
                                   FARO_COUNTER(passes),
                                   FARO_COUNTER(table_states),
                                   FARO_COUNTER(held_bytes),
                                   FARO_COUNTER(peak_bytes)};
};

template <>
struct Counters<faro_shuffle_metrics> {
  using Metrics = faro_shuffle_metrics;
  static constexpr std::array kAll{FARO_COUNTER(blocked_on_room), FARO_COUNTER(blocked_on_room_ns),
                                   FARO_COUNTER(blocked_on_rows), FARO_COUNTER(blocked_on_rows_ns)};
};

template <>
struct Counters<faro_sent_metrics> {
  using Metrics = faro_sent_metrics;
  static constexpr std::array kAll{FARO_COUNTER(rows),
                                   FARO_COUNTER(bytes),
                                   FARO_COUNTER(frames),
                                   FARO_COUNTER(no_room),
                                   FARO_COUNTER(rows_out_overflow),
                                   FARO_COUNTER(bytes_out_overflow)};
};

template <>
struct Counters<faro_received_metrics> {
  using Metrics = faro_received_metrics;
  static constexpr std::array kAll{FARO_COUNTER(rows), FARO_COUNTER(bytes), FARO_COUNTER(batches),
                                   FARO_COUNTER(rows_spilled), FARO_COUNTER(bytes_spilled)};
};

template <>
struct Counters<faro_endpoint_metrics> {
  using Metrics = faro_endpoint_metrics;
  static constexpr std::array kAll{FARO_COUNTER(channels_opened), FARO_COUNTER(channels_closed),
                                   FARO_COUNTER(channels_lost),   FARO_COUNTER(channels_refused),
                                   FARO_COUNTER(memory_bytes),    FARO_COUNTER(memory_limit_bytes),
                                   FARO_COUNTER(polls),           FARO_COUNTER(events),
                                   FARO_COUNTER(waits),           FARO_COUNTER(sleeps)};
};

// After those of its rings.
template <>
struct Counters<faro_channel_metrics> {
  using Metrics = faro_channel_metrics;
  static constexpr std::array kAll{FARO_COUNTER(mended)};
};

#undef FARO_COUNTER

// No counter is left out: they stand behind each other, after what they are of.
template <typename T>
constexpr size_t kCountersBytes = Counters<T>::kAll.size() * sizeof(uint64_t);
static_assert(sizeof(faro_session_metrics) ==
              sizeof(uint64_t) + kCountersBytes<faro_session_metrics>);
static_assert(sizeof(faro_worker_metrics) ==
              2 * sizeof(uint64_t) + kCountersBytes<faro_worker_metrics>);
static_assert(sizeof(faro_ring_traffic) == kCountersBytes<faro_ring_traffic>);
static_assert(sizeof(faro_link_metrics) ==
              offsetof(faro_link_metrics, posts) + kCountersBytes<faro_link_metrics>);
static_assert(sizeof(faro_operator_metrics) ==
              offsetof(faro_operator_metrics, rows_in) + kCountersBytes<faro_operator_metrics>);
static_assert(sizeof(faro_sent_metrics) == sizeof(uint64_t) + kCountersBytes<faro_sent_metrics>);
static_assert(sizeof(faro_received_metrics) ==
              sizeof(uint64_t) + kCountersBytes<faro_received_metrics>);
static_assert(offsetof(faro_shuffle_metrics, sent) ==
              offsetof(faro_shuffle_metrics, blocked_on_room) +
                  kCountersBytes<faro_shuffle_metrics>);

static_assert(sizeof(faro_channel_metrics) ==
              offsetof(faro_channel_metrics, mended) + kCountersBytes<faro_channel_metrics>);
static_assert(offsetof(faro_endpoint_metrics, all) ==
              sizeof(uint64_t) + kCountersBytes<faro_endpoint_metrics>);

template <typename T>
void append_names(std::string& text, const char* of) {
  for (const Counter<T>& counter : Counters<T>::kAll)
    text.append(of).append("\t").append(counter.name).append("\n");
}

template <typename T>
void append_values(std::vector<jlong>& values, const T& metrics) {
  for (const Counter<T>& counter : Counters<T>::kAll)
    values.push_back(static_cast<jlong>(metrics.*counter.value));
}

jlongArray longs_of(JNIEnv* env, const std::vector<jlong>& values) {
  const auto length = static_cast<jsize>(values.size());
  const jlongArray array = env->NewLongArray(length);
  if (array != nullptr) env->SetLongArrayRegion(array, 0, length, values.data());
  return array;
}

// Numbers, and texts that belong to them, one per line.
struct Told {
  std::vector<jlong> values;
  std::string texts;
};

// Those of one kind, and how many.
struct ToldOfEach {
  Told all;
  jlong count = 0;

  void append_to(Told& told) const {
    told.values.push_back(count);
    told.values.insert(told.values.end(), all.values.begin(), all.values.end());
    told.texts.append(all.texts);
  }
};

// The two, for NativeMetrics.java. Null without memory: an exception is pending then.
jobjectArray told(JNIEnv* env, const Told& all) {
  const jclass object = env->FindClass("java/lang/Object");
  if (object == nullptr) return nullptr;
  const jobjectArray told = env->NewObjectArray(2, object, nullptr);
  if (told == nullptr) return nullptr;
  const jlongArray numbers = longs_of(env, all.values);
  if (numbers == nullptr) return nullptr;
  env->SetObjectArrayElement(told, 0, numbers);
  const jbyteArray texts = bytes_of(env, all.texts);
  if (texts == nullptr) return nullptr;
  env->SetObjectArrayElement(told, 1, texts);
  return told;
}

// One line per counter: of what, tab, name.
jbyteArray names(JNIEnv* env, jclass) {
  std::string text;
  append_names<faro_session_metrics>(text, "session");
  append_names<faro_worker_metrics>(text, "worker");
  append_names<faro_ring_traffic>(text, "link");
  append_names<faro_link_metrics>(text, "link");
  append_names<faro_ring_traffic>(text, "lane");
  append_names<faro_operator_metrics>(text, "operator");
  append_names<faro_shuffle_metrics>(text, "shuffle");
  append_names<faro_sent_metrics>(text, "sent");
  append_names<faro_received_metrics>(text, "received");
  append_names<faro_endpoint_metrics>(text, "endpoint");
  append_names<faro_ring_traffic>(text, "channel");
  append_names<faro_channel_metrics>(text, "channel");
  return bytes_of(env, text);
}

struct ToldOfSession {
  ToldOfEach links;
  ToldOfEach lanes;
};

void append_link(void* to, const faro_link_metrics* link) {
  auto& [all, count] = static_cast<ToldOfSession*>(to)->links;
  all.values.insert(all.values.end(), {link->node, link->connected});
  append_values(all.values, link->traffic);
  append_values(all.values, *link);
  all.texts.append(link->transport).append("\n");
  ++count;
}

void append_lane(void* to, const faro_lane_metrics* lane) {
  auto& [all, count] = static_cast<ToldOfSession*>(to)->lanes;
  all.values.insert(all.values.end(), {lane->sender, lane->receiver});
  append_values(all.values, lane->traffic);
  ++count;
}

// An operator: worker, kind, query, stage and counters; all of a kind: worker, kind and counters.
void append_operator(void* to, const faro_operator_metrics* told) {
  auto* const both = static_cast<std::array<ToldOfEach, 2>*>(to);
  auto& [all, count] = both->at(told->is_total);
  all.values.insert(all.values.end(), {told->worker, told->kind});
  if (told->is_total == 0) {
    all.values.insert(all.values.end(), {static_cast<jlong>(told->query.counter),
                                         static_cast<jlong>(told->query.incarnation),
                                         told->query.issuer, told->stage});
  }
  append_values(all.values, *told);
  ++count;
}

// What faro/c.h has answered. Workers, links, lanes, operators, and all of a kind: how many there are, and each of them; then
// the session's counters. A worker has its number and counters; a link its node, 1 if it is
// connected, and counters, and as text its transport; a lane sender, receiver and counters.
jobjectArray snapshot(JNIEnv* env, jclass, jlong handle) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  Told all;
  if (state == nullptr) {
    all.values.push_back(session_closed());
    return told(env, all);
  }
  faro_session_metrics metrics{};
  metrics.size = sizeof metrics;
  ToldOfSession session;
  faro_code read =
      faro_session_read_metrics(state->handle.get(), &metrics, append_link, append_lane, &session);
  std::array<ToldOfEach, 2> operators;
  if (read == FARO_CODE_OK)
    read = faro_session_read_operators(state->handle.get(), append_operator, &operators);
  all.values.push_back(result(read));
  all.values.push_back(static_cast<jlong>(state->workers.size()));
  for (const WorkerState& worker : state->workers) {
    faro_worker_metrics counted{};
    counted.size = sizeof counted;
    (void)faro_worker_read_metrics(worker.handle, &counted);  // there is one
    all.values.push_back(counted.worker);
    append_values(all.values, counted);
  }
  session.links.append_to(all);
  session.lanes.append_to(all);
  for (const ToldOfEach& each : operators) each.append_to(all);
  append_values(all.values, metrics);
  return told(env, all);
}

// Appends of a shuffle: stage, worker, counters; how many receivers, the number and counters of each; the same of senders.
void append_shuffle(void* to, const faro_shuffle_metrics* shuffle) {
  auto& values = *static_cast<std::vector<jlong>*>(to);
  values.insert(values.end(), {shuffle->stage, shuffle->worker});
  append_values(values, *shuffle);
  values.push_back(shuffle->sent_count);
  for (uint32_t i = 0; i < shuffle->sent_count; ++i) {
    values.push_back(shuffle->sent[i].receiver);
    append_values(values, shuffle->sent[i]);
  }
  values.push_back(shuffle->received_count);
  for (uint32_t i = 0; i < shuffle->received_count; ++i) {
    values.push_back(shuffle->received[i].sender);
    append_values(values, shuffle->received[i]);
  }
}

// Puts what faro/c.h has answered, 0 or the negative code, before what was told of shuffles.
jlongArray told(JNIEnv* env, std::vector<jlong>& values, faro_code answered) {
  values.front() = result(answered);
  return longs_of(env, values);
}

// The metrics of each shuffle of a query.
jlongArray shuffles_of(JNIEnv* env, jclass, jlong handle, jlong counter, jlong incarnation,
                       jint issuer) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return longs_of(env, {session_closed()});
  const faro_query_id query = query_of(counter, incarnation, issuer);
  std::vector<jlong> values(1);
  return told(env, values,
              faro_session_read_shuffles(state->handle.get(), &query, append_shuffle, &values));
}

// The metrics of one shuffle.
jlongArray shuffle(JNIEnv* env, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return longs_of(env, {shuffle_closed()});
  std::vector<jlong> values(1);
  return told(env, values,
              faro_shuffle_read_metrics(state->shuffle.get(), append_shuffle, &values));
}

// Appends of a channel: its name, poller, counters; as text peer, address and transport.
void append_channel(void* to, const faro_channel_metrics* channel) {
  auto& [all, count] = *static_cast<ToldOfEach*>(to);
  all.values.insert(all.values.end(), {long_of(channel->channel), channel->poller});
  append_values(all.values, channel->traffic);
  append_values(all.values, *channel);
  for (const char* text : {channel->peer, channel->address, channel->transport})
    all.texts.append(text).append("\n");
  ++count;
}

// What faro/c.h has answered; the endpoint's counters; how many channels, and each; what all have carried.
jobjectArray endpoint(JNIEnv* env, jclass, jlong handle) {
  const std::shared_ptr<EndpointState> state = endpoints().find(handle);
  Told all;
  if (state == nullptr) {
    all.values.push_back(endpoint_closed());
    return told(env, all);
  }
  faro_endpoint_metrics metrics{};
  metrics.size = sizeof metrics;
  ToldOfEach channels;
  const faro_code answered =
      faro_endpoint_read_metrics(state->handle.get(), &metrics, append_channel, &channels);
  all.values.push_back(result(answered));
  append_values(all.values, metrics);
  channels.append_to(all);
  append_values(all.values, metrics.all);
  all.values.push_back(static_cast<jlong>(metrics.mended));
  return told(env, all);
}

const std::array kMethods{
    method("names", "()[B", names), method("snapshot", "(J)[Ljava/lang/Object;", snapshot),
    method("shuffles", "(JJJI)[J", shuffles_of), method("shuffle", "(J)[J", shuffle),
    method("endpoint", "(J)[Ljava/lang/Object;", endpoint)};

}  // namespace

const Natives kNativeMetricsNatives{"io/faro/NativeMetrics", kMethods};

}  // namespace faro::jni
