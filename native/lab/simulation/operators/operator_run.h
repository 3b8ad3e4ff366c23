// One run of a plan of operators over a simulated cluster, of which the kind of operator is a parameter.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "lab/simulation/cluster.h"
#include "lab/simulation/run_report.h"
#include "lab/simulation/sim_spill_file.h"
#include "lab/workload/chance.h"
#include "lab/workload/operator_calls.h"
#include "node/session_access.h"

namespace faro::simulation {

inline constexpr base::Nanoseconds kOperatorStallLimit = 20'000 * base::kMillisecond;
/// How a query of operators ends.
enum class OperatorEnd : uint8_t {
  done,
  cancelled,  // by a node, while a worker of it is between two calls
  left,       // a worker leaves it, and all that it has open
  killed,     // the process of a node
  full_disk,  // from the beginning
};
inline constexpr const char* kOperatorEndNames[] = {"done", "cancelled", "left", "node killed",
                                                    "full disk"};

/// `Kind` names a Plan and its Part, and has functions about them:
///   draw(seed, workers, most_rows)  a plan
///   exceed_reserves(plan, rows)     gives it as many rows, of which no reserve holds the result
///   reserve_bytes(plan)             of all operators of a worker
///   cover(part, coverage)           what it has done
template <typename Kind>
class OperatorRun {
 public:
  explicit OperatorRun(uint64_t seed) : chance_(workload::mix(seed, 0x09e4ULL)), seed_(seed) {
    draw_shape();
    plan_ = Kind::draw(seed, workers_, kMostRows >> (2 * chance_.below(3)));
    draw_end();
    cluster_ = std::make_unique<Cluster>(seed, shape());
  }

  std::string run() {
    std::string violation = run_phases();
    return world().failed() ? std::string(world().failure().message()) : violation;
  }
  std::string trace() {
    return fmt::format("{}; {}, at worker {} after {} calls\n{}", plan_.to_string(),
                       kOperatorEndNames[static_cast<size_t>(end_)], end_place_, end_calls_,
                       world().report());
  }
  uint64_t hash() { return world().trace_hash(); }
  void cover(Coverage& coverage);

 private:
  using End = OperatorEnd;
  class Host;

  static constexpr uint64_t kMostRows = 200'000;  // of all workers
  static constexpr uint64_t kMebibyte = uint64_t{1} << 20;

  sim::World& world() { return cluster_->world(); }

  void draw_shape() {
    nodes_.resize(chance_.between(1, 3));
    disks_.resize(nodes_.size());
    for (uint32_t& workers : nodes_) {
      workers = static_cast<uint32_t>(chance_.between(1, 2));
      for (uint32_t i = 0; i < workers; ++i)
        workers_.push_back(static_cast<uint32_t>(workers_.size()));
    }
  }
  void draw_end() {
    constexpr End kEnds[] = {End::cancelled, End::left, End::killed, End::full_disk};
    end_ = chance_.one_in(3) ? kEnds[chance_.below(std::size(kEnds))] : End::done;
    if (end_ == End::killed && nodes_.size() == 1) end_ = End::left;
    end_place_ = static_cast<uint32_t>(chance_.below(workers_.size()));
    end_calls_ = chance_.below(chance_.one_in(2) ? 10 : 200);
    if (end_ != End::full_disk) return;
    for (SimDisk& disk : disks_) disk.full = true;
    Kind::exceed_reserves(plan_, kMostRows);
  }

  ClusterShape shape() {
    ClusterShape shape;
    shape.knobs.stall_limit = kOperatorStallLimit;
    shape.workers_per_node = nodes_;
    shape.make_spill_file = [this](uint32_t node) {
      return std::make_unique<SimSpillFile>(disks_[node]);
    };
    constexpr uint64_t kBudgets[] = {0, 64 << 10, kMebibyte};
    const bool is_tight = end_ == End::full_disk;
    const uint64_t beyond = is_tight || chance_.one_in(2) ? 0 : 32 * kMebibyte;
    const uint64_t overflow = is_tight ? 0 : kBudgets[chance_.below(std::size(kBudgets))];
    const uint64_t delay_us = chance_.between(1, 2000);
    shape.configure = [this, beyond, overflow, delay_us](Config& config, uint32_t node) {
      const std::pair<const char*, uint64_t> settings[] = {
          {"ring.bytes", 4096},
          {"transfer.threshold_bytes", 1024},
          {"wait.sleep_ms", 10'000},
          {"drain.delay_us", delay_us},
          {"overflow.memory_bytes", overflow},
          {"operator.memory_bytes", nodes_[node] * Kind::reserve_bytes(plan_) + beyond}};
      for (const auto& [name, value] : settings) {
        if (const Status status = config.set(name, value); !status.ok()) configured_ = status;
      }
    };
    return shape;
  }

  std::string run_phases() {
    if (!configured_.ok()) return configured_.to_string();
    if (const Status opened = cluster_->open_sessions(); !opened.ok())
      return fmt::format("the cluster did not open: {}", opened.to_string());
    query_ = cluster_->session(0).begin_query();
    for (uint32_t node = 0, place = 0; node < nodes_.size(); ++node) {
      for (uint32_t w = 0; w < nodes_[node]; ++w, ++place)
        cluster_->spawn(node, w, [this, node, w, place] { take_part(node, w, place); });
    }
    if (const Status ran = cluster_->run(); !ran.ok()) return "";
    if (!violation_.empty()) return violation_;
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      if (std::string left = what_is_left(node); !left.empty()) return left;
    }
    if (const Status closed = cluster_->close(); !closed.ok() && end_ != End::killed)
      return fmt::format("a session did not close: {}", closed.to_string());
    for (const SimDisk& disk : disks_) {
      if (!disk.misuse.empty()) return disk.misuse;
    }
    return "";
  }

  void take_part(uint32_t node, uint32_t local, uint32_t place);
  void wake_all() {
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      Session& session = cluster_->session(node);
      for (uint32_t w = 0; w < nodes_[node]; ++w) session.worker(w).wake();
    }
  }
  void violate(std::string what) {
    if (violation_.empty()) violation_ = std::move(what);
  }
  std::string what_is_left(uint32_t node) {
    node::NodeCore& core = SessionAccess::core(cluster_->session(node));
    const shuffle::OperatorMemory& memory = core.worker(0).context().operator_memory;
    const std::pair<const char*, uint64_t> all[] = {
        {"operator.memory_bytes", memory.used_bytes()},
        {"what operators have spilled to memory", memory.spilled_in_memory()},
        {"the memory of overflow", core.overflow().memory_bytes()},
        {"the overflow file", core.overflow().file().used_bytes()}};
    for (const auto& [where, bytes] : all) {
      if (bytes != 0) return fmt::format("node {} has {} bytes left of {}", node, bytes, where);
    }
    return "";
  }

  workload::Chance chance_;
  const uint64_t seed_;
  std::vector<uint32_t> nodes_;  // their workers
  std::vector<uint32_t> workers_;
  std::vector<SimDisk> disks_;
  typename Kind::Plan plan_;
  End end_ = End::done;
  uint32_t end_place_ = 0;
  uint64_t end_calls_ = 0;
  Status configured_;
  std::unique_ptr<Cluster> cluster_;
  QueryId query_;
  uint32_t made_ = 0;  // workers that have made their operators, or have failed to
  std::string violation_;
  Coverage coverage_;
};

/// Lets others run between calls; and ends the query, if this worker is to.
template <typename Kind>
class OperatorRun<Kind>::Host final : public workload::OperatorHost {
 public:
  Host(OperatorRun& run, uint32_t node, bool ends) : run_(run), node_(node), ends_(ends) {}
  bool between() override {
    run_.world().maybe_yield();
    run_.world().note_progress();
    if (!ends_ || calls_++ < run_.end_calls_) return true;
    ends_ = false;
    if (run_.end_ == End::left) return false;
    if (run_.end_ == End::cancelled)
      (void)run_.cluster_->session(node_).cancel_query(run_.query_, "enough");
    if (run_.end_ == End::killed) run_.cluster_->kill(node_);
    return true;
  }

 private:
  OperatorRun& run_;
  const uint32_t node_;
  bool ends_;
  uint64_t calls_ = 0;
};

template <typename Kind>
void OperatorRun<Kind>::take_part(uint32_t node, uint32_t local, uint32_t place) {
  Worker& worker = cluster_->session(node).worker(local);
  Host host(*this, node, place == end_place_);
  typename Kind::Part part(plan_, place, worker, query_, host);
  // Each has its reserve before another one takes more than that.
  Outcome outcome = part.make();
  ++made_;
  wake_all();
  if (outcome == Outcome::done)
    outcome = worker.wait_until([this] { return made_ == workers_.size(); });
  if (outcome == Outcome::done) outcome = part.run();
  if (!part.mistake().empty()) violate(fmt::format("worker {}: {}", place, part.mistake()));
  const Outcome ended = worker.end_query(query_);
  const Status why = part.why().ok() ? worker.status() : part.why();
  if (ended == Outcome::done && outcome != Outcome::done && outcome != Outcome::failed)
    violate(fmt::format("worker {} has left the query, which is done", place));
  if (end_ == End::done && ended != Outcome::done)
    violate(fmt::format("worker {} failed: {}", place, why.to_string()));
  if (end_ == End::full_disk && ended != Outcome::done && why.code() != Code::overflow_exhausted)
    violate(fmt::format("worker {} failed, and not for its disk: {}", place, why.to_string()));
  coverage_.count("workers", ended == Outcome::done ? "done" : "failed");
  Kind::cover(part, coverage_);
  if (plan_.stops == place) coverage_.count("workers", "stopped");
}

template <typename Kind>
void OperatorRun<Kind>::cover(Coverage& coverage) {
  coverage_.count("ends", kOperatorEndNames[static_cast<size_t>(end_)]);
  for (const SimDisk& disk : disks_) {
    if (disk.peak_bytes > 0) coverage_.count("nodes", "with a file");
    if (disk.refused_count > 0) coverage_.count("nodes", "whose disk was full");
  }
  coverage.merge(coverage_);
}

}  // namespace faro::simulation
