#include "endpoint/endpoint_counts.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/return_if_error.h"
#include "counters/endpoint_view.h"
#include "counters/prometheus_text.h"
#include "faro/config.h"

namespace faro::endpoint {
namespace {

using counters::ChannelLife;
using counters::Counter;

template <size_t N>
void put(std::array<char, N>& chars, std::string_view text) {
  chars = {};
  text.copy(chars.data(), N - 1);
}

// Adds each counter of a record, and clears it. A reader that sees one cleared also sees that counts are moved.
template <typename Record>
void move_counts(Record& from, Record& to) {
  auto* const source = reinterpret_cast<Counter*>(&from);
  auto* const sums = reinterpret_cast<Counter*>(&to);
  for (size_t i = 0; i < sizeof(Record) / sizeof(Counter); ++i) {
    counters::count(sums[i], source[i].load(std::memory_order_relaxed));
    source[i].store(0, std::memory_order_release);  // partner: EndpointCounterView::take
  }
}

Result<std::unique_ptr<counters::EndpointCounterView>> reader_of(
    const counters::EndpointFile& file) {
  return counters::EndpointCounterView::over([&file] { return file.memory(); });
}

ChannelTraffic traffic_of(const counters::ChannelCounts& counts) {
  return {.frames_sent = counts.sent.frames_sent,
          .bytes_sent = counts.sent.bytes_sent,
          .transfers = counts.sent.transfers,
          .no_room = counts.sent.no_room,
          .frames_received = counts.received.frames_received,
          .bytes_received = counts.received.bytes_received,
          .read_notifications = counts.received.read_notifications,
          .unreleased_bytes = counts.received.unreleased_bytes,
          .mended = counts.counters.mended};
}

}  // namespace

// An endpoint does not fail because its counters have no file: they then count in private memory. But if the user
// names a folder that does not exist, that is an error.
Status EndpointCounts::open(const EndpointSpec& spec) {
  const counters::EndpointShape shape{.cluster = settings_.cluster_id,
                                      .name = spec.name,
                                      .address = network_.local_address(),
                                      .poller_count = spec.poller_count,
                                      .channel_limit = spec.channel_limit};
  const base::Nanoseconds now = network_.reactor().clock().now_ns();
  // Simulated endpoints are not shown to other processes.
  const std::string folder = network_.wants_thread() ? settings_.counters_folder : "";
  auto made = counters::EndpointFile::make(shape, folder, now);
  if (made.status().code() == Code::config_invalid && folder != Config().get("counters.folder"))
    return made.status();
  if (!made.ok() && !folder.empty()) {
    base::log(LogLevel::warning, "{}: {} (counters.folder); faro stat will not see this endpoint",
              shape.address, made.status().message());
    made = counters::EndpointFile::make(shape, "", now);
  }
  if (!made.ok()) return made.status();
  file_ = std::move(*made);
  counters::set(file_->endpoint().memory_limit_bytes, settings_.memory_limit_bytes);
  if (settings_.metrics_listen.empty()) return Status::Ok();
  FARO_ASSIGN_OR_RETURN(auto access, metrics::ScrapeAccess::load(settings_));
  FARO_ASSIGN_OR_RETURN(auto reader, reader_of(*file_));
  const std::shared_ptr<counters::EndpointCounterView> view = std::move(reader);
  FARO_ASSIGN_OR_RETURN(metrics_, metrics::MetricsEndpoint::start(
                                      settings_.metrics_listen, std::move(access),
                                      [view] { return counters::prometheus_text(view->read()); }));
  base::log(LogLevel::info, "{}: metrics at {}", shape.address, metrics_->url());
  return Status::Ok();
}

// Its copies of the counters are gone with the call.
Result<EndpointMetrics> EndpointCounts::metrics() const {
  FARO_ASSIGN_OR_RETURN(const auto reader, reader_of(*file_));
  const counters::EndpointView view = reader->read();
  EndpointMetrics metrics;
  metrics.channels_opened = view.counters.channels_opened;
  metrics.channels_closed = view.counters.channels_closed;
  metrics.channels_lost = view.counters.channels_lost;
  metrics.channels_refused = view.counters.channels_refused;
  metrics.memory_bytes = view.counters.memory_bytes;
  metrics.memory_limit_bytes = view.counters.memory_limit_bytes;
  for (const counters::PollerValues& poller : view.pollers) {
    metrics.polls += poller.polls;
    metrics.events += poller.events;
    metrics.waits += poller.waits;
    metrics.sleeps += poller.sleeps;
  }
  for (const counters::ChannelView& channel : view.channels) {
    if (!channel.is_open()) continue;
    const ChannelId id{channel.index, static_cast<uint32_t>(channel.generation)};
    metrics.channels.push_back({id, channel.poller, channel.peer, channel.address,
                                channel.transport, traffic_of(channel.counts)});
  }
  metrics.all = traffic_of(view.all);
  return metrics;
}

void EndpointCounts::close() {
  const std::lock_guard lock(closing_);
  metrics_.reset();
  if (file_ == nullptr) return;
  counters::set(file_->endpoint().listening, 0);
  file_->remove_name();
}

counters::ChannelRecord& EndpointCounts::record_for(uint32_t index) {
  const auto record = file_->channel(index);
  if (record.ok()) return **record;
  if (!std::exchange(has_warned_, true)) {
    base::log(LogLevel::warning, "{}: {} (counters.folder); faro stat will not see all channels",
              network_.local_address(), record.status().message());
  }
  std::unique_ptr<counters::ChannelRecord>& own = own_[index];
  if (own == nullptr) own = std::make_unique<counters::ChannelRecord>();
  return *own;
}

// Null also if there was no memory to begin it.
EndpointCounts::Kept* EndpointCounts::find(ChannelId id) {
  const auto found = kept_.find(id.index);
  return found == kept_.end() ? nullptr : &found->second;
}

void EndpointCounts::advance(Kept& kept, ChannelLife life) {
  kept.state.life = life;
  kept.state.since_ns = network_.reactor().clock().now_ns();
  kept.record->state.store(kept.state);
}

void EndpointCounts::begin(ChannelId id, uint32_t poller, std::string_view peer,
                           std::string_view address, bool dialled) {
  counters::ChannelRecord& record = record_for(id.index);
  Kept& kept = kept_[id.index];
  kept = {&record, {}};
  kept.state.generation = id.generation;
  kept.state.poller = poller;
  kept.state.dialled = dialled ? 1 : 0;
  put(kept.state.peer, peer);
  put(kept.state.address, address);
  advance(kept, ChannelLife::opening);
}

void EndpointCounts::note_failure(ChannelId id, const Status& cause) {
  Kept* const kept = find(id);
  if (kept == nullptr) return;
  put(kept->state.failure, cause.message());
  kept->record->state.store(kept->state);
}

counters::ChannelRecord* EndpointCounts::note_opened(ChannelId id, links::LinkTable& links,
                                                     const ChannelInfo& info) {
  Kept& kept = kept_.at(id.index);
  counters::ChannelRecord& record = *kept.record;
  const links::Link& link = *links.find(id.index);
  link.data()->outgoing(0).count_in(record.outgoing);
  link.data()->incoming(0).count_in(record.incoming);
  links.count_mendings(id.index, record.counters.mended, record.counters.mending_ns);
  kept.state.incarnation = link.peer().incarnation;
  kept.state.send_bytes = info.send_bytes;
  kept.state.receive_bytes = info.receive_bytes;
  put(kept.state.peer, info.peer);
  put(kept.state.address, info.address);
  put(kept.state.transport, info.transport);
  kept.state.failure = {};
  advance(kept, ChannelLife::open);
  counters::count(file_->endpoint().channels_opened);
  counters::count(file_->endpoint().channels_open);
  return &record;
}

void EndpointCounts::note_draining(ChannelId id) {
  Kept* const kept = find(id);
  if (kept != nullptr && kept->state.life == ChannelLife::open)
    advance(*kept, ChannelLife::draining);
}

void EndpointCounts::note_ended(ChannelId id, const Status& cause) {
  Kept* const kept = find(id);
  if (kept == nullptr) return note_refused();
  counters::EndpointCounters& endpoint = file_->endpoint();
  const bool was_open = kept->state.life != ChannelLife::opening;
  const bool is_closed = cause.ok() || cause.code() == Code::closed;
  counters::count(!was_open   ? endpoint.channels_refused
                  : is_closed ? endpoint.channels_closed
                              : endpoint.channels_lost);
  if (was_open) counters::count(endpoint.channels_open, ~uint64_t{0});  // one less
  put(kept->state.failure, cause.message());
  advance(*kept, ChannelLife::ended);
}

void EndpointCounts::forget(ChannelId id) {
  Kept* const kept = find(id);
  if (kept == nullptr) return;
  counters::ChannelRecord& record = *kept->record;
  counters::EndedChannels& ended = file_->ended();
  counters::count(ended.moves);
  // What was of a moment is over.
  record.incoming.unreleased_bytes.store(0, std::memory_order_relaxed);
  record.counters.held_frames.store(0, std::memory_order_relaxed);
  record.counters.room_ns.store(0, std::memory_order_relaxed);
  record.counters.mending_ns.store(0, std::memory_order_relaxed);
  record.state.store({});
  move_counts(record.outgoing, ended.outgoing);
  move_counts(record.incoming, ended.incoming);
  move_counts(record.counters, ended.counters);
  ended.moves.store(ended.moves.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  kept_.erase(id.index);
}

}  // namespace faro::endpoint
