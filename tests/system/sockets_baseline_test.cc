// The sockets baseline and the process group below it, with real processes.
#include "lab/bench/sockets_baseline.h"
#include "base/clock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "lab/bench/process_group.h"
#include "support/expect.h"

namespace faro::bench {
namespace {

/// The processes this one has forked and not yet reaped.
std::vector<pid_t> children() {
  const std::string self = std::to_string(getpid());
  std::ifstream file("/proc/" + self + "/task/" + self + "/children");
  std::vector<pid_t> found;
  for (pid_t pid; file >> pid;) found.push_back(pid);
  return found;
}

void expect_no_children() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

void expect_verified(const Result<std::vector<RunFigures>>& runs, size_t rounds) {
  ASSERT_TRUE(test::is_ok(runs));
  EXPECT_EQ(runs.value().size(), rounds);
  for (const RunFigures& run : runs.value()) {
    EXPECT_EQ(run.totals.count, run.expected.totals.count);
    EXPECT_EQ(run.totals.checksum, run.expected.totals.checksum);
    EXPECT_TRUE(run.verified());
    EXPECT_GT(run.seconds, 0);
    EXPECT_EQ(run.expected.hops, 2 * run.expected.rows);
  }
  expect_no_children();
}

struct Shape {
  uint32_t processes;
  uint32_t workers;
};

class EveryShape : public testing::TestWithParam<std::tuple<SocketsForm, Shape>> {};

TEST_P(EveryShape, shuffles_every_row_once) {
  const auto [form, shape] = GetParam();
  for (HashKind hash : {HashKind::finalizer, HashKind::multiplicative}) {
    for (uint32_t row_bytes : {8u, 16u, 100u, 64u * 1024, 1024u * 1024}) {
      if (hash == HashKind::multiplicative && row_bytes != 8) continue;
      SCOPED_TRACE(std::string(hash_name(hash)) + ", " + std::to_string(row_bytes) + " bytes");
      const uint64_t rows = is_large(row_bytes) ? 11 : form == SocketsForm::tuned ? 20'001 : 301;
      const TwoStageJob job{shape.processes, shape.workers, rows, row_bytes, hash};
      expect_verified(run_sockets_baseline(job, {.form = form}, {.timed_rounds = 2}), 2);
    }
  }
}

std::string shape_name(const testing::TestParamInfo<std::tuple<SocketsForm, Shape>>& info) {
  const auto [form, shape] = info.param;
  return std::string(form == SocketsForm::paper ? "paper" : "tuned") + "_" +
         std::to_string(shape.processes) + "x" + std::to_string(shape.workers);
}

INSTANTIATE_TEST_SUITE_P(SocketsBaseline, EveryShape,
                         testing::Combine(testing::Values(SocketsForm::tuned, SocketsForm::paper),
                                          testing::Values(Shape{4, 1}, Shape{4, 2}, Shape{8, 1},
                                                          Shape{4, 4}, Shape{2, 1}, Shape{1, 1},
                                                          Shape{1, 3})),
                         shape_name);

TEST(SocketsBaseline, survives_tiny_buffers_everywhere) {
  // Every buffer is full all the time, and everyone generates far more than fits before it reads.
  const SocketsOptions sockets{.outgoing_buffer_bytes = 1,
                               .incoming_buffer_bytes = 1,
                               .kernel_buffer_bytes = 1,
                               .generate_batch_rows = 1'000'000,
                               .yields_before_sleep = 0};
  expect_verified(run_sockets_baseline({3, 2, 60'000, 100}, sockets, {}), 1);
}

TEST(SocketsBaseline, runs_without_rows_and_over_ipv6) {
  expect_verified(run_sockets_baseline({.rows_per_process = 0}, {}, {}), 1);
  const Result<std::vector<RunFigures>> runs =
      run_sockets_baseline({.rows_per_process = 1000}, {.addresses = {"::1"}}, {});
  if (!runs && runs.status().code() == Code::system_error) {
    GTEST_SKIP() << "no IPv6 here: " << runs.status().to_string();
  }
  expect_verified(runs, 1);
}

TEST(SocketsBaseline, spreads_its_processes_over_several_addresses) {
  const SocketsOptions sockets{.addresses = {"127.0.0.2", "127.0.0.3"}};
  expect_verified(run_sockets_baseline({3, 2, 1000}, sockets, {}), 1);
}

TEST(SocketsBaseline, refuses_bad_parameters) {
  EXPECT_EQ(run_sockets_baseline({.row_bytes = 9}, {}, {}).status().code(), Code::invalid_argument);
  EXPECT_EQ(run_sockets_baseline({}, {.addresses = {"nowhere"}}, {}).status().code(),
            Code::invalid_argument);
}

TEST(SocketsBaseline, names_a_process_that_is_killed_in_the_middle) {
  const TwoStageJob job{4, 2, 500'000'000};  // far from done when the kill comes
  RunOptions options;
  options.warmup_rounds = 0;
  options.progress_interval_ns = base::kMillisecond;
  std::vector<pid_t> running;
  options.progress = [&](const Progress& progress) {
    if (progress.rows_done == 0 || !running.empty()) return;
    running = children();
    ASSERT_EQ(running.size(), 4u);
    kill(running[2], SIGKILL);
  };
  Result<std::vector<RunFigures>> runs = run_sockets_baseline(job, SocketsOptions(), options);
  ASSERT_FALSE(runs.ok());
  EXPECT_EQ(runs.status().code(), Code::peer_lost) << runs.status().to_string();
  test::expect_contains(runs.status().message(), "process 2 was ended by signal 9");
  expect_no_children();
}

TEST(SocketsBaseline, ends_at_its_time_limit) {
  Result<std::vector<RunFigures>> runs = run_sockets_baseline(
      {.rows_per_process = 500'000'000}, {}, {.time_limit_ns = 300 * base::kMillisecond});
  EXPECT_EQ(runs.status().code(), Code::deadline_exceeded) << runs.status().to_string();
  expect_no_children();
}

ProcessGroup make_group(uint32_t processes, uint32_t workers, uint32_t rounds) {
  Result<ProcessGroup> group = ProcessGroup::create({.process_count = processes,
                                                     .workers_per_process = workers,
                                                     .round_count = rounds,
                                                     .shared_bytes = 4096});
  EXPECT_TRUE(group.ok());
  return std::move(group).value();
}

TEST(ProcessGroup, brings_back_what_each_worker_did_in_each_round) {
  ProcessGroup group = make_group(2, 3, 2);
  auto* const area = static_cast<std::atomic<uint32_t>*>(group.shared_area());
  Result<std::vector<RoundTotals>> rounds = group.run([&](GroupMember& member) {
    static_cast<std::atomic<uint32_t>*>(member.shared_area())->fetch_add(1);
    member.meet_processes();
    member.run_workers([&](uint32_t worker) {
      for (uint32_t round = 0; round < 2; ++round) {
        member.start_round(worker, round);
        member.end_round(worker, round, {member.global_worker(worker), round});
      }
      return Status::Ok();
    });
    return Status::Ok();
  });
  ASSERT_TRUE(test::is_ok(rounds));
  ASSERT_EQ(rounds.value().size(), 2u);
  EXPECT_EQ(area->load(), 2u);
  for (uint32_t round = 0; round < 2; ++round) {
    const RoundTotals& totals = rounds.value()[round];
    EXPECT_EQ(totals.rows.count, 0u + 1 + 2 + 3 + 4 + 5);
    EXPECT_EQ(totals.rows.checksum, 6 * round);
    ASSERT_EQ(totals.workers.size(), 6u);
    for (uint32_t worker = 0; worker < 6; ++worker) {
      EXPECT_EQ(totals.workers[worker].rows.count, worker);
      EXPECT_LE(totals.workers[worker].start_ns, totals.workers[worker].end_ns);
    }
  }
  EXPECT_GE(rounds.value()[1].workers[0].start_ns, rounds.value()[0].workers[5].end_ns);
  expect_no_children();
}

TEST(ProcessGroup, counts_the_processor_time_of_all_threads_within_the_round_only) {
  auto burn = [](uint64_t cpu_ns) {
    timespec now{};
    do {
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
                 static_cast<uint64_t>(now.tv_nsec) <
             cpu_ns);
  };
  ProcessGroup group = make_group(2, 2, 1);
  Result<std::vector<RoundTotals>> rounds = group.run([&](GroupMember& member) {
    member.run_workers([&](uint32_t worker) {
      burn(100 * base::kMillisecond);  // setup: not counted
      member.start_round(worker, 0);
      burn(150 * base::kMillisecond);  // 50 ms more
      member.end_round(worker, 0, {});
      return Status::Ok();
    });
    return Status::Ok();
  });
  ASSERT_TRUE(test::is_ok(rounds));
  EXPECT_NEAR(rounds.value()[0].cpu_seconds, 4 * 0.050, 0.040);
  EXPECT_GE(rounds.value()[0].seconds, 0.050);
}

TEST(ProcessGroup, reports_the_error_of_a_process_with_its_number) {
  ProcessGroup group = make_group(3, 1, 1);
  Result<std::vector<RoundTotals>> rounds = group.run([&](GroupMember& member) {
    if (member.process() == 1) return Status(Code::connect_failed, "no way through");
    member.meet_processes();  // without end: process 1 never comes
    return Status::Ok();
  });
  EXPECT_EQ(rounds.status().to_string(), "connect_failed: process 1: no way through");
  expect_no_children();
}

TEST(ProcessGroup, a_failing_worker_takes_its_waiting_siblings_along) {
  ProcessGroup group = make_group(2, 2, 1);
  Result<std::vector<RoundTotals>> rounds = group.run([&](GroupMember& member) {
    member.run_workers([&](uint32_t worker) {
      if (member.global_worker(worker) == 3) return Status(Code::system_error, "broken");
      member.start_round(worker, 0);
      return Status::Ok();
    });
    return Status::Ok();
  });
  EXPECT_EQ(rounds.status().to_string(), "system_error: process 1: broken");
  expect_no_children();
}

TEST(ProcessGroup, reports_a_process_that_just_exits) {
  ProcessGroup group = make_group(2, 1, 1);
  Result<std::vector<RoundTotals>> rounds = group.run([&](GroupMember& member) {
    if (member.process() == 0) _exit(7);
    member.meet_processes();
    return Status::Ok();
  });
  EXPECT_EQ(rounds.status().to_string(), "peer_lost: process 0 exited early with status 7");
  expect_no_children();
}

TEST(ProcessGroup, no_process_outlives_a_killed_parent) {
  int alive[2];  // held open for writing by the grandchildren only
  ASSERT_EQ(pipe(alive), 0);
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    close(alive[0]);
    ProcessGroup group = make_group(2, 1, 1);
    const Result<std::vector<RoundTotals>> rounds = group.run([&](GroupMember& member) {
      member.meet_processes();
      if (member.process() == 0) kill(getppid(), SIGKILL);
      for (;;) pause();
      return Status::Ok();
    });
    _exit(rounds.ok() ? 0 : 1);  // not reached
  }
  close(alive[1]);
  char byte;
  EXPECT_EQ(read(alive[0], &byte, 1), 0);  // end of file: nobody is left
  close(alive[0]);
  int status = 0;
  EXPECT_EQ(waitpid(parent, &status, 0), parent);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace faro::bench
