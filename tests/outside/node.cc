#include "node.h"

#include <faro/session.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "part.h"

namespace outside {
namespace {

// A line at a time, whoever writes.
void say(std::string line) {
  static std::mutex mutex;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  const std::lock_guard lock(mutex);
  for (size_t at = 0; at < line.size();) {
    const ssize_t written = ::write(STDOUT_FILENO, line.data() + at, line.size() - at);
    if (written <= 0) _exit(3);  // the driver is gone
    at += static_cast<size_t>(written);
  }
}

void broken(const std::string& what) { say("broken " + what); }

/// What a worker does, as far as others may know.
class Note {
 public:
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  std::string get() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_ = "has not begun";
};

class Node {
 public:
  Node(uint64_t round_seed, uint32_t node)
      : plan_(draw_round(round_seed)),
        node_(node),
        ids_(plan_.queries.size()),
        notes_(plan_.workers_per_node[node]) {}

  int run() {
    if (!open() || !learn_queries()) return 2;
    std::vector<std::thread> threads;
    left_ = plan_.workers_per_node[node_];
    for (uint32_t w = 0; w < plan_.workers_per_node[node_]; ++w)
      threads.emplace_back([this, w] { run_worker(w); });
    std::thread closer([this] { close_when_all_have_finished(); });
    for (std::string line; std::getline(std::cin, line) && line != "close";) {
      if (line != "where") continue;
      for (const Note& note : notes_) say("where " + note.get());
    }
    {
      const std::lock_guard lock(mutex_);
      told_to_close_ = true;
      changed_.notify_all();
    }
    closer.join();
    for (std::thread& thread : threads) thread.join();
    return 0;
  }

 private:
  bool open() {
    faro::Result<faro::ListeningSocket> listener = faro::ListeningSocket::bind("127.0.0.1:0");
    if (!listener.ok()) return fail("bind", listener.status());
    say("listening " + listener->address());
    std::string word, addresses;
    if (!(std::cin >> word >> addresses) || word != "nodes") return false;
    faro::Config config;
    faro::Status set = config.set("cluster.nodes", addresses);
    if (set.ok()) set = config.set("cluster.node", uint64_t{node_});
    std::string workers;
    for (const uint32_t count : plan_.workers_per_node)
      workers += (workers.empty() ? "" : ",") + std::to_string(count);
    if (set.ok()) set = config.set("cluster.workers", workers);
    for (const auto& [name, value] : plan_.settings)
      if (set.ok()) set = config.set(name, value);
    if (!set.ok()) return fail("a setting", set);
    auto session = faro::Session::open(config, std::move(*listener));
    if (!session.ok()) return fail("open", session.status());
    session_ = std::move(*session);
    return true;
  }

  bool learn_queries() {
    for (size_t q = 0; q < plan_.queries.size(); ++q) {
      if (plan_.queries[q].issuer != node_) continue;
      const faro::QueryId id = session_->begin_query();
      say("query " + std::to_string(q) + " " + std::to_string(id.counter) + " " +
          std::to_string(id.incarnation));
    }
    say("opened");
    for (std::string word; std::cin >> word && word != "go";) {
      size_t index = 0;
      faro::QueryId id;
      if (word != "query" || !(std::cin >> index >> id.counter >> id.incarnation)) return false;
      id.issuer = plan_.queries.at(index).issuer;
      ids_[index] = id;
    }
    std::string rest_of_line;
    std::getline(std::cin, rest_of_line);
    for (size_t q = 0; q < plan_.queries.size(); ++q) {
      const QueryPlan& query = plan_.queries[q];
      const bool all = query.workers.size() == plan_.worker_count();
      if (all || (query.issuer != node_ && !plan_.takes_part(query, node_))) continue;
      const faro::Status declared = session_->declare_query(ids_[q], query.workers);
      if (!declared.ok() && declared.category() == faro::Category::operation)
        broken("declare_query: " + declared.to_string());
    }
    return true;
  }

  bool fail(const char* what, const faro::Status& status) {
    broken(std::string(what) + ": " + status.to_string());
    return false;
  }

  void run_worker(uint32_t local) {
    const uint32_t me = plan_.first_worker(node_) + local;
    Scene scene{plan_,  *session_, session_->worker(local),    me,
                broken, taken_,    Chance(mix(plan_.seed, me))};
    std::deque<Part> parts;
    for (uint32_t q = 0; q < plan_.queries.size(); ++q) {
      const std::vector<uint32_t>& workers = plan_.queries[q].workers;
      if (std::binary_search(workers.begin(), workers.end(), me))
        parts.emplace_back(scene, q, ids_[q]);
    }
    if (scene.chance.one_in(2)) {
      for (Part& part : parts) {
        notes_[local].set("waits in its calls of query " + std::to_string(part.end().query));
        part.run();
        report(me, part.end());
      }
    } else {
      poll_in_turn(scene, parts, notes_[local]);
    }
    notes_[local].set("has ended");
    scene.worker.release_ownership();
    const std::lock_guard lock(mutex_);
    rows_ += scene.rows;
    --left_;
    changed_.notify_all();
  }

  void poll_in_turn(Scene& scene, std::deque<Part>& parts, Note& note) {
    size_t left = parts.size();
    uint32_t idle_rounds = 0;
    while (left > 0) {
      bool moved = false;
      for (Part& part : parts) {
        if (part.over()) continue;
        moved |= part.turn();
        if (part.over()) --left, report(scene.me, part.end());
      }
      idle_rounds = moved ? 0 : idle_rounds + 1;
      if (idle_rounds < 2) continue;
      std::string text;
      for (Part& part : parts) {
        part.let_go_of_all();
        if (!part.over()) text += (text.empty() ? "" : "; ") + part.where();
      }
      note.set(text);
      uint32_t looks = 3;
      const faro::Outcome outcome = scene.worker.wait_until(
          [&looks] { return --looks == 0; }, faro::Wait::at_most(std::chrono::milliseconds(20)));
      if (outcome != faro::Outcome::done && outcome != faro::Outcome::deadline)
        broken(std::string("wait_until: ") + faro::outcome_name(outcome));
    }
  }

  void report(uint32_t worker, const PartEnd& end) {
    say("end " + std::to_string(end.query) + " " + std::to_string(worker) + " " +
        (end.troubled ? "1 " : "0 ") +
        (end.done ? "ok" : std::string(faro::code_name(end.cause.code()))) + " " +
        std::string(end.done ? "" : end.cause.message()));
  }

  void close_when_all_have_finished() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
    lock.unlock();
    const bool by_itself = !plan_.all_close;
    if (!by_itself) {
      say("finished " + std::to_string(rows_));
      lock.lock();
      changed_.wait(lock, [this] { return told_to_close_; });
      lock.unlock();
      check_that_nothing_is_left();
    }
    const faro::Status closed = session_->close();
    if (!closed.ok()) broken("close: " + closed.to_string());
    session_.reset();
    if (by_itself) say("finished " + std::to_string(rows_));
  }

  // All have ended all queries; the issuer's last words to the others may still be under way.
  void check_that_nothing_is_left() {
    if (!plan_.kills.empty()) return;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      const faro::SessionMetrics metrics = session_->metrics();
      const uint64_t overflow = metrics.overflow_memory_bytes + metrics.overflow_file_bytes;
      if (overflow == 0 && metrics.queries_running == 0) return;
      if (std::chrono::steady_clock::now() > deadline) {
        return broken(std::to_string(overflow) + " bytes of overflow and " +
                      std::to_string(metrics.queries_running) + " queries are left");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const RoundPlan plan_;
  const uint32_t node_;
  TakenRows taken_;
  std::vector<faro::QueryId> ids_;
  std::deque<Note> notes_;
  std::unique_ptr<faro::Session> session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t left_ = 0;  // workers that run
  bool told_to_close_ = false;
  uint64_t rows_ = 0;
};

}  // namespace

int run_node(uint64_t round_seed, uint32_t node) { return Node(round_seed, node).run(); }

}  // namespace outside
