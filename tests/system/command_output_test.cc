// What the programs faro and faro-lab answer to whoever started it: exit codes of every verb, also where its
// output cannot be written.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "faro/endpoint.h"
#include "support/child.h"
#include "support/expect.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"
#include "system/command_runner.h"

namespace faro::test {
namespace {

using Arguments = std::vector<std::string>;
using nlohmann::json;

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kMachine = 3;

/// A node for `stat`, `top` and `explain` to look at.
class CommandOutput : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(is_ok(cluster_.status())); }

  /// A call of every verb that prints, and all succeed.
  std::vector<Arguments> verbs() const {
    const std::string folder = folder_.path();
    return {
        {"faro", "--help"},
        {"faro", "--version"},
        {"faro", "help"},
        {"faro", "help", "plan"},
        {"faro-lab", "--help"},
        {"faro-lab", "--version"},
        {"faro-lab", "help", "bench"},
        {"faro-lab", "bench", "--help"},
        {"faro-lab", "bench", "link", "--transport", "shm", "--count", "10", "--repetitions", "1"},
        {"faro-lab", "bench", "receive", "--rows", "10", "--transport", "shm", "--repetitions",
         "1"},
        {"faro-lab", "bench", "two-stage", "--rows", "100", "--transport", "shm", "--repetitions",
         "1"},
        {"faro-lab", "bench", "two-stage", "--rows", "100", "--transport", "shm", "--repetitions",
         "1", "--json"},
        {"faro-lab", "bench", "kernels"},
        {"faro-lab", "bench", "kernels", "--json"},
        {"faro-lab", "bench", "operators", "--groups", "10", "--rows", "1000", "--repetitions",
         "1"},
        {"faro-lab", "bench", "operators", "--joins", "--keys", "frequent", "--rows", "1000",
         "--repetitions", "1"},
        {"faro-lab", "bench", "operators", "--joins", "--keys", "frequent", "--rows", "1000",
         "--repetitions", "1", "--json"},
        {"faro-lab", "bench", "channel", "--count", "10", "--trips", "10", "--repetitions", "1"},
        {"faro-lab", "bench", "variable-rows", "--rows", "10", "--repetitions", "1"},
        {"faro-lab", "bench", "run-time-width", "--rows", "10", "--repetitions", "1"},
        {"faro-lab", "bench", "send-first", "--bytes", "8000", "--transport", "shm",
         "--repetitions", "1"},
        {"faro-lab", "bench", "pipeline", "--rows", "10", "--transport", "shm", "--repetitions",
         "1"},
        {"faro", "plan", "--nodes", "2", "--workers", "2"},
        {"faro", "plan", "--nodes", "2", "--workers", "2", "--json"},
        {"faro", "doctor", "--set", "transport=tcp"},
        {"faro", "doctor", "--set", "transport=tcp", "--json"},
        {"faro", "config"},
        {"faro", "config", "--json"},
        {"faro", "stat", "--once", "--interval", "0.02", "--folder", folder},
        {"faro", "stat", "--interval", "0.02", "--folder", folder},
        {"faro", "stat", "--json", "--interval", "0.02", "--folder", folder},
        {"faro", "explain", "--interval", "0.02", "--folder", folder},
        {"faro", "explain", "--json", "--interval", "0.02", "--folder", folder},
        {"faro-lab", "simulate", "--seed", "1", "--runs", "1"},
        {"faro-lab", "soak", "--seconds", "1"}};
  }

  TemporaryFolder folder_;
  SessionCluster cluster_{1, {{"counters.folder", folder_.path()}}};
};

struct Ended {
  int exit_code = -1;
  int by_signal = 0;
};

/// Runs the command with `output` as its stdout, and `errors` as its stderr unless that is -1; whether it has ended in time, and
/// how.
Ended run_into(int output, const Arguments& arguments, bool ignores_pipes, int errors = -1) {
  Arguments words = arguments;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(50);
    signal(SIGPIPE, ignores_pipes ? SIG_IGN : SIG_DFL);
    dup2(output, STDOUT_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(errors >= 0 ? errors : nowhere, STDERR_FILENO);
    execv(program_of(arguments), pointers.data());
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) return {-1, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

std::string line_of(const Arguments& arguments) {
  std::string line = arguments.at(0);
  for (size_t i = 1; i < arguments.size(); ++i) line += ' ' + arguments[i];
  return line;
}

TEST_F(CommandOutput, that_finds_no_room_is_a_failure_of_every_verb) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  for (const Arguments& verb : verbs()) {
    EXPECT_EQ(run_into(full, verb, false).exit_code, kFailed) << line_of(verb);
    EXPECT_EQ(run_into(full, verb, false, full).exit_code, kFailed)
        << "no error: " << line_of(verb);
  }
  close(full);
}

// Whoever ignores SIGPIPE, as some programs that start others do, sees an exit code; everybody else
// the signal.
TEST_F(CommandOutput, that_nobody_reads_any_more_is_a_failure_of_every_verb) {
  for (const Arguments& verb : verbs()) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    EXPECT_EQ(run_into(ends[1], verb, false).by_signal, SIGPIPE) << line_of(verb);
    EXPECT_EQ(run_into(ends[1], verb, true).exit_code, kFailed) << line_of(verb);
    close(ends[1]);
  }
}

TEST_F(CommandOutput, that_is_closed_is_a_failure) {
  // The number is free for the first file that the command opens, which must not get the table.
  for (const Arguments& verb :
       {Arguments{"faro", "plan", "--nodes", "2", "--workers", "2"}, Arguments{"faro", "config"}}) {
    const pid_t pid = fork();
    if (pid == 0) {
      close(STDOUT_FILENO);
      const std::string words = line_of(verb).substr(verb[0].size());
      execl("/bin/sh", "sh", "-c", (program_of(verb) + words + " 2>/dev/null").c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), kFailed) << line_of(verb);
  }
}

struct Code {
  Arguments arguments;
  int exit_code;
  std::string named;  // in what it prints, or in its error
};

std::ostream& operator<<(std::ostream& out, const Code& one) {
  return out << line_of(one.arguments);
}

// native/command/README.md lists the codes.
TEST_F(CommandOutput, is_followed_by_the_exit_code_that_the_page_names) {
  const std::string folder = folder_.path();
  const std::string nowhere = folder + "/nowhere";
  const std::vector<Code> codes = {
      {{"faro", "help"}, kOk, "explain"},
      {{"faro", "help", "plan"}, kOk, "--nodes-per-host"},
      {{"faro-lab", "help", "bench", "two-stage"}, kOk, "--row-bytes"},
      {{"faro", "help", "no-such-verb"}, kUsage, "no-such-verb"},
      {{"faro-lab", "help"}, kOk, "simulate"},
      {{"faro-lab", "help", "no-such-verb"}, kUsage, "no-such-verb"},
      {{"faro-lab", "bench", "two-stage", "first", "second"}, kUsage, "first second"},
      {{"faro-lab", "bench", "two-stage", "--transport", "verbs", "--set",
        "verbs.module=" + nowhere},
       kMachine,
       "nowhere"},
      {{"faro-lab", "bench", "operators", "--keys", "even"}, kUsage, "keys = even"},
      {{"faro-lab", "bench", "operators", "--joins", "--keys", "sorted"}, kUsage, "keys = sorted"},
      {{"faro-lab", "bench", "operators", "--joins", "--keys", "changing"},
       kUsage,
       "keys = changing"},
      {{"faro", "plan", "first", "second", "third"}, kUsage, "first second third"},
      {{"faro", "doctor", "--set", "security.tls=on", "--set", "transport=tcp"},
       kFailed,
       "certificate"},
      {{"faro", "doctor", "--set", "security.tls=on", "--set", "transport=tcp", "--json"},
       kFailed,
       "certificate"},
      {{"faro", "doctor", "--set", "security.secret_file=" + nowhere}, kFailed, "secret"},
      {{"faro", "doctor", "--set", "overflow.folder=" + nowhere}, kFailed, "overflow folder"},
      {{"faro", "doctor", "--set", "transport=verbs", "--set", "verbs.module=" + nowhere},
       kFailed,
       "verbs: not available"},
      {{"faro", "doctor", "--set", "no.such=1"}, kUsage, "no.such"},
      {{"faro", "config", "--set", "ring.bytes=12345"}, kUsage, "ring.bytes"},
      {{"faro", "config", "--file", nowhere}, kUsage, "nowhere"},
      {{"faro", "plan", "--nodes", "2", "--workers", "2", "--transport", "verbs", "--set",
        "verbs.module=" + nowhere},
       kMachine,
       "nowhere"},
      {{"faro", "explain", "--folder", folder, "--query", "5"}, kUsage, "ISSUER:NUMBER"},
      {{"faro", "explain", "--folder", folder, "--query", "0:"}, kUsage, "ISSUER:NUMBER"},
      {{"faro", "explain", "--folder", folder, "--query", ":5"}, kUsage, "ISSUER:NUMBER"},
      {{"faro", "explain", "--folder", folder, "--query", "0:5x"}, kUsage, "ISSUER:NUMBER"},
      {{"faro", "explain", "--folder", folder, "--query", "0:-5"}, kUsage, "ISSUER:NUMBER"},
      {{"faro", "explain", "--folder", folder, "--query", "0:5", "--interval", "0.02"},
       kOk,
       "no query 0:5 runs"},
      {{"faro", "explain", "--folder", folder, "--interval", "0.02"}, kOk, "no query runs"},
      {{"faro", "explain", "--set", "counters.folder=" + folder, "--interval", "0.02"},
       kOk,
       "no query runs"},
      {{"faro", "explain", "--folder", nowhere}, kFailed, "nowhere"},
      {{"faro", "stat", "--set", "counters.folder=" + folder, "--once", "--interval", "0.02"},
       kOk,
       "worker"},
      {{"faro", "stat", "--set", "no.such=1", "--folder", folder}, kUsage, "no.such"},
      {{"faro", "stat", "--folder", nowhere}, kFailed, "nowhere"},
      {{"faro", "top", "--set", "counters.folder=" + folder}, kUsage, "needs a terminal"},
      {{"faro", "top", "--set", "counters.folder=" + nowhere}, kFailed, "nowhere"},
      {{"faro-lab", "simulate", "--runs", "0"}, kUsage, "--runs"},
      {{"faro-lab", "simulate", "--network", "--channels"}, kUsage, "--channels"},
      {{"faro-lab", "soak", "--seconds", "x"}, kUsage, "--seconds"}};
  for (const Code& one : codes) {
    const CommandResult result = run_line(one.arguments);
    EXPECT_EQ(result.exit_code, one.exit_code) << one << '\n' << result.output << result.errors;
    EXPECT_TRUE(contains(result.output + result.errors, one.named))
        << one << '\n'
        << result.output << result.errors;
  }
}

TEST_F(CommandOutput, of_settings_in_a_file_is_that_of_the_same_flags) {
  const std::string path = folder_.path() + "/faro.toml";
  std::FILE* const file = std::fopen(path.c_str(), "w");
  std::fprintf(file, "[counters]\nfolder = \"%s\"\n", folder_.path().c_str());
  std::fclose(file);
  for (const char* verb : {"stat", "explain"}) {
    Arguments arguments = {verb, "--file", path, "--interval", "0.02"};
    if (arguments.front() == "stat") arguments.emplace_back("--once");
    const CommandResult result = run_faro(arguments);
    EXPECT_EQ(result.exit_code, kOk) << result.errors;
    EXPECT_NE(result.output, "");
  }
}

// Into a pipe or a file `faro stat` prints one table, unless it is asked for one per interval.
TEST_F(CommandOutput, of_stat_ends_by_itself_where_nobody_watches) {
  CommandResult result = run_faro({"stat", "--folder", folder_.path()});
  EXPECT_EQ(result.exit_code, kOk) << result.errors;
  EXPECT_TRUE(contains(result.output, "rows/s out")) << result.output;
  result = run_faro({"stat", "--json", "--folder", folder_.path()});
  EXPECT_EQ(result.exit_code, kOk) << result.errors;
  EXPECT_EQ(json::parse(result.output, nullptr, false)["nodes"].size(), 1u) << result.output;
}

// Values come as they were set: other programs read them.
TEST_F(CommandOutput, of_kernels_has_every_loop_that_puts_rows) {
  const CommandResult result = run_line({"faro-lab", "bench", "kernels", "--json"});
  EXPECT_EQ(result.exit_code, kOk) << result.errors;
  const json results = json::parse(result.output, nullptr, false)["results"];
  EXPECT_EQ(results.size(), 49u) << "7 widths, 7 numbers of receivers";
  for (const json& one : results) {
    for (const char* loop : {"to_receivers", "by_key", "with_length"})
      EXPECT_GT(one["put_ns_per_row"][loop], 0) << one;
  }
}

// Half of all probe rows have one key, and the others are drawn: the owner of that key joins five
// eighths of them, which is 2.5 times the mean, unless it has sent its build row to all.
TEST_F(CommandOutput, of_joins_has_every_contestant_verified_and_its_busiest_worker) {
  const Arguments command = {"faro-lab", "bench", "operators",     "--joins", "--rows", "20000",
                             "--ratios", "2",     "--repetitions", "1",       "--keys"};
  const auto contestants_of = [&](const std::string& keys, size_t count) {
    Arguments words = command;
    words.insert(words.end(), {keys, "--json"});
    const CommandResult result = run_line(words);
    EXPECT_EQ(result.exit_code, kOk) << result.errors;
    const json report = json::parse(result.output, nullptr, false);
    EXPECT_EQ(report["keys"], keys);
    json contestants = report["results"][0]["contestants"];
    EXPECT_EQ(contestants.size(), count);
    for (const json& one : contestants) {
      EXPECT_EQ(one["verified"], true) << one;
      EXPECT_EQ(one["count"], 40'000) << one;
      EXPECT_EQ(one["checksum"], one["expected_checksum"]) << one;
      EXPECT_GE(one["most_rows_times_mean"], 1) << one;
    }
    return contestants;
  };
  const json uniform = contestants_of("uniform", 3);
  EXPECT_LT(uniform[0]["most_rows_times_mean"], 1.1);
  EXPECT_EQ(uniform[2]["name"], "by hand");
  EXPECT_EQ(uniform[2]["most_rows_times_mean"], 4);
  (void)contestants_of("zipf", 4);
  const json frequent = contestants_of("frequent", 4);
  EXPECT_EQ(frequent[0]["name"], "radix join");
  EXPECT_EQ(frequent[1]["name"], "without lists");
  EXPECT_NEAR(frequent[1]["most_rows_times_mean"].get<double>(), 2.5, 0.1);
  Arguments words = command;
  words.emplace_back("frequent");
  const CommandResult table = run_line(words);
  EXPECT_EQ(table.exit_code, kOk) << table.errors;
  EXPECT_TRUE(contains(table.output, "keys of probe rows frequent")) << table.output;
  EXPECT_TRUE(contains(table.output, "without lists")) << table.output;
  EXPECT_TRUE(contains(table.output, "(4.00)")) << "by hand:\n" << table.output;
}

TEST_F(CommandOutput, in_json_is_json_whatever_the_settings_are) {
  const std::string name = "bad\xff\r\n\x1b[2J\"\\";
  const CommandResult result = run_faro({"config", "--json", "--set", "cluster.id=" + name});
  EXPECT_EQ(result.exit_code, kOk) << result.errors;
  EXPECT_FALSE(json::parse(result.output, nullptr, false).is_discarded()) << result.output;
  const CommandResult table = run_faro({"config", "--set", "cluster.id=" + name});
  EXPECT_EQ(table.exit_code, kOk) << table.errors;
  EXPECT_TRUE(contains(table.output, "bad?   [2J\"\\")) << table.output;
  EXPECT_EQ(table.output.find('\x1b'), table.output.npos);
  const CommandResult error = run_faro({"config", "--set", "ring.bytes=" + name});
  EXPECT_EQ(error.exit_code, kUsage);
  EXPECT_EQ(error.errors.find('\x1b'), error.errors.npos) << error.errors;
}

}  // namespace
}  // namespace faro::test
