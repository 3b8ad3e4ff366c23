// Board and Program: what the workers of a run share.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "support/cases.h"
#include "support/query_end.h"

namespace faro::test {
namespace {

constexpr const char* kSteps[] = {"idle",     "opens", "sends", "takes",
                                  "finishes", "waits", "ends",  "returned"};

}  // namespace

void Board::fail(std::string_view text) noexcept {
  uint32_t none = 0;
  if (!failed.compare_exchange_strong(none, 1, std::memory_order_relaxed)) return;
  const size_t size = std::min(text.size(), kText - 1);
  std::memcpy(failure, text.data(), size);
  failure[size] = 0;
  failed.store(2, std::memory_order_release);
}

std::string Board::first_failure() const {
  return failed.load(std::memory_order_acquire) == 2 ? failure : "";
}

std::string Board::state(uint32_t worker_count) const {
  std::string text;
  for (uint32_t w = 0; w < worker_count; ++w) {
    const Doing& d = doing[w];
    const uint32_t step = d.step.load(std::memory_order_relaxed);
    text += fmt::format(
        "  worker {} {} query {} stage {} peer {}, {} operations\n", w,
        step < std::size(kSteps) ? kSteps[step] : "?", d.query.load(std::memory_order_relaxed),
        d.stage.load(std::memory_order_relaxed), d.peer.load(std::memory_order_relaxed),
        d.operations.load(std::memory_order_relaxed));
  }
  return text;
}

std::string describe(const SessionMetrics& metrics) {
  std::string text = fmt::format(
      "  overflow memory {} (peak {}), file {} (peak {}), queries running {}, failed {}\n",
      metrics.overflow_memory_bytes, metrics.overflow_memory_peak_bytes,
      metrics.overflow_file_bytes, metrics.overflow_file_peak_bytes, metrics.queries_running,
      metrics.queries_failed);
  for (const WorkerMetrics& w : metrics.workers) {
    text += fmt::format(
        "  worker {}: rows out {} in {} dropped {}, waits {} sleeps {}, spilled {}, out spilled "
        "{}\n",
        w.worker, w.rows_sent, w.rows_received, w.rows_dropped, w.waits, w.sleeps, w.frames_spilled,
        w.frames_out_overflow);
  }
  for (const LaneMetrics& lane : metrics.lanes) {
    if (lane.frames_sent + lane.frames_received == 0) continue;
    text += fmt::format(
        "    lane {} to {}: out {} frames {} bytes {} transfers, in {} frames {} bytes {} reads "
        "told\n",
        lane.sender, lane.receiver, lane.frames_sent, lane.bytes_sent, lane.transfers,
        lane.frames_received, lane.bytes_received, lane.read_notifications);
  }
  return text;
}

Program::~Program() {
  for (const auto& [sum, times] :
       {std::pair(&board.rows_checked, counts.rows), std::pair(&board.stops, counts.stops),
        std::pair(&board.detaches, counts.detaches), std::pair(&board.claims, counts.claims),
        std::pair(&board.holds, counts.holds), std::pair(&board.large_rows, counts.large_rows)})
    sum->fetch_add(times, std::memory_order_relaxed);
}

void Program::tell_rows_made(const StagePlan& plan, uint64_t rows) {
  board.rows_made[plan.query][plan.stage][me].store(rows + 1, std::memory_order_release);
}

std::optional<uint64_t> Program::rows_made(const StagePlan& plan, uint32_t sender) const {
  const uint64_t made =
      board.rows_made[plan.query][plan.stage][sender].load(std::memory_order_acquire);
  return made == 0 ? std::nullopt : std::optional(made - 1);
}

Result<QueryId> Program::query(uint32_t index, uint32_t issuer) {
  Board::QueryCell& cell = board.queries[index];
  if (me == issuer) {
    cell.id = session.begin_query();
    cell.ready.store(1, std::memory_order_release);
    host.wake_all();
    return cell.id;
  }
  doing(Step::waits, index);
  // In another process nobody can wake this worker: it looks now and then.
  while (cell.ready.load(std::memory_order_acquire) == 0) {
    if (others_failed()) return Status(Code::query_cancelled, "another worker gave up");
    const Outcome outcome = worker.wait_until(
        [&] { return cell.ready.load(std::memory_order_acquire) != 0 || others_failed(); },
        Wait::at_most(std::chrono::milliseconds(5)));
    if (outcome == Outcome::failed)
      return Status(Code::internal_error, fmt::format("worker {}: wait_until failed", me));
    host.between();
  }
  return cell.id;
}

Status Program::end(const QueryId& id, bool expect_done) {
  doing(Step::ends, static_cast<uint32_t>(id.counter));
  Status cause;
  const Outcome outcome = end_query(worker, id, cause);
  host.progress();
  if (outcome == Outcome::done || !expect_done) return Status::Ok();
  return Status(cause.ok() ? Code::internal_error : cause.code(),
                fmt::format("worker {}: end of query {} answered {}: {}", me, id.to_string(),
                            outcome_name(outcome), cause.to_string()));
}

Status Program::barrier(uint32_t index) {
  std::atomic<uint32_t>& arrived = board.arrived[index];
  arrived.fetch_add(1, std::memory_order_seq_cst);
  host.wake_all();
  doing(Step::waits, 99, index);
  const auto all_here = [&] {
    return arrived.load(std::memory_order_seq_cst) >= count || others_failed();
  };
  while (!all_here()) {
    const Outcome outcome =
        worker.wait_until(all_here, Wait::at_most(std::chrono::milliseconds(5)));
    if (outcome != Outcome::done && outcome != Outcome::deadline) {
      return Status(Code::internal_error, fmt::format("worker {}: barrier {} answered {}", me,
                                                      index, outcome_name(outcome)));
    }
    host.between();
  }
  return others_failed() ? Status(Code::query_cancelled, "another worker gave up") : Status::Ok();
}

Status Program::wait_a_little(uint64_t nanoseconds) {
  const Outcome outcome =
      worker.wait_until([] { return false; }, Wait::at_most(std::chrono::nanoseconds(nanoseconds)));
  if (outcome == Outcome::deadline || outcome == Outcome::holding) return Status::Ok();
  return Status(Code::internal_error,
                fmt::format("worker {}: wait_until answered {}", me, outcome_name(outcome)));
}

Status run_case(const Case& what, Program& program) {
  Status status = what.run(program);
  if (!status.ok())
    program.board.fail(fmt::format("worker {}: {}", program.me, status.to_string()));
  program.host.wake_all();
  program.doing(Step::returned);
  return status;
}

}  // namespace faro::test
