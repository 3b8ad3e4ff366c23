#include "lab/soak/soak.h"

#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "lab/soak/memory_trend.h"
#include "lab/soak/node_process.h"
#include "lab/workload/chance.h"

namespace faro::soak {
namespace {

constexpr base::Nanoseconds kSecond = 1'000'000'000;
constexpr base::Nanoseconds kHang = 60 * kSecond;  // an answer that takes longer never comes
constexpr uint64_t kResidentGrowth = 1 << 20;
constexpr uint64_t kHeapGrowth = 64 << 10;
// Queries that the plan does not know have numbers of their own.
constexpr uint32_t kToldBy = 1u << 20, kGoesOn = 2u << 20;

base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

void sleep_until(base::Nanoseconds when) {
  const base::Nanoseconds at = now();
  if (when > at) std::this_thread::sleep_for(std::chrono::nanoseconds(when - at));
}

Status broken(std::string what) { return Status(Code::internal_error, std::move(what)); }

/// An empty folder in memory, with what the nodes have in files.
class Folder {
 public:
  Folder() {
    std::string path = "/dev/shm/faro-soak-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What a node answered about a query.
struct Ending {
  base::Nanoseconds at = 0;
  uint64_t rows = 0;
  std::string code;
  std::string text;
};

class Soak {
 public:
  Soak(const Options& options, const std::function<void(const Progress&)>& tell)
      : options_(options), tell_(tell), start_(now()) {}

  Report run() {
    Report report;
    Status status = start_nodes();
    for (uint64_t cluster = 0; status.ok() && !is_over(); ++cluster) {
      cluster_ = cluster;
      plan_ = draw_cluster(options_, cluster);
      status = run_cluster();
      if (status.ok()) status = look_around();
      progress_.seconds = static_cast<double>(now() - start_) / 1e9;
      ++progress_.clusters;
      tell_(progress_);
      if (!status.ok()) {
        report.violation =
            fmt::format("cluster {} of seed {}: {}", cluster, options_.seed, status.message());
      }
    }
    if (report.violation.empty() && !status.ok()) report.violation = status.to_string();
    report.total = progress_;
    judge_memory(report);
    return report;
  }

 private:
  bool is_over() const {
    if (options_.kills != 0) return progress_.killed.count >= options_.kills;
    return now() - start_ >= static_cast<base::Nanoseconds>(options_.seconds * 1e9);
  }

  // --- nodes

  Status start_nodes() {
    if (folder_.path().empty()) return Status(Code::system_error, "no folder in /dev/shm");
    for (uint32_t node = 0; node < kNodes; ++node) FARO_RETURN_IF_ERROR(start(node));
    return Status::Ok();
  }
  Status start(uint32_t node) {
    owed_[node] = 0;
    FARO_ASSIGN_OR_RETURN(NodeProcess made, NodeProcess::start(node, options_, folder_.path()));
    nodes_[node].emplace(std::move(made));
    return Status::Ok();
  }
  std::vector<uint32_t> living() const {
    std::vector<uint32_t> all;
    for (uint32_t node = 0; node < kNodes; ++node) {
      if (nodes_[node].has_value()) all.push_back(node);
    }
    return all;
  }
  Result<std::string> hear(uint32_t node) {
    std::optional<std::string> line = nodes_[node]->hear(now() + kHang);
    if (!line) return broken(fmt::format("node {} hangs or has ended by itself", node));
    return std::move(*line);
  }
  /// The answer to `line`, which begins with `good`, without that.
  Result<std::string> hear_good(uint32_t node, const std::string& line, const std::string& good) {
    FARO_ASSIGN_OR_RETURN(std::string answer, hear(node));
    if (!answer.starts_with(good))
      return broken(fmt::format("node {}, told to {}: {}", node, line, answer));
    return answer.substr(good.size());
  }
  Result<std::string> ask(uint32_t node, const std::string& line, const std::string& good) {
    nodes_[node]->say(line);
    return hear_good(node, line, good);
  }
  /// The same of all that live, at once.
  Result<std::vector<std::string>> ask_all(const std::string& line, const std::string& good) {
    std::vector<std::string> answers;
    for (const uint32_t node : living()) nodes_[node]->say(line);
    for (const uint32_t node : living()) {
      FARO_ASSIGN_OR_RETURN(std::string answer, hear_good(node, line, good));
      answers.push_back(std::move(answer));
    }
    return answers;
  }

  // --- a cluster

  Status run_cluster() {
    for (uint32_t node = 0; node < kNodes; ++node) {
      if (!nodes_[node].has_value()) FARO_RETURN_IF_ERROR(start(node));
    }
    FARO_ASSIGN_OR_RETURN(const auto addresses,
                          ask_all(fmt::format("cluster {}", cluster_), "at "));
    addresses_ = fmt::format("{}", fmt::join(addresses, ","));
    FARO_RETURN_IF_ERROR(ask_all("open " + addresses_, "open").status());
    auto fault = plan_.faults.begin();
    for (uint32_t query = 0; query < plan_.queries && !is_over(); ++query) {
      const FaultPlan* const happens =
          fault != plan_.faults.end() && fault->first == query ? &(fault++)->second : nullptr;
      if (happens != nullptr && happens->kind != FaultKind::paused) {
        FARO_RETURN_IF_ERROR(lose(query, *happens));
      } else {
        FARO_RETURN_IF_ERROR(run_good_query(query, {}, happens));
      }
    }
    FARO_ASSIGN_OR_RETURN(const auto closed, ask_all("close", "closed "));
    const std::vector<uint32_t> nodes = living();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] == witness_of(options_))
        progress_.witness_heap_bytes = std::strtoull(closed[i].c_str(), nullptr, 10);
    }
    return Status::Ok();
  }

  Status run_good_query(uint32_t query, const std::vector<uint32_t>& nodes,
                        const FaultPlan* pause) {
    FARO_ASSIGN_OR_RETURN(const Begun begun, begin(query, nodes, kNodes));
    if (pause != nullptr) {
      sleep_until(begun.at + pause->after_ns);
      nodes_[pause->victim]->signal(SIGSTOP);
      sleep_until(now() + pause->lasting_ns);
      nodes_[pause->victim]->signal(SIGCONT);
      ++progress_.paused;
    }
    for (const uint32_t node : begun.nodes) {
      FARO_ASSIGN_OR_RETURN(const Ending ended, hear_ending(node));
      const std::string expected = begun.cancelled ? "query_cancelled" : "ok";
      if (ended.code != expected) return unexpected(query, node, ended);
    }
    progress_.cancelled += begun.cancelled;
    return Status::Ok();
  }

  /// One node is stopped or killed during a query: whom that concerns is told, and the others go on.
  Status lose(uint32_t query, const FaultPlan& fault) {
    Losses& losses = fault.kind == FaultKind::killed ? progress_.killed : progress_.stopped;
    FARO_ASSIGN_OR_RETURN(const Begun begun, begin(query, {}, kNodes));
    sleep_until(begun.at + fault.after_ns);
    const base::Nanoseconds hit = now();
    nodes_[fault.victim]->signal(fault.kind == FaultKind::killed ? SIGKILL : SIGSTOP);
    ++losses.count;
    uint32_t told = 0;
    FARO_RETURN_IF_ERROR(hear_of_loss(begun, query, fault.victim, hit, losses, told));
    const std::vector<uint32_t> all = living();
    if (told + 1 < all.size()) {
      // That query was over, or did not need the victim or all the others. The next one does.
      told = 0;
      FARO_ASSIGN_OR_RETURN(const Begun next, begin(query + kToldBy, all, fault.victim));
      FARO_RETURN_IF_ERROR(hear_of_loss(next, query + kToldBy, fault.victim, hit, losses, told));
      if (told + 1 != all.size()) return broken("not all survivors were told of a loss");
    }
    std::vector<uint32_t> survivors = living();
    std::erase(survivors, fault.victim);
    FARO_RETURN_IF_ERROR(run_good_query(query + kGoesOn, survivors, nullptr));
    if (fault.kind == FaultKind::killed) {
      nodes_[fault.victim].reset();
    } else {
      nodes_[fault.victim]->signal(SIGCONT);
      FARO_RETURN_IF_ERROR(hear_late(fault.victim));
    }
    return fault.returns ? bring_back(fault.victim) : Status::Ok();
  }

  /// A lost node joins the running cluster again: another process, or the same after it has closed the
  /// session that the others gave up.
  Status bring_back(uint32_t node) {
    if (!nodes_[node].has_value()) {
      FARO_RETURN_IF_ERROR(start(node));
    } else {
      FARO_RETURN_IF_ERROR(ask(node, "close", "closed ").status());
    }
    FARO_RETURN_IF_ERROR(
        ask(node, fmt::format("return {} {}", cluster_, addresses_), "open").status());
    ++progress_.returned;
    return Status::Ok();
  }

  // --- a query

  struct Begun {
    base::Nanoseconds at = 0;
    std::vector<uint32_t> nodes;  // that take part
    uint32_t issuer = 0;
    bool cancelled = false;
  };

  /// `without`: is not asked to issue it; kNodes: any may be.
  Result<Begun> begin(uint32_t query, const std::vector<uint32_t>& nodes, uint32_t without) {
    Begun begun;
    const QueryPlan query_plan = draw_query(options_, plan_, cluster_, query, nodes);
    uint32_t bits = 0;
    for (const uint32_t node : nodes) bits |= 1u << node;
    std::vector<uint32_t> issuers;
    for (uint32_t node = 0; node < kNodes; ++node) {
      if (!query_plan.takes_part(plan_, node)) continue;
      begun.nodes.push_back(node);
      if (node != without) issuers.push_back(node);
    }
    begun.cancelled = query_plan.cancelled_by.has_value();
    begun.issuer = issuers[workload::mix(query_plan.seed, 4) % issuers.size()];
    nodes_[begun.issuer]->say("begin");
    FARO_ASSIGN_OR_RETURN(const std::string id, hear(begun.issuer));
    const std::string line = fmt::format("run {} {} {}", query, bits, id);
    for (const uint32_t node : begun.nodes) {
      nodes_[node]->say(line);
      ++owed_[node];
    }
    begun.at = now();
    ++progress_.queries;
    return begun;
  }

  Result<Ending> hear_ending(uint32_t node) {
    FARO_ASSIGN_OR_RETURN(const std::string line, hear(node));
    --owed_[node];
    Ending ending;
    char code[64] = "";
    int text_at = 0;
    if (std::sscanf(line.c_str(), "ended %lu %lu %63s%n", &ending.at, &ending.rows, code,
                    &text_at) != 3)
      return broken(fmt::format("node {} said: {}", node, line));
    ending.code = code;
    ending.text = line.substr(static_cast<size_t>(text_at));
    progress_.rows += ending.rows;
    return ending;
  }

  Status hear_of_loss(const Begun& begun, uint32_t query, uint32_t victim, base::Nanoseconds hit,
                      Losses& losses, uint32_t& told) {
    const bool needs_victim =
        std::find(begun.nodes.begin(), begun.nodes.end(), victim) != begun.nodes.end();
    size_t done = 0, ended_count = 0;
    for (const uint32_t node : begun.nodes) {
      if (node == victim) continue;
      FARO_ASSIGN_OR_RETURN(const Ending ended, hear_ending(node));
      ++ended_count;
      done += ended.code == "ok";
      if (ended.code == "ok" || (begun.cancelled && ended.code == "query_cancelled")) continue;
      if (!needs_victim || ended.code != "peer_lost" ||
          ended.text.find(fmt::format("node {} (", victim)) == std::string::npos)
        return unexpected(query, node, ended);
      const base::Nanoseconds since = std::max(hit, begun.at);
      const double seconds = static_cast<double>(ended.at - std::min(ended.at, since)) / 1e9;
      losses.longest_seconds = std::max(losses.longest_seconds, seconds);
      if (seconds > static_cast<double>(options_.liveness_ms) / 1e3 + kTellingSeconds) {
        return broken(
            fmt::format("query {}: node {} was told of the loss of node {} after {:.3f} s", query,
                        node, victim, seconds));
      }
      ++losses.told;
      ++told;
    }
    // The issuer's answer is the outcome; only of what went wrong first may they have heard differently.
    if (begun.issuer != victim && done != 0 && done != ended_count) {
      return broken(fmt::format("query {}, issued by node {}, was done for {} of {} survivors",
                                query, begun.issuer, done, ended_count));
    }
    progress_.failed += told != 0;
    return Status::Ok();
  }

  /// What a node that was stopped still has to say: it may have been given up, or done before.
  Status hear_late(uint32_t node) {
    while (owed_[node] > 0) FARO_RETURN_IF_ERROR(hear_ending(node).status());
    return Status::Ok();
  }

  Status unexpected(uint32_t query, uint32_t node, const Ending& ending) const {
    return broken(
        fmt::format("query {} ended on node {} as {}{}", query, node, ending.code, ending.text));
  }

  // --- between two clusters

  Status look_around() {
    for (const uint32_t node : living()) {
      const std::string grown = nodes_[node]->grown_since_first_look();
      if (!grown.empty()) return broken(fmt::format("node {} has {}", node, grown));
    }
    for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
      return broken("a file is left: " + file.path().string());
    progress_.witness = nodes_[witness_of(options_)]->usage();
    progress_.controller = Usage::of(getpid());
    // A socket for each node; who was killed last has none.
    const size_t own = progress_.controller.descriptors - living().size();
    if (progress_.quiet_looks == 0) controller_descriptors_ = own;
    if (own > controller_descriptors_) {
      return broken(fmt::format("the controller has {} descriptors of its own, {} at first", own,
                                controller_descriptors_));
    }
    witness_heap_.look(progress_.witness_heap_bytes);
    witness_memory_.look(progress_.witness.resident_bytes);
    controller_memory_.look(progress_.controller.resident_bytes);
    ++progress_.quiet_looks;
    return Status::Ok();
  }

  void judge_memory(Report& report) const {
    if (!witness_heap_.is_known()) {
      report.memory = fmt::format("not judged: that takes {} looks, and there were {}",
                                  MemoryTrend::kNeeded, progress_.quiet_looks);
      return;
    }
    report.memory_is_known = true;
    report.memory =
        fmt::format("resident in the witness {}, its heap {}, resident in the controller {}",
                    witness_memory_.text(), witness_heap_.text(), controller_memory_.text());
    const bool grew = witness_memory_.grew() || witness_heap_.grew() || controller_memory_.grew();
    if (report.violation.empty() && grew) report.violation = "memory has grown";
  }

  const Options& options_;
  const std::function<void(const Progress&)>& tell_;
  const base::Nanoseconds start_;
  const Folder folder_;
  std::optional<NodeProcess> nodes_[kNodes];
  uint64_t cluster_ = 0;
  ClusterPlan plan_;
  std::string addresses_;       // of the nodes of this cluster
  uint32_t owed_[kNodes] = {};  // answers about queries that have not come yet
  Progress progress_;
  size_t controller_descriptors_ = 0;
  MemoryTrend witness_memory_{kResidentGrowth}, controller_memory_{kResidentGrowth};
  MemoryTrend witness_heap_{kHeapGrowth};
};

}  // namespace

Report run_soak(const Options& options, const std::function<void(const Progress&)>& tell) {
  return Soak(options, tell).run();
}

}  // namespace faro::soak
