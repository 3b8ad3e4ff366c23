// EndpointCounts: what an endpoint counts for others to read: faro stat, top and explain, Prometheus.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "counters/endpoint_file.h"
#include "endpoint/poller_core.h"
#include "faro/endpoint.h"
#include "faro/status.h"
#include "links/link_table.h"
#include "links/network.h"
#include "metrics/metrics_endpoint.h"

namespace faro::endpoint {

/// Threads: network thread, except where said. A channel whose record finds no room in the file counts in memory of this process.
class EndpointCounts {
 public:
  /// Both outlive it.
  EndpointCounts(const base::Settings& settings, links::Network& network)
      : settings_(settings), network_(network) {}

  /// Makes the counters, and serves them at metrics.listen. Threads: the opening one, once, before
  /// all else. Errors: those of metrics.listen; config_invalid, a folder that was named and cannot
  /// be used; resource_limit.
  Status open(const EndpointSpec& spec);
  /// Stops showing them to other processes. Idempotent. Threads: any.
  void close();
  counters::PollerCounters& poller(uint32_t index) { return file_->poller(index); }
  /// What faro::Endpoint::metrics answers. Threads: any. Throws: std::bad_alloc.
  Result<EndpointMetrics> metrics() const;

  void listens(uint64_t incarnation) { file_->listens(incarnation); }
  /// A round of the network thread is over. `is_tick`: heartbeats were due. Also of an endpoint that has not opened.
  void note_round(bool is_tick, uint64_t memory_bytes) {
    if (file_ == nullptr) return;
    counters::EndpointCounters& endpoint = file_->endpoint();
    if (is_tick) counters::count(endpoint.ticks);
    counters::set(endpoint.memory_bytes, memory_bytes);
  }

  // --- the life of a channel

  /// It is dialled, or was accepted. `poller`: by number.
  void begin(ChannelId id, uint32_t poller, std::string_view peer, std::string_view address,
             bool dialled);
  /// A peer that asked for one does not get it.
  void note_refused() { counters::count(file_->endpoint().channels_refused); }
  /// An attempt to open it has failed.
  void note_failure(ChannelId id, const Status& cause);
  /// Its rings count in its record from now on. Returns it, for what its poller counts.
  counters::ChannelRecord* note_opened(ChannelId id, links::LinkTable& links,
                                       const ChannelInfo& info);
  void note_draining(ChannelId id);
  void note_ended(ChannelId id, const Status& cause);
  /// Nobody counts in its record any more: what it has counted is kept for the endpoint.
  void forget(ChannelId id);

 private:
  struct Kept {
    counters::ChannelRecord* record = nullptr;
    counters::ChannelState state;  // what the record has
  };

  Kept* find(ChannelId id);
  counters::ChannelRecord& record_for(uint32_t index);
  void advance(Kept& kept, counters::ChannelLife life);

  const base::Settings& settings_;
  links::Network& network_;
  std::unique_ptr<counters::EndpointFile> file_;
  std::map<uint32_t, Kept> kept_;  // by the index of the channel
  // The records of channels for which the file had no room once, by their index: rings of an ended
  // channel may still refer to them.
  std::map<uint32_t, std::unique_ptr<counters::ChannelRecord>> own_;
  bool has_warned_ = false;
  std::mutex closing_;
  std::unique_ptr<metrics::MetricsEndpoint> metrics_;  // null: not configured, or closed
};

}  // namespace faro::endpoint
