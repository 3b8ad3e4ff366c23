#include "system/fault_node.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "faro/log.h"
#include "faro/nodes.h"
#include "support/query_end.h"
#include "support/recorded_events.h"
#include "support/traces.h"
#include "support/watchdog.h"
#include "system/checked_shuffle.h"
#include "system/node_processes.h"

namespace faro::test {
namespace {

constexpr std::chrono::seconds kLimit{40};
constexpr std::chrono::milliseconds kTurn{5};
// Worker 1 of nodes 0 and 1, and of the guest; each node has two.
const std::vector<uint32_t> kGuestWorkers = {1, 3, 2 * kGuest + 1};

/// Something that happens once and that a thread can wait for.
class Event {
 public:
  void happens() {
    const std::lock_guard lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  bool has_happened() {
    const std::lock_guard lock(mutex_);
    return happened_;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
};

class FaultNode {
 public:
  FaultNode(const FaultNodePlan& plan, const Child::Side& test) : plan_(plan), test_(test) {}

  Status open(ListeningSocket listener, std::optional<ListeningSocket> beside) {
    FARO_RETURN_IF_ERROR(
        open_one(session_, plan_.addresses, "2", "with the victim", std::move(listener)));
    session_->listen(events_->listener());
    if (!beside.has_value()) return Status::Ok();
    return open_one(beside_, plan_.beside_addresses, "1", "beside", std::move(*beside));
  }

  int obey() {
    Watchdog watchdog(kLimit, [this] { return fmt::format("node {}, {}", plan_.node, doing_); });
    for (;;) {
      const std::string line = test_.hear();
      doing_ = line;
      if (line == "begin") {
        test_.say(line_of(session_->begin_query()));
      } else if (line == "begin pair") {
        test_.say(line_of(beside_->begin_query()));
      } else if (line.starts_with("query ")) {
        const QueryId id = query_in(line, 6);
        part_ = std::thread([this, id] { outcome_ = take_part(id); });
      } else if (line == "hit") {
        hit_.happens();
      } else if (line == "go on") {
        go_on_.happens();
      } else if (line.starts_with("others ")) {
        const QueryId second = query_in(line, line.find(',') + 1);
        if (guest_.joinable()) guest_.join();
        Status status = run(*session_, query_in(line, 7), {1, 3}, 1);
        if (status.ok()) status = run(*beside_, second, {0, 1}, 0);
        test_.say(status.ok() ? "others well" : "complaint: " + status.to_string());
      } else if (line.starts_with("wait ")) {
        const std::chrono::milliseconds lasting(std::atoi(line.c_str() + 5));
        (void)session_->worker(1).wait_until([] { return false; }, Wait::at_most(lasting));
        test_.say("waited");
      } else if (line == "outcome") {
        if (part_.joinable()) part_.join();
        test_.say(outcome_.ok() ? "done" : "failed " + outcome_.to_string());
      } else if (line == "close") {
        return close();
      } else if (!obey_as_nodes_change(line)) {
        return 1;
      }
    }
  }

 private:
  Status open_one(std::unique_ptr<Session>& session, const std::string& addresses,
                  const char* workers, const char* cluster, ListeningSocket listener) {
    SettingList settings = plan_.settings;
    settings.push_back({"cluster.workers", workers});
    settings.push_back({"cluster.id", cluster});
    FARO_ASSIGN_OR_RETURN(Config config, config_of(plan_.node, addresses, settings));
    Result<std::unique_ptr<Session>> opened = Session::open(config, std::move(listener));
    if (opened.ok()) session = std::move(*opened);
    return opened.status();
  }

  // --- the query of all: worker 0

  // The victim stays in this phase until it is told to go on.
  void reach(Phase phase) {
    if (plan_.node != kVictim || plan_.phase != phase) return;
    test_.say("there");
    go_on_.wait();
  }

  Status take_part(const QueryId& id) {
    Worker& worker = session_->worker(0);
    const std::vector<uint32_t> workers = {0, 2, 4};
    reach(Phase::opened);
    FARO_RETURN_IF_ERROR(session_->declare_query(id, workers));
    CheckedShuffle shuffle;
    const Status opened = shuffle.open(worker, id, workers);
    const Status used = opened.ok() ? use(shuffle) : opened;
    shuffle.close();
    Status cause;
    if (plan_.phase == Phase::ended && plan_.node == kVictim) {
      (void)worker.end_query(id, Wait::none());
      reach(Phase::ended);
    }
    if (plan_.phase == Phase::ended && plan_.node == 1) hit_.wait();  // it cannot be over before
    const Outcome ended = end_query(worker, id, cause);
    worker.release_ownership();
    if (ended == Outcome::done) {
      if (!used.ok()) return used;  // nobody else knows of it
      reach(Phase::closing);
      return Status::Ok();
    }
    if (!used.ok() && used.code() == Code::internal_error) return used;
    return cause;
  }

  Status use(CheckedShuffle& shuffle) {
    const auto failure = [&shuffle](const char* what) {
      const Status status = shuffle.status();
      return Status(status.ok() ? Code::internal_error : status.code(),
                    fmt::format("{}: {}", what, status.message()));
    };
    for (uint32_t to = 0; to < kFaultNodes; ++to) {
      if (shuffle.send(to) != Outcome::done) return failure("the first rows");
    }
    (void)shuffle.flush();
    reach(Phase::first_rows);
    if (plan_.phase == Phase::mid && !send_and_take(shuffle)) return failure("mid-shuffle");
    if (plan_.phase == Phase::overflow) {
      Batch held;
      if (shuffle.take(held) != Outcome::done) return failure("taking one batch");
      for (uint32_t i = 0; i < 6000; ++i) {
        if (shuffle.send(i % kFaultNodes) != Outcome::done) return failure("overflowing");
      }
      reach(Phase::overflow);
    }
    if (shuffle.finish() != Outcome::done) return failure("finish");
    reach(Phase::finished);
    return shuffle.take_to_end() == Outcome::end_of_stream ? Status::Ok() : failure("taking all");
  }

  // Until the test says that it is enough, or it fails.
  bool send_and_take(CheckedShuffle& shuffle) {
    for (uint32_t turn = 0; !go_on_.has_happened(); ++turn) {
      if (turn == 20 && plan_.node == kVictim) test_.say("there");
      if (shuffle.send(turn % kFaultNodes, Wait::at_most(kTurn)) == Outcome::failed) return false;
      Batch batch;
      if (shuffle.take(batch, Wait::at_most(std::chrono::nanoseconds(0))) == Outcome::failed)
        return false;
    }
    return true;
  }

  // --- nodes that come and go

  // False: it is another line.
  bool obey_as_nodes_change(const std::string& line) {
    std::istringstream words(line);
    std::string verb, text;
    uint32_t node = 0;
    words >> verb;
    if (verb == "add" && words >> node >> text) {
      complain_of(Nodes(*session_).add({node, text}));
    } else if (verb == "drain" && words >> node) {
      complain_of(Nodes(*session_).drain(node));
    } else if (verb == "remove" && words >> node) {
      complain_of(Nodes(*session_).remove(node));
    } else if (verb == "await" && words >> node) {
      test_.say(session_->await_node(node).to_string());
    } else if (verb == "told" && words >> text >> node) {
      test_.say(events_->await(fmt::format("{} {}", text, node)));
    } else if (verb == "count" && words >> text >> node) {
      test_.say(std::to_string(events_->count(fmt::format("{} {}", text, node))));
    } else if (verb == "with") {
      const QueryId id = query_in(line, line.find("guest ") + 6);
      complain_of(session_->declare_query(id, kGuestWorkers));
      guest_ = std::thread(
          [this, id] { guest_outcome_ = run_declared(*session_, id, kGuestWorkers, 1); });
    } else if (line == "guest") {
      if (guest_.joinable()) guest_.join();
      if (guest_outcome_.ok() && events_->count(fmt::format("lost {}", kGuest)) != 0)
        guest_outcome_ = Status(Code::internal_error, "the guest was lost");
      test_.say(guest_outcome_.ok() ? "guest well" : "complaint: " + guest_outcome_.to_string());
    } else {
      return false;
    }
    return true;
  }
  void complain_of(const Status& status) {
    if (!status.ok()) test_.say(fmt::format("complaint: {}: {}", doing_, status.to_string()));
  }

  // --- the others: worker 1, and the session beside

  Status run(Session& session, const QueryId& id, const std::vector<uint32_t>& workers,
             uint32_t local) {
    FARO_RETURN_IF_ERROR(session.declare_query(id, workers));
    return run_declared(session, id, workers, local);
  }
  Status run_declared(Session& session, const QueryId& id, const std::vector<uint32_t>& workers,
                      uint32_t local) {
    Worker& worker = session.worker(local);
    CheckedShuffle shuffle;
    FARO_RETURN_IF_ERROR(shuffle.open(worker, id, workers));
    for (uint32_t i = 0; i < 1000; ++i) {
      if (shuffle.send(i % static_cast<uint32_t>(workers.size())) != Outcome::done)
        return shuffle.status();
    }
    if (shuffle.finish() != Outcome::done) return shuffle.status();
    if (shuffle.take_to_end() != Outcome::end_of_stream) return shuffle.status();
    shuffle.close();
    Status cause;
    const Outcome ended = end_query(worker, id, cause);
    worker.release_ownership();
    return ended == Outcome::done ? Status::Ok() : cause;
  }

  int close() {
    std::string complaint;
    const SessionMetrics metrics = session_->metrics();
    if (metrics.overflow_memory_bytes != 0 || metrics.overflow_file_bytes != 0)
      complaint += "something is left in overflow; ";
    // The others may not have come so far when it was hit.
    if (plan_.phase == Phase::overflow && plan_.node == kVictim &&
        metrics.overflow_file_peak_bytes == 0)
      complaint += "nothing went to the overflow file; ";
    for (Session* const session : {beside_.get(), session_.get()}) {
      if (session == nullptr) continue;
      const Status closed = session->close();
      if (!closed.ok()) complaint += closed.to_string() + "; ";
    }
    if (part_.joinable()) {
      go_on_.happens();
      part_.join();
    }
    if (!complaint.empty()) test_.say("complaint: " + complaint);
    return complaint.empty() ? 0 : 1;
  }

  const FaultNodePlan& plan_;
  const Child::Side& test_;
  std::string doing_ = "open";
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> beside_;
  std::thread part_;
  Status outcome_;  // of the query of all; the part's until it is joined
  std::thread guest_;
  Status guest_outcome_;  // of the query of the guest; the thread's until it is joined
  const std::shared_ptr<RecordedEvents> events_ = std::make_shared<RecordedEvents>();
  Event hit_;
  Event go_on_;
};

}  // namespace

int run_fault_node(const FaultNodePlan& plan, ListeningSocket listener,
                   std::optional<ListeningSocket> beside, const Child::Side& test) {
  set_log_level(LogLevel::off);
  const Traces before = Traces::look();
  test.say("opening");
  int code = 0;
  {
    FaultNode node(plan, test);
    const Status opened = node.open(std::move(listener), std::move(beside));
    test.say(opened.ok() ? "open" : "failed " + opened.to_string());
    if (opened.ok()) code = node.obey();
  }
  const std::string left = Traces::left_since(before);
  if (!left.empty()) {
    test.say("complaint: left are " + left);
  } else if (code == 0) {
    test.say("well");
  }
  return code;
}

}  // namespace faro::test
