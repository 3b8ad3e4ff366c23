#include "lab/simulation/cluster.h"

#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "base/return_if_error.h"
#include "node/session_access.h"
#include "session/topology.h"
#include "session/turns_of.h"

namespace faro::simulation {

std::optional<sim::SimNetwork::Schedule> schedule_of(const base::Settings& settings) {
  const auto phases = session::turns_of(settings);
  if (!phases) return std::nullopt;
  return sim::SimNetwork::Schedule{*phases, settings.node_count()};
}

Cluster::Cluster(uint64_t seed, ClusterShape shape)
    : world_(seed, shape.knobs),
      internet_(world_),
      waiter_(world_),
      make_spill_file_(std::move(shape.make_spill_file)),
      start_after_(std::move(shape.start_after)) {
  const size_t count = shape.workers_per_node.size();
  std::string addresses;
  for (size_t node = 0; node < count; ++node)
    addresses += fmt::format("{}node{}:7000", node == 0 ? "" : ",", node);
  const std::string workers = fmt::format("{}", fmt::join(shape.workers_per_node, ","));
  for (uint32_t node = 0; node < count; ++node) {
    Config config;
    const auto set = [&](const char* name, const std::string& value) {
      const Status status = config.set(name, std::string_view(value));
      if (configured_.ok()) configured_ = status;
    };
    set("cluster.nodes", addresses);
    set("cluster.workers", workers);
    set("cluster.node", std::to_string(node));
    if (shape.configure) shape.configure(config, node);
    Result<base::Settings> settings = base::Settings::resolve(config);
    if (configured_.ok()) configured_ = settings.status();
    nodes_.push_back(std::make_unique<Node>());
    if (settings.ok()) nodes_.back()->settings = std::move(*settings);
  }
}

Cluster::~Cluster() {
  if (!world_.failed()) (void)close();
  if (!world_.failed()) return;
  // Fibers ended in the middle of calls, some with a mutex: nothing can be destroyed in order.
  for (auto& node : nodes_) (void)node.release();
}

void Cluster::start_agent(uint32_t number, sim::SimNetwork* network,
                          session::Membership* membership) {
  const sim::World::Outside outside(world_);
  nodes_[number]->network = network;
  nodes_[number]->agent = world_.add_agent(
      "network thread of node " + std::to_string(number),
      [membership] { return membership->do_work(); }, number);
  network->set_agent(nodes_[number]->agent);
}

void Cluster::open_node(uint32_t number, session::Observer& observer) {
  Node& node = *nodes_[number];
  auto network = sim::SimNetwork::create(internet_, number, session::own_address(node.settings),
                                         "host", schedule_of(node.settings));
  node.opened = network.status();
  if (!network.ok()) return;
  sim::SimNetwork* const own = network->get();
  auto membership = session::Membership::open(node.settings, std::move(*network), observer);
  node.opened = membership.status();
  if (!membership.ok()) return;
  node.membership = std::move(*membership);
  start_agent(number, own, node.membership.get());
}

Status Cluster::open_session(uint32_t number) {
  Node& node = *nodes_[number];
  sim::SimNetwork* own = nullptr;
  const auto make_environment = [&]() -> Result<node::NodeEnvironment> {
    const sim::World::Outside outside(world_);  // it is the caller's
    FARO_ASSIGN_OR_RETURN(auto network, sim::SimNetwork::create(
                                            internet_, number, session::own_address(node.settings),
                                            "host", schedule_of(node.settings)));
    own = network.get();
    node::NodeEnvironment environment;
    environment.network = std::move(network);
    environment.make_waiter = [this] { return std::make_unique<sim::SimWaiter>(world_); };
    if (make_spill_file_) environment.spill_file = make_spill_file_(number);
    return environment;
  };
  Result<node::NodeEnvironment> environment = make_environment();
  node.opened = environment.status();
  if (!environment.ok()) return node.opened;
  node.opening = own;
  auto session = SessionAccess::open(node.settings, std::move(*environment));
  node.opening = nullptr;
  node.opened = session.status();
  if (!session.ok()) return node.opened;
  node.session = std::move(*session);
  start_agent(number, own, &SessionAccess::core(*node.session).membership());
  return node.opened;
}

Status Cluster::open_each(const std::vector<uint32_t>& nodes,
                          const std::function<void(uint32_t)>& open_one) {
  FARO_RETURN_IF_ERROR(configured_);
  for (const uint32_t node : nodes) {
    world_.spawn(
        "open of node " + std::to_string(node),
        [this, &open_one, node] {
          if (node < start_after_.size()) sleep(start_after_[node]);
          open_one(node);
        },
        node);
  }
  FARO_RETURN_IF_ERROR(world_.run());
  for (const uint32_t node : nodes) FARO_RETURN_IF_ERROR(nodes_[node]->opened);
  return Status::Ok();
}

Status Cluster::open(const std::function<session::Observer&(uint32_t)>& observer) {
  std::vector<uint32_t> all;
  for (uint32_t node = 0; node < node_count(); ++node) all.push_back(node);
  return open_only(all, observer);
}

Status Cluster::open_only(const std::vector<uint32_t>& nodes,
                          const std::function<session::Observer&(uint32_t)>& observer) {
  return open_each(nodes, [this, &observer](uint32_t node) {
    open_node(node, observer ? observer(node) : nodes_[node]->observer);
  });
}

Status Cluster::open_sessions() {
  std::vector<uint32_t> all;
  for (uint32_t node = 0; node < node_count(); ++node) all.push_back(node);
  return open_each(all, [this](uint32_t node) { (void)open_session(node); });
}

void Cluster::spawn(uint32_t node, uint32_t local_worker, std::function<void()> program) {
  world_.spawn("node " + std::to_string(node) + " worker " + std::to_string(local_worker),
               std::move(program), node);
}

Status Cluster::close_node(uint32_t number) {
  Node& node = *nodes_[number];
  if (node.network == nullptr) return Status::Ok();
  // From here on this fiber is the network thread; two at a time there are nowhere.
  world_.remove_agent(node.agent);
  node.network->clear_agent();
  node.network = nullptr;
  if (node.membership != nullptr) node.membership->close();
  return node.session != nullptr ? node.session->close() : Status::Ok();
}

Status Cluster::end_node(uint32_t number) {
  const Status closed = close_node(number);
  nodes_[number]->session.reset();
  nodes_[number]->membership.reset();
  return closed;
}

Status Cluster::close() {
  Status first;
  for (uint32_t node = 0; node < node_count(); ++node) {
    world_.spawn(
        "close of node " + std::to_string(node),
        [this, &first, node] {
          const Status closed = close_node(node);
          if (first.ok()) first = closed;
        },
        node);
  }
  FARO_RETURN_IF_ERROR(world_.run());
  for (auto& node : nodes_) {
    node->session.reset();
    node->membership.reset();
  }
  return first;
}

void Cluster::kill(uint32_t node) {
  Node& dying = *nodes_[node];
  if (sim::SimNetwork* const network = dying.network != nullptr ? dying.network : dying.opening)
    network->die();
}

}  // namespace faro::simulation
