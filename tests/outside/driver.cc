#include "driver.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "chance.h"
#include "round_plan.h"

namespace outside {
namespace {

using Clock = std::chrono::steady_clock;

// Far above what a round takes on a busy machine: only what hangs reaches it.
constexpr auto kTellDelay = std::chrono::seconds(90);
// For what the nodes say of themselves after it.
constexpr auto kLastWords = std::chrono::seconds(3);

/// A node's process with both ends of its lines.
struct Process {
  pid_t pid = -1;
  int to = -1, from = -1;
  int log = -1;  // what it wrote to stderr
  std::string unread;
  std::string address;
  bool killed = false, ended = false, is_open = false, finished = false;
  uint64_t rows = 0;
};

struct End {
  bool troubled;
  std::string code, text;
};

class Round {
 public:
  explicit Round(uint64_t seed) : plan_(draw_round(seed)), nodes_(plan_.node_count()) {}
  ~Round() {
    for (Process& node : nodes_) {
      if (node.pid > 0 && !node.ended) {
        ::kill(node.pid, SIGKILL);
        ::waitpid(node.pid, nullptr, 0);
      }
      for (const int fd : {node.to, node.from, node.log})
        if (fd >= 0) ::close(fd);
    }
  }

  /// What is wrong; empty if nothing is.
  std::vector<std::string> run() {
    begin_ = Clock::now();
    for (uint32_t n = 0; n < nodes_.size(); ++n) start(n);
    until("listen", [](const Process& node) { return !node.address.empty(); });
    std::string addresses;
    for (const Process& node : nodes_) addresses += (addresses.empty() ? "" : ",") + node.address;
    tell_all("nodes " + addresses);
    until("open", [](const Process& node) { return node.is_open; });
    for (const std::string& line : query_lines_) tell_all(line);
    tell_all("go");
    began_ = Clock::now();
    until("finish", [](const Process& node) { return node.finished || node.ended; });
    tell_all("close");
    until("end", [](const Process& node) { return node.ended; });
    if (wrong_.empty()) judge();
    return std::move(wrong_);
  }

  const RoundPlan& plan() const { return plan_; }
  uint64_t rows() const {
    uint64_t rows = 0;
    for (const Process& node : nodes_) rows += node.rows;
    return rows;
  }
  uint64_t kills() const {
    return static_cast<uint64_t>(
        std::count_if(nodes_.begin(), nodes_.end(), [](const Process& n) { return n.killed; }));
  }
  uint64_t failed_queries() const { return failed_queries_; }

  void print_logs() const {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      std::cout << "--- node " << n << " (" << nodes_[n].address << ")"
                << (nodes_[n].killed ? ", killed" : "") << '\n';
      char text[4096];
      const off_t end = ::lseek(nodes_[n].log, 0, SEEK_END);
      const off_t at = std::max<off_t>(0, end - static_cast<off_t>(sizeof text));
      const ssize_t size = ::pread(nodes_[n].log, text, sizeof text, at);
      if (size > 0) std::cout.write(text, size);
    }
    for (const auto& [who, end] : ends_) {
      std::cout << "query " << who.first << " at worker " << who.second << ": " << end.code << ' '
                << end.text << '\n';
    }
  }

 private:
  void wrong(std::string what) { wrong_.push_back(std::move(what)); }

  void start(uint32_t n) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
      std::perror("pipe2");
      _exit(2);
    }
    Process& node = nodes_[n];
    node.log = ::memfd_create("log", MFD_CLOEXEC);
    const std::string seed = std::to_string(plan_.seed), number = std::to_string(n);
    node.pid = ::fork();
    if (node.pid == 0) {
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      ::dup2(node.log, STDERR_FILENO);
      ::unsetenv("FARO_SECRET");
      if (!plan_.secret.empty()) ::setenv("FARO_SECRET", plan_.secret.c_str(), 1);
      ::execl("/proc/self/exe", "outside_client", "--node", number.c_str(), "--round-seed",
              seed.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    node.to = to[1];
    node.from = from[0];
  }

  void tell_all(const std::string& line) {
    const std::string text = line + "\n";
    for (Process& node : nodes_) {
      if (node.ended) continue;
      // A pipe holds all that is ever said; a process that is gone does not listen (SIGPIPE is
      // ignored).
      (void)!::write(node.to, text.data(), text.size());
    }
  }

  /// Listens until it holds for every node that was not killed; kills meanwhile whom the plan says.
  template <typename Condition>
  void until(const char* what, Condition condition) {
    if (!wrong_.empty()) return;
    bool asked = false;
    for (;;) {
      const bool all = std::all_of(nodes_.begin(), nodes_.end(), [&](const Process& node) {
        return (node.killed && node.ended) || condition(node);
      });
      if (all || !wrong_.empty()) return;
      const auto now = Clock::now();
      if (now - begin_ > kTellDelay + kLastWords)
        return wrong(std::string("hangs: nodes do not ") + what);
      if (now - begin_ > kTellDelay && !asked) tell_all("where"), asked = true;
      listen(kill_who_is_due(now));
    }
  }

  int kill_who_is_due(Clock::time_point now) {
    int wait_ms = 100;
    if (began_ == Clock::time_point()) return wait_ms;
    for (const Kill& kill : plan_.kills) {
      Process& node = nodes_[kill.node];
      if (node.killed || node.ended) continue;
      const auto due = began_ + std::chrono::microseconds(kill.after_us);
      if (now >= due) {
        node.killed = true;
        ::kill(node.pid, SIGKILL);
      } else {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - now);
        wait_ms = std::min(wait_ms, static_cast<int>(left.count()));
      }
    }
    return wait_ms;
  }

  void listen(int wait_ms) {
    std::vector<pollfd> polled;
    for (const Process& node : nodes_) polled.push_back({node.ended ? -1 : node.from, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), wait_ms) <= 0) return;
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (polled[n].revents == 0) continue;
      char text[16 << 10];
      const ssize_t size = ::read(nodes_[n].from, text, sizeof text);
      if (size <= 0) {
        ended(n);
        continue;
      }
      std::string& unread = nodes_[n].unread;
      unread.append(text, static_cast<size_t>(size));
      for (size_t end; (end = unread.find('\n')) != std::string::npos; unread.erase(0, end + 1))
        heard(n, unread.substr(0, end));
    }
  }

  void ended(uint32_t n) {
    Process& node = nodes_[n];
    int status = 0;
    ::waitpid(node.pid, &status, 0);
    node.ended = true;
    if (node.killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0 && node.finished)) return;
    wrong("node " + std::to_string(n) +
          (WIFSIGNALED(status) ? std::string(" died of signal ") + ::strsignal(WTERMSIG(status))
                               : " ended with " + std::to_string(WEXITSTATUS(status))));
  }

  void heard(uint32_t n, const std::string& line) {
    Process& node = nodes_[n];
    std::istringstream in(line);
    std::string word, rest;
    in >> word;
    if (word == "listening") {
      in >> node.address;
    } else if (word == "query") {
      query_lines_.push_back(line);
    } else if (word == "opened") {
      node.is_open = true;
    } else if (word == "finished") {
      in >> node.rows;
      node.finished = true;
    } else if (word == "end") {
      uint32_t query, worker;
      End end{};
      in >> query >> worker >> end.troubled >> end.code;
      std::getline(in, end.text);
      ends_[{query, worker}] = std::move(end);
    } else {  // broken, where
      wrong("node " + std::to_string(n) + ": " + line);
    }
  }

  // --- the oracle over all nodes

  void judge() {
    for (uint32_t q = 0; q < plan_.queries.size(); ++q) judge_query(q);
  }

  void judge_query(uint32_t q) {
    const QueryPlan& query = plan_.queries[q];
    const std::string name = "query " + std::to_string(q) + " at worker ";
    bool troubled = false;
    std::set<bool> endings;
    for (const uint32_t worker : query.workers) {
      const auto found = ends_.find({q, worker});
      if (nodes_[plan_.node_of(worker)].killed) continue;  // may have known what nobody else did
      if (found == ends_.end()) {
        wrong(name + std::to_string(worker) + " has not ended");
        continue;
      }
      const End& end = found->second;
      troubled |= end.troubled;
      endings.insert(end.code == "ok");
      if (end.code != "ok" && !is_explained(q, end))
        wrong(name + std::to_string(worker) + " failed without a reason: " + end.code + end.text);
    }
    if (endings.size() > 1)
      wrong("query " + std::to_string(q) + " is done at some workers, and failed at others");
    if (endings.count(true) > 0 && troubled)
      wrong("query " + std::to_string(q) +
            " is done, though a worker made trouble before it ended");
    failed_queries_ += endings.count(false);
  }

  bool is_explained(uint32_t q, const End& end) const {
    const QueryPlan& query = plan_.queries[q];
    const auto says = [&](const std::string& words) {
      return end.text.find(words) != std::string::npos;
    };
    if (end.code == "overflow_exhausted") return plan_.scarce;
    if (end.code == "query_failed")
      return query.trouble == Trouble::fails && says(reason_of_trouble(q));
    if (end.code == "query_cancelled") {
      // A worker that fails closes its shuffles before it says why.
      if (query.trouble == Trouble::closes_early || query.trouble == Trouble::fails)
        return says("closed its");
      return query.trouble != Trouble::none && says(reason_of_trouble(q));
    }
    if (end.code != "peer_lost") return false;
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      const bool concerned = query.issuer == n || plan_.takes_part(query, n);
      if (nodes_[n].killed && concerned && says(nodes_[n].address)) return true;
    }
    return false;
  }

  const RoundPlan plan_;
  std::vector<Process> nodes_;
  std::vector<std::string> query_lines_;
  std::map<std::pair<uint32_t, uint32_t>, End> ends_;  // by query and worker
  std::vector<std::string> wrong_;
  Clock::time_point begin_, began_;
  uint64_t failed_queries_ = 0;
};

}  // namespace

int run_driver(const DriverOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  std::cout << "outside_client --seed " << options.seed << " --seconds " << options.seconds
            << std::endl;
  const auto begin = Clock::now();
  const auto is_over = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count() >= options.seconds;
  };
  uint64_t rounds = 0, queries = 0, failed = 0, rows = 0, kills = 0;
  for (uint64_t r = options.round.value_or(0); rounds == 0 || (!options.round && !is_over()); ++r) {
    Round round(mix(options.seed, r));
    if (options.is_verbose) {
      std::cout << "round " << r << '\n' << describe(round.plan()) << std::flush;
    }
    const std::vector<std::string> wrong = round.run();
    if (!wrong.empty()) {
      std::cout << "round " << r << " is not as it has to be:\n" << describe(round.plan());
      for (const std::string& what : wrong) std::cout << "WRONG: " << what << '\n';
      round.print_logs();
      std::cout << "again: outside_client --seed " << options.seed << " --round " << r << '\n';
      return 1;
    }
    ++rounds;
    queries += round.plan().queries.size();
    failed += round.failed_queries();
    rows += round.rows();
    kills += round.kills();
  }
  std::cout << rounds << " rounds, " << queries << " queries (" << failed
            << " failed as they had to), " << rows << " rows, " << kills
            << " kills: nothing wrong\n";
  return 0;
}

}  // namespace outside
