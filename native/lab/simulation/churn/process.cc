#include "lab/simulation/churn/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/return_if_error.h"
#include "counters/counter_file.h"
#include "lab/simulation/cluster.h"
#include "lab/simulation/scene.h"
#include "lab/simulation/transport/sim_waiter.h"
#include "links/link_memory.h"
#include "node/session_access.h"
#include "ring/ready_set.h"
#include "session/resources.h"
#include "session/topology.h"
#include "transport/shm/local_link.h"

namespace faro::simulation {

Process::Process(sim::SimInternet& internet, const ChurnPlan& plan, ChurnLedger& ledger,
                 uint32_t id, uint32_t number, std::string address)
    : internet_(internet),
      world_(internet.world()),
      plan_(plan),
      ledger_(ledger),
      who_{id, number, std::move(address)},
      chance_(mix(plan.run.seed, 0x70726f63, id)),
      workers_(plan.run.workers_per_node[number]) {
  disk_.limit_bytes = plan.run.disk_bytes;
}

Process::~Process() {
  // Fibers ended in the middle of calls: nothing can be destroyed in order.
  if (world_.failed()) (void)session_.release();
}

std::string Process::name() const {
  return fmt::format("process {} (node {})", who_.id, who_.number);
}

node::NodeCore& Process::core() { return SessionAccess::core(*session_); }

bool Process::is_linked(uint32_t number) {
  return core().membership().connected(number) || session_->has_node(number);
}

// ----------------------------------------------------------------------------------------- opening

Result<base::Settings> Process::settings(const std::map<uint32_t, std::string>& list,
                                         bool waits) const {
  Config config;
  std::string addresses;
  for (uint32_t number = 0; number < plan_.number_limit(); ++number) {
    const auto listed = list.find(number);
    addresses += number == 0 ? "" : ",";
    addresses += number == who_.number ? who_.address : listed == list.end() ? "-" : listed->second;
  }
  FARO_RETURN_IF_ERROR(config.set("cluster.nodes", std::string_view(addresses)));
  FARO_RETURN_IF_ERROR(config.set("cluster.node", uint64_t{who_.number}));
  FARO_RETURN_IF_ERROR(config.set("cluster.id", "churn"));
  FARO_RETURN_IF_ERROR(config.set("connect.wait_for", waits ? "all" : "none"));
  for (const auto& [name, value] : plan_.run.settings)
    FARO_RETURN_IF_ERROR(config.set(name, std::string_view(value)));
  FARO_ASSIGN_OR_RETURN(base::Settings settings, base::Settings::resolve(config));
  if (fate().is_narrow) settings.memory_limit_bytes = memory_for_links(settings, plan_.narrow);
  return settings;
}

Status Process::open(const std::map<uint32_t, std::string>& list, bool waits) {
  sim::SimNetwork* own = nullptr;
  base::Settings resolved;
  const auto make_environment = [&]() -> Result<node::NodeEnvironment> {
    const sim::World::Outside outside(world_);  // it is the caller's
    FARO_ASSIGN_OR_RETURN(resolved, settings(list, waits));
    FARO_ASSIGN_OR_RETURN(auto network, sim::SimNetwork::create(internet_, who_.number,
                                                                session::own_address(resolved),
                                                                "host", schedule_of(resolved)));
    own = network.get();
    node::NodeEnvironment environment;
    environment.network = std::move(network);
    environment.make_waiter = [this] { return std::make_unique<sim::SimWaiter>(world_); };
    environment.spill_file = std::make_unique<SimSpillFile>(disk_);
    return environment;
  };
  FARO_ASSIGN_OR_RETURN(node::NodeEnvironment environment, make_environment());
  FARO_ASSIGN_OR_RETURN(session_, SessionAccess::open(resolved, std::move(environment)));
  const sim::World::Outside outside(world_);
  network_ = own;
  listen();
  agent_ = world_.add_agent(
      "network thread of " + name(),
      [this, membership = &core().membership()] {
        const bool worked = membership->do_work();
        note_links(*membership);
        return worked;
      },
      who_.id);
  own->set_agent(agent_);
  start_programs();
  return Status::Ok();
}

void Process::listen() {
  SessionListener listener;
  listener.node_lost = [this](uint32_t number, const Status& cause) { on_lost(number, cause); };
  listener.node_left = [this](uint32_t number) {
    ++events_.lost[number];
    events_.missing.insert(number);
    events_.ended.insert(number);
  };
  listener.node_drained = [this](uint32_t number) {
    events_.drained.insert(number);
    events_.ended.insert(number);
    note_let_go(number);
  };
  listener.node_returned = [this](uint32_t number) { events_.missing.erase(number); };
  listener.node_removed = [this](uint32_t number) {
    ++events_.removed[number];
    events_.missing.erase(number);
    events_.drained.erase(number);
    events_.ended.insert(number);
  };
  session_->listen(std::move(listener));
}

// For it is drained.
void Process::note_let_go(uint32_t number) {
  if (const auto drained = drains.find(number); drained != drains.end())
    ledger_.let_go.try_emplace({who_.id, drained->second}, world_.now());
}

// Only those of which something can have cost the link.
void Process::on_lost(uint32_t number, const Status& cause) {
  ++events_.lost[number];
  events_.missing.insert(number);
  events_.ended.insert(number);
  const auto known = told.find(number);
  if (fate().is_lost() || fate().leaves() || fate().ends || known == told.end()) return;
  const Fate& other = ledger_.fates[known->second];
  // The end of a link that is let go of may be lost with its connection.
  if (other.is_lost() || other.leaves() || other.ends || ledger_.opens_in_vain(other) ||
      ledger_.let_go.contains({known->second, who_.id}))
    return;
  world_.violation(fmt::format("{} has lost node {}, to which nothing happened: {}", name(), number,
                               cause.to_string()));
}

// Links that have ended though nobody was told of anything were let go as idle, or the node has been drained, which is told
// next.
void Process::note_links(const session::Membership& membership) {
  if (membership.link_changes() == seen_.changes) return;
  seen_.changes = membership.link_changes();
  const std::set<uint32_t> linked = membership.linked();
  for (const uint32_t number : seen_.nodes) {
    if (linked.contains(number) || events_.ended.contains(number)) continue;
    if (drains.contains(number)) {
      note_let_go(number);
      continue;
    }
    ++events_.lost[number];
    if (number > who_.number) ++ledger_.changes["link let go as idle"];
  }
  seen_.nodes = linked;
  events_.ended.clear();
}

void Process::note_unasked() {
  if (drains.empty()) return;
  for (size_t q = 0; q < ledger_.of.size(); ++q) {
    QueryOfProcesses& of = ledger_.of[q];
    const auto own = of.processes.find(who_.number);
    if (own == of.processes.end() || own->second != who_.id ||
        ledger_.queries.queries[q].declared[who_.number] ||
        core().membership().connected(plan_.run.queries[q].issuer))
      continue;
    for (const auto& [number, process] : drains) {
      const auto its = of.processes.find(number);
      if (its != of.processes.end() && its->second == process) of.too_late.insert(number);
    }
  }
}

// ---------------------------------------------------------------------------------------- programs

void Process::spawn(std::string name, std::function<void()> body) {
  ++life_.running;
  world_.spawn(
      std::move(name),
      [this, body = std::move(body)] {
        body();
        --life_.running;
      },
      who_.id);
}

void Process::start_programs() {
  life_.takes_orders = true;
  world_.spawn(
      "orders of " + name(), [this] { run_orders(); }, who_.id);
  const uint32_t first = plan_.run.first_worker(who_.number);
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    ledger_.queries.workers[first + w] = &session_->worker(w);
    spawn(fmt::format("{} worker {}", name(), w), [this, w, first] {
      Scene scene(world_, internet_.fabric().faults(), plan_.run, ledger_.queries, *session_, w,
                  mix(plan_.run.seed, first + w, who_.id));
      run_coming_queries(scene, workers_[w]);
    });
  }
}

void Process::order(std::string what, std::function<void()> action) {
  if (!life_.is_ending) orders_.push_back({std::move(what), std::move(action)});
}

void Process::run_orders() {
  for (;;) {
    world_.wait_until([this] { return !orders_.empty() || life_.is_ending; }, base::kForever,
                      "orders");
    if (life_.is_dead || orders_.empty()) break;
    world_.sleep(chance_.below(uint64_t{1} << chance_.between(8, plan_.latest)));
    if (life_.is_dead) break;
    ledger_.tell(world_.now(), fmt::format("{} {}", name(), orders_.front().what));
    world_.note(orders_.front().what);
    orders_.front().action();
    orders_.pop_front();
  }
  life_.takes_orders = false;
}

bool Process::take(uint32_t local_worker, uint32_t query) {
  if (life_.is_dead) return false;
  workers_[local_worker].queries.push_back(query);
  workers_[local_worker].is_idle = false;
  session_->worker(local_worker).wake();
  return true;
}

bool Process::is_idle() const {
  return life_.is_gone || (!life_.is_ending && session_ != nullptr && orders_.empty() &&
                           std::all_of(workers_.begin(), workers_.end(),
                                       [](const ComingQueries& worker) { return worker.is_idle; }));
}

// --------------------------------------------------------------------------------------------- end

void Process::finish() {
  if (std::exchange(life_.is_ending, true)) return;
  if (session_ == nullptr) {
    life_.is_gone = true;
    return;
  }
  world_.spawn(
      "end of " + name(), [this] { end(); }, who_.id);
}

void Process::kill() {
  life_.is_dead = true;
  internet_.fabric().faults().spare(who_.number);
  network_->die();
  finish();
}

void Process::end() {
  world_.wait_until([this] { return !life_.takes_orders; }, base::kForever,
                    "the end of its orders");
  for (ComingQueries& worker : workers_) worker.are_over = true;
  world_.wait_until([this] { return life_.running == 0; }, base::kForever,
                    "the end of its programs");
  close();
  life_.is_gone = true;
}

void Process::close() {
  const uint32_t first = plan_.run.first_worker(who_.number);
  for (uint32_t w = 0; w < workers_.size(); ++w) {
    Worker*& worker = ledger_.queries.workers[first + w];
    if (worker == &session_->worker(w)) worker = nullptr;  // nobody else has the number by now
  }
  const std::weak_ptr<node::NodeCore> left = core().weak_from_this();
  // From here on this fiber is the network thread; two at a time there are nowhere.
  world_.remove_agent(agent_);
  network_->clear_agent();
  network_ = nullptr;
  const Status closed = session_->close();
  session_.reset();
  if (!closed.ok() && !life_.is_dead)
    world_.violation(fmt::format("{}: close answered {}", name(), closed.to_string()));
  if (!left.expired())
    world_.violation(name() + " has destroyed its session, but something of it is still used");
  if (!disk_.misuse.empty())
    world_.violation(fmt::format("overflow file of {}: {}", name(), disk_.misuse));
  if (disk_.used_bytes > 0)
    world_.violation(
        fmt::format("{} left {} bytes in its overflow file", name(), disk_.used_bytes));
}

// ------------------------------------------------------------------------------------------ memory

uint64_t memory_for_links(const base::Settings& settings, uint32_t links) {
  ring::Layout rings = session::rings_between(settings, 0, 0);
  rings.ring_bytes = static_cast<uint32_t>(settings.ring_bytes);
  const uint64_t workers = rings.sender_workers;
  const uint32_t counted = session::counted_rings_per_lane(settings);
  const uint64_t ends = settings.lanes_end_at_workers() ? workers : 1;
  const uint64_t lanes =
      workers * counted *
      (ends * sizeof(counters::OutgoingCounters) + workers * sizeof(counters::IncomingCounters));
  counters::Shape shape;
  shape.cluster = settings.cluster_id;
  shape.node = static_cast<uint32_t>(settings.node);
  shape.workers_per_node = settings.workers_per_node;
  shape.rings_per_lane = counted;
  shape.lanes_end_at_workers = settings.lanes_end_at_workers();
  shape.lanes_end_at_nodes = settings.lanes_end_at_nodes();
  const uint64_t state = session::lane_state_bytes(settings, rings, rings);
  const auto groups =
      static_cast<uint32_t>(settings.workers_per_node.size() *
                            ((rings.rings_of_receiver() + ring::ReadySet::kRingsPerGroup - 1) /
                             ring::ReadySet::kRingsPerGroup));
  const uint64_t own =
      transport::shm::local_link_bytes(rings) + state + counters::CounterFile::bytes(shape) -
      (settings.workers_per_node.size() - 1) * lanes + sizeof(ring::DoorbellLine) * workers +
      ring::ReadySet::bytes(groups) * session::ready_set_count(settings, workers);
  return own + links * (2 * rings.region_bytes() + lanes + state + links::kLinkBytes);
}

}  // namespace faro::simulation
