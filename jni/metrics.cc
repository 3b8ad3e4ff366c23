// io.faro.NativeMetrics
#include "faro/metrics.h"

#include <jni.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

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
  { #name, &Metrics::name }

template <typename T>
struct Counters;

template <>
struct Counters<SessionMetrics> {
  using Metrics = SessionMetrics;
  static constexpr const char* kOf = "session";
  static constexpr Counter<Metrics> kAll[] = {
      FARO_COUNTER(overflow_memory_bytes), FARO_COUNTER(overflow_memory_peak_bytes),
      FARO_COUNTER(overflow_file_bytes),   FARO_COUNTER(overflow_file_peak_bytes),
      FARO_COUNTER(queries_running),       FARO_COUNTER(queries_failed)};
};

template <>
struct Counters<WorkerMetrics> {
  using Metrics = WorkerMetrics;
  static constexpr const char* kOf = "worker";
  static constexpr Counter<Metrics> kAll[] = {FARO_COUNTER(rows_sent),
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
struct Counters<LinkMetrics> {
  using Metrics = LinkMetrics;
  static constexpr const char* kOf = "link";
  static constexpr Counter<Metrics> kAll[] = {
      FARO_COUNTER(frames_sent),     FARO_COUNTER(bytes_sent),
      FARO_COUNTER(transfers),       FARO_COUNTER(frames_received),
      FARO_COUNTER(bytes_received),  FARO_COUNTER(read_notifications),
      FARO_COUNTER(posts),           FARO_COUNTER(writes),
      FARO_COUNTER(notifications),   FARO_COUNTER(credit_returns),
      FARO_COUNTER(signalled_posts), FARO_COUNTER(completions),
      FARO_COUNTER(network_events),  FARO_COUNTER(no_room),
      FARO_COUNTER(unreleased_bytes)};
};

template <>
struct Counters<LaneMetrics> {
  using Metrics = LaneMetrics;
  static constexpr const char* kOf = "lane";
  static constexpr Counter<Metrics> kAll[] = {
      FARO_COUNTER(frames_sent),    FARO_COUNTER(bytes_sent),
      FARO_COUNTER(transfers),      FARO_COUNTER(frames_received),
      FARO_COUNTER(bytes_received), FARO_COUNTER(read_notifications),
      FARO_COUNTER(no_room),        FARO_COUNTER(unreleased_bytes)};
};

#undef FARO_COUNTER

// No counter of faro/metrics.h is left out: they stand behind each other, after what they are of.
template <typename T>
constexpr size_t kCountersBytes = sizeof(Counters<T>::kAll) / sizeof(Counter<T>) * sizeof(uint64_t);
static_assert(sizeof(WorkerMetrics) == sizeof(uint64_t) + kCountersBytes<WorkerMetrics>);
static_assert(sizeof(LaneMetrics) == 2 * sizeof(uint32_t) + kCountersBytes<LaneMetrics>);
static_assert(sizeof(LinkMetrics) == sizeof(uint64_t) + sizeof(std::string) + sizeof(uint64_t) +
                                         kCountersBytes<LinkMetrics>);
static_assert(sizeof(SessionMetrics) ==
              3 * sizeof(std::vector<LaneMetrics>) + kCountersBytes<SessionMetrics>);

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

// One line per counter: of what, tab, name.
jbyteArray names(JNIEnv* env, jclass) {
  std::string text;
  append_names<SessionMetrics>(text);
  append_names<WorkerMetrics>(text);
  append_names<LinkMetrics>(text);
  append_names<LaneMetrics>(text);
  return bytes_of(env, text);
}

// What NativeMetrics.java reads: the numbers of workers, links and lanes; the session's counters;
// of each worker its number and counters; of each link its node, 1 if it is connected, and counters;
// of each lane sender, receiver and counters. Null if the session was closed.
jlongArray snapshot(JNIEnv* env, jclass, jlong handle) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return nullptr;
  const SessionMetrics metrics = state->session->metrics();
  std::vector<jlong> values;
  for (const size_t count : {metrics.workers.size(), metrics.links.size(), metrics.lanes.size()})
    values.push_back(static_cast<jlong>(count));
  append_values(values, metrics);
  for (const WorkerMetrics& worker : metrics.workers) {
    values.push_back(worker.worker);
    append_values(values, worker);
  }
  for (const LinkMetrics& link : metrics.links) {
    values.insert(values.end(), {link.node, link.connected ? 1 : 0});
    append_values(values, link);
  }
  for (const LaneMetrics& lane : metrics.lanes) {
    values.insert(values.end(), {lane.sender, lane.receiver});
    append_values(values, lane);
  }
  const auto length = static_cast<jsize>(values.size());
  const jlongArray array = env->NewLongArray(length);
  if (array != nullptr) env->SetLongArrayRegion(array, 0, length, values.data());
  return array;
}

// The transport of each link, one per line. Null if the session was closed.
jbyteArray transports(JNIEnv* env, jclass, jlong handle) {
  const std::shared_ptr<SessionState> state = sessions().find(handle);
  if (state == nullptr) return nullptr;
  std::string text;
  for (const LinkMetrics& link : state->session->metrics().links)
    text.append(link.transport).append("\n");
  return bytes_of(env, text);
}

const std::array kMethods{method("names", "()[B", names), method("snapshot", "(J)[J", snapshot),
                          method("transports", "(J)[B", transports)};

}  // namespace

const Natives kNativeMetricsNatives{"io/faro/NativeMetrics", kMethods};

}  // namespace faro::jni
