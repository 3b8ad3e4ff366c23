#include "sim/send_path/nodes.h"

#include <string>
#include <utility>

#include "base/settings.h"
#include "faro/config.h"
#include "node/session_access.h"

namespace faro::send_path {
namespace {

std::string address_of(uint32_t node) { return "node" + std::to_string(node) + ":7000"; }

Result<base::Settings> settings_of(const Plan& plan, uint32_t node) {
  std::string addresses;
  for (uint32_t n = 0; n < plan.nodes; ++n) addresses += (n == 0 ? "" : ",") + address_of(n);
  const NodeSettings& drawn = plan.settings;
  Config config;
  Status failure;
  const auto set = [&](const char* name, auto value) {
    Status status = config.set(name, value);
    if (failure.ok()) failure = std::move(status);
  };
  set("cluster.nodes", std::string_view(addresses));
  set("cluster.workers", uint64_t{plan.workers_per_node});
  set("cluster.node", uint64_t{node});
  if (plan.changing) set("cluster.node_limit", uint64_t{plan.nodes});
  set("connect.wait_for", "none");
  set("counters.folder", "");
  set("kernel.scatter", "scalar");
  set("connect.timeout_ms", uint64_t{1000});
  set("liveness.timeout_ms", uint64_t{4000});
  set("ring.bytes", uint64_t{drawn.ring_bytes});
  set("ring.per_lane", uint64_t{drawn.rings_per_lane});
  set("transfer.threshold_bytes", drawn.threshold);
  set("row.limit_bytes", drawn.row_limit);
  set("shuffle.limit", uint64_t{drawn.shuffle_limit});
  set("overflow.memory_bytes", drawn.overflow_memory);
  set("overflow.file_bytes", drawn.overflow_file);
  set("overflow.query_limit_bytes", drawn.query_limit);
  set("drain.delay_us", uint64_t{drawn.drain_delay_us});
  set("wait.yields", uint64_t{drawn.wait_yields});
  set("wait.sleep_ms", uint64_t{1});
  if (!failure.ok()) return failure;
  return base::Settings::resolve(config);
}

}  // namespace

Nodes::Nodes(const Plan& plan, World& world)
    : world_(world), workers_per_node_(plan.workers_per_node), nodes_(plan.nodes) {
  for (uint32_t node = 0; node < plan.nodes && opened_.ok(); ++node) opened_ = open(plan, node);
  world_.pump();
}

Nodes::~Nodes() {
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].session != nullptr) (void)close(node);
  }
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    world_.end_rounds(node);
    nodes_[node].session.reset();
  }
}

Status Nodes::open(const Plan& plan, uint32_t number) {
  Node& node = nodes_[number];
  Result<base::Settings> settings = settings_of(plan, number);
  if (!settings.ok()) return settings.status();
  auto network = std::make_unique<ManualNetwork>(world_, number, 0, address_of(number));
  node.network = network.get();
  node.disk.limit_bytes = plan.settings.overflow_file;
  node::NodeEnvironment environment;
  environment.network = std::move(network);
  environment.make_waiter = [this] { return std::make_unique<ManualWaiter>(world_); };
  environment.spill_file = std::make_unique<simulation::SimSpillFile>(node.disk);
  auto session = SessionAccess::open(*settings, std::move(environment));
  if (!session.ok()) return session.status();
  node.session = std::move(*session);
  node.is_there = true;
  session::Membership& membership = SessionAccess::core(*node.session).membership();
  world_.on_round(number, [&membership] { return membership.do_work(); });
  return Status::Ok();
}

transport::DataLink& Nodes::local_link(uint32_t node) {
  return *SessionAccess::core(session(node)).membership().link(node);
}

Status Nodes::close(uint32_t node) {
  if (!std::exchange(nodes_[node].is_there, false)) return Status::Ok();
  world_.end_rounds(node);  // this call is the network thread from here on
  return session(node).close();
}

void Nodes::kill(uint32_t node) { nodes_[node].network->die(); }

void Nodes::cut_control(uint32_t a, uint32_t b) { nodes_[a].network->cut(*nodes_[b].network); }

}  // namespace faro::send_path
