#include "lab/simulation/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "lab/simulation/checker.h"
#include "lab/simulation/injector.h"
#include "lab/simulation/query_run.h"
#include "lab/simulation/worker_program.h"
#include "node/session_access.h"

namespace faro::simulation {
namespace {

// How long anything of a query may stay: what lines that are still silent keep back, and queries that a hostile
// node made up, which are forgotten after twice query.unopened_timeout_ms = 20 s.
constexpr base::Nanoseconds kIdleTime = 45'000 * base::kMillisecond;

class Run {
 public:
  explicit Run(uint64_t seed)
      : plan_(draw_plan(seed)),
        disks_(plan_.node_count()),
        cluster_(seed, shape()),
        injector_(cluster_, plan_, ledger_, disks_) {
    for (SimDisk& disk : disks_) disk.limit_bytes = plan_.disk_bytes;
    ledger_.workers.resize(plan_.worker_count());
    ledger_.running.resize(plan_.node_count());
  }

  /// Returns the violation, if any.
  std::string run() {
    std::string violation = run_phases();
    return world().failed() ? std::string(world().failure().message()) : violation;
  }
  std::string trace() { return describe(plan_) + world().report(); }
  uint64_t hash() { return mix(world().trace_hash(), outcome_hash_); }
  void cover(Coverage& coverage);

 private:
  sim::World& world() { return cluster_.world(); }

  ClusterShape shape() {
    ClusterShape shape;
    shape.workers_per_node = plan_.workers_per_node;
    shape.knobs = plan_.knobs;
    shape.start_after.resize(plan_.node_count());
    for (const Fault& fault : plan_.faults) {
      if (fault.kind == FaultKind::slow_start) shape.start_after[fault.node] = fault.lasting;
    }
    shape.configure = [this](Config& config, uint32_t) {
      for (const auto& [name, value] : plan_.settings) {
        const Status status = config.set(name, std::string_view(value));
        if (!status.ok()) configured_ = status;
      }
    };
    shape.make_spill_file = [this](uint32_t node) {
      return std::make_unique<SimSpillFile>(disks_[node]);
    };
    return shape;
  }

  std::string run_phases() {
    if (!configured_.ok()) return configured_.to_string();
    for (const auto phase :
         {&Run::fail_to_open, &Run::open, &Run::run_queries, &Run::check_queries,
          &Run::run_later_queries, &Run::wait_until_idle, &Run::close, &Run::live_again}) {
      std::string violation = (this->*phase)();
      if (!violation.empty() || world().failed()) return violation;
    }
    return "";
  }

  // Memory that cannot be registered: no node may open, all say why, and the next attempt is free.
  std::string fail_to_open() {
    for (const Fault& fault : plan_.faults) {
      if (fault.kind != FaultKind::registration) continue;
      cluster_.faults().refuse_registration(fault.node);
      const Status opened = cluster_.open_sessions();
      if (world().failed()) return "";
      cluster_.faults().allow_registration(fault.node);
      for (uint32_t node = 0; node < plan_.node_count(); ++node) {
        const Status& answer = cluster_.opened(node);
        if (answer.ok()) return fmt::format("node {} opened without node {}", node, fault.node);
        if (answer.message().find("cannot be registered") == std::string_view::npos) {
          return fmt::format("node {} does not say why the cluster could not open: {}", node,
                             answer.to_string());
        }
      }
      registration_failed_ = true;
      return "";
    }
    return "";
  }

  std::string open() {
    const Status opened = cluster_.open_sessions();
    if (!opened.ok()) return fmt::format("the cluster did not open: {}", opened.to_string());
    for (uint32_t node = 0; node < plan_.node_count(); ++node) {
      Session& session = cluster_.session(node);
      for (uint32_t w = 0; w < session.local_worker_count(); ++w)
        ledger_.workers[session.worker(w).number()] = &session.worker(w);
      cores_.push_back(SessionAccess::core(session).weak_from_this());
    }
    return "";
  }

  Status begin_query(uint32_t index) {
    const QueryPlan& query = plan_.queries[index];
    Ledger::QueryRecord& record = ledger_.queries.emplace_back();
    record.id = cluster_.session(query.issuer).begin_query();
    record.declared.resize(plan_.node_count());
    for (uint32_t node = 0; node < plan_.node_count(); ++node) {
      // An issuer that takes no part has no worker to do it later.
      const bool takes_part = plan_.takes_part(query, node);
      if (!(takes_part ? query.declared_early : node == query.issuer)) continue;
      record.declared[node] = true;
      FARO_RETURN_IF_ERROR(cluster_.session(node).declare_query(record.id, query.workers));
    }
    return Status::Ok();
  }

  template <typename Program>
  void spawn(uint32_t node, uint32_t local, uint32_t chance, Program&& program) {
    ++ledger_.running[node];
    cluster_.spawn(node, local, [this, node, local, chance, program] {
      Session& session = cluster_.session(node);
      Scene scene(world(), cluster_.faults(), plan_, ledger_, session, local,
                  mix(plan_.seed, session.worker(local).number(), chance));
      program(scene);
      --ledger_.running[node];
    });
  }

  std::string run_queries() {
    for (uint32_t q = 0; q < plan_.queries.size(); ++q) {
      if (const Status begun = begin_query(q); !begun.ok()) return begun.to_string();
    }
    for (uint32_t node = 0; node < plan_.node_count(); ++node) {
      for (uint32_t w = 0; w < plan_.workers_per_node[node]; ++w)
        spawn(node, w, 0, [this](Scene& scene) { run_worker(cluster_, scene); });
    }
    injector_.begin();
    (void)world().run();
    injector_.end();
    return "";
  }

  std::string check_queries() {
    const Checker checker(plan_, ledger_, injector_.happened());
    later_ = checker.sound();
    returned_.assign(plan_.node_count(), false);
    for (const auto& [node, answer] : injector_.returned()) {
      if (answer.ok())
        cores_.push_back(SessionAccess::core(cluster_.session(node)).weak_from_this());
      if (!checker.all_within_reach()) continue;
      if (!answer.ok())
        return fmt::format("node {} could not return: {}", node, answer.to_string());
      later_[node] = returned_[node] = true;
    }
    for (uint32_t q = 0; q < plan_.queries.size(); ++q) {
      if (std::string wrong = checker.check_query(q); !wrong.empty()) return wrong;
    }
    for (const Ledger::QueryRecord& record : ledger_.queries) {
      for (const auto& [worker, ending] : record.endings) {
        outcome_hash_ = mix(outcome_hash_, worker, static_cast<uint64_t>(ending.outcome),
                            static_cast<uint64_t>(ending.cause.code()));
      }
    }
    return "";
  }

  // Sound nodes go on, whatever happened to the others, and so do those that have returned: a query over
  // all of them, and as many shuffles as may be open at a time.
  std::string run_later_queries() {
    std::string wrong = wait_until_linked();
    if (wrong.empty()) wrong = run_all_to_all(later_);
    if (wrong.empty() && plan_.seed % 8 == 0) wrong = use_all_slots();
    return wrong;
  }

  // A node that was let in by some may be linked with others, whom those had lost, only later.
  std::string wait_until_linked() {
    const base::Nanoseconds deadline = world().now() + kIdleTime;
    std::string missing;
    world().spawn("checker", [&] {
      for (;;) {
        missing = missing_link();
        if (missing.empty() || world().now() >= deadline) return;
        cluster_.sleep(base::kMillisecond);
      }
    });
    (void)world().run();
    return missing;
  }

  std::string missing_link() {
    for (uint32_t node = 0; node < plan_.node_count(); ++node) {
      for (uint32_t peer = 0; peer < plan_.node_count(); ++peer) {
        if (!later_[node] || !later_[peer]) continue;
        if (!SessionAccess::core(cluster_.session(node)).membership().peers().is_present(peer))
          return fmt::format("node {} is not linked with node {}", node, peer);
      }
    }
    return "";
  }

  std::string run_all_to_all(const std::vector<bool>& nodes) {
    QueryPlan query;
    for (uint32_t worker = 0; worker < plan_.worker_count(); ++worker) {
      if (nodes[plan_.node_of(worker)]) query.workers.push_back(worker);
    }
    if (query.workers.empty()) return "";
    query.stage_bytes = 1024;
    query.stages.resize(1);
    return run_later_query(std::move(query));
  }

  std::string use_all_slots() {
    const auto sound = std::find(later_.begin(), later_.end(), true);
    if (sound == later_.end()) return "";
    QueryPlan query;
    query.workers = {plan_.first_worker(static_cast<uint32_t>(sound - later_.begin()))};
    query.stage_bytes = 64;
    query.stages.resize(plan_.shuffle_limit);
    return run_later_query(std::move(query));
  }

  // In all stages all workers of the query send to all.
  std::string run_later_query(QueryPlan query) {
    const auto index = static_cast<uint32_t>(plan_.queries.size());
    const std::vector<uint32_t> workers = query.workers;
    query.issuer = plan_.node_of(workers[plan_.seed % workers.size()]);
    query.seed = plan_.seed;
    for (uint32_t s = 0; s < query.stages.size(); ++s) {
      StagePlan& stage = query.stages[s];
      stage.query = index;
      stage.stage = s;
      stage.senders = stage.receivers = workers;
    }
    plan_.queries.push_back(std::move(query));
    if (const Status begun = begin_query(index); !begun.ok()) return begun.to_string();
    for (const uint32_t worker : workers) {
      const uint32_t node = plan_.node_of(worker);
      spawn(node, worker - plan_.first_worker(node), index,
            [index](Scene& scene) { QueryRun(scene, index).run(); });
    }
    (void)world().run();
    if (world().failed()) return "";
    return Checker(plan_, ledger_, injector_.happened()).check_later_query(index);
  }

  // Nothing is left of any query, on no node that is still there.
  std::string wait_until_idle() {
    const Checker checker(plan_, ledger_, injector_.happened());
    const base::Nanoseconds deadline = world().now() + kIdleTime;
    // Rows of queries that a member made up, or that are older than a node's return and reach it all the same,
    // are thrown away when a worker does something.
    const auto& happened = injector_.happened();
    const bool nobodys = std::any_of(happened.begin(), happened.end(), [](const Fault& fault) {
      return fault.kind == FaultKind::lies || fault.kind == FaultKind::hostile ||
             fault.kind == FaultKind::death_return;
    });
    std::string left;
    world().spawn("checker", [&] {
      for (;;) {
        left.clear();
        for (Worker* worker : ledger_.workers) {
          if (worker != nullptr && nobodys)
            (void)worker->wait_until([] { return true; }, Wait::none());
        }
        for (uint32_t node = 0; node < plan_.node_count() && left.empty(); ++node) {
          if (!cluster_.has_session(node)) continue;
          if (!cluster_.turn_watch().is_at_rest(node))
            left = fmt::format("node {} has nothing to do, but takes turns", node);
          if (left.empty()) left = checker.check_idle(node, cluster_.session(node), disks_[node]);
          if (left.empty() && later_[node])
            left = checker.check_links(node, cluster_.session(node), returned_);
        }
        if (left.empty() || world().now() >= deadline) return;
        cluster_.sleep(base::kMillisecond);
      }
    });
    (void)world().run();
    return left;
  }

  std::string close() {
    cut_count_ = cluster_.faults().cut_count();
    dark_count_ = cluster_.faults().dark_count();
    for (uint32_t node = 0; node < plan_.node_count(); ++node) {
      if (!cluster_.has_session(node)) continue;
      node::NodeCore& core = SessionAccess::core(cluster_.session(node));
      used_overflow_memory_ |= core.overflow().memory_peak_bytes() > 0;
    }
    for (Worker*& worker : ledger_.workers) worker = nullptr;
    const Status closed = cluster_.close();
    if (!closed.ok()) return fmt::format("close answered {}", closed.to_string());
    for (uint32_t node = 0; node < plan_.node_count(); ++node) {
      if (!disks_[node].misuse.empty())
        return fmt::format("overflow file of node {}: {}", node, disks_[node].misuse);
      if (disks_[node].used_bytes > 0)
        return fmt::format("node {} left {} bytes in its overflow file", node,
                           disks_[node].used_bytes);
    }
    const bool all_gone =
        std::all_of(cores_.begin(), cores_.end(), [](const auto& core) { return core.expired(); });
    return all_gone ? "" : "a session is destroyed, but something of it is still used";
  }

  // All nodes form a cluster again, under new incarnations, while bytes of the old ones may be under way.
  std::string live_again() {
    if (!plan_.second_life) return "";
    cluster_.faults().heal();
    for (SimDisk& disk : disks_) disk.full = false;
    later_.assign(plan_.node_count(), true);
    std::string wrong = open();
    if (wrong.empty()) wrong = run_all_to_all(later_);
    if (wrong.empty()) wrong = wait_until_idle();
    if (wrong.empty()) wrong = close();
    return wrong.empty() ? "" : "in the second life: " + wrong;
  }

  RunPlan plan_;
  Ledger ledger_;
  Status configured_;
  std::vector<SimDisk> disks_;
  Cluster cluster_;
  Injector injector_;
  std::vector<std::weak_ptr<node::NodeCore>> cores_;  // of all sessions there were
  std::vector<bool> later_;                           // nodes that later queries are over
  std::vector<bool> returned_;                        // those of them that died and started again
  const size_t planned_queries_ = plan_.queries.size();
  const base::Nanoseconds begin_ = cluster_.world().now();
  bool registration_failed_ = false;
  bool used_overflow_memory_ = false;
  uint64_t cut_count_ = 0;
  uint64_t dark_count_ = 0;
  uint64_t outcome_hash_ = 0;
};

void Run::cover(Coverage& coverage) {
  coverage.add("nodes", plan_.node_count());
  coverage.add("workers", plan_.worker_count());
  for (const uint32_t workers : plan_.workers_per_node) coverage.add("workers of a node", workers);
  coverage.add("ring bytes", plan_.ring_bytes);
  coverage.add("queries at once", planned_queries_);
  for (size_t q = 0; q < std::min(planned_queries_, ledger_.queries.size()); ++q) {
    const QueryPlan& query = plan_.queries[q];
    coverage.add("stages of a query", query.stages.size());
    coverage.add("workers of a query", query.workers.size());
    for (const StagePlan& stage : query.stages) {
      coverage.count("stages", workload::spread_name(stage));
      if (!stage.nodes.empty()) coverage.count("stages", "to nodes");
      coverage.add("largest row of a stage", std::max(stage.row_bytes, stage.most_bytes));
    }
    const bool beside_misbehaving =
        !ledger_.misbehaving.empty() &&
        std::none_of(ledger_.misbehaving.begin(), ledger_.misbehaving.end(),
                     [&](uint32_t node) { return plan_.concerns(query, node); });
    for (const auto& [worker, ending] : ledger_.queries[q].endings) {
      if (beside_misbehaving)
        coverage.count("queries beside a lying member", outcome_name(ending.outcome));
      const bool failed = ending.outcome == Outcome::failed;
      coverage.count("queries ended at workers", failed ? code_name(ending.cause.code()) : "done");
    }
  }
  const Happened& happened = ledger_.happened;
  coverage.add("rows of a run", happened.rows);
  coverage.add("bytes of a run", happened.bytes);
  coverage.add("steps of a run", world().steps());
  coverage.add("simulated ms of a run", (world().now() - begin_) / base::kMillisecond);
  coverage.count("rows", "checked", happened.rows);
  coverage.count("rows", "of hostile nodes", happened.unchecked_rows);
  if (happened.lies > 0) {
    coverage.count("lies", "messages", happened.lies);
    coverage.count("lies", "shuffles", happened.lying_shuffles);
  }
  coverage.count("rows", "larger than a frame", happened.large_rows);
  coverage.count("workers did", "early stops", happened.stops);
  coverage.count("workers did", "held batches", happened.holds);
  coverage.count("workers did", "detached batches", happened.detaches);
  coverage.count("workers did", "claims", happened.claims);
  coverage.count("workers did", "claims that shrink below a frame", happened.shrunk_claims);
  coverage.count("workers did", "stages sent to groups", happened.grouped);
  coverage.count("workers did", "waits that reached their time limit", happened.time_limits);
  coverage.count("workers did", "barriers", happened.barriers);

  uint64_t faults = injector_.happened().size() + registration_failed_;
  for (const Fault& fault : injector_.happened()) coverage.count("faults", fault_name(fault.kind));
  for (const Fault& fault : plan_.faults) {
    if (fault.kind != FaultKind::slow_start) continue;
    coverage.count("faults", fault_name(fault.kind));
    ++faults;
  }
  if (registration_failed_) coverage.count("faults", fault_name(FaultKind::registration));
  coverage.add("faults of a run", faults);
  coverage.count("connections", "cut", cut_count_);
  coverage.count("connections", "gone dark", dark_count_);
  cover_turns(coverage, cluster_.turn_watch().counts());
  for (const auto& [node, answer] : injector_.returned())
    coverage.count("runs with",
                   answer.ok() ? "a node that came back" : "a node that found no way back");
  coverage.count("runs with", "a death on the way back", injector_.deaths_on_return() > 0);
  coverage.count("runs with", "a second life", plan_.second_life);
  coverage.count("runs with", "rows in overflow memory", used_overflow_memory_);
  const auto any_disk = [this](auto&& holds) {
    return std::any_of(disks_.begin(), disks_.end(), holds);
  };
  coverage.count("runs with", "rows in the overflow file",
                 any_disk([](const SimDisk& disk) { return disk.peak_bytes > 0; }));
  coverage.count("runs with", "a disk that was full when asked",
                 any_disk([](const SimDisk& disk) { return disk.refused_count > 0; }));
}

}  // namespace

RunReport run_seed(uint64_t seed) { return report_of<Run>(seed); }

}  // namespace faro::simulation
