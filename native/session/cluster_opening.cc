// How a cluster comes together: who dials whom, when to try again, and when to give up.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/on_cancel.h"
#include "base/thread.h"
#include "session/cluster_membership.h"
#include "transport/plugin/plugin_loader.h"
#include "transport/shm/shm_transport.h"
#include "transport/tcp/tcp_transport.h"

namespace faro::session {
namespace {

constexpr uint64_t kNanosecondsPerMs = 1'000'000;

// Nodes start at about the same time, so the first retries come quickly; a node that is missing for
// long is not worth more than a few attempts a second.
constexpr base::Nanoseconds kFirstPause = 1 * kNanosecondsPerMs;
constexpr base::Nanoseconds kLongestPause = 250 * kNanosecondsPerMs;
// An attempt that hangs (a peer that listens but does not answer yet, a network that swallows it).
constexpr base::Nanoseconds kAttemptTime = 10'000 * kNanosecondsPerMs;
// When a log line says whom this node still waits for: long before somebody wonders, long after an
// ordinary start.
constexpr base::Nanoseconds kNoticeAfter = 5'000 * kNanosecondsPerMs;
// Time for the reason to reach the peers when open fails.
constexpr base::Nanoseconds kFarewell = 300 * kNanosecondsPerMs;

// How the network thread is called in tools.
constexpr const char* kThreadName = "faro-net";

bool has_port_zero(const std::string& address) {
  return address.size() > 2 && address.compare(address.size() - 2, 2, ":0") == 0;
}

bool is_up(LinkState state) { return state == LinkState::up; }

}  // namespace

Status ClusterMembership::open(const Cancellation& cancellation) {
  const base::Nanoseconds since = clock().now_ns();
  const base::Nanoseconds deadline =
      base::deadline_after(since, settings_.connect_timeout_ms * kNanosecondsPerMs);
  FARO_RETURN_IF_ERROR(prepare());
  network_->set_acceptor(this);
  look_at_times();
  base::Nanoseconds notice = since + std::min(kNoticeAfter, (deadline - since) / 2);
  const detail::OnCancel wakes(cancellation, [this] { network_->wake(); });
  while (fatal_.ok() && !(allocated_ && all_linked())) {
    if (cancellation.cancelled()) {
      const Status cancelled(Code::cancelled,
                             fmt::format("{} was told to give up opening its session, still "
                                         "waiting for {}",
                                         identity_.name, missing_peers()));
      end_opening(cancelled, true);
      return cancelled;
    }
    const base::Nanoseconds now = clock().now_ns();
    if (now >= deadline) {
      const Status late = missing();
      end_opening(late, true);
      return late;
    }
    if (now >= notice) {
      notice = base::kForever;
      base::log(LogLevel::warning, "{}: still waits for {}", identity_.name, missing_peers());
      look_up_missing();
    }
    round(std::min(deadline, notice));
  }
  if (!fatal_.ok()) {
    end_opening(fatal_, fatal_.code() == Code::connect_failed || !spreads_);
    return fatal_;
  }
  // Who was admitted and then lost, while this node returned, is missing.
  for_each_link([&](const Link& link) {
    if (!link.connected()) nodes_[link.node()].incarnation = 0;
  });
  for (const Node& node : nodes_) count_link(node.number);
  counters_->opened();
  phase_ = Phase::open;
  last_stranger_ = Status::Ok();
  tell_members();
  log_opened(since);
  look_ups_.clear();
  return network_->wants_thread() ? start_thread() : Status::Ok();
}

// The peers know already that this node is open: without a thread it leaves again.
Status ClusterMembership::start_thread() {
  auto thread = base::start_thread(kThreadName, [this] { run(); });
  if (!thread.ok()) {
    close();
    return thread.status();
  }
  thread_ = std::move(*thread);
  return Status::Ok();
}

Status ClusterMembership::prepare() {
  make_nodes();
  FARO_RETURN_IF_ERROR(load_secret());
  FARO_RETURN_IF_ERROR(make_transports());
  FARO_RETURN_IF_ERROR(check_dialled_addresses());
  FARO_RETURN_IF_ERROR(check_least_need());
  uint64_t incarnation = 0;
  if (!network_->draw_random(std::as_writable_bytes(std::span(&incarnation, 1)))) {
    return Status(Code::system_error, "the system has no random numbers (getrandom)");
  }
  nodes_[self_].incarnation = incarnation;
  make_identity();
  make_links();
  return Status::Ok();
}

void ClusterMembership::make_nodes() {
  for (uint32_t number = 0; number < settings_.node_count(); ++number) {
    Node node;
    node.number = number;
    node.name =
        fmt::format("node {} ({})", number,
                    number == self_ ? network_->local_address() : settings_.node_addresses[number]);
    node.worker_count = settings_.workers_per_node[number];
    node.first_worker = worker_count_;
    worker_count_ += node.worker_count;
    nodes_.push_back(std::move(node));
  }
}

Status ClusterMembership::load_secret() {
  auto secret = session::load_secret(settings_);
  if (!secret.ok()) return secret.status();
  identity_.secret = std::move(*secret);
  if (identity_.secret != nullptr || network_->credentials() != nullptr ||
      settings_.security_open != 0 || !network_->open_to_others()) {
    return Status::Ok();
  }
  return Status(
      Code::config_invalid,
      fmt::format("{} listens where other machines may reach it, and the cluster has no secret: "
                  "whoever reaches the port could join. Give all nodes the same secret by "
                  "security.secret_file (a file) or the environment variable FARO_SECRET, or "
                  "certificates by security.tls, or set security.open = 1 if the network keeps "
                  "strangers out",
                  nodes_[self_].name));
}

void ClusterMembership::make_identity() {
  identity_.name = nodes_[self_].name;
  for (const std::string& address : settings_.node_addresses) {
    identity_.hosts.push_back(transport::tcp::host_of(address));
  }
  wire::Hello& hello = identity_.hello;
  hello = hello_of(settings_);
  hello.incarnation = nodes_[self_].incarnation;
  hello.address = network_->local_address();
  hello.host_identity = network_->host_identity();
  if (const transport::Transport* own = network_->own_transport()) {
    hello.transports.emplace_back(own->capabilities().name);
  }
  for (const auto& transport : transports_)
    hello.transports.emplace_back(transport->capabilities().name);
}

// Preferred first. A forced transport that does not work here is an error; otherwise it is just not
// offered.
Status ClusterMembership::make_transports() {
  if (network_->own_transport() != nullptr) return Status::Ok();
  for (const std::string_view name : {"shm", "verbs", "tcp"}) {
    const bool forced = settings_.transport == name;
    if (!forced && settings_.transport != "auto") continue;
    auto made = make_transport(name);
    if (made.ok()) {
      transports_.push_back(std::move(*made));
    } else if (forced) {
      return Status(Code::transport_unavailable,
                    fmt::format("transport = {}: {}", name, made.status().message()));
    } else {
      base::log(LogLevel::debug, "{} is not offered: {}", name, made.status().message());
    }
  }
  return Status::Ok();
}

// Errors: why it does not work here.
Result<std::unique_ptr<transport::Transport>> ClusterMembership::make_transport(
    std::string_view name) const {
  std::unique_ptr<transport::Transport> transport;
  if (name == "shm") {
    transport = std::make_unique<transport::shm::ShmTransport>();
  } else if (name == "tcp") {
    transport = std::make_unique<transport::tcp::TcpTransport>(
        network_->source(), settings_.tls == "on" ? network_->credentials() : nullptr);
  } else if (settings_.tls == "on") {
    return Status(Code::transport_unavailable, "security.tls = on, and it cannot encrypt rows");
  } else {
    auto loaded =
        transport::plugin::load_verbs({settings_, network_->local_address(), base::log_line});
    if (!loaded.ok()) return loaded.status();
    transport = std::move(*loaded);
  }
  FARO_RETURN_IF_ERROR(transport->available());
  return transport;
}

Status ClusterMembership::check_dialled_addresses() const {
  for (uint32_t node = 0; node < self_; ++node) {
    if (!has_port_zero(settings_.node_addresses[node])) continue;
    return Status(Code::config_invalid, fmt::format("cluster.nodes: node {} has the address {}, "
                                                    "but node {} has to dial it and needs its port",
                                                    node, settings_.node_addresses[node], self_));
  }
  return Status::Ok();
}

void ClusterMembership::make_links() {
  workers_.resize(settings_.workers_per_node[self_]);
  ready_groups_.resize(nodes_.size(), std::vector<uint32_t>(workers_.size()));
  absent_links_.assign(nodes_.size(), std::make_shared<transport::AbsentLink>(
                                          static_cast<uint32_t>(settings_.ring_bytes)));
  dialling_.resize(nodes_.size());
  absences_.resize(nodes_.size());
  links_.resize(nodes_.size());
  for (uint32_t number = 0; number < nodes_.size(); ++number) {
    if (number == self_) continue;
    links_[number] = make_link(number);
    dialling_[number].last =
        number < self_ ? Status(Code::connect_failed, "it was not reached")
                       : Status(Code::connect_failed,
                                "it has not connected (a node dials those with lower numbers)");
  }
}

std::shared_ptr<Link> ClusterMembership::make_link(uint32_t node) {
  transport::LinkContext context;
  context.local_node = self_;
  context.peer_node = node;
  context.peer_name = nodes_[node].name;
  context.peer_host = transport::tcp::host_of(settings_.node_addresses[node]);
  context.outgoing = outgoing_layout(node);
  context.incoming = incoming_layout(node);
  context.workers = workers_;  // filled in by allocate, as the next two
  context.ready_group = ready_groups_[node];
  if (allocated_) context.doorbells = doorbells_.memory();
  context.reactor = &network_->reactor();
  return former_links_->keep(
      std::make_unique<Link>(static_cast<Link::Owner&>(*this), std::move(context)));
}

void ClusterMembership::advance_links(base::Nanoseconds now) {
  if (!fatal_.ok()) return;
  for_each_link([&](Link& link) {
    if (!dials(link) || link.state() != LinkState::apart || now < dialling_[link.node()].next)
      return;
    Dialling& dialling = dialling_[link.node()];
    if (dialling.under_way) {
      // Its time is over: the late answer, if any, will be of another attempt.
      if (dialling.handshake != nullptr) retire(*dialling.handshake);
      return retry_later(link.node(), Status(Code::connect_failed, "it does not answer"));
    }
    dial(link, now);
  });
  set_up_links();
}

// Nodes that have to dial this one: if the name of one leads nowhere, its entry is wrong, most likely
// on that node, too.
void ClusterMembership::look_up_missing() {
  if (!network_->wants_thread()) return;  // names of a simulation are no host's
  for_each_link([&](const Link& link) {
    if (dials(link) || link.state() != LinkState::apart) return;
    const uint32_t node = link.node();
    const auto told = [this, node](Resolution::Addresses addresses) {
      if (!addresses.ok() && !dials(*links_[node])) {
        dialling_[node].last =
            Status(Code::connect_failed, fmt::format("{}, and {}", dialling_[node].last.message(),
                                                     addresses.status().message()));
      }
    };
    look_ups_.push_back(
        std::make_unique<Resolution>(network_->reactor(), settings_.node_addresses[node], told));
    look_ups_.back()->start();
  });
}

void ClusterMembership::dial(Link& link, base::Nanoseconds now) {
  const uint32_t node = link.node();
  Dialling& dialling = dialling_[node];
  dialling.under_way = true;
  dialling.next = now + kAttemptTime;
  network_->connect(settings_.node_addresses[node],
                    [this, node, attempt = dialling.attempt](
                        Result<std::unique_ptr<ControlConnection>> connection) {
                      on_dialled(node, attempt, std::move(connection));
                    });
}

void ClusterMembership::on_dialled(uint32_t node, uint64_t attempt,
                                   Result<std::unique_ptr<ControlConnection>> connection) {
  if (!linking()) return;
  Dialling& dialling = dialling_[node];
  if (!dialling.under_way || dialling.attempt != attempt) return;
  if (!connection.ok()) return retry_later(node, connection.status());
  dialling.handshake = std::make_unique<Handshake>(static_cast<Handshake::Owner&>(*this), identity_,
                                                   std::move(connection.value()), node);
  dialling.handshake->start();
}

void ClusterMembership::retry_later(uint32_t node, const Status& cause) {
  Dialling& dialling = dialling_[node];
  dialling.last = cause;
  dialling.under_way = false;
  ++dialling.attempt;
  dialling.pause = dialling.pause == 0 ? kFirstPause : std::min(2 * dialling.pause, kLongestPause);
  dialling.next = clock().now_ns() + dialling.pause;
}

void ClusterMembership::fail_open(const Status& status) {
  if (phase_ == Phase::opening && fatal_.ok()) fatal_ = status;
}

Status ClusterMembership::missing() const {
  uint32_t up = 0;
  bool refused = false;
  for_each_link([&](const Link& link) {
    up += is_up(link.state());
    const Dialling& dialling = dialling_[link.node()];
    refused = refused || (link.state() == LinkState::apart && !missing_for_all(link) &&
                          (dialling.last.code() == Code::authentication_failed ||
                           dialling.ending.code() == Code::authentication_failed));
  });
  return Status(refused ? Code::authentication_failed : Code::connect_failed,
                fmt::format("{} of {} peers linked within connect.timeout_ms = {}: {}", up,
                            nodes_.size() - 1, settings_.connect_timeout_ms, missing_peers()));
}

std::string ClusterMembership::missing_peers() const {
  std::string text;
  for_each_link([&](const Link& link) {
    if (is_up(link.state()) || missing_for_all(link)) return;
    if (!text.empty()) text += "; ";
    switch (link.state()) {
      case LinkState::apart: {
        const Dialling& dialling = dialling_[link.node()];
        text += fmt::format("{}: {}", link.name(), dialling.last.message());
        if (!dialling.ending.ok() && dialling.ending.message() != dialling.last.message()) {
          text += fmt::format(" (before that: {})", dialling.ending.message());
        }
        break;
      }
      case LinkState::admitted:
        text += fmt::format("{}: connected, waits for others", link.name());
        break;
      default:
        text += fmt::format("{}: its {} link was not ready", link.name(), link.transport_name());
        if (link.suspended_until()) text += fmt::format(": {}", link.suspended_cause().message());
    }
  });
  if (!last_stranger_.ok()) text += fmt::format("; refused last: {}", last_stranger_.message());
  return text;
}

// Everybody who knows us is told why, and so are those who come within the moment that the network
// is given to say so.
//
// `retry`: out of time, or told to give up, it is no fault that starting again would repeat. Others
// may go on waiting for our successor.
void ClusterMembership::end_opening(const Status& status, bool retry) {
  bool some_may_come = false;
  for_each_link([&](const Link& link) {
    some_may_come = some_may_come || (!retry && !dials(link) && link.state() == LinkState::apart);
  });
  for (Stranger& stranger : strangers_) stranger.handshake->refuse({status, retry, false});
  for (Dialling& dialling : dialling_) {
    if (dialling.handshake != nullptr) dialling.handshake->refuse({status, retry, false});
  }
  for_each_link([&](Link& link) { link.refuse(status, retry); });
  phase_ = Phase::closing;
  const base::Nanoseconds until = clock().now_ns() + kFarewell;
  while ((network_->lingering() || some_may_come) && clock().now_ns() < until) {
    network_->run_once(until);
    retired_.clear();
  }
}

}  // namespace faro::session
