#include "session/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/return_if_error.h"
#include "counters/counter_view.h"
#include "counters/prometheus_text.h"
#include "faro/config.h"
#include "links/link_memory.h"
#include "transport/shm/local_link.h"

namespace faro::session {
namespace {

uint32_t groups_of(const ring::Layout& rings) {
  constexpr uint32_t kPerGroup = ring::ReadySet::kRingsPerGroup;
  return (rings.rings_of_receiver() + kPerGroup - 1) / kPerGroup;
}

}  // namespace

uint64_t ready_set_count(const base::Settings& settings, uint64_t workers) {
  return workers + (settings.lanes_end_at_nodes() ? 1 : 0);
}

uint64_t lane_state_bytes(const base::Settings& settings, const ring::Layout& outgoing,
                          const ring::Layout& incoming) {
  const uint64_t workers = outgoing.sender_workers;
  const uint64_t tables = workers * groups_of(incoming) * ring::ReadySet::kRingsPerGroup;
  // For each sender a worker has rings of its own, a share in those that end at the node, or both.
  const uint64_t from_sender = workers * incoming.rings_of_receiver();
  const uint64_t own = settings.lanes_end_at_workers() ? from_sender : 0;
  const uint64_t shares = settings.lanes_end_at_nodes() ? from_sender : 0;
  const uint64_t node_rings = settings.lanes_end_at_nodes() ? incoming.rings_of_receiver() : 0;
  return outgoing.ring_count() * kOutgoingLaneRingBytes +
         (own + shares) * (kIncomingLaneRingBytes + settings.shuffle_limit * kLaneSlotBytes) +
         tables * sizeof(void*) + node_rings * kNodeRingBytes + shares * kRingShareBytes;
}

void Resources::LinkNeed::add(const base::Settings& settings, const transport::Transport& transport,
                              const ring::Layout& outgoing, const ring::Layout& incoming) {
  memory_bytes += links::link_bytes(transport, outgoing, incoming, settings.tls != "off") +
                  lane_state_bytes(settings, outgoing, incoming);
  pinned_bytes += transport.pinned_bytes(outgoing, incoming);
}

Resources::Resources(const base::Settings& settings, const Peers& peers, links::Network& network)
    : settings_(settings),
      peers_(peers),
      topology_(peers.topology()),
      network_(network),
      workers_(topology_.own().worker_count),
      ready_groups_(topology_.size(),
                    std::vector<uint32_t>(ready_set_count(settings, workers_.size()))),
      budget_(std::make_shared<links::MemoryBudget>(settings.memory_limit_bytes,
                                                    network.wants_thread())) {}

// -------------------------------------------------------------------------------------------- need

uint64_t Resources::fixed_memory_bytes() const {
  const ring::Layout own = topology_.outgoing(topology_.self());
  uint64_t counters = counters::CounterFile::bytes(counter_shape());
  for (uint32_t node = 0; node < topology_.size(); ++node) {
    if (node != topology_.self()) counters -= lane_bytes_on_demand(node);
  }
  return transport::shm::local_link_bytes(own) + lane_state_bytes(settings_, own, own) + counters +
         sizeof(ring::DoorbellLine) * workers_.size() +
         ring::ReadySet::bytes(ready_groups()) * ready_set_count(settings_, workers_.size());
}

uint32_t Resources::ready_groups() const {
  uint32_t groups = 0;
  for (uint32_t node = 0; node < topology_.size(); ++node)
    groups += groups_of(topology_.incoming(node));
  return groups;
}

uint32_t Resources::descriptors() const {
  uint32_t descriptors = links::kDescriptorsPerSession;
  peers_.for_each_wanted_at_open([&](uint32_t) { descriptors += links::kDescriptorsPerLink; });
  return descriptors;
}

uint64_t Resources::lane_bytes_on_demand(uint32_t node) const {
  if (topology_.node(node).wanted_for_good) return 0;
  const uint64_t senders = topology_.node(node).worker_count;
  const uint64_t ends = settings_.lanes_end_at_workers() ? senders : 1;
  return workers_.size() * counted_rings_per_lane(settings_) *
         (ends * sizeof(counters::OutgoingCounters) + senders * sizeof(counters::IncomingCounters));
}

Status Resources::check(const links::Need& need) const {
  // The simulation does not depend on the machine it runs on.
  return links::check_limits(
      need, settings_.memory_limit_bytes,
      network_.wants_thread() ? links::machine_limits() : links::MachineLimits{});
}

// Other links are checked when queries need them.
Status Resources::check_least_need(const links::Transports& transports) const {
  links::Need need{
      .memory_bytes = fixed_memory_bytes(), .descriptors = descriptors(), .pinned_bytes = 0};
  peers_.for_each_wanted_at_open([&](uint32_t node) {
    LinkNeed least{UINT64_MAX, UINT64_MAX};
    for (const transport::Transport* each : transports.usable()) {
      LinkNeed one;
      one.add(settings_, *each, topology_.outgoing(node), topology_.incoming(node));
      least.memory_bytes = std::min(least.memory_bytes, one.memory_bytes);
      least.pinned_bytes = std::min(least.pinned_bytes, one.pinned_bytes);
    }
    need.memory_bytes += least.memory_bytes + lane_bytes_on_demand(node);
    need.pinned_bytes += least.pinned_bytes;
  });
  return check(need);
}

// What the links of nodes that are wanted for good take was checked when the session opened: they return one by one, and a worker
// may still keep the link of a former process. What all others take is limited.
Result<std::shared_ptr<links::MemoryBudget::Share>> Resources::take_link(uint32_t node,
                                                                         const LinkNeed& need,
                                                                         bool checks_room) {
  FARO_RETURN_IF_ERROR(reserve_lanes(node));
  const links::Need one{.memory_bytes = need.memory_bytes + lane_bytes_on_demand(node),
                        .descriptors = links::kDescriptorsPerLink,
                        .pinned_bytes = need.pinned_bytes};
  if (checks_room && !topology_.node(node).wanted_for_good) return budget_->take(one);
  if (checks_room) FARO_RETURN_IF_ERROR(check(one));
  return std::make_shared<links::MemoryBudget::Share>(budget_, one);
}

std::string Resources::describe() const {
  return fmt::format(
      "{} bytes of rings ({}{})", taken_.memory_bytes, links::in_mebibytes(taken_.memory_bytes),
      taken_.pinned_bytes == 0
          ? ""
          : fmt::format(", {} of it pinned", links::in_mebibytes(taken_.pinned_bytes)));
}

// -------------------------------------------------------------------------------------- allocation

Status Resources::allocate(const LinkNeed& links, transport::LinkEvents& local_events) {
  taken_ = {fixed_memory_bytes() + links.memory_bytes, links.pinned_bytes};
  FARO_RETURN_IF_ERROR(check({.memory_bytes = taken_.memory_bytes,
                              .descriptors = descriptors(),
                              .pinned_bytes = taken_.pinned_bytes}));
  if (network_.wants_thread()) {
    const links::MachineLimits machine = links::machine_limits();
    for (const Status& fits :
         {links::check_overflow(taken_.memory_bytes, settings_.overflow_memory_bytes, machine),
          links::check_budget(topology_.has_numbers_to_give() ? settings_.memory_limit_bytes : 0,
                              machine)}) {
      if (!fits.ok()) base::log(LogLevel::warning, "{}: {}", topology_.own().name, fits.message());
    }
  }
  own_share_ = std::make_shared<links::MemoryBudget::Share>(
      budget_,
      links::Need{.memory_bytes = fixed_memory_bytes(), .descriptors = 0, .pinned_bytes = 0});
  FARO_RETURN_IF_ERROR(make_counters());
  FARO_RETURN_IF_ERROR(start_metrics());
  FARO_ASSIGN_OR_RETURN(
      doorbells_, transport::shm::NodeDoorbells::make(static_cast<uint32_t>(workers_.size())));
  make_ready_sets();
  FARO_ASSIGN_OR_RETURN(
      local_link_, transport::shm::make_local_link(topology_.outgoing(topology_.self()), workers_,
                                                   &local_events));
  return Status::Ok();
}

void Resources::make_ready_sets() {
  uint32_t groups = 0;
  for (uint32_t node = 0; node < topology_.size(); ++node) {
    std::fill(ready_groups_[node].begin(), ready_groups_[node].end(), groups);
    groups += groups_of(topology_.incoming(node));
  }
  for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
    ready_sets_.push_back(std::make_unique<ring::ReadySet>(groups));
    workers_[worker] = {ready_sets_.back().get(), &doorbells_.line(worker)};
  }
  if (!topology_.lanes_end_at_nodes()) return;
  node_ready_set_ = std::make_unique<ring::ReadySet>(groups);
  for (const transport::WorkerEnd& worker : workers_) doorbell_lines_.push_back(worker.doorbell);
  node_end_ = {node_ready_set_.get(), doorbell_lines_};
}

counters::Shape Resources::counter_shape() const {
  counters::Shape shape;
  shape.cluster = settings_.cluster_id;
  shape.node = topology_.self();
  shape.workers_per_node = settings_.workers_per_node;
  shape.rings_per_lane = counted_rings_per_lane(settings_);
  shape.ring_bytes = settings_.ring_bytes;
  shape.threshold_bytes = settings_.threshold_bytes;
  shape.lanes_end_at_workers = settings_.lanes_end_at_workers();
  shape.lanes_end_at_nodes = settings_.lanes_end_at_nodes();
  return shape;
}

// A session does not fail because its counters have no file: they then count in private memory. But if the user
// names a folder that does not exist, that is an error.
Status Resources::make_counters() {
  const base::Nanoseconds now = network_.reactor().clock().now_ns();
  // Simulated nodes are not shown to other processes.
  const std::string folder = network_.wants_thread() ? settings_.counters_folder : "";
  auto made = make_counter_file(folder, now);
  if (made.status().code() == Code::config_invalid && folder != Config().get("counters.folder")) {
    return made.status();
  }
  if (!made.ok() && !folder.empty()) {
    base::log(LogLevel::warning, "{}: {} (counters.folder); faro stat will not see this node",
              topology_.own().name, made.status().message());
    made = make_counter_file("", now);
  }
  if (!made.ok()) return made.status();
  counters_ = std::move(made.value());
  return Status::Ok();
}

Result<std::unique_ptr<counters::CounterFile>> Resources::make_counter_file(
    const std::string& folder, base::Nanoseconds now) const {
  FARO_ASSIGN_OR_RETURN(auto file, counters::CounterFile::make(counter_shape(), folder, now));
  const auto has_room = [&](const Node& node) {
    return node.wanted_for_good || node.number == topology_.self();
  };
  // Nodes that stand side by side by one call.
  const std::vector<Node>& nodes = topology_.nodes();
  for (auto node = nodes.begin(); node != nodes.end();) {
    const auto first = std::find_if(node, nodes.end(), has_room);
    node = std::find_if_not(first, nodes.end(), has_room);
    if (first == node) break;
    const Node& last = *std::prev(node);
    const uint32_t workers = last.first_worker + last.worker_count - first->first_worker;
    FARO_RETURN_IF_ERROR(file->reserve_lanes(first->first_worker, workers));
  }
  return file;
}

// Repeatable: it takes nothing more then.
Status Resources::reserve_lanes(uint32_t number) {
  const Node& node = topology_.node(number);
  return counters_->reserve_lanes(node.first_worker, node.worker_count);
}

Status Resources::start_metrics() {
  if (settings_.metrics_listen.empty()) return Status::Ok();
  FARO_ASSIGN_OR_RETURN(auto access, metrics::ScrapeAccess::load(settings_));
  FARO_ASSIGN_OR_RETURN(auto made, counters::CounterView::over(counters_->memory()));
  const std::shared_ptr<counters::CounterView> view = std::move(made);
  FARO_ASSIGN_OR_RETURN(metrics_, metrics::MetricsEndpoint::start(
                                      settings_.metrics_listen, std::move(access),
                                      [view] { return counters::prometheus_text(view->read()); }));
  base::log(LogLevel::info, "{}: metrics at {}", topology_.own().name, metrics_->url());
  return Status::Ok();
}

// ---------------------------------------------------------------------------------------- counters

void Resources::count_rings(uint32_t number, transport::DataLink& data) {
  const Node& node = topology_.node(number);
  const ring::Layout out = topology_.outgoing(number);
  const ring::Layout in = topology_.incoming(number);
  if (data.is_absent()) return;
  for (uint32_t ring = 0; ring < out.ring_count(); ++ring) {
    const bool to_node = is_node_end(settings_, out, out.receiver_of(ring));
    const uint32_t worker = node.first_worker + (to_node ? 0 : out.receiver_of(ring));
    const uint32_t first = to_node ? first_counted_of_node(settings_) : 0;
    data.outgoing(ring).count_in(
        counters_->outgoing(out.sender_of(ring), worker, first + ring % out.rings_per_lane));
  }
  for (uint32_t ring = 0; ring < in.ring_count(); ++ring) {
    if (is_node_end(settings_, in, in.receiver_of(ring))) continue;  // the shares of workers count
    const uint32_t worker = node.first_worker + in.sender_of(ring);
    data.incoming(ring).count_in(
        counters_->incoming(in.receiver_of(ring), worker, ring % in.rings_per_lane));
  }
}

void Resources::show_link(uint32_t number, const transport::DataLink& data, uint64_t incarnation,
                          bool connected) {
  const Node& node = topology_.node(number);
  counters::Peer peer;
  peer.incarnation = incarnation;
  peer.first_worker = node.first_worker;
  peer.worker_count = node.worker_count;
  data.capabilities().name.copy(peer.transport.data(), peer.transport.size() - 1);
  peers_.full_name(number).copy(peer.name.data(), peer.name.size() - 1);
  counters_->set_peer(number, peer);
  counters::set(counters_->peer(number).connected, connected ? 1 : 0);
}

void Resources::count_removed(uint32_t node) { counters_->set_peer(node, {}); }

void Resources::count_lost(uint32_t node) { counters::set(counters_->peer(node).connected, 0); }

void Resources::close() {
  if (local_link_ != nullptr) local_link_->stop();
  metrics_.reset();
  if (counters_ != nullptr) counters_->remove_name();
}

}  // namespace faro::session
