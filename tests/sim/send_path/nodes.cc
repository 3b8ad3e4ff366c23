#include "sim/send_path/nodes.h"

#include <string>
#include <utility>

#include "node/session_access.h"
#include "sim/programs/settings.h"

namespace faro::send_path {
namespace {

std::string address_of(uint32_t node) { return "node" + std::to_string(node) + ":7000"; }

Result<base::Settings> settings_of(const Plan& plan, uint32_t node) {
  std::string addresses;
  for (uint32_t n = 0; n < plan.nodes; ++n) addresses += (n == 0 ? "" : ",") + address_of(n);
  const NodeSettings& drawn = plan.settings;
  programs::SettingsMaker made;
  made.set("cluster.nodes", std::string_view(addresses));
  made.set("cluster.workers", uint64_t{plan.workers_per_node});
  made.set("cluster.node", uint64_t{node});
  if (plan.changing) made.set("cluster.node_limit", uint64_t{plan.nodes});
  made.set("connect.wait_for", "none");
  made.set("counters.folder", "");
  made.set("kernel.scatter", "scalar");
  made.set("connect.timeout_ms", uint64_t{1000});
  made.set("liveness.timeout_ms", uint64_t{4000});
  made.set("ring.bytes", uint64_t{drawn.ring_bytes});
  made.set("ring.per_lane", uint64_t{drawn.rings_per_lane});
  made.set("transfer.threshold_bytes", drawn.threshold);
  made.set("row.limit_bytes", drawn.row_limit);
  made.set("shuffle.limit", uint64_t{drawn.shuffle_limit});
  made.set("overflow.memory_bytes", drawn.overflow_memory);
  made.set("overflow.file_bytes", drawn.overflow_file);
  made.set("overflow.query_limit_bytes", drawn.query_limit);
  made.set("drain.delay_us", uint64_t{drawn.drain_delay_us});
  made.set("wait.yields", uint64_t{drawn.wait_yields});
  made.set("wait.sleep_ms", uint64_t{1});
  return made.resolve();
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
  auto network = std::make_unique<programs::ManualNetwork>(world_, number, 0, address_of(number));
  node.network = network.get();
  node.disk.limit_bytes = plan.settings.overflow_file;
  node::NodeEnvironment environment;
  environment.network = std::move(network);
  environment.make_waiter = [this] { return std::make_unique<programs::ManualWaiter>(world_); };
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
