#include "lab/bench/cluster_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "faro/session.h"
#include "lab/bench/control_socket.h"
#include "lab/bench/node_life.h"
#include "lab/bench/now.h"

namespace faro::bench {
namespace {

// The first word of a message.
//   hello   node k → 0   node, number of nodes, job words
//   welcome 0 → node k   1 if it may take part, 0 if its job is another
//   ready   node k → 0   round
//   start   0 → node k   round, query id (counter, incarnation, issuer)
//   report  node k → 0   words of a NodeReport
enum Kind : uint64_t { kHello = 0x6f6c6c6548, kWelcome = 2, kReady = 3, kStart = 4, kReport = 5 };

uint64_t deadline_in(uint64_t ns) { return base::deadline_after(now_ns(), ns); }

Status with_peer(uint32_t node, const Status& status) {
  return Status(status.code(), fmt::format("node {}: {}", node, status.message()));
}

/// The others, as node 0 sees them; node 0, as the others see it.
class Control {
 public:
  explicit Control(const ClusterNodeOptions& options)
      : options_(options), peers_(options.nodes.size()) {}

  bool leads() const { return options_.node == 0; }

  Status join() {
    FARO_ASSIGN_OR_RETURN(const std::string address, next_port(options_.nodes[0]));
    return leads() ? gather(address) : call(address);
  }

  /// All nodes have come here; `query` is then the round's on all of them.
  Status start(uint32_t round, Session& session, QueryId& query) {
    const uint64_t deadline_ns = deadline_in(options_.round_limit_ns);
    if (!leads()) {
      FARO_RETURN_IF_ERROR(send(0, {kReady, round}));
      FARO_ASSIGN_OR_RETURN(std::vector<uint64_t> words, receive(0, kStart, 5, deadline_ns));
      query.counter = words[2];
      query.incarnation = words[3];
      query.issuer = static_cast<uint32_t>(words[4]);
      return Status::Ok();
    }
    for (uint32_t node = 1; node < peers_.size(); ++node) {
      FARO_RETURN_IF_ERROR(receive(node, kReady, 2, deadline_ns).status());
    }
    query = session.begin_query();
    for (uint32_t node = 1; node < peers_.size(); ++node) {
      FARO_RETURN_IF_ERROR(
          send(node, {kStart, round, query.counter, query.incarnation, query.issuer}));
    }
    return Status::Ok();
  }

  Status hand_in(const NodeReport& report) {
    std::vector<uint64_t> words = encode(report);
    words.insert(words.begin(), kReport);
    return send(0, words);
  }

  Status collect(std::vector<NodeReport>& reports) {
    for (uint32_t node = 1; node < peers_.size(); ++node) {
      FARO_ASSIGN_OR_RETURN(std::vector<uint64_t> words,
                            receive(node, kReport, 2, deadline_in(options_.round_limit_ns)));
      Result<NodeReport> report = decode(std::span(words).subspan(1));
      if (!report) return with_peer(node, report.status());
      if (report.value().rounds.size() != options_.round_count) {
        return with_peer(node, Status(Code::protocol_error, "a report of other rounds"));
      }
      reports.push_back(std::move(report).value());
    }
    return Status::Ok();
  }

 private:
  std::vector<uint64_t> hello() const {
    std::vector<uint64_t> words{kHello, options_.node, options_.nodes.size()};
    words.insert(words.end(), options_.job_words.begin(), options_.job_words.end());
    return words;
  }

  Status call(const std::string& address) {
    const uint64_t deadline_ns = deadline_in(options_.join_limit_ns);
    FARO_ASSIGN_OR_RETURN(ControlSocket socket, ControlSocket::dial(address, deadline_ns));
    peers_[0].emplace(std::move(socket));
    FARO_RETURN_IF_ERROR(send(0, hello()));
    FARO_ASSIGN_OR_RETURN(std::vector<uint64_t> words, receive(0, kWelcome, 2, deadline_ns));
    if (words[1] == 1) return Status::Ok();
    return Status(
        Code::invalid_argument,
        fmt::format("node 0 refused node {}: the flags of `faro-lab bench` must be the same on "
                    "all nodes, --node apart, and every node number started once",
                    options_.node));
  }

  /// The port is closed again when all are there: a node that is early for the next contestant
  /// must not take this one's for it.
  Status gather(const std::string& address) {
    FARO_ASSIGN_OR_RETURN(ControlListener listener, ControlListener::listen(address));
    const uint64_t deadline_ns = deadline_in(options_.join_limit_ns);
    for (size_t missing = peers_.size() - 1; missing > 0;) {
      Result<ControlSocket> socket = listener.accept(deadline_ns);
      if (!socket) {
        return Status(Code::connect_failed,
                      "not started within the time limit: " + missing_nodes());
      }
      // A process that does not speak gets a second, and is forgotten.
      Result<std::vector<uint64_t>> words = socket.value().receive(deadline_in(1'000'000'000));
      if (!words || words.value().size() < 2 || words.value()[0] != kHello) continue;
      const uint64_t node = words.value()[1];
      std::vector<uint64_t> expected = hello();
      expected[1] = node;
      const bool welcome = words.value() == expected && node > 0 && node < peers_.size() &&
                           !peers_[node].has_value();
      const Status told = socket.value().send({kWelcome, welcome ? 1u : 0u});
      if (!welcome) {
        return Status(
            Code::invalid_argument,
            fmt::format("node {} was started with other flags, or twice: the flags of `faro "
                        "bench` must be the same on all nodes, --node apart",
                        node));
      }
      if (!told.ok()) return with_peer(static_cast<uint32_t>(node), told);
      peers_[node].emplace(std::move(socket).value());
      --missing;
    }
    return Status::Ok();
  }

  std::string missing_nodes() const {
    std::vector<std::string> missing;
    for (uint32_t node = 1; node < peers_.size(); ++node) {
      if (!peers_[node]) missing.push_back(fmt::format("node {} ({})", node, options_.nodes[node]));
    }
    return fmt::format("{}", fmt::join(missing, ", "));
  }

  Status send(uint32_t node, const std::vector<uint64_t>& words) {
    const Status status = peers_[node]->send(words);
    return status.ok() ? status : with_peer(node, status);
  }

  Result<std::vector<uint64_t>> receive(uint32_t node, Kind kind, size_t least_words,
                                        uint64_t deadline_ns) {
    Result<std::vector<uint64_t>> words = peers_[node]->receive(deadline_ns);
    if (!words) return with_peer(node, words.status());
    if (words.value().size() < least_words || words.value()[0] != kind) {
      return with_peer(node, Status(Code::protocol_error, "an unexpected benchmark message"));
    }
    return words;
  }

  const ClusterNodeOptions& options_;
  std::vector<std::optional<ControlSocket>> peers_;  // by node
};

/// The rounds of this node's workers.
class Rounds {
 public:
  Rounds(const ClusterNodeOptions& options, const ClusterJob& job, Control& control,
         Session& session)
      : options_(options),
        job_(job),
        control_(control),
        session_(session),
        together_(job.workers_per_process) {}

  Result<std::vector<NodeRound>> run() {
    std::vector<std::thread> threads;
    for (uint32_t local = 1; local < job_.workers_per_process; ++local) {
      threads.emplace_back([this, local] { run_worker(local); });
    }
    run_worker(0);
    for (std::thread& thread : threads) thread.join();
    if (!status_.ok()) return status_;
    return std::move(rounds_);
  }

 private:
  // Errors go through the barriers with everybody else, so that nobody waits forever: whoever
  // fails says so, and all stop at the next barrier.
  void run_worker(uint32_t local) {
    const std::unique_ptr<RoundWorker> work =
        job_.make_worker(session_, session_.worker(local), progress_);
    for (uint32_t round = 0; round < options_.round_count; ++round) {
      if (local == 0) begin(round);
      together_.arrive_and_wait();
      if (!ok()) return;
      const Status status = work->run(query_);
      if (!status.ok()) {
        fail(status);
        // The siblings are inside the query, and would wait for this worker's rows.
        (void)session_.cancel_query(query_, status.message());
      }
      add(work->totals());
      together_.arrive_and_wait();
      if (!ok()) return;
      if (local == 0) end();
    }
  }

  void begin(uint32_t round) {
    if (const Status status = control_.start(round, session_, query_); !status.ok()) {
      fail(status);
      return;
    }
    if (options_.on_round) options_.on_round(round);
    totals_ = {};
    start_ns_ = now_ns();
    start_cpu_ns_ = process_cpu_ns();
  }

  void end() {
    rounds_.push_back({now_ns() - start_ns_, process_cpu_ns() - start_cpu_ns_, totals_});
  }

  void add(const workload::Totals& totals) {
    std::lock_guard lock(mutex_);
    totals_ += totals;
  }
  void fail(const Status& status) {
    std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = status;
  }
  bool ok() {
    std::lock_guard lock(mutex_);
    return status_.ok();
  }

  const ClusterNodeOptions& options_;
  const ClusterJob& job_;
  Control& control_;
  Session& session_;
  std::barrier<> together_;
  std::atomic<uint64_t> progress_{0};  // shown by nobody
  // Written by worker 0 between rounds.
  QueryId query_;
  uint64_t start_ns_ = 0;
  uint64_t start_cpu_ns_ = 0;
  std::vector<NodeRound> rounds_;
  // Guarded by mutex_.
  std::mutex mutex_;
  workload::Totals totals_;
  Status status_;
};

/// What all nodes together did in a round takes as long as the slowest.
RoundTotals totals_of(const std::vector<NodeReport>& nodes, uint32_t round) {
  RoundTotals totals;
  for (const NodeReport& node : nodes) {
    const NodeRound& one = node.rounds[round];
    totals.seconds = std::max(totals.seconds, static_cast<double>(one.elapsed_ns) * 1e-9);
    totals.cpu_seconds += static_cast<double>(one.cpu_ns) * 1e-9;
    totals.rows += one.rows;
  }
  return totals;
}

FaroRun run_of(const Expectation& expected, std::vector<NodeReport> nodes, uint32_t round_count) {
  FaroRun run;
  for (uint32_t round = 1; round < round_count; ++round)
    run.rounds.push_back(figures_of(expected, totals_of(nodes, round)));
  for (const NodeReport& node : nodes) {
    run.connect_seconds =
        std::max(run.connect_seconds, static_cast<double>(node.connect_ns) * 1e-9);
  }
  run.nodes = std::move(nodes);
  return run;
}

}  // namespace

Result<FaroRun> run_cluster_node(const ClusterNodeOptions& options, const ClusterJob& job) {
  if (options.nodes.empty() || options.node >= options.nodes.size()) {
    return Status(Code::invalid_argument, fmt::format("--node {} but --nodes names {} nodes",
                                                      options.node, options.nodes.size()));
  }
  FARO_ASSIGN_OR_RETURN(Config config, node_config(options.config, options.node, options.nodes,
                                                   job.workers_per_process));
  Control control(options);
  FARO_RETURN_IF_ERROR(control.join());

  const uint64_t start_ns = now_ns();
  FARO_ASSIGN_OR_RETURN(std::unique_ptr<Session> opened, Session::open(config));
  Session& session = *opened;
  NodeReport report;
  report.connect_ns = now_ns() - start_ns;

  FARO_ASSIGN_OR_RETURN(report.rounds, Rounds(options, job, control, session).run());
  report.metrics = session.metrics();

  std::vector<NodeReport> reports{report};
  FARO_RETURN_IF_ERROR(control.leads() ? control.collect(reports) : control.hand_in(report));
  FARO_RETURN_IF_ERROR(session.close());
  return run_of(job.expected, std::move(reports), control.leads() ? options.round_count : 0);
}

}  // namespace faro::bench
