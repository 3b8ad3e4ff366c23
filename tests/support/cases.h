// Cases: worker programs over the public API that check themselves, wherever they run: as threads of
// one process, as processes, in the simulation.
//
// Rows, and what is compared, are those of lab/workload. Senders write how many rows they made to the board before they finish.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faro/session.h"
#include "lab/workload/stage.h"

namespace faro::test {

using workload::Chance;
using workload::mix;
using workload::Spread;
using workload::StagePlan;
using workload::Step;

/// What the workers of a run share beside their shuffles; plain memory that may be shared by
/// processes. All zero at first.
struct Board {
  static constexpr uint32_t kWorkers = 32;
  static constexpr uint32_t kQueries = 4;
  static constexpr uint32_t kStages = 6;  // of a query
  static constexpr uint32_t kBarriers = 8;
  static constexpr size_t kText = 400;

  struct QueryCell {
    std::atomic<uint32_t> ready;  // release: `id` is set
    QueryId id;
  };
  /// What a worker is doing, for whoever looks into a run that hangs.
  struct Doing {
    std::atomic<uint32_t> step, stage, query, peer;
    std::atomic<uint64_t> operations;
  };

  std::array<QueryCell, kQueries> queries;
  std::array<std::atomic<uint32_t>, kBarriers> arrived;
  /// Rows made by a sender of a stage, plus 1, once it is about to finish. Release.
  std::atomic<uint64_t> rows_made[kQueries][kStages][kWorkers];
  std::array<Doing, kWorkers> doing;

  // Coverage of a run.
  std::atomic<uint64_t> rows_checked, stops, cancels, detaches, claims, holds, large_rows;

  std::atomic<uint32_t> failed;  // 1: being written, 2: `failure` is set
  char failure[kText];

  /// The first failure of a run is kept.
  void fail(std::string_view text) noexcept;
  std::string first_failure() const;
  /// One line per worker.
  std::string state(uint32_t worker_count) const;
};

/// A node's counters for whoever looks into a run that hangs: its workers, and lanes in use.
std::string describe(const SessionMetrics& metrics);

/// Where a case runs. Threads: any worker's.
class Host {
 public:
  virtual ~Host() = default;
  /// Between two operations: where the simulation may let others run.
  virtual void between() {}
  /// A row or a batch went through.
  virtual void progress() {}
  /// Wakes every worker of the run that can be reached from here.
  virtual void wake_all() {}
  /// Takes time without calling Faro: a slow operator.
  virtual void work(uint64_t nanoseconds) = 0;
};

/// How much a run does. Set per host: the simulation runs a thousand of them.
struct CaseScale {
  uint64_t worker_bytes = 64 << 10;  // that a worker sends in a stage, about
  uint64_t ring_bytes = 4096;
};

class Program;

struct Case {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings;  // beside those of the host
  std::function<Status(Program&)> run;
  /// What has to hold for a node's counters afterwards; empty: nothing.
  std::function<Status(const SessionMetrics&)> check;
};

/// All cases. Names are unique.
const std::vector<Case>& all_cases();
const Case& find_case(std::string_view name);

/// Runs one worker's program of a case; writes a failure to the board as well.
Status run_case(const Case& what, Program& program);

/// A worker's view of a run. Threads: the worker's.
class Program final : public workload::Participant {
 public:
  Program(Session& session_of, Worker& worker_of, Board& shared, Host& where, uint64_t run_seed,
          const CaseScale& how_much)
      : Participant(worker_of, mix(run_seed, worker_of.number(), 1), how_much.ring_bytes, counted),
        session(session_of),
        board(shared),
        host(where),
        seed(run_seed),
        scale(how_much),
        count(session_of.worker_count()),
        common(mix(run_seed, 2)) {}
  /// Adds what happened to the board.
  ~Program() override;

  void between() override { host.between(); }
  void progress() override { host.progress(); }
  void doing(Step step, const StagePlan& plan, uint32_t peer) override {
    doing(step, plan.query, plan.stage, peer);
  }
  void tell_rows_made(const StagePlan& plan, uint64_t rows) override;
  std::optional<uint64_t> rows_made(const StagePlan& plan, uint32_t sender) const override;

  Session& session;
  Board& board;
  Host& host;
  const uint64_t seed;
  const CaseScale scale;
  const uint32_t count;
  Chance common;  // the same numbers at every worker, as long as all draw alike
  workload::Counts counted;

  /// The run's i-th query; `issuer` begins it.
  Result<QueryId> query(uint32_t index, uint32_t issuer = 0);
  /// This worker's part is over. `expect_done`: any other outcome is an error.
  Status end(const QueryId& id, bool expect_done = true);
  /// Waits until all workers of the run are here, as an engine would: by wait_until and wake.
  Status barrier(uint32_t index);
  /// Somebody else failed: give up.
  bool others_failed() const { return board.failed.load(std::memory_order_relaxed) != 0; }
  Status wait_a_little(uint64_t nanoseconds = 50'000);

  void doing(Step step, uint32_t query_index = 0, uint32_t stage = 0, uint32_t peer = 0) {
    Board::Doing& d = board.doing[me];
    d.step.store(static_cast<uint32_t>(step), std::memory_order_relaxed);
    d.query.store(query_index, std::memory_order_relaxed);
    d.stage.store(stage, std::memory_order_relaxed);
    d.peer.store(peer, std::memory_order_relaxed);
    d.operations.fetch_add(1, std::memory_order_relaxed);
  }
};

/// A stage of a case that says itself what is done when. Unless said otherwise, calls wait.
class Stage : public workload::Stage {
 public:
  Stage(Program& program, StagePlan plan);

  Status open(const QueryId& id) { return workload::Stage::open(spec(id)); }
  Outcome send_next(bool wait = true) { return workload::Stage::send_next(wait); }
  /// Anything but done and stopped is an error.
  Status send_rows(uint64_t rows);
  Status finish();
  Outcome try_finish() { return workload::Stage::finish(false); }

  /// Checks the rows of a batch.
  Status check(const Batch& batch) { return ok_if(workload::Stage::check(batch)); }
  /// Takes one batch, checks and releases it. `end` is set at the end of stream.
  Status take_one(bool& end);
  /// Takes to the end and compares counts.
  Status take_to_end();
  /// At the end of stream: every sender's rows have all come.
  Status check_end() { return ok_if(workload::Stage::check_end()); }

  Status error(Outcome outcome, const char* what) const;

 private:
  Status ok_if(bool is_right) const { return is_right ? Status::Ok() : status(); }

  const uint32_t me_;
};

}  // namespace faro::test
