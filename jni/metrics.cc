// io.faro.NativeMetrics
#include "faro/metrics.h"

#include <jni.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faro/c.h"
#include "jni/endpoint_objects.h"
#include "jni/errors.h"
#include "jni/java_bytes.h"
#include "jni/natives.h"
#include "jni/objects.h"
#include "jni/shuffle_answers.h"

namespace faro::jni {
namespace {

template <typename Metrics>
struct Counter {
  const char* name;
  uint64_t Metrics::*value;
};

#define FARO_COUNTER(name) \
  Counter<Metrics> { #name, &Metrics::name }

// Those of rings, which lanes, links and channels have.
template <typename Metrics>
constexpr std::array kOfRings{FARO_COUNTER(frames_sent),        FARO_COUNTER(bytes_sent),
                              FARO_COUNTER(transfers),          FARO_COUNTER(no_room),
                              FARO_COUNTER(frames_received),    FARO_COUNTER(bytes_received),
                              FARO_COUNTER(read_notifications), FARO_COUNTER(unreleased_bytes)};

template <typename Metrics, size_t kFirst, size_t kMore>
constexpr auto joined(const std::array<Counter<Metrics>, kFirst>& first,
                      const std::array<Counter<Metrics>, kMore>& more) {
  std::array<Counter<Metrics>, kFirst + kMore> all{};
  std::copy(more.begin(), more.end(), std::copy(first.begin(), first.end(), all.begin()));
  return all;
}

// The counters of each kind, in the order of its record in Java.
template <typename T>
struct Counters;

template <>
struct Counters<SessionMetrics> {
  using Metrics = SessionMetrics;
  static constexpr const char* kOf = "session";
  static constexpr std::array kAll{
      FARO_COUNTER(overflow_memory_bytes), FARO_COUNTER(overflow_memory_peak_bytes),
      FARO_COUNTER(overflow_file_bytes),   FARO_COUNTER(overflow_file_peak_bytes),
      FARO_COUNTER(queries_running),       FARO_COUNTER(queries_failed)};
};

template <>
struct Counters<WorkerMetrics> {
  using Metrics = WorkerMetrics;
  static constexpr const char* kOf = "worker";
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
struct Counters<LaneMetrics> {
  static constexpr const char* kOf = "lane";
  static constexpr auto kAll = kOfRings<LaneMetrics>;
};

template <>
struct Counters<LinkMetrics> {
  using Metrics = LinkMetrics;
  static constexpr const char* kOf = "link";
  static constexpr auto kAll =
      joined(kOfRings<Metrics>,
             std::array{FARO_COUNTER(posts), FARO_COUNTER(writes), FARO_COUNTER(notifications),
                        FARO_COUNTER(credit_returns), FARO_COUNTER(signalled_posts),
                        FARO_COUNTER(completions), FARO_COUNTER(network_events)});
};

template <>
struct Counters<faro_shuffle_metrics> {
  using Metrics = faro_shuffle_metrics;
  static constexpr const char* kOf = "shuffle";
  static constexpr std::array kAll{FARO_COUNTER(blocked_on_room), FARO_COUNTER(blocked_on_room_ns),
                                   FARO_COUNTER(blocked_on_rows), FARO_COUNTER(blocked_on_rows_ns)};
};

template <>
struct Counters<faro_sent_metrics> {
  using Metrics = faro_sent_metrics;
  static constexpr const char* kOf = "sent";
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
  static constexpr const char* kOf = "received";
  static constexpr std::array kAll{FARO_COUNTER(rows), FARO_COUNTER(bytes), FARO_COUNTER(batches),
                                   FARO_COUNTER(rows_spilled), FARO_COUNTER(bytes_spilled)};
};

template <>
struct Counters<faro_endpoint_metrics> {
  using Metrics = faro_endpoint_metrics;
  static constexpr const char* kOf = "endpoint";
  static constexpr std::array kAll{FARO_COUNTER(channels_opened), FARO_COUNTER(channels_closed),
                                   FARO_COUNTER(channels_lost),   FARO_COUNTER(channels_refused),
                                   FARO_COUNTER(memory_bytes),    FARO_COUNTER(memory_limit_bytes),
                                   FARO_COUNTER(polls),           FARO_COUNTER(events),
                                   FARO_COUNTER(waits),           FARO_COUNTER(sleeps)};
};

template <>
struct Counters<faro_channel_traffic> {
  using Metrics = faro_channel_traffic;
  static constexpr const char* kOf = "channel";
  static constexpr auto kAll = joined(kOfRings<Metrics>, std::array{FARO_COUNTER(mended)});
};

#undef FARO_COUNTER

// No counter of faro/metrics.h is left out: they stand behind each other, after what they are of.
template <typename T>
constexpr size_t kCountersBytes = Counters<T>::kAll.size() * sizeof(uint64_t);
static_assert(sizeof(WorkerMetrics) == sizeof(uint64_t) + kCountersBytes<WorkerMetrics>);
static_assert(sizeof(LaneMetrics) == 2 * sizeof(uint32_t) + kCountersBytes<LaneMetrics>);
static_assert(sizeof(LinkMetrics) == sizeof(uint64_t) + sizeof(std::string) + sizeof(uint64_t) +
                                         kCountersBytes<LinkMetrics>);
static_assert(sizeof(SessionMetrics) ==
              4 * sizeof(std::vector<LaneMetrics>) + kCountersBytes<SessionMetrics>);
static_assert(sizeof(faro_sent_metrics) == sizeof(uint64_t) + kCountersBytes<faro_sent_metrics>);
static_assert(sizeof(faro_received_metrics) ==
              sizeof(uint64_t) + kCountersBytes<faro_received_metrics>);
static_assert(offsetof(faro_shuffle_metrics, sent) ==
              offsetof(faro_shuffle_metrics, blocked_on_room) +
                  kCountersBytes<faro_shuffle_metrics>);

static_assert(sizeof(faro_channel_traffic) == kCountersBytes<faro_channel_traffic>);
static_assert(offsetof(faro_endpoint_metrics, all) ==
              sizeof(uint64_t) + kCountersBytes<faro_endpoint_metrics>);

template <typename T>
void append_names(std::string& text) {
  for (const Counter<T>& counter : Counters<T>::kAll)
    text.append(Counters<T>::kOf).append("\t").append(counter.name).append("\n");
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
  append_names<SessionMetrics>(text);
  append_names<WorkerMetrics>(text);
  append_names<LinkMetrics>(text);
  append_names<LaneMetrics>(text);
  append_names<faro_shuffle_metrics>(text);
  append_names<faro_sent_metrics>(text);
  append_names<faro_received_metrics>(text);
  append_names<faro_endpoint_metrics>(text);
  append_names<faro_channel_traffic>(text);
  return bytes_of(env, text);
}

// Workers, links and lanes: how many there are, and each of them; then the session's counters. A
// worker has its number and counters; a link its node, 1 if it is connected, and counters, and as
// text its transport; a lane sender, receiver and counters. Null if the session was closed.
jobjectArray snapshot(JNIEnv* env, jclass, jlong handle) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return nullptr;
  const SessionMetrics metrics = state->session->metrics();
  Told all;
  std::vector<jlong>& values = all.values;
  values.push_back(static_cast<jlong>(metrics.workers.size()));
  for (const WorkerMetrics& worker : metrics.workers) {
    values.push_back(worker.worker);
    append_values(values, worker);
  }
  values.push_back(static_cast<jlong>(metrics.links.size()));
  for (const LinkMetrics& link : metrics.links) {
    values.insert(values.end(), {link.node, link.connected ? 1 : 0});
    append_values(values, link);
    all.texts.append(link.transport).append("\n");
  }
  values.push_back(static_cast<jlong>(metrics.lanes.size()));
  for (const LaneMetrics& lane : metrics.lanes) {
    values.insert(values.end(), {lane.sender, lane.receiver});
    append_values(values, lane);
  }
  append_values(values, metrics);
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
  if (state == nullptr)
    return longs_of(env, {fail(Code::session_closed, "the session was closed")});
  faro_query_id query{};
  query.counter = static_cast<uint64_t>(counter);
  query.incarnation = static_cast<uint64_t>(incarnation);
  query.issuer = static_cast<uint32_t>(issuer);
  std::vector<jlong> values(1);
  return told(env, values,
              faro_session_read_shuffles(state->handle.get(), &query, append_shuffle, &values));
}

// The metrics of one shuffle.
jlongArray shuffle(JNIEnv* env, jclass, jlong handle) {
  ShuffleState* const state = shuffles().find(handle);
  if (state == nullptr) return longs_of(env, {closed()});
  std::vector<jlong> values(1);
  return told(env, values,
              faro_shuffle_read_metrics(state->shuffle.get(), append_shuffle, &values));
}

struct ToldChannels {
  Told all;
  jlong count = 0;
};

// Appends of a channel: its name, poller, counters; as text peer, address and transport.
void append_channel(void* to, const faro_channel_metrics* channel) {
  auto& [all, count] = *static_cast<ToldChannels*>(to);
  all.values.insert(all.values.end(), {long_of(channel->channel), channel->poller});
  append_values(all.values, channel->traffic);
  for (const char* text : {channel->peer, channel->address, channel->transport})
    all.texts.append(text).append("\n");
  ++count;
}

// What faro/c.h has answered; the endpoint's counters; how many channels, and each; what all have carried.
jobjectArray endpoint(JNIEnv* env, jclass, jlong handle) {
  const std::shared_ptr<EndpointState> state = endpoints().find(handle);
  Told all;
  if (state == nullptr) {
    all.values.push_back(fail(Code::closed, "the endpoint was closed"));
    return told(env, all);
  }
  faro_endpoint_metrics metrics{};
  metrics.size = sizeof metrics;
  ToldChannels channels;
  const faro_code answered =
      faro_endpoint_read_metrics(state->handle.get(), &metrics, append_channel, &channels);
  all.values.push_back(result(answered));
  append_values(all.values, metrics);
  all.values.push_back(channels.count);
  const std::vector<jlong>& each = channels.all.values;
  all.values.insert(all.values.end(), each.begin(), each.end());
  append_values(all.values, metrics.all);
  all.texts = std::move(channels.all.texts);
  return told(env, all);
}

const std::array kMethods{
    method("names", "()[B", names), method("snapshot", "(J)[Ljava/lang/Object;", snapshot),
    method("shuffles", "(JJJI)[J", shuffles_of), method("shuffle", "(J)[J", shuffle),
    method("endpoint", "(J)[Ljava/lang/Object;", endpoint)};

}  // namespace

const Natives kNativeMetricsNatives{"io/faro/NativeMetrics", kMethods};

}  // namespace faro::jni
