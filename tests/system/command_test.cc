// The programs faro and faro-lab, as a user runs them: helps, exit codes, errors that name the flag, and that what
// it prints is true.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "faro/config.h"
#include "support/certificates.h"
#include "support/child.h"
#include "support/counted_memory.h"
#include "support/expect.h"
#include "support/held_address.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"
#include "system/command_runner.h"

namespace faro::test {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kMachine = 3;

/// The words of a command, which blanks part.
Arguments words(const std::string& line) {
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

/// The JSON on stdout; fails the test if there is none, or anything beside it.
json parse(const CommandResult& result) {
  json parsed = json::parse(result.output, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << result.output << result.errors;
  return parsed;
}

// --- help, version, usage ------------------------------------------------------------------------

struct HelpCase {
  Arguments command;
  Arguments flags;  // that the help names
};

TEST(FaroCommand, helps_with_every_flag_and_the_exit_codes) {
  const std::vector<HelpCase> cases = {
      {{"faro"}, {"plan", "doctor", "config", "stat", "top", "explain", "--version"}},
      {{"faro-lab"}, {"bench", "simulate", "soak", "--version"}},
      {{"faro-lab", "bench"},
       {"two-stage", "kernels", "channel", "link", "receive", "variable-rows", "run-time-width",
        "groups", "delivery", "skew", "ring-memory", "send-first", "pipeline", "operators"}},
      {{"faro-lab", "bench", "two-stage"},
       {"--processes", "--workers", "--rows", "--transport", "--threshold", "--ring", "--row-bytes",
        "--hash", "--repetitions", "--json", "--pin", "--idle", "--node", "--nodes", "--set"}},
      {{"faro-lab", "bench", "variable-rows"},
       {"--rows", "--repetitions", "--transport", "--json", "--set"}},
      {{"faro-lab", "bench", "groups"},
       {"--row-bytes", "--rows", "--repetitions", "--json", "--set"}},
      {{"faro-lab", "bench", "delivery"},
       {"--case", "--processes", "--workers", "--rows", "--steps", "--hold-ns", "--repetitions",
        "--json", "--set"}},
      {{"faro-lab", "bench", "skew"}, {"--rows", "--part", "--units", "--json"}},
      {{"faro-lab", "bench", "ring-memory"},
       {"--processes", "--workers", "--transport", "--json", "--set"}},
      {{"faro-lab", "bench", "run-time-width"},
       {"--row-bytes", "--rows", "--repetitions", "--json", "--set"}},
      {{"faro-lab", "bench", "send-first"},
       {"--processes", "--workers", "--bytes", "--row-bytes", "--repetitions", "--transport",
        "--json", "--set"}},
      {{"faro-lab", "bench", "pipeline"},
       {"--rows", "--ns-per-row", "--unpolled", "--repetitions", "--transport", "--json", "--set"}},
      {{"faro-lab", "bench", "operators"},
       {"--processes", "--workers", "--rows", "--groups", "--keys", "--exponent", "--joins",
        "--ratios", "--repetitions", "--transport", "--pin", "--json", "--set"}},
      {{"faro-lab", "bench", "link"},
       {"--frame", "--count", "--repetitions", "--transport", "--host", "--node", "--nodes",
        "--json", "--set"}},
      {{"faro-lab", "bench", "receive"},
       {"--processes", "--workers", "--rows", "--row-bytes", "--pattern", "--repetitions",
        "--transport", "--json", "--set"}},
      {{"faro-lab", "bench", "channel"},
       {"--frame", "--ring", "--count", "--batch", "--trips", "--peers", "--repetitions", "--set"}},
      {{"faro", "plan"},
       {"--nodes", "--workers", "--nodes-per-host", "--groups", "--ring", "--transport", "--json"}},
      {{"faro", "doctor"}, {"--json", "--set"}},
      {{"faro", "stat"},
       {"--once", "--json", "--all", "--interval", "--pid", "--folder", "--counter-file"}},
      {{"faro", "top"}, {"--interval", "--pid", "--folder"}},
      {{"faro", "explain"}, {"--query", "--json", "--interval", "--pid", "--folder"}},
      {{"faro", "config"}, {"--file", "--set", "--json"}},
      {{"faro-lab", "simulate"}, {"--seed", "--runs", "--channels", "--network", "--resume"}}};
  for (const HelpCase& one : cases) {
    Arguments arguments = one.command;
    arguments.emplace_back("--help");
    const CommandResult result = run_line(arguments);
    EXPECT_EQ(result.exit_code, kOk) << result.errors;
    EXPECT_EQ(result.errors, "");
    EXPECT_TRUE(contains(result.output, "Exit codes:"));
    for (const std::string& flag : one.flags) {
      EXPECT_TRUE(contains(result.output, flag)) << flag << " in\n" << result.output;
    }
  }
}

TEST(FaroCommand, tells_its_version_commit_and_compiler) {
  const CommandResult result = run_faro({"--version"});
  EXPECT_EQ(result.exit_code, kOk);
  EXPECT_EQ(result.output.rfind("faro ", 0), 0u) << result.output;
  const CommandResult of_laboratory = run_faro_lab({"--version"});
  EXPECT_EQ(of_laboratory.exit_code, kOk);
  EXPECT_EQ(of_laboratory.output, "faro-lab" + result.output.substr(4));
}

// Someone may know a command by the program that had it, or may take one program for the other.
TEST(FaroCommand, says_in_one_line_which_program_has_a_command_of_the_other) {
  struct Case {
    Arguments typed;
    std::string answer;
  };
  const std::vector<Case> cases = {
      {{"faro", "bench"}, "faro: bench is a command of faro-lab: faro-lab bench\n"},
      {{"faro", "bench", "two-stage", "--rows", "5"},
       "faro: bench is a command of faro-lab: faro-lab bench\n"},
      {{"faro", "help", "simulate"},
       "faro: simulate is a command of faro-lab: faro-lab simulate\n"},
      {{"faro", "soak", "--help"}, "faro: soak is a command of faro-lab: faro-lab soak\n"},
      {{"faro-lab", "stat"}, "faro-lab: stat is a command of faro: faro stat\n"}};
  for (const Case& one : cases) {
    const CommandResult result = run_line(one.typed);
    EXPECT_EQ(result.exit_code, kUsage);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(result.errors, one.answer);
  }
}

struct BadCase {
  Arguments arguments;
  std::string named;  // what the error must name
};

std::ostream& operator<<(std::ostream& out, const BadCase& one) {
  for (const std::string& argument : one.arguments) out << argument << ' ';
  return out;
}

class BadUsage : public testing::TestWithParam<BadCase> {};

TEST_P(BadUsage, is_refused_with_the_name_of_what_is_wrong) {
  const CommandResult result = run_line(GetParam().arguments);
  EXPECT_EQ(result.exit_code, kUsage) << result.output << result.errors;
  EXPECT_EQ(result.output, "");
  EXPECT_TRUE(contains(result.errors, GetParam().named)) << result.errors;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadUsage,
    testing::Values(
        BadCase{{"faro"}, "subcommand"}, BadCase{{"faro-lab"}, "subcommand"},
        BadCase{{"faro", "shuffle"}, "plan, doctor, stat, top, explain or config"},
        BadCase{{"faro-lab", "shuffle"}, "bench, simulate or soak"},
        BadCase{{"faro-lab", "bench"}, "subcommand"},
        BadCase{{"faro-lab", "bench", "two-stage", "--no-such-flag"}, "--no-such-flag"},
        BadCase{{"faro-lab", "bench", "two-stage", "--processes", "0"}, "--processes"},
        BadCase{{"faro-lab", "bench", "two-stage", "--processes", "many"}, "--processes"},
        BadCase{{"faro-lab", "bench", "two-stage", "--rows", "-5"}, "--rows"},
        BadCase{{"faro-lab", "bench", "two-stage", "--row-bytes", "12"}, "--row-bytes"},
        BadCase{{"faro-lab", "bench", "two-stage", "--hash", "md5"}, "--hash"},
        BadCase{{"faro-lab", "bench", "two-stage", "--transport", "pigeon"}, "--transport"},
        BadCase{{"faro-lab", "bench", "two-stage", "--ring", "12345"}, "ring.bytes"},
        BadCase{{"faro-lab", "bench", "two-stage", "--ring", "fast"}, "--ring"},
        BadCase{{"faro-lab", "bench", "two-stage", "--threshold", "1MiB"},
                "transfer.threshold_bytes"},
        BadCase{{"faro-lab", "bench", "two-stage", "--pin", "100000", "--rows", "1"}, "--pin"},
        BadCase{{"faro-lab", "bench", "two-stage", "--node", "0"}, "--nodes"},
        BadCase{{"faro-lab", "bench", "two-stage", "--nodes", "a:1,b:1"}, "--node"},
        BadCase{{"faro-lab", "bench", "two-stage", "--nodes", "a:1,b:1", "--node", "2"}, "--node"},
        BadCase{{"faro-lab", "bench", "two-stage", "--nodes", "a:1,b:1", "--node", "0",
                 "--processes", "2"},
                "--processes"},
        BadCase{{"faro-lab", "bench", "two-stage", "--nodes", "a:1,b:1", "--node", "0",
                 "--transport", "sockets"},
                "--transport"},
        BadCase{{"faro-lab", "bench", "link", "--frame", "100"}, "--frame"},
        BadCase{{"faro-lab", "bench", "link", "--transport", "sockets"}, "--transport"},
        BadCase{{"faro-lab", "bench", "link", "--set", "ring.bytes=64KiB"}, "ring.bytes"},
        BadCase{{"faro-lab", "bench", "link", "--nodes", "a:1,b:1"}, "--node"},
        BadCase{{"faro-lab", "bench", "link", "--node", "0", "--nodes", "a:1"}, "--nodes"},
        BadCase{{"faro-lab", "bench", "channel", "--frame", "12"}, "frames of 12 bytes"},
        BadCase{{"faro-lab", "bench", "channel", "--batch", "9"}, "9 frames per post"},
        BadCase{{"faro-lab", "bench", "receive", "--row-bytes", "100"}, "--row-bytes"},
        BadCase{{"faro-lab", "bench", "receive", "--pattern", "gather"}, "--pattern"},
        BadCase{{"faro-lab", "bench", "receive", "--transport", "sockets"}, "--transport"},
        BadCase{{"faro-lab", "bench", "two-stage", "--set", "ring.bites=5"}, "ring.bites"},
        BadCase{{"faro-lab", "bench", "variable-rows", "--transport", "sockets"}, "--transport"},
        BadCase{{"faro-lab", "bench", "run-time-width", "--row-bytes", "12"}, "--row-bytes"},
        BadCase{{"faro-lab", "bench", "send-first", "--row-bytes", "12"}, "row bytes = 12"},
        BadCase{{"faro-lab", "bench", "delivery", "--case", "broad"}, "--case"},
        BadCase{{"faro-lab", "bench", "delivery", "--case", "holding", "--workers", "1"},
                "workers per process = 1"},
        BadCase{{"faro-lab", "bench", "skew", "--units", "0"}, "--units"},
        BadCase{{"faro-lab", "bench", "ring-memory", "--transport", "verbs"}, "--transport"},
        BadCase{{"faro", "plan"}, "--nodes"}, BadCase{{"faro", "plan", "--nodes", "0"}, "--nodes"},
        BadCase{{"faro", "plan", "--nodes", "2", "--workers", "none"}, "cluster.workers"},
        BadCase{{"faro", "doctor", "--set", "novalue"}, "--set"},
        BadCase{{"faro", "stat", "--interval", "0"}, "--interval"},
        BadCase{{"faro", "explain", "--pid", "x"}, "--pid"},
        BadCase{{"faro", "config", "--set", "ring.bytes=5"}, "ring.bytes"},
        BadCase{{"faro", "config", "--set", "security.secret=never on a command line"},
                "unknown setting"},
        BadCase{{"faro", "config", "--set", "ring.bytes=8KiB", "--set",
                 "transfer.threshold_bytes=16KiB"},
                "transfer.threshold_bytes"},
        BadCase{{"faro", "config", "--file", "/no/such/file"}, "/no/such/file"}),
    [](const auto& bad) {
      std::string name;
      for (const std::string& argument : bad.param.arguments)
        name += (name.empty() ? "" : "_") + argument;
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

// --- bench ---------------------------------------------------------------------------------------

struct BenchCase {
  std::string transport;
  Arguments flags;
};

std::ostream& operator<<(std::ostream& out, const BenchCase& one) {
  out << one.transport;
  for (const std::string& flag : one.flags) out << ' ' << flag;
  return out;
}

/// What the command prints with --json; the test fails if it does not end well.
json run_json(Arguments arguments) {
  arguments.emplace_back("--json");
  const CommandResult result = run_faro_lab(arguments);
  EXPECT_EQ(result.exit_code, kOk) << result.output << result.errors;
  return parse(result);
}

class SmallBench : public testing::TestWithParam<BenchCase> {
 protected:
  static json run(const std::string& command) {
    Arguments arguments = words(command + " --transport " + GetParam().transport);
    arguments.insert(arguments.end(), GetParam().flags.begin(), GetParam().flags.end());
    return run_json(arguments);
  }
};

class TinyBench : public SmallBench {};

TEST_P(TinyBench, is_verified) {
  const json parsed = run("bench two-stage --rows 3000 --repetitions 2 --processes 2");
  ASSERT_FALSE(HasFailure());
  const json& one = parsed["contests"][0]["results"][0];
  EXPECT_EQ(one["transport"], GetParam().transport);
  EXPECT_EQ(one["verified"], true);
  EXPECT_EQ(one["count"], 6000);
  EXPECT_EQ(one["checksum"], one["expected_checksum"]);
  EXPECT_EQ(one["runs"].size(), 2u);
  EXPECT_GT(one["seconds"], 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, TinyBench,
    testing::Values(BenchCase{"auto", {}}, BenchCase{"shm", {}}, BenchCase{"tcp", {}},
                    BenchCase{"sockets", {}}, BenchCase{"sockets-paper", {}},
                    BenchCase{"plain-loop", {}}, BenchCase{"copies", {}},
                    BenchCase{"shm", {"--workers", "2", "--row-bytes", "100"}},
                    BenchCase{"sockets", {"--workers", "2", "--row-bytes", "24"}},
                    BenchCase{"tcp", {"--workers", "2", "--row-bytes", "16"}},
                    BenchCase{"shm", {"--hash", "multiplicative", "--ring", "4KiB"}},
                    BenchCase{"tcp", {"--ring", "4KiB", "--threshold", "512"}},
                    BenchCase{"tcp", {"--host", "::1"}}));

class TinyLink : public SmallBench {};

TEST_P(TinyLink, carries_every_frame) {
  const json parsed = run("bench link --count 300 --repetitions 3");
  ASSERT_FALSE(HasFailure());
  const json& one = parsed["results"][0];
  EXPECT_EQ(one["transport"], GetParam().transport);
  EXPECT_EQ(one["verified"], true);
  EXPECT_EQ(one["runs"].size(), 3u);
  EXPECT_GT(one["gigabits_per_second"], 0);
  const json& sent = one["nodes"][0]["links"];
  uint64_t frames = 0;
  for (const json& link : sent) {
    if (link["transport"] != "local") frames += link["frames_sent"].get<uint64_t>();
  }
  // OPEN and FINISH in each round, the first of which is not timed.
  EXPECT_EQ(frames, 4u * (300 + 2));
}

INSTANTIATE_TEST_SUITE_P(All, TinyLink,
                         testing::Values(BenchCase{"shm", {}}, BenchCase{"tcp", {}},
                                         BenchCase{"tcp", {"--frame", "64"}},
                                         BenchCase{"shm", {"--frame", "1048576"}},
                                         BenchCase{"tcp", {"--set", "ring.bytes=256KiB"}}));

TEST(FaroBench, carries_frames_over_channels_one_or_many_per_post) {
  for (const char* batch : {"1", "3", "8"}) {
    const CommandResult result = run_faro_lab({"bench", "channel", "--count", "100", "--trips",
                                               "10", "--repetitions", "1", "--batch", batch});
    EXPECT_EQ(result.exit_code, kOk) << result.output << result.errors;
    for (const char* row : {"copies", "bare ring", "shm", "tcp", "socket"})
      EXPECT_TRUE(contains(result.output, row)) << row << " in\n" << result.output;
    EXPECT_TRUE(contains(result.output, std::string(batch) + " per post")) << result.output;
    EXPECT_FALSE(contains(result.output, "WRONG")) << result.output;
  }
}

class TinyReceive : public SmallBench {};

TEST_P(TinyReceive, receives_every_row) {
  const json parsed = run("bench receive --rows 500 --repetitions 2 --processes 2 --workers 2");
  ASSERT_FALSE(HasFailure());
  const json& one = parsed["results"][0];
  EXPECT_EQ(one["verified"], true);
  EXPECT_EQ(one["runs"].size(), 2u);
  // All four workers send 500 rows, to one or to all of them.
  EXPECT_EQ(one["count"], parsed["pattern"] == "broadcast" ? 8000 : 2000);
  EXPECT_GT(one["bytes_per_second_per_node"], 0);
}

INSTANTIATE_TEST_SUITE_P(All, TinyReceive,
                         testing::Values(BenchCase{"shm", {"--row-bytes", "8"}},
                                         BenchCase{"shm", {"--row-bytes", "4096"}},
                                         BenchCase{"tcp", {"--row-bytes", "512"}},
                                         BenchCase{"shm", {"--pattern", "broadcast"}},
                                         BenchCase{
                                             "tcp",
                                             {"--pattern", "broadcast", "--set", "ring.bytes=4KiB",
                                              "--set", "transfer.threshold_bytes=1KiB"}}));

TEST(FaroBench, prints_one_table_with_the_ratio_to_the_baseline) {
  const CommandResult result = run_faro_lab(
      {"bench", "two-stage", "--rows", "2000", "--repetitions", "1", "--processes", "2"});
  ASSERT_EQ(result.exit_code, kOk) << result.output << result.errors;
  for (const char* part : {"seconds", "rows/s", "CPU ns/hop", "vs sockets",
                           "2 processes × 1 worker", "shm", "tcp", "1.00 ×", "verified"}) {
    EXPECT_TRUE(contains(result.output, part)) << part << " in\n" << result.output;
  }
  EXPECT_FALSE(contains(result.errors, "\r")) << "a progress bar although this is no terminal";
}

TEST(FaroBench, counts_every_row_in_its_metrics) {
  const json parsed =
      run_json(words("bench two-stage --rows 4000 --repetitions 1 --processes 2 --transport shm"));
  ASSERT_FALSE(HasFailure());
  uint64_t sent = 0;
  uint64_t received = 0;
  for (const json& node : parsed["contests"][0]["results"][0]["nodes"]) {
    for (const json& worker : node["workers"]) {
      sent += worker["rows_sent"].get<uint64_t>();
      received += worker["rows_received"].get<uint64_t>();
    }
  }
  // Two processes, two hops, a warm-up and a timed round.
  EXPECT_EQ(sent, 2u * 4000 * 2 * 2);
  EXPECT_EQ(received, sent);
}

TEST(FaroBench, carries_rows_with_lengths_and_rows_of_a_width_given_at_run_time) {
  const json lengths =
      run_json(words("bench variable-rows --rows 3000 --repetitions 2 --transport shm,tcp"));
  ASSERT_FALSE(HasFailure());
  for (const json& one : lengths["results"]) {
    EXPECT_EQ(one["verified"], true);
    EXPECT_EQ(one["count"], 6000);  // of two workers
    EXPECT_EQ(one["runs"].size(), 2u);
    EXPECT_GT(one["bytes_per_cpu_second"], 0);
  }
  EXPECT_EQ(lengths["results"].size(), 2u);
  const json width =
      run_json(words("bench run-time-width --row-bytes 16 --rows 3000 --repetitions 2"));
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(width["verified"], true);
  EXPECT_EQ(width["row_bytes"], 16);
  for (const char* way : {"typed", "bytes", "in_place", "typed_broadcast", "bytes_broadcast"}) {
    EXPECT_GT(width["ways"][way]["send_ns"], 0) << way;
    EXPECT_GT(width["ways"][way]["receive_ns"], 0) << way;
  }
}

TEST(FaroBench, groups_that_overlap_have_frames_as_large_as_one_alone) {
  const json parsed = run_json(words("bench groups --row-bytes 16 --rows 200000 --repetitions 2"));
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(parsed["verified"], true);
  for (const char* way : {"one_group", "overlap", "apart", "broadcast"}) {
    EXPECT_GT(parsed["ways"][way]["send_ns"], 0) << way;
    EXPECT_GT(parsed["ways"][way]["receive_ns"], 0) << way;
  }
  const double alone = parsed["ways"]["one_group"]["rows_per_frame"];
  EXPECT_GT(parsed["ways"]["overlap"]["rows_per_frame"], 0.9 * alone);
}

TEST(FaroBench, delivers_to_nodes_beside_delivery_to_workers) {
  for (const std::string which : {"skewed", "holding"}) {
    const json parsed =
        run_json(words("bench delivery --workers 2 --rows 6000 --steps 5 --hold-ns 1000 "
                       "--repetitions 2 --case " +
                       which));
    ASSERT_FALSE(HasFailure());
    EXPECT_EQ(parsed["ways"].size(), 2u);
    for (const json& way : parsed["ways"]) {
      EXPECT_EQ(way["verified"], true) << way;
      EXPECT_EQ(way["count"], 6000) << way;
      EXPECT_EQ(way["runs"].size(), 2u) << way;
      for (const json& run : way["runs"]) {
        EXPECT_GT(run["least_seconds"], 0) << way;
        EXPECT_GE(run["most_rows_times_mean"], 1) << way;
      }
    }
  }
}

TEST(FaroBench, counts_what_units_get_and_what_an_open_cluster_takes) {
  const json skew = run_json(words("bench skew --rows 1000000 --part 0.5 --units 2,10"));
  ASSERT_FALSE(HasFailure());
  EXPECT_NEAR(skew["units"][0]["most_times_mean"], 1.5, 0.01);
  EXPECT_NEAR(skew["units"][1]["most_times_mean"], 5.5, 0.05);
  const json memory =
      run_json(words("bench ring-memory --processes 2 --workers 1,2 --set ring.bytes=1MiB"));
  ASSERT_FALSE(HasFailure());
  ASSERT_EQ(memory["shapes"].size(), 2u);
  for (const json& shape : memory["shapes"]) {
    EXPECT_GT(shape["taken_bytes"], shape["ring_bytes"]);
    EXPECT_NEAR(shape["ring_bytes"].get<double>(), shape["planned_ring_bytes"].get<double>(),
                0.2 * shape["planned_ring_bytes"].get<double>());
    EXPECT_GT(shape["planned_bytes"], 0);
  }
}

TEST(FaroBench, sends_first_and_beside_it_receives_between) {
  for (const std::string row_bytes : {"8", "30", "65536"}) {
    const json parsed =
        run_json(words("bench send-first --bytes 400000 --repetitions 2 "
                       "--transport shm,tcp --row-bytes " +
                       row_bytes));
    ASSERT_FALSE(HasFailure());
    EXPECT_EQ(parsed["results"].size(), 2u);
    for (const json& one : parsed["results"]) {
      EXPECT_GT(one["times"], 0);
      EXPECT_GT(one["overflow_memory_peak_bytes"], 0);
      for (const char* way : {"exchange", "afterwards"}) {
        EXPECT_EQ(one[way]["verified"], true) << way;
        EXPECT_EQ(one[way]["count"], 400000 / std::stoi(row_bytes) * 2) << way;
        EXPECT_EQ(one[way]["runs"].size(), 2u) << way;
      }
    }
  }
}

TEST(FaroBench, runs_a_pipeline_also_beside_a_query_that_nobody_polls) {
  for (const std::string more : {"", " --unpolled"}) {
    const json parsed = run_json(words(
        "bench pipeline --rows 20000 --ns-per-row 100 --repetitions 1 --transport shm" + more));
    ASSERT_FALSE(HasFailure());
    const json& one = parsed["results"][0];
    EXPECT_EQ(one["verified"], true);
    EXPECT_EQ(one["count"], more.empty() ? 20'000 : 120'000);
    EXPECT_GE(one["spilled_share"], 0);
  }
}

TEST(FaroBench, tells_what_nodes_take_that_wait_for_nothing_for_as_long_as_asked) {
  const auto begin = std::chrono::steady_clock::now();
  const json parsed = run_json(
      words("bench two-stage --rows 100 --repetitions 1 --processes 2 --transport shm --idle 1"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_GT(parsed["contests"][0]["results"][0]["idle_cpu_ns"], 0);
}

class BenchOnHosts : public testing::Test {
 protected:
  /// A node has two ports in a row: node 0 uses the second one, too.
  BenchOnHosts() {
    for (int nodes = 0; nodes < 2;) {
      const std::string address = held_.emplace_back("127.0.0.1:0").address();
      const size_t port = address.rfind(':') + 1;
      const int next = std::stoi(address.substr(port)) + 1;
      if (held_.emplace_back(address.substr(0, port) + std::to_string(next)).address().empty())
        continue;
      nodes_ += (nodes++ == 0 ? "" : ",") + address;
    }
  }
  Arguments node(const std::string& number, const std::string& rows) const {
    return words("bench two-stage --nodes " + nodes_ + " --node " + number + " --rows " + rows +
                 " --workers 2 --transport tcp --repetitions 2 --json");
  }
  std::vector<HeldAddress> held_;
  std::string nodes_;
};

TEST_F(BenchOnHosts, node_0_prints_the_results_of_all) {
  RunningCommand other(node("1", "5000"), {}, FARO_LAB_PATH);
  RunningCommand first(node("0", "5000"), {}, FARO_LAB_PATH);
  const CommandResult results = first.finish();
  const CommandResult others = other.finish();
  ASSERT_EQ(results.exit_code, kOk) << results.output << results.errors;
  EXPECT_EQ(others.exit_code, kOk) << others.output << others.errors;
  const json parsed = parse(results);
  const json& one = parsed["contests"][0]["results"][0];
  EXPECT_EQ(one["verified"], true);
  EXPECT_EQ(one["count"], 10000);
  EXPECT_EQ(one["nodes"].size(), 2u);
}

TEST_F(BenchOnHosts, other_flags_on_another_node_are_refused_on_both) {
  RunningCommand other(node("1", "5000"), {}, FARO_LAB_PATH);
  RunningCommand first(node("0", "6000"), {}, FARO_LAB_PATH);
  const CommandResult results = first.finish();
  const CommandResult others = other.finish();
  EXPECT_EQ(results.exit_code, kUsage) << results.output << results.errors;
  EXPECT_EQ(others.exit_code, kUsage) << others.output << others.errors;
  EXPECT_TRUE(contains(results.errors, "node 1")) << results.errors;
  EXPECT_TRUE(contains(others.errors, "node 0")) << others.errors;
}

// --- plan ----------------------------------------------------------------------------------------

TEST(FaroPlan, agrees_with_the_numbers_of_the_design) {
  // Lanes of 64 KiB: 8 nodes × 8 workers take 28 MiB each way, 100 × 16 take 1.6 GB each way.
  const json small = parse(run_faro({"plan", "--nodes", "8", "--workers", "8", "--json"}));
  EXPECT_EQ(small["node"]["outgoing_ring_bytes"], 28u << 20);
  EXPECT_EQ(small["node"]["incoming_ring_bytes"], 28u << 20);
  EXPECT_EQ(small["node"]["local_ring_bytes"], 4u << 20);
  EXPECT_EQ(small["node"]["tcp_links"], 7);
  EXPECT_EQ(small["cluster"]["links"], 28);
  const json large = parse(run_faro({"plan", "--nodes", "100", "--workers", "16", "--json"}));
  EXPECT_EQ(large["node"]["outgoing_ring_bytes"], uint64_t{99} * 16 * 16 * (64 << 10));
  EXPECT_EQ(large["node"]["incoming_ring_bytes"], uint64_t{1660944384});
  EXPECT_EQ(large["cluster"]["outgoing_ring_bytes"], uint64_t{166094438400});
}

TEST(FaroPlan, counts_the_larger_rings_of_links_with_one_lane_each_way) {
  const auto ring_bytes = [](const json& plan) {
    return plan["node"]["outgoing_ring_bytes"].get<uint64_t>();
  };
  const json usual = parse(run_faro({"plan", "--nodes", "4", "--workers", "1", "--json"}));
  EXPECT_EQ(ring_bytes(usual), 3u * 2 * (64 << 10));
  EXPECT_EQ(usual["node"]["local_ring_bytes"], 2u * (64 << 10));
  EXPECT_GE(usual["node"]["tcp_bytes"], 2 * ring_bytes(usual));
  const json set = parse(
      run_faro({"plan", "--nodes", "4", "--workers", "1", "--set", "ring.bytes=32 KiB", "--json"}));
  EXPECT_EQ(ring_bytes(set), 3u * 2 * (32 << 10));
}

TEST(FaroPlan, counts_rings_once_over_shm_and_twice_over_tcp) {
  const json tcp = parse(run_faro({"plan", "--nodes", "8", "--workers", "2", "--json"}));
  const json shm = parse(
      run_faro({"plan", "--nodes", "8", "--workers", "2", "--nodes-per-host", "8", "--json"}));
  const uint64_t one_way = 7 * 4 * (64 << 10);
  EXPECT_EQ(tcp["node"]["shm_links"], 0);
  EXPECT_EQ(shm["node"]["shm_links"], 7);
  // A little more than the rings: they are staggered, and their positions lie beside them.
  EXPECT_GE(tcp["node"]["tcp_bytes"], 2 * one_way);
  EXPECT_LE(tcp["node"]["tcp_bytes"], 2 * one_way * 104 / 100);
  EXPECT_GE(shm["node"]["shm_bytes"], one_way);
  EXPECT_LE(shm["node"]["shm_bytes"], one_way * 104 / 100);
}

TEST(FaroPlan, counts_lanes_to_nodes_once_for_each_sender) {
  const auto whole_plan = [](const char* workers) {
    return parse(run_faro(
        {"plan", "--nodes", "8", "--workers", workers, "--json", "--set", "lane.ends=node"}));
  };
  const auto plan = [&](const char* workers) { return whole_plan(workers)["node"]; };
  EXPECT_EQ(whole_plan("4")["ring_bytes"], 64 << 10);
  const json four = plan("4");
  // Two rings of 64 KiB each.
  const uint64_t one_way = 7 * 4 * (128 << 10);
  EXPECT_GE(four["tcp_bytes"], 2 * one_way);
  EXPECT_LE(four["tcp_bytes"], 2 * one_way * 104 / 100);
  EXPECT_EQ(plan("8")["outgoing_ring_bytes"], 2 * uint64_t{four["outgoing_ring_bytes"]});
}

TEST(FaroPlan, counts_the_blocks_of_groups_and_compares_them_with_the_memory_of_overflow) {
  const auto plan = [](const char* groups) {
    return run_faro({"plan", "--nodes", "2", "--workers", "4", "--groups", groups, "--set",
                     "overflow.memory_bytes=64MiB", "--json"});
  };
  const auto limit = [](const json& parsed) -> json {
    for (const json& one : parsed["limits"]) {
      if (one["id"] == "group_blocks") return one;
    }
    return {};
  };
  const CommandResult fits = plan("100");
  const json few = parse(fits);
  // A quarter of a ring each, and what the allocator and its description take.
  EXPECT_EQ(few["node"]["group_block_bytes"], 4 * 100 * (8192 + 16 + 256));
  EXPECT_EQ(few["cluster"]["group_block_bytes"], 2 * 4 * 100 * (8192 + 16 + 256));
  EXPECT_EQ(limit(few)["verdict"], "fits");
  const CommandResult more = plan("2000");
  EXPECT_EQ(more.exit_code, kFailed);
  const json many = parse(more);
  EXPECT_EQ(limit(many)["verdict"], "does_not_fit");
  EXPECT_EQ(limit(many)["have"], 64 << 20);
  EXPECT_EQ(limit(parse(plan("0"))), json());
  EXPECT_EQ(few["node"]["most_bytes"], parse(plan("0"))["node"]["most_bytes"]);
}

TEST(FaroPlan, counts_links_over_verbs_with_their_messages_as_pinned) {
  const auto plan = [](const char* queue_pairs) {
    return run_faro({"plan", "--nodes", "8", "--workers", "2", "--transport", "verbs", "--json",
                     "--set", std::string("verbs.queue_pairs=") + queue_pairs});
  };
  const CommandResult result = plan("link");
  if (result.exit_code == kMachine) GTEST_SKIP() << result.errors;  // no libibverbs
  const json shared = parse(result);
  EXPECT_EQ(shared["node"]["verbs_links"], 7);
  EXPECT_EQ(shared["node"]["tcp_links"], 0);
  const uint64_t rings = 2 * 7 * 4 * (64 << 10);
  const uint64_t messages = 7 * (64 + 256) * 512;
  const uint64_t pinned = shared["node"]["verbs_bytes"];
  EXPECT_GE(pinned, rings + messages);
  EXPECT_LE(pinned, (rings + messages) * 104 / 100);
  // Lanes: four times the queue pairs.
  EXPECT_EQ(parse(plan("lane"))["node"]["verbs_bytes"], pinned + 3 * messages);
  for (const json& limit : shared["limits"]) {
    if (limit["id"] == "memlock") {
      EXPECT_EQ(limit["need"], pinned);
      EXPECT_NE(limit["verdict"], "note");
    }
  }
}

TEST(FaroPlan, says_how_much_of_a_turn_the_rings_to_a_node_hold) {
  const auto limit = [](const char* schedule) {
    Arguments command = words(
        "plan --nodes 4 --workers 2 --json --set ring.bytes=64KiB --set ring.per_lane=1 --set "
        "network.turn_bytes=1MiB --set");
    command.push_back(std::string("network.schedule=") + schedule);
    const json parsed = parse(run_faro(command));
    for (const json& each : parsed["limits"]) {
      if (each["id"] == "turn") return each;
    }
    return json();
  };
  const json turn = limit("phases");
  EXPECT_EQ(turn["need"], 1 << 20);
  EXPECT_EQ(turn["have"], 4 * (64 << 10));
  EXPECT_EQ(turn["verdict"], "note");
  EXPECT_EQ(limit("off"), json());
}

TEST(FaroPlan, says_what_a_session_counts) {
  const NodeFiles files = Authority().issue();
  const auto expect_same = [](const SettingList& settings) {
    Arguments command = words("plan --nodes 3 --json");
    for (const auto& [name, value] : settings) {
      command.push_back("--set");
      command.push_back(name + "=" + value);
    }
    const json parsed = parse(run_faro(command));
    EXPECT_EQ(parsed["node"]["open_bytes"], counted_by_a_node(settings, 3));
    for (const json& limit : parsed["limits"]) {
      if (limit["id"] == "memory_limit") {
        EXPECT_EQ(limit["need"], parsed["node"]["open_bytes"]);
      }
    }
  };
  for (const char* const transport : {"tcp", "shm"}) {
    SettingList settings = {{"transport", transport},
                            {"cluster.workers", "2"},
                            {"ring.bytes", "8KiB"},
                            {"shuffle.limit", "7"}};
    expect_same(settings);
    settings.emplace_back("lane.ends", "node");
    expect_same(settings);
    for (const auto& each : files.settings()) settings.push_back(each);
    expect_same(settings);
  }
}

json limit_of(const json& plan, const std::string& id) {
  for (const json& one : plan["limits"]) {
    if (one["id"] == id) return one;
  }
  return {};
}

TEST(FaroPlan, proposes_settings_under_which_a_node_keeps_a_budget) {
  const json large = parse(run_faro(words("plan --nodes 1000 --workers 32 --budget 1GiB --json")));
  EXPECT_EQ(large["proposal"]["budget_bytes"], 1 << 30);
  EXPECT_EQ(large["proposal"]["settings"]["lane.ends"], "node");
  EXPECT_LE(large["node"]["open_bytes"], 1 << 30);
  EXPECT_EQ(limit_of(large, "budget")["verdict"], "fits");
  // What queries may take comes on top: named, with the settings that bound it.
  const json more = limit_of(large, "budget_at_most");
  EXPECT_EQ(more["verdict"], "note");
  EXPECT_EQ(more["need"], large["node"]["most_bytes"]);
  EXPECT_TRUE(contains(more["remark"], "open shuffles ")) << more;
  EXPECT_TRUE(contains(more["remark"], "(shuffle.limit)")) << more;
  // It is the plan of a cluster that has these settings.
  Arguments same = words("plan --nodes 1000 --workers 32 --json");
  for (const auto& [name, value] : large["proposal"]["settings"].items()) {
    same.push_back("--set");
    same.push_back(name + "=" + value.get<std::string>());
  }
  EXPECT_EQ(parse(run_faro(same))["node"], large["node"]);
}

TEST(FaroPlan, lowers_what_queries_may_take_if_that_keeps_a_budget) {
  const json middle = parse(run_faro(words("plan --nodes 8 --workers 8 --budget 256MiB --json")));
  EXPECT_EQ(limit_of(middle, "budget_at_most")["verdict"], "fits");
  EXPECT_LE(middle["node"]["most_bytes"], 256 << 20);
  EXPECT_EQ(middle["proposal"]["settings"].count("operator.memory_bytes"), 1u) << middle;
  const json small = parse(run_faro(words("plan --nodes 2 --workers 2 --budget 1GiB --json")));
  EXPECT_TRUE(small["proposal"]["settings"].empty()) << small["proposal"];
}

TEST(FaroPlan, leaves_what_is_set_and_says_what_cannot_be_kept) {
  const CommandResult result =
      run_faro(words("plan --nodes 1000 --workers 32 --budget 1GiB --ring 32KiB --json"));
  EXPECT_EQ(result.exit_code, kFailed);
  const json plan = parse(result);
  EXPECT_EQ(plan["ring_bytes"], 32 << 10);
  const json limit = limit_of(plan, "budget");
  EXPECT_EQ(limit["verdict"], "does_not_fit");
  EXPECT_TRUE(contains(limit["remark"], "cannot be kept: rings ")) << limit;
  EXPECT_EQ(run_faro(words("plan --nodes 2 --budget 0")).exit_code, kUsage);
  EXPECT_EQ(run_faro(words("plan --nodes 2 --budget 12parsecs")).exit_code, kUsage);
}

TEST(FaroPlan, counts_links_and_open_frames_beside_an_exchange_of_threads) {
  const auto plan = [](const char* ends) {
    return parse(run_faro({"plan", "--nodes", "6", "--workers", "40", "--json", "--set",
                           std::string("lane.ends=") + ends}));
  };
  const json to_nodes = plan("node");
  EXPECT_EQ(to_nodes["cluster"]["links"], 15);
  EXPECT_EQ(to_nodes["open_frames"], json({{"to_others", 5}, {"to_own_node", 1}}));
  EXPECT_EQ(to_nodes["exchange_of_threads"],
            json({{"connections", 57'560}, {"buffers_per_worker", 239}}));
  EXPECT_EQ(plan("workers")["open_frames"], json({{"to_others", 200}, {"to_own_node", 40}}));
}

TEST(FaroPlan, says_no_where_something_does_not_fit) {
  const CommandResult result = run_faro(
      {"plan", "--nodes", "2", "--workers", "2", "--set", "memory.limit_bytes=64KiB", "--json"});
  EXPECT_EQ(result.exit_code, kFailed);
  const json parsed = parse(result);
  EXPECT_EQ(parsed["fits"], false);
  int refused = 0;
  for (const json& limit : parsed["limits"]) {
    if (limit["verdict"] != "does_not_fit") continue;
    ++refused;
    if (limit["id"] != "memory_limit") continue;
    EXPECT_EQ(limit["have"], 64 << 10);
    EXPECT_GT(limit["need"], limit["have"]);
    EXPECT_NE(limit["remark"], "");
  }
  EXPECT_GE(refused, 1);
}

// Its rings alone are 2^74 bytes.
TEST(FaroPlan, refuses_a_cluster_that_takes_more_than_can_be_counted) {
  const CommandResult result =
      run_faro(words("plan --nodes 4096 --workers 4096 --json --set lane.ends=both --set "
                     "ring.bytes=256MiB --set ring.per_lane=16 --set shuffle.limit=1"));
  EXPECT_EQ(result.exit_code, kFailed);
  const json plan = parse(result);
  for (const char* const which : {"node", "cluster"}) {
    for (const char* const bytes : {"tcp_bytes", "open_bytes", "most_bytes"})
      EXPECT_EQ(plan[which][bytes], UINT64_MAX) << which << " " << bytes;
  }
  EXPECT_EQ(limit_of(plan, "memory")["verdict"], "does_not_fit");
}

TEST(FaroPlan, takes_no_more_groups_than_a_shuffle_does) {
  EXPECT_EQ(run_faro(words("plan --nodes 2 --groups 65536 --set overflow.memory_bytes=2GiB --json"))
                .exit_code,
            kOk);
  const CommandResult more = run_faro(words("plan --nodes 2 --groups 65537"));
  EXPECT_EQ(more.exit_code, kUsage);
  EXPECT_TRUE(contains(more.errors, "--groups: Value 65537 not in range 0 to 65536"))
      << more.errors;
}

TEST(FaroPlan, takes_workers_per_node_and_any_setting) {
  const json parsed = parse(run_faro({"plan", "--nodes", "3", "--workers", "1,2,4", "--ring",
                                      "4KiB", "--set", "ring.per_lane=1", "--json"}));
  // The largest node has 4 workers: lanes to 1 + 2 workers.
  EXPECT_EQ(parsed["node"]["outgoing_ring_bytes"], 4 * 3 * 4096);
  EXPECT_EQ(parsed["cluster"]["outgoing_ring_bytes"], 2 * (1 * 2 + 1 * 4 + 2 * 4) * 4096);
}

TEST(FaroPlan, says_how_it_estimated_the_time_to_connect) {
  const CommandResult result = run_faro({"plan", "--nodes", "4", "--workers", "1"});
  EXPECT_TRUE(contains(result.output, "time to connect: about")) << result.output;
  EXPECT_TRUE(contains(result.output, "estimated:")) << result.output;
}

// --- doctor --------------------------------------------------------------------------------------

TEST(FaroDoctor, has_really_tried_the_transports) {
  const CommandResult result = run_faro({"doctor", "--json"});
  EXPECT_EQ(result.exit_code, kOk) << result.output << result.errors;
  const json parsed = parse(result);
  ASSERT_EQ(parsed["transports"].size(), 3u);
  for (const json& transport : parsed["transports"]) {
    if (transport["name"] == "verbs" && transport["works"] == false) {
      EXPECT_NE(transport["summary"], "") << "why not";
      continue;
    }
    EXPECT_EQ(transport["works"], true) << transport.dump(2);
    EXPECT_TRUE(contains(transport["checks"].back()["found"], "rows shuffled"))
        << transport.dump(2);
  }
  for (const json& check : parsed["machine"]) EXPECT_NE(check["found"], "") << check.dump();
}

/// One of those of this machine; the test fails if there is none.
json check_of(const json& parsed, const std::string& name) {
  for (const json& check : parsed["machine"]) {
    if (check["name"] == name) return check;
  }
  ADD_FAILURE() << "no check of " << name;
  return {{"health", ""}, {"found", ""}, {"remedy", ""}};
}

TEST(FaroDoctor, names_reason_and_remedy_of_what_does_not_work) {
  struct {
    std::string setting, check, health, found, remedy;
  } const cases[] = {
      {"overflow.folder=/no/such/folder", "overflow folder", "failed", "/no/such/folder",
       "overflow.folder"},
      {"counters.folder=/no/such/folder", "counters folder", "warning", "/no/such/folder",
       "counters.folder"},
      {"liveness.timeout_ms=500", "time limits", "warning", "500", "liveness.timeout_ms"},
      {"security.secret_file=/no/such/file", "secret", "failed", "/no/such/file", "chmod 600"},
      {"security.tls=on", "certificate", "failed", "needs security.certificate",
       "native/tls/README.md"}};
  Arguments arguments = {"doctor", "--json"};
  for (const auto& one : cases) arguments.insert(arguments.end(), {"--set", one.setting});
  const json parsed = parse(run_faro(arguments));
  for (const auto& one : cases) {
    const json check = check_of(parsed, one.check);
    EXPECT_EQ(check["health"], one.health);
    EXPECT_TRUE(contains(check["found"], one.found)) << check;
    EXPECT_TRUE(contains(check["remedy"], one.remedy)) << check;
  }
}

TEST(FaroDoctor, warns_of_a_folder_that_has_no_room_for_the_counters) {
  const test::TemporaryFolder folder;
  test::Child child([&](const test::Child::Side& parent) {
    if (!test::mount_small_disk(folder.path(), "64k")) {
      parent.say("skip");
      return 0;
    }
    const json parsed =
        parse(run_faro({"doctor", "--json", "--set", "counters.folder=" + folder.path()}));
    parent.say(check_of(parsed, "counters folder").dump());
    return 0;
  });
  const std::string said = child.hear().value_or("");
  if (said == "skip") GTEST_SKIP() << "this system permits no file system of its own";
  const json check = json::parse(said, nullptr, false);
  EXPECT_EQ(check["health"], "warning") << said;
  EXPECT_TRUE(contains(check["found"], "64 KiB free")) << said;
  EXPECT_TRUE(contains(check["remedy"], "counters.folder")) << said;
}

TEST(FaroDoctor, says_who_shares_memory_by_a_folder) {
  const test::TemporaryFolder folder;
  const auto look = [&](const Arguments& more) {
    Arguments arguments = {"doctor", "--json", "--set", "shm.folder=" + folder.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const json parsed = parse(run_faro(arguments));
    for (const json& check : parsed["transports"][0]["checks"]) {
      if (check["name"] == "containers") return check;
    }
    ADD_FAILURE() << "no such check: " << parsed;
    return json();
  };
  json check = look({});
  EXPECT_EQ(check["health"], "ok") << check;
  std::ifstream number(fmt::format("{}/faro-{}.host", folder.path(), geteuid()));
  std::string digits;
  EXPECT_TRUE(number >> digits) << "none was drawn";
  struct stat users {};
  ASSERT_EQ(stat("/proc/self/ns/user", &users), 0);
  expect_contains(
      std::string(check["found"]),
      fmt::format("those that see {} and tell the same of it: users {} uid {} folder {}",
                  folder.path(), users.st_ino, geteuid(), digits));

  check = look({"--set", "transport=tcp"});
  EXPECT_EQ(check["health"], "warning") << check;
  expect_contains(std::string(check["found"]), "transport = tcp does not share memory");

  std::ofstream(folder.path() + "/faro-4294967290.host") << digits;
  check = look({});
  EXPECT_EQ(check["health"], "warning") << check;
  expect_contains(std::string(check["found"]), "processes of uid 4294967290 have used it, too");
  expect_contains(std::string(check["remedy"]), "as one user");

  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  check = look({});
  EXPECT_EQ(check["health"], "failed") << check;
  expect_contains(std::string(check["found"]), "others may replace what is in it");
  expect_contains(std::string(check["remedy"]), "all containers mount");
}

TEST(FaroDoctor, says_how_long_the_certificate_is_good_for_and_tries_the_transports_without_it) {
  const test::Authority authority;
  constexpr long kDay = 86'400;
  const struct {
    long until_s;
    const char* health;
    const char* found;
  } cases[] = {{3 * kDay + 60, "ok", "ends in 3 days"}, {60, "warning", "ends in less than a day"}};
  for (const auto& one : cases) {
    const test::NodeFiles files =
        authority.issue({.hosts = {"elsewhere.test"}, .until_s = one.until_s});
    Arguments arguments = {"doctor", "--json"};
    for (const auto& [name, value] : files.settings()) {
      arguments.insert(arguments.end(), {"--set", name + "=" + value});
    }
    const json parsed = parse(run_faro(arguments));
    const json check = check_of(parsed, "certificate");
    EXPECT_EQ(check["health"], one.health) << check;
    EXPECT_TRUE(contains(check["found"], one.found)) << check;
    for (const json& transport : parsed["transports"]) {
      if (transport["name"] == "verbs") continue;
      EXPECT_EQ(transport["works"], true) << transport.dump(2);
    }
  }
}

TEST(FaroDoctor, looks_at_everything_that_a_session_depends_on) {
  const json parsed = parse(run_faro({"doctor", "--json"}));
  std::set<std::string> names;
  for (const json& check : parsed["machine"]) names.insert(check["name"]);
  constexpr const char* kAll[] = {"processors",
                                  "memory",
                                  "memory control group",
                                  "memlock",
                                  "open files",
                                  "/dev/shm",
                                  "rows of 8 bytes",
                                  "rows of 128 bytes",
                                  "transparent huge pages",
                                  "huge pages",
                                  "overflow folder",
                                  "counters folder",
                                  "clock",
                                  "time limits",
                                  "container",
                                  "permissions",
                                  "networks",
                                  "secret",
                                  "certificate",
                                  "kernel, libc",
                                  "version"};
  for (const char* name : kAll) EXPECT_EQ(names.count(name), 1u) << name;
}

// --- config --------------------------------------------------------------------------------------

const json* setting_of(const json& parsed, const std::string& name) {
  for (const json& setting : parsed["settings"]) {
    if (setting["name"] == name) return &setting;
  }
  return nullptr;
}

TEST(FaroConfig, lists_every_setting_with_default_unit_and_help) {
  const json parsed = parse(run_faro({"config", "--json"}));
  ASSERT_EQ(parsed["settings"].size(), Config::table().size());
  for (const SettingInfo& info : Config::table()) {
    const json* setting = setting_of(parsed, std::string(info.name));
    ASSERT_NE(setting, nullptr) << info.name;
    EXPECT_EQ((*setting)["help"], std::string(info.help));
    EXPECT_EQ((*setting)["from"], "default");
    EXPECT_EQ((*setting)["value"], (*setting)["default"]);
  }
  EXPECT_EQ((*setting_of(parsed, "ring.bytes"))["unit"], "bytes");
  const CommandResult table = run_faro({"config"});
  EXPECT_EQ(table.exit_code, kOk);
  for (const SettingInfo& info : Config::table()) {
    EXPECT_TRUE(contains(table.output, std::string(info.name))) << info.name;
  }
}

class FaroConfigFile : public testing::Test {
 protected:
  FaroConfigFile() {
    std::ofstream(path_) << "[ring]\nbytes = \"64 KiB\"\nper_lane = 3\n[wait]\nyields = 7\n";
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/faro.toml";
};

TEST_F(FaroConfigFile, gives_way_to_the_environment_and_that_to_flags) {
  const json parsed = parse(run_faro({"config", "--json", "--set", "ring.per_lane=4"},
                                     {"FARO_CONFIG=" + path_, "FARO_WAIT_YIELDS=8"}));
  const json& ring = *setting_of(parsed, "ring.bytes");
  EXPECT_EQ(ring["value"], 64 << 10);
  EXPECT_EQ(ring["from"], path_);
  EXPECT_EQ(ring["default"], 32 << 10);
  const json& yields = *setting_of(parsed, "wait.yields");
  EXPECT_EQ(yields["value"], 8);
  EXPECT_EQ(yields["from"], "environment");
  const json& lane = *setting_of(parsed, "ring.per_lane");
  EXPECT_EQ(lane["value"], 4);
  EXPECT_EQ(lane["from"], "--set");
}

TEST(FaroConfig, shows_that_a_value_follows_another_setting) {
  const json parsed = parse(run_faro({"config", "--json", "--set", "ring.bytes=4KiB"}));
  const json& threshold = *setting_of(parsed, "transfer.threshold_bytes");
  EXPECT_EQ(threshold["value"], 2048);
  EXPECT_EQ(threshold["default"], 16384);
  EXPECT_EQ(threshold["from"], "default (half of ring.bytes)");
}

TEST(FaroConfig, refuses_a_misspelt_variable) {
  const CommandResult result = run_faro({"config"}, {"FARO_RING_BITES=1"});
  EXPECT_EQ(result.exit_code, kUsage);
  EXPECT_TRUE(contains(result.errors, "FARO_RING_BITES")) << result.errors;
}

// --- simulate ------------------------------------------------------------------------------------

/// What a run of seeds ends with: "hash 0123…", which is over every decision and outcome.
std::string hash_in(const std::string& output) {
  const size_t at = output.find("hash ");
  return at == std::string::npos ? "" : output.substr(at, 21);
}

TEST(FaroSimulate, runs_the_same_for_the_same_seeds_and_says_what_it_ran) {
  const CommandResult once = run_faro_lab({"simulate", "--seed", "11", "--runs", "5"});
  const CommandResult again = run_faro_lab({"simulate", "--seed", "11", "--runs", "5"});
  EXPECT_EQ(once.exit_code, kOk) << once.output << once.errors;
  EXPECT_TRUE(contains(once.output, "5 of 5 runs from seed 11 without a violation"));
  for (const char* line : {"nodes", "workers", "rows of a run", "faults of a run", "queries ended"})
    EXPECT_TRUE(contains(once.output, std::string("\n") + line)) << line << '\n' << once.output;
  EXPECT_EQ(hash_in(once.output).size(), 21u) << once.output;
  EXPECT_EQ(hash_in(once.output), hash_in(again.output));
  EXPECT_NE(hash_in(once.output),
            hash_in(run_faro_lab({"simulate", "--seed", "12", "--runs", "5"}).output));
}

class FaroSimulateResume : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/ranges.json";
};

TEST_F(FaroSimulateResume, goes_on_where_it_was) {
  const Arguments command = {"simulate", "--seed", "3", "--runs", "4", "--resume", path_};
  const CommandResult whole = run_faro_lab(command);
  ASSERT_EQ(whole.exit_code, kOk) << whole.output << whole.errors;
  json kept = json::parse(std::ifstream(path_));
  EXPECT_EQ(kept["ranges"][0]["done"], 4);
  const CommandResult nothing_left = run_faro_lab(command);
  EXPECT_TRUE(contains(nothing_left.output, "4 of 4 runs were done before")) << nothing_left.output;
  EXPECT_EQ(hash_in(nothing_left.output), hash_in(whole.output));
  // As if it had been killed before the first save.
  json& range = kept["ranges"][0];
  range["done"] = 0, range["hash"] = 0, range["events"] = json::object();
  range.erase("sizes");
  std::ofstream(path_) << kept;
  EXPECT_EQ(hash_in(run_faro_lab(command).output), hash_in(whole.output));
}

TEST_F(FaroSimulateResume, refuses_a_file_of_something_else) {
  std::ofstream(path_) << "{\"ranges\": 7}";
  const CommandResult result = run_faro_lab({"simulate", "--runs", "1", "--resume", path_});
  EXPECT_EQ(result.exit_code, kUsage);
  EXPECT_TRUE(contains(result.errors, path_)) << result.errors;
}

}  // namespace
}  // namespace faro::test
