#include "lab/soak/node.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/return_if_error.h"
#include "faro/log.h"
#include "faro/nodes.h"
#include "faro/session.h"
#include "lab/soak/query_part.h"

namespace faro::soak {
namespace {

/// Bytes of the heap that are allocated.
size_t heap_bytes() {
#if __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
#else  // counts in 32 bits, which are enough for a session that is closed
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo heap = mallinfo();
#pragma GCC diagnostic pop
  return size_t{static_cast<uint32_t>(heap.uordblks)} + static_cast<uint32_t>(heap.hblkhd);
#endif
}

constexpr std::chrono::seconds kComing{50};

/// Nodes of which something has been told.
class Told {
 public:
  void tell(uint32_t node) {
    const std::lock_guard lock(mutex_);
    nodes_.insert(node);
    changed_.notify_all();
  }
  /// Errors: deadline_exceeded.
  Status take(uint32_t node) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kLimit, [&] { return nodes_.erase(node) != 0; }))
      return Status::Ok();
    return Status(Code::deadline_exceeded, fmt::format("nothing was told of node {}", node));
  }

 private:
  static constexpr std::chrono::seconds kLimit{50};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<uint32_t> nodes_;
};

struct Events {
  Told drained, removed;
};

class Node {
 public:
  Node(uint32_t number, const Options& options, const std::string& folder, LineSocket& controller)
      : number_(number), options_(options), folder_(folder), controller_(controller) {}

  /// Does what a line of the controller says, and answers it.
  void obey(const std::string& line) {
    const std::string word = line.substr(0, line.find(' '));
    const std::string rest = line.size() > word.size() ? line.substr(word.size() + 1) : "";
    if (word == "run")
      run(rest);
    else
      controller_.say(answer(word, rest));
  }

 private:
  std::string answer(const std::string& word, const std::string& rest) {
    if (word == "cluster") return enter(std::strtoull(rest.c_str(), nullptr, 10));
    if (word == "open") return words_of("open", open(rest));
    if (word == "return") return come_back(rest);
    if (word == "begin") return "query " + text_of(session_->begin_query());
    if (word == "look") return look();
    if (word == "close") return close();
    return words_of("ok", change(word, rest));
  }

  /// Adds, drains or removes one node of the session.
  Status change(const std::string& word, const std::string& rest) {
    const auto node = static_cast<uint32_t>(std::strtoul(rest.c_str(), nullptr, 10));
    Nodes nodes(*session_);
    if (word == "add") return nodes.add({node, rest.substr(rest.find(' ') + 1)});
    if (word == "await") return session_->await_node(node, Wait::at_most(kComing));
    if (word == "drain") return nodes.drain(node);
    if (word == "drained") return told_->drained.take(node);
    FARO_RETURN_IF_ERROR(nodes.remove(node));
    return told_->removed.take(node);
  }

  static std::string words_of(const std::string& good, const Status& status) {
    return status.ok() ? good : "failed " + status.to_string();
  }
  static std::string text_of(const QueryId& id) {
    return fmt::format("{} {} {}", id.counter, id.incarnation, id.issuer);
  }

  std::string enter(uint64_t cluster) {
    know(cluster);
    Result<ListeningSocket> listener =
        ListeningSocket::bind(options_.hosts[number_ % options_.hosts.size()] + ":0");
    if (!listener.ok()) return words_of("", listener.status());
    listener_ = std::move(*listener);
    return "at " + listener_->address();
  }

  void know(uint64_t cluster) {
    cluster_ = cluster;
    plan_ = draw_cluster(options_, cluster);
  }

  /// Into a running cluster, at the address that this node had in it.
  std::string come_back(const std::string& what) {
    const size_t space = what.find(' ');
    know(std::strtoull(what.c_str(), nullptr, 10));
    return words_of("open", open(what.substr(space + 1)));
  }

  Status open(const std::string& addresses) {
    Config config;
    FARO_RETURN_IF_ERROR(config.set("cluster.nodes", addresses));
    FARO_RETURN_IF_ERROR(config.set("cluster.node", uint64_t{number_}));
    for (const auto& [name, value] : plan_.settings) FARO_RETURN_IF_ERROR(config.set(name, value));
    FARO_RETURN_IF_ERROR(config.set("security.secret_file", options_.secret_file));
    FARO_RETURN_IF_ERROR(config.set("counters.folder", folder_));
    FARO_RETURN_IF_ERROR(config.set("overflow.folder", folder_));
    Result<std::unique_ptr<Session>> opened =
        listener_ ? Session::open(config, std::move(*listener_)) : Session::open(config);
    listener_.reset();
    FARO_RETURN_IF_ERROR(opened.status());
    session_ = std::move(*opened);
    told_ = std::make_shared<Events>();
    SessionListener listener;
    listener.node_drained = [told = told_](uint32_t node) { told->drained.tell(node); };
    listener.node_removed = [told = told_](uint32_t node) { told->removed.tell(node); };
    session_->listen(std::move(listener));
    return Status::Ok();
  }

  std::string look() {
    finish_query();
    // What malloc only keeps says nothing of what is used.
    malloc_trim(0);
    return fmt::format("heap {}", heap_bytes());
  }

  std::string close() {
    finish_query();
    const Status closed = session_->close();
    session_.reset();
    told_.reset();
    malloc_trim(0);
    return words_of(fmt::format("closed {}", heap_bytes()), closed);
  }

  void finish_query() {
    if (query_.joinable()) query_.join();
  }

  /// Declares a query, and runs its workers beside what the controller says then.
  void run(const std::string& what) {
    finish_query();
    uint32_t query = 0, bits = 0;
    QueryId id;
    std::sscanf(what.c_str(), "%u %u %lu %lu %u", &query, &bits, &id.counter, &id.incarnation,
                &id.issuer);
    std::vector<uint32_t> nodes;
    for (uint32_t node = 0; node < plan_.workers_per_node.size(); ++node) {
      if ((bits >> node & 1) != 0) nodes.push_back(node);
    }
    QueryPlan plan = draw_query(options_, plan_, cluster_, query, nodes);
    const Status declared = session_->declare_query(id, plan.workers);
    if (!declared.ok()) return say_ended(declared, 0);
    query_ = std::thread([this, id, plan = std::move(plan)] {
      uint64_t rows = 0;
      const Status ended = run_workers(plan, id, rows);
      say_ended(ended, rows);
    });
  }
  void say_ended(const Status& ended, uint64_t rows) {
    controller_.say(fmt::format("ended {} {} {} {}", base::SystemClock::instance().now_ns(), rows,
                                code_name(ended.code()), ended.message()));
  }

  // The first error of any worker, those of rows before all others.
  Status run_workers(const QueryPlan& plan, const QueryId& id, uint64_t& rows) {
    struct Part {
      Status ended;
      uint64_t rows = 0;
    };
    std::vector<Part> parts(session_->local_worker_count());
    std::vector<std::thread> threads;
    for (const uint32_t number : plan.workers) {
      const uint32_t local = number - plan_.first_worker(number_);
      if (local >= parts.size()) continue;  // also of nodes before this one
      threads.emplace_back([this, local, &plan, &id, &part = parts[local]] {
        part.ended = run_part(session_->worker(local), id, plan, plan_.ring_bytes, part.rows);
      });
    }
    for (std::thread& thread : threads) thread.join();
    Status ended;
    for (const Part& part : parts) {
      rows += part.rows;
      if (ended.ok() || part.ended.code() == Code::internal_error) ended = part.ended;
    }
    return ended;
  }

  const uint32_t number_;
  const Options& options_;
  const std::string& folder_;
  LineSocket& controller_;
  uint64_t cluster_ = 0;
  ClusterPlan plan_;
  std::optional<ListeningSocket> listener_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<Events> told_;  // of this session
  std::thread query_;
};

}  // namespace

void run_node(uint32_t node, const Options& options, const std::string& folder,
              LineSocket controller) {
  set_log_level(LogLevel::off);
  Node here(node, options, folder, controller);
  while (const auto line = controller.hear()) here.obey(*line);
  _exit(0);  // whatever its queries do
}

}  // namespace faro::soak
