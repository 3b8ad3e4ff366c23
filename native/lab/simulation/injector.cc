#include "lab/simulation/injector.h"

#include <algorithm>
#include <memory>

#include "lab/simulation/misbehaving_node.h"

namespace faro::simulation {

Injector::Injector(Cluster& cluster, const RunPlan& plan, Ledger& ledger,
                   std::vector<SimDisk>& disks)
    : cluster_(cluster), plan_(plan), ledger_(ledger), disks_(disks) {}

void Injector::begin() {
  sim::World& world = cluster_.world();
  for (const Fault& fault : plan_.faults) {
    // These two come before there is a cluster.
    if (fault.kind == FaultKind::registration || fault.kind == FaultKind::slow_start) continue;
    if (fault.kind == FaultKind::bad_part) {
      const std::vector<uint32_t>& workers = plan_.queries[fault.query].workers;
      ledger_.queries[fault.query].bad_parts[workers[fault.count % workers.size()]] = fault.way;
      happened_.push_back(fault);
      continue;
    }
    world.schedule(world.now() + fault.at, fault_name(fault.kind), [this, fault] {
      if (!over_) happen(fault);
    });
  }
}

void Injector::happen(const Fault& fault) {
  if (dead_.count(fault.node) != 0) return;
  const bool is_between = fault.kind == FaultKind::cut || fault.kind == FaultKind::apart ||
                          fault.kind == FaultKind::narrow;
  if (is_between && dead_.count(fault.peer) != 0) return;
  sim::World& world = cluster_.world();
  switch (fault.kind) {
    case FaultKind::cancel:
      if (!cancel(fault)) return;
      break;
    case FaultKind::short_stall:
    case FaultKind::long_stall:
      cluster_.stall(fault.node, fault.lasting);
      break;
    case FaultKind::short_outage:
      cluster_.faults().silence(fault.node, fault.peer, world.now() + fault.lasting);
      cluster_.faults().silence(fault.peer, fault.node, world.now() + fault.lasting);
      break;
    case FaultKind::half_open:
      cluster_.faults().silence(fault.node, fault.peer, world.now() + fault.lasting);
      break;
    case FaultKind::death:
    case FaultKind::death_return:
      kill(fault);
      break;
    case FaultKind::hostile:
      cluster_.faults().corrupt(fault.node, fault.peer, fault.count);
      cancel_what_concerns(fault);
      break;
    case FaultKind::lies:
      lie(fault);
      cancel_what_concerns(fault);
      break;
    case FaultKind::disk_full:
      disks_[fault.node].full = true;
      break;
    case FaultKind::cut:
      cut(fault);
      break;
    case FaultKind::apart:
      cluster_.faults().separate(fault.node, fault.peer, world.now() + fault.lasting);
      break;
    case FaultKind::narrow:
      cluster_.faults().narrow(fault.node, fault.peer, world.now() + fault.lasting);
      break;
    case FaultKind::registration:
    case FaultKind::slow_start:
    case FaultKind::bad_part:
      break;
  }
  happened_.push_back(fault);
}

void Injector::cut(const Fault& fault) {
  Chance chance(mix(plan_.seed, fault.at, fault.node, fault.peer));
  cluster_.faults().cut_somewhere(fault.node, fault.peer, fault.count, chance);
}

bool Injector::cancel(const Fault& fault) {
  const QueryPlan& query = plan_.queries[fault.query];
  Ledger::QueryRecord& record = ledger_.queries[fault.query];
  if (fault.way != 0) {
    record.wish_worker = query.workers[fault.count % query.workers.size()];
    record.wish_way = fault.way;
    return true;
  }
  // Some node that has to do with it.
  const uint32_t worker = query.workers[fault.count % query.workers.size()];
  const uint32_t node = fault.node % 2 == 0 ? query.issuer : plan_.node_of(worker);
  if (dead_.count(node) != 0) return false;
  if (record.endings.count(worker) != 0) return false;  // over for it
  (void)cluster_.session(node).cancel_query(record.id, "the user's wish");
  if (node == plan_.node_of(worker)) stops_short(record, worker);
  return true;
}

// A query that it has not ended can be complete nowhere; but its node may have lied that it had.
void Injector::stops_short(Ledger::QueryRecord& record, uint32_t worker) {
  if (record.said_to_end.count(plan_.node_of(worker)) == 0)
    record.must_fail |= record.ending.count(worker) == 0;
}

// Whoever says nothing wrong, but not the truth either, can keep its own queries waiting forever: the engine
// has a time limit.
void Injector::cancel_what_concerns(const Fault& fault) {
  sim::World& world = cluster_.world();
  world.schedule(world.now() + 5 * plan_.liveness, "time limit of the engine", [this, fault] {
    for (size_t q = 0; q < plan_.queries.size(); ++q) {
      const QueryPlan& query = plan_.queries[q];
      const bool may_wait = plan_.concerns(query, fault.node) ||
                            (fault.kind == FaultKind::hostile && plan_.concerns(query, fault.peer));
      if (!may_wait || ledger_.queries[q].endings.size() == query.workers.size()) continue;
      for (uint32_t node = 0; node < plan_.node_count(); ++node) {
        if (plan_.concerns(query, node) && dead_.count(node) == 0)
          (void)cluster_.session(node).cancel_query(ledger_.queries[q].id, "it took too long");
      }
    }
  });
}

// Now and then from now on; its workers do when they look (worker_program.cc).
void Injector::lie(const Fault& fault) {
  ledger_.misbehaving.insert(fault.node);
  for (uint32_t peer = 0; peer < plan_.node_count(); ++peer) {
    if (peer != fault.node) cluster_.faults().corrupt(fault.node, peer, 0);
  }
  sim::World& world = cluster_.world();
  const auto misbehaving =
      std::make_shared<MisbehavingNode>(cluster_, plan_, ledger_, fault.node, fault.at);
  for (uint32_t time = 0; time < fault.count; ++time) {
    world.schedule(world.now() + time * plan_.liveness / 16, "lies", [this, fault, misbehaving] {
      if (!over_ && dead_.count(fault.node) == 0) misbehaving->tell(16);
    });
  }
}

void Injector::kill(const Fault& fault) {
  dead_.insert(fault.node);
  cluster_.faults().spare(fault.node);  // a link that is being set up when it returns is not mended
  for (size_t q = 0; q < plan_.queries.size(); ++q) {
    for (const uint32_t worker : plan_.queries[q].workers) {
      if (plan_.node_of(worker) == fault.node) stops_short(ledger_.queries[q], worker);
    }
  }
  cluster_.kill(fault.node);
  cluster_.world().spawn("end of node " + std::to_string(fault.node), [this, fault] {
    bury(fault.node);
    if (fault.kind == FaultKind::death_return) resurrect(fault);
  });
}

void Injector::bury(uint32_t node) {
  cluster_.world().wait_until([&] { return ledger_.running[node] == 0; }, base::kForever,
                              "the programs of a dead node");
  const uint32_t first = plan_.first_worker(node);
  for (uint32_t w = 0; w < plan_.workers_per_node[node]; ++w) ledger_.workers[first + w] = nullptr;
  (void)cluster_.end_node(node);
}

void Injector::resurrect(const Fault& fault) {
  for (uint32_t deaths = 0; deaths < fault.way; ++deaths) {
    const auto has_died = std::make_shared<bool>(false);
    sim::World& world = cluster_.world();
    world.schedule(world.now() + fault.lasting, "death on return", [this, fault, has_died] {
      cluster_.kill(fault.node);
      *has_died = true;
    });
    (void)cluster_.open_session(fault.node);  // a session that is open by then dies as well
    world.wait_until([&] { return *has_died; }, base::kForever, "a death on return");
    (void)cluster_.end_node(fault.node);
    ++deaths_on_return_;
  }
  const Status opened = cluster_.open_session(fault.node);
  returned_[fault.node] = opened;
  if (!opened.ok()) return;
  const uint32_t first = plan_.first_worker(fault.node);
  for (uint32_t w = 0; w < plan_.workers_per_node[fault.node]; ++w)
    ledger_.workers[first + w] = &cluster_.session(fault.node).worker(w);
}

}  // namespace faro::simulation
