// What the links of a cluster take: which transport each gets, what that needs, and allocating it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "session/cluster_membership.h"
#include "session/limits.h"
#include "transport/shm/local_link.h"

namespace faro::session {
namespace {

uint32_t groups_of(const ring::Layout& rings) {
  constexpr uint32_t kPerGroup = ring::ReadySet::kRingsPerGroup;
  return (rings.rings_of_receiver() + kPerGroup - 1) / kPerGroup;
}

}  // namespace

uint64_t ClusterMembership::fixed_memory_bytes() const {
  return transport::shm::local_link_bytes(layout(self_, self_)) +
         counters::CounterFile::bytes(counter_shape()) +
         uint64_t{sizeof(ring::DoorbellLine)} * settings_.workers_per_node[self_];
}

uint32_t ClusterMembership::session_descriptors() const {
  return kDescriptorsPerSession + kDescriptorsPerLink * static_cast<uint32_t>(nodes_.size() - 1);
}

Status ClusterMembership::check_need(const Need& need) const {
  // The simulation does not depend on the machine it runs on.
  return check_limits(need, settings_.memory_limit_bytes,
                      network_->wants_thread() ? machine_limits() : MachineLimits{});
}

// Before anyone is dialled it is not known which transport a link will get: what it takes at least
// is checked then, and the exact need when all peers are known.
Status ClusterMembership::check_least_need() const {
  uint64_t bytes = fixed_memory_bytes();
  uint64_t pinned = 0;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (node == self_) continue;
    uint64_t least = UINT64_MAX;
    uint64_t least_pinned = UINT64_MAX;
    const auto consider = [&](const transport::Transport& transport) {
      const ring::Layout outgoing = outgoing_layout(node);
      const ring::Layout incoming = incoming_layout(node);
      least = std::min(least, transport.memory_bytes(outgoing, incoming));
      least_pinned = std::min(least_pinned, transport.pinned_bytes(outgoing, incoming));
    };
    if (const transport::Transport* own = network_->own_transport()) consider(*own);
    for (const auto& transport : transports_) consider(*transport);
    bytes += least;
    pinned += least_pinned;
  }
  return check_need(
      {.memory_bytes = bytes, .descriptors = session_descriptors(), .pinned_bytes = pinned});
}

transport::Transport* ClusterMembership::find_transport(std::string_view name) const {
  if (transport::Transport* own = network_->own_transport()) {
    return own->capabilities().name == name ? own : nullptr;
  }
  for (const auto& transport : transports_) {
    if (transport->capabilities().name == name) return transport.get();
  }
  return nullptr;
}

const char* ClusterMembership::why_not(const transport::Transport& transport,
                                       const wire::Hello& peer) const {
  const transport::Capabilities& capabilities = transport.capabilities();
  if (std::find(peer.transports.begin(), peer.transports.end(), capabilities.name) ==
      peer.transports.end()) {
    return "the other node does not offer it";
  }
  if (capabilities.same_host_only && peer.host_identity != network_->host_identity()) {
    return "the nodes do not share a host, a network namespace and a user";
  }
  return nullptr;
}

Result<transport::Transport*> ClusterMembership::choose_transport(const Link& link) const {
  std::string reasons;
  for (const std::string& name : identity_.hello.transports) {
    transport::Transport* transport = find_transport(name);
    const char* why = why_not(*transport, link.peer());
    if (why == nullptr) return transport;
    if (!reasons.empty()) reasons += "; ";
    reasons += fmt::format("{}: {}", name, why);
  }
  return Status(Code::transport_unavailable,
                fmt::format("transport = {}: none works between {} and {}: {}", settings_.transport,
                            identity_.name, link.name(), reasons));
}

Status ClusterMembership::allocate() {
  memory_bytes_ = fixed_memory_bytes();
  pinned_bytes_ = 0;
  for (const auto& link : links_) {
    if (link == nullptr || link->state() == LinkState::apart) continue;
    const auto transport = choose_transport(*link);
    if (!transport.ok()) return transport.status();
    memory_bytes_ += transport.value()->memory_bytes(link->outgoing(), link->incoming());
    pinned_bytes_ += transport.value()->pinned_bytes(link->outgoing(), link->incoming());
  }
  FARO_RETURN_IF_ERROR(check_need({.memory_bytes = memory_bytes_,
                                   .descriptors = session_descriptors(),
                                   .pinned_bytes = pinned_bytes_}));

  FARO_RETURN_IF_ERROR(make_counters());
  FARO_RETURN_IF_ERROR(start_metrics());
  auto doorbells = transport::shm::NodeDoorbells::make(static_cast<uint32_t>(workers_.size()));
  if (!doorbells.ok()) return doorbells.status();
  doorbells_ = std::move(doorbells.value());
  uint32_t groups = 0;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    std::fill(ready_groups_[node].begin(), ready_groups_[node].end(), groups);
    groups += groups_of(incoming_layout(node));
  }
  for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
    ready_sets_.push_back(std::make_unique<ring::ReadySet>(groups));
    workers_[worker] = {ready_sets_.back().get(), &doorbells_.line(worker)};
  }
  for_each_link([&](Link& link) { link.set_doorbells(doorbells_.memory()); });
  auto local = transport::shm::make_local_link(layout(self_, self_), workers_, this);
  if (!local.ok()) return local.status();
  local_link_ = std::move(local.value());
  return Status::Ok();
}

counters::Shape ClusterMembership::counter_shape() const {
  counters::Shape shape;
  shape.cluster = settings_.cluster_id;
  shape.node = self_;
  shape.workers_per_node = settings_.workers_per_node;
  shape.rings_per_lane = static_cast<uint32_t>(settings_.rings_per_lane);
  shape.ring_bytes = settings_.ring_bytes;
  shape.threshold_bytes = settings_.threshold_bytes;
  return shape;
}

// A session is worth more than its counters: without a file they are kept all the same. But a folder
// that was named and does not exist is a mistake that whoever named it wants to know of.
Status ClusterMembership::make_counters() {
  // A simulated node is nobody's to look at from outside.
  const std::string folder = network_->wants_thread() ? settings_.counters_folder : "";
  auto made = counters::CounterFile::make(counter_shape(), folder, clock().now_ns());
  if (made.status().code() == Code::config_invalid && folder != Config().get("counters.folder")) {
    return made.status();
  }
  if (!made.ok() && !folder.empty()) {
    base::log(LogLevel::warning, "{}: {} (counters.folder); faro stat will not see this node",
              identity_.name, made.status().message());
    made = counters::CounterFile::make(counter_shape(), "", clock().now_ns());
  }
  if (!made.ok()) return made.status();
  counters_ = std::move(made.value());
  return Status::Ok();
}

Status ClusterMembership::start_metrics() {
  if (settings_.metrics_listen.empty()) return Status::Ok();
  auto started = MetricsEndpoint::start(settings_.metrics_listen, counters_->memory());
  if (!started.ok()) return started.status();
  metrics_ = std::move(started.value());
  base::log(LogLevel::info, "{}: metrics at http://{}/metrics", identity_.name,
            metrics_->address());
  return Status::Ok();
}

// When the link is up, and before any worker uses it.
void ClusterMembership::count_link(uint32_t number) {
  const Node& node = nodes_[number];
  const std::shared_ptr<transport::DataLink> data = link(number);
  const ring::Layout out = outgoing_layout(number);
  const ring::Layout in = incoming_layout(number);
  for (uint32_t local = 0; local < out.sender_workers; ++local) {
    for (uint32_t remote = 0; remote < node.worker_count; ++remote) {
      for (uint32_t k = 0; k < out.rings_per_lane; ++k) {
        const uint32_t worker = node.first_worker + remote;
        data->outgoing(out.ring(local, remote, k)).count_in(counters_->outgoing(local, worker, k));
        data->incoming(in.ring(remote, local, k)).count_in(counters_->incoming(local, worker, k));
      }
    }
  }
  counters::Peer peer;
  peer.incarnation = number == self_ ? node.incarnation : links_[number]->peer().incarnation;
  peer.first_worker = node.first_worker;
  peer.worker_count = node.worker_count;
  data->capabilities().name.copy(peer.transport.data(), peer.transport.size() - 1);
  node.name.copy(peer.name.data(), peer.name.size() - 1);
  counters_->set_peer(number, peer);
  counters::set(counters_->peer(number).connected, connected(number) ? 1 : 0);
}

// Once every peer is known; and again for links that come later: their connection broke in between,
// or their node starts again. One link a round: allocating may take long, and heartbeats have to go
// out in between.
void ClusterMembership::set_up_links() {
  more_to_begin_ = false;
  if (!allocated_) {
    if (!all_known()) return;
    const Status status = allocate();
    if (!status.ok()) return fail_open(status);
    allocated_ = true;
  }
  bool begun = false;
  for (const auto& link : links_) {
    if (link == nullptr || !fatal_.ok()) continue;
    link->advance();
    if (link->state() != LinkState::admitted || (link->initiator() && !link->choice())) continue;
    if (begun) {
      more_to_begin_ = true;
    } else {
      set_up(*link);
      begun = true;
    }
  }
}

void ClusterMembership::set_up(Link& link) {
  if (link.initiator()) {
    transport::Transport* transport = find_transport(link.choice()->transport);
    const char* why =
        transport == nullptr ? "this node does not offer it" : why_not(*transport, link.peer());
    if (why == nullptr && welcome(link, *transport)) return link.begin(*transport);
    if (why == nullptr) return;
    return give_up(link, Status(Code::transport_unavailable,
                                fmt::format("{} chose transport {}: {}", link.name(),
                                            link.choice()->transport, why)));
  }
  const auto transport = choose_transport(link);
  if (!transport.ok()) return give_up(link, transport.status());
  transport::StreamToken token;
  if (!network_->draw_random(token)) {
    return give_up(link,
                   Status(Code::system_error, "the system has no random numbers (getrandom)"));
  }
  if (welcome(link, *transport.value())) link.choose(*transport.value(), token);
}

void ClusterMembership::log_opened(base::Nanoseconds since) const {
  if (!base::log_enabled(LogLevel::info)) return;
  std::map<std::string_view, int> kinds;
  uint32_t missing = 0;
  for_each_link([&](const Link& link) {
    if (link.connected()) {
      ++kinds[link.transport_name()];
    } else {
      ++missing;
    }
  });
  std::string links;
  for (const auto& [kind, count] : kinds)
    links += fmt::format("{}{} by {}", links.empty() ? "" : ", ", count, kind);
  if (missing > 0) links += fmt::format("{}{} not there yet", links.empty() ? "" : ", ", missing);
  base::log(
      LogLevel::info,
      "{} of {} with {} workers: {} links ({}), {} bytes of rings ({}{}), connected in {:.1f} ms",
      identity_.name, nodes_.size(), workers_.size(), nodes_.size() - 1,
      links.empty() ? "none" : links, memory_bytes_, in_mebibytes(memory_bytes_),
      pinned_bytes_ == 0 ? "" : fmt::format(", {} of it pinned", in_mebibytes(pinned_bytes_)),
      static_cast<double>(clock().now_ns() - since) / 1e6);
}

}  // namespace faro::session
