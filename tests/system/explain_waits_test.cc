// What `faro explain`, `stat` and `top` say a worker waits for does not depend on how it waits: by
// a call, a condition or an event loop, in C++ or C. Those of Java: ExplainTest.java.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "c/handles.h"
#include "faro/c.h"
#include "support/child.h"
#include "support/query_end.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"
#include "system/command_runner.h"

namespace faro::test {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kStage = 5;
constexpr uint32_t kRowBytes = 64;
constexpr int kWaits = 4;  // exit code of explain

enum class Style { call, condition, turn, armed_call };
enum class Language { cpp, c };
enum class Kind { rows, rows_of_one, room, outcome };

/// One worker that waits: how, in which language, for what.
struct Case {
  Kind kind;
  Style style;
  Language language;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  constexpr const char* kKinds[] = {"rows", "rows_of_one", "room", "outcome"};
  constexpr const char* kStyles[] = {"call", "condition", "turn", "armed_call"};
  return fmt::format("{}_by_{}_in_{}", kKinds[static_cast<int>(info.param.kind)],
                     kStyles[static_cast<int>(info.param.style)],
                     info.param.language == Language::cpp ? "cpp" : "c");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Kind kind : {Kind::rows, Kind::rows_of_one, Kind::room, Kind::outcome}) {
    for (const Style style : {Style::call, Style::condition, Style::turn, Style::armed_call}) {
      for (const Language language : {Language::cpp, Language::c})
        cases.push_back({kind, style, language});
    }
  }
  return cases;
}

/// One node of three workers, whose counters are in a folder. Worker 0 waits, the others make no
/// call.
class WaitingWorker : public testing::TestWithParam<Case> {
 protected:
  using Attempt = std::function<Outcome(Wait)>;

  void SetUp() override {
    SettingList settings = {
        {"counters.folder", folder_.path()}, {"cluster.workers", "3"}, {"wait.sleep_ms", "10000"}};
    cluster_ = std::make_unique<SessionCluster>(1, small_rings(settings));
    ASSERT_TRUE(is_ok(cluster_->status()));
    session_ = &(*cluster_)[0];
    worker_ = &session_->worker(0);
    query_ = session_->begin_query();
    handle_ = new faro_session(std::move(cluster_->session(0)));
    ASSERT_EQ(faro_session_worker(handle_, 0, &c_worker_), FARO_CODE_OK);
  }
  void TearDown() override { faro_session_destroy(handle_); }

  ShuffleSpec spec(uint32_t stage, uint32_t sender, uint32_t receiver) {
    return {query_, stage, kRowBytes, {sender}, {receiver}};
  }

  /// In a thread of its own until the query is cancelled: then the attempt fails.
  void wait_by(Style style, const Attempt& attempt) {
    const auto goes_on = [&] { return attempt(Wait::none()) == Outcome::would_wait; };
    const auto tries = [&] { return !goes_on(); };
    switch (style) {
      case Style::call:
        EXPECT_EQ(attempt(Wait::forever()), Outcome::failed);
        break;
      case Style::condition:
        EXPECT_EQ(worker_->wait_until(tries), Outcome::done);
        break;
      case Style::turn:
        return run_loop([&] { return worker_->arm(tries, Progress::turn); });
      case Style::armed_call:
        return run_loop([&] { return worker_->arm(tries, Progress::call); });
    }
  }
  void wait_by_c(Style style, const Attempt& attempt) {
    Attempt held = attempt;
    const auto tries = [](void* context) -> int32_t {
      return (*static_cast<Attempt*>(context))(Wait::none()) != Outcome::would_wait;
    };
    switch (style) {
      case Style::call:
        EXPECT_EQ(attempt(Wait::forever()), Outcome::failed);
        break;
      case Style::condition:
        EXPECT_EQ(faro_worker_wait_until(c_worker_, tries, &held, FARO_WAIT_FOREVER),
                  FARO_OUTCOME_DONE);
        break;
      case Style::turn:
        return run_loop([&] { return arm_c(tries, held, FARO_PROGRESS_TURN); });
      case Style::armed_call:
        return run_loop([&] { return arm_c(tries, held, FARO_PROGRESS_CALL); });
    }
  }

  json explain_until(const std::function<bool(const json&)>& enough) {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    for (;;) {
      const CommandResult result =
          run_faro({"explain", "--json", "--folder", folder_.path(), "--interval", "0.02"});
      json seen = json::parse(result.output, nullptr, false);
      if ((result.exit_code == kWaits && enough(seen)) || Clock::now() > deadline) return seen;
    }
  }
  json stat() {
    const CommandResult result =
        run_faro({"stat", "--once", "--json", "--folder", folder_.path(), "--interval", "0.02"});
    return json::parse(result.output, nullptr, false);
  }
  std::string query_name() const { return query_.to_string(); }

  TemporaryFolder folder_;
  std::unique_ptr<SessionCluster> cluster_;
  Session* session_ = nullptr;
  Worker* worker_ = nullptr;
  faro_session* handle_ = nullptr;  // owns the session
  faro_worker* c_worker_ = nullptr;
  QueryId query_;

 private:
  Outcome arm_c(faro_condition tries, Attempt& attempt, int32_t what) {
    return static_cast<Outcome>(faro_worker_arm(c_worker_, tries, &attempt, what));
  }
  void run_loop(const std::function<Outcome()>& arm) {
    pollfd ready{worker_->ready_descriptor().value(), POLLIN, 0};
    Outcome outcome;
    while ((outcome = arm()) == Outcome::would_wait) poll(&ready, 1, -1);
    EXPECT_EQ(outcome, Outcome::done);
  }
};

/// What worker 0 tries, in either language; opens what it takes.
class Tried {
 public:
  Tried(Worker& worker, const QueryId& query, Kind kind) : worker_(worker), query_(query) {
    const bool sends = kind == Kind::room;
    if (kind == Kind::outcome) return;
    shuffle_ = std::make_unique<Shuffle>(
        worker.open_shuffle({query, kStage, kRowBytes, {sends ? 0u : 1u}, {sends ? 1u : 0u}})
            .value());
  }

  Outcome operator()(Kind kind, Wait wait) {
    switch (kind) {
      case Kind::rows:
        return shuffle_->receiver()->receive(batch_, wait);
      case Kind::rows_of_one:
        return shuffle_->receiver()->receive_from(0, batch_, wait);
      case Kind::room: {
        Outcome outcome;
        while ((outcome = shuffle_->sender()->send(0, row_, wait)) == Outcome::done) {
        }
        return outcome;
      }
      case Kind::outcome:
        return worker_.end_query(query_, wait);
    }
    return Outcome::failed;
  }

 private:
  Worker& worker_;
  const QueryId query_;
  std::unique_ptr<Shuffle> shuffle_;
  Batch batch_;
  const std::vector<std::byte> row_ = std::vector<std::byte>(kRowBytes);
};

/// What worker 0 tries, by the C ABI.
class TriedInC {
 public:
  TriedInC(faro_worker* worker, const QueryId& query, Kind kind) : worker_(worker) {
    query_ = {query.counter, query.incarnation, query.issuer, 0};
    if (kind == Kind::outcome) return;
    const uint32_t zero = 0;
    const uint32_t one = 1;
    faro_shuffle_spec spec{};
    spec.size = sizeof spec;
    spec.query = query_;
    spec.stage = kStage;
    spec.row_bytes = kRowBytes;
    spec.senders = kind == Kind::room ? &zero : &one;
    spec.receivers = kind == Kind::room ? &one : &zero;
    spec.sender_count = spec.receiver_count = 1;
    EXPECT_EQ(faro_worker_open_shuffle(worker, &spec, &shuffle_), FARO_CODE_OK);
  }
  ~TriedInC() {
    faro_batch_destroy(batch_);
    faro_shuffle_destroy(shuffle_);
  }
  TriedInC(const TriedInC&) = delete;
  TriedInC& operator=(const TriedInC&) = delete;

  Outcome operator()(Kind kind, Wait wait) {
    const int64_t wait_ns = wait.is_none() ? FARO_WAIT_NONE : FARO_WAIT_FOREVER;
    faro_rows rows{};
    rows.size = sizeof rows;
    faro_outcome outcome = FARO_OUTCOME_DONE;
    switch (kind) {
      case Kind::rows:
        outcome = faro_receiver_receive(shuffle_, batch_, wait_ns, &rows);
        break;
      case Kind::rows_of_one:
        outcome = faro_receiver_receive_from(shuffle_, 0, batch_, wait_ns, &rows);
        break;
      case Kind::room:
        while (outcome == FARO_OUTCOME_DONE)
          outcome = faro_sender_send(shuffle_, 0, row_.data(), row_.size(), wait_ns);
        break;
      case Kind::outcome:
        outcome = faro_worker_end_query(worker_, &query_, FARO_CODE_OK, nullptr, wait_ns);
        break;
    }
    return static_cast<Outcome>(outcome);
  }

 private:
  faro_worker* const worker_;
  faro_query_id query_{};
  faro_shuffle* shuffle_ = nullptr;
  faro_batch* const batch_ = faro_batch_create();
  const std::vector<std::byte> row_ = std::vector<std::byte>(kRowBytes);
};

std::string awaited(Kind kind, const std::string& query) {
  switch (kind) {
    case Kind::rows:
    case Kind::rows_of_one:
      return "rows from worker 1, stage 5 of query " + query;
    case Kind::room:
      return "room towards worker 1, stage 5 of query " + query;
    case Kind::outcome:
      break;
  }
  return "the outcome of query " + query;
}

std::string fault(Kind kind) {
  return kind == Kind::room      ? "does not drain: it makes no call"
         : kind == Kind::outcome ? "has not ended its part: it makes no call"
                                 : "sends nothing: it makes no call";
}

TEST_P(WaitingWorker, is_explained_by_what_it_has_run_into) {
  const auto [kind, style, language] = GetParam();
  std::thread waiter([&, kind = kind, style = style, language = language] {
    if (language == Language::cpp) {
      Tried tried(*worker_, query_, kind);
      wait_by(style, [&](Wait wait) { return tried(kind, wait); });
    } else {
      TriedInC tried(c_worker_, query_, kind);
      wait_by_c(style, [&](Wait wait) { return tried(kind, wait); });
    }
    worker_->release_ownership();
  });
  const std::string wait = awaited(kind, query_name());
  const json seen = explain_until([&](const json& explained) {
    return explained["queries"].size() == 1 && explained["queries"][0]["waits"].size() == 1 &&
           explained["queries"][0]["waits"][0]["for"] == wait;
  });
  const json shown = stat();
  (void)session_->cancel_query(query_, "seen enough");
  waiter.join();
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  const json& one = seen["queries"][0];
  ASSERT_EQ(one["waits"].size(), 1u) << seen;
  EXPECT_EQ(one["waits"][0]["for"], wait);
  EXPECT_EQ(one["waits"][0]["worker"], 0);
  ASSERT_GE(one["causes"].size(), 1u) << seen;
  const std::string cause = one["causes"][0]["text"];
  EXPECT_TRUE(contains(cause, "worker 1 of node 0 (")) << cause;
  EXPECT_TRUE(contains(cause, fault(kind))) << cause;
  const json& waits = shown["nodes"][0]["workers"][0]["waits"];
  ASSERT_EQ(waits.size(), 1u) << shown;
  EXPECT_EQ(waits[0]["kind"], kind == Kind::room      ? "room"
                              : kind == Kind::outcome ? "outcome"
                                                      : "rows");
  EXPECT_EQ(waits[0]["query"], query_name());
}

INSTANTIATE_TEST_SUITE_P(Explain, WaitingWorker, testing::ValuesIn(all_cases()), name_of);

using EventLoop = WaitingWorker;

/// The turn of an event loop: it receives from worker 1 in `stages`, and sends to worker 2 in the
/// stage after these.
class Turn {
 public:
  Turn(Worker& worker, const QueryId& query, uint32_t stages) {
    for (uint32_t stage = 0; stage < stages; ++stage)
      shuffles_.push_back(worker.open_shuffle({query, stage, kRowBytes, {1}, {0}}).value());
    shuffles_.push_back(worker.open_shuffle({query, stages, kRowBytes, {0}, {2}}).value());
  }
  bool operator()() {
    bool progress = false;
    Batch batch;
    for (size_t stage = 0; stage + 1 < shuffles_.size(); ++stage)
      progress |= shuffles_[stage].receiver()->receive(batch, Wait::none()) != Outcome::would_wait;
    Outcome outcome;
    while ((outcome = shuffles_.back().sender()->send(0, row_, Wait::none())) == Outcome::done)
      progress = true;
    return progress || outcome != Outcome::would_wait;
  }
  /// What is left of it is no longer tried.
  void close_first() { shuffles_.erase(shuffles_.begin()); }

 private:
  std::vector<Shuffle> shuffles_;
  const std::vector<std::byte> row_ = std::vector<std::byte>(kRowBytes);
};

TEST_F(EventLoop, is_explained_by_all_that_its_turn_has_run_into) {
  Turn turn(*worker_, query_, 2);
  (void)worker_->ready_descriptor();
  Outcome outcome;
  while ((outcome = worker_->arm([&] { return turn(); })) == Outcome::done) {
  }
  ASSERT_EQ(outcome, Outcome::would_wait);
  const json seen = explain_until([](const json& explained) {
    return explained["queries"].size() == 1 && explained["queries"][0]["causes"].size() == 2;
  });
  const json& one = seen["queries"][0];
  ASSERT_EQ(one["waits"].size(), 3u) << seen;
  EXPECT_EQ(one["waits"][0]["for"], "rows from worker 1, stage 0 of query " + query_name());
  EXPECT_EQ(one["waits"][1]["for"], "rows from worker 1, stage 1 of query " + query_name());
  EXPECT_EQ(one["waits"][2]["for"], "room towards worker 2, stage 2 of query " + query_name());
  ASSERT_EQ(one["causes"].size(), 2u) << seen;
  std::string causes = one["causes"][0]["text"];
  causes += one["causes"][1]["text"];
  EXPECT_TRUE(contains(causes, "worker 1 of node 0")) << causes;
  EXPECT_TRUE(contains(causes, "worker 2 of node 0")) << causes;
  const CommandResult table = run_faro({"stat", "--once", "--folder", folder_.path()});
  EXPECT_TRUE(contains(table.output, "rows from worker 1, stage 1 of query")) << table.output;
  EXPECT_TRUE(contains(table.output, "; room towards worker 2, stage 2")) << table.output;
  EXPECT_TRUE(contains(table.output, "! worker 2 does not drain: 1 worker waits")) << table.output;
  (void)session_->cancel_query(query_, "seen enough");
}

TEST_F(EventLoop, that_runs_into_more_than_can_be_shown_says_how_much) {
  Turn turn(*worker_, query_, 19);
  (void)worker_->ready_descriptor();
  while (worker_->arm([&] { return turn(); }) == Outcome::done) {
  }
  const json shown = stat();
  EXPECT_EQ(shown["nodes"][0]["workers"][0]["waits"].size(), 16u);
  const CommandResult table =
      run_faro({"stat", "--once", "--folder", folder_.path(), "--interval", "0.02"});
  EXPECT_TRUE(contains(table.output, "; and for 4 more")) << table.output;
  const CommandResult text =
      run_faro({"explain", "--folder", folder_.path(), "--interval", "0.02"});
  EXPECT_TRUE(contains(text.output, "for 4 more")) << text.output;
  (void)session_->cancel_query(query_, "seen enough");
}

// What was tried in an earlier turn, or of a shuffle that was closed in this one, is no wait.
TEST_F(EventLoop, does_not_wait_for_what_its_last_turn_has_not_tried) {
  Turn turn(*worker_, query_, 2);
  (void)worker_->ready_descriptor();
  while (worker_->arm([&] { return turn(); }) == Outcome::done) {
  }
  const QueryId other = session_->begin_query();
  Turn next(*worker_, other, 2);
  while (worker_->arm([&] { return next(); }) == Outcome::done) {
  }
  json waits = stat()["nodes"][0]["workers"][0]["waits"];
  ASSERT_EQ(waits.size(), 3u);
  for (const json& wait : waits) EXPECT_EQ(wait["query"], other.to_string());
  bool is_first = true;
  const auto closes = [&] {
    (void)next();
    if (std::exchange(is_first, false)) next.close_first();
    return false;
  };
  EXPECT_EQ(worker_->arm(closes), Outcome::would_wait);
  (void)session_->cancel_query(query_, "seen enough");
  (void)session_->cancel_query(other, "seen enough");
}

TEST_F(EventLoop, that_goes_on_waits_for_nothing) {
  Turn turn(*worker_, query_, 1);
  (void)worker_->ready_descriptor();
  while (worker_->arm([&] { return turn(); }) == Outcome::done) {
  }
  EXPECT_EQ(stat()["nodes"][0]["workers"][0]["waits"].size(), 2u);
  EXPECT_EQ(worker_->arm([] { return true; }), Outcome::done) << "it has done something else";
  EXPECT_TRUE(stat()["nodes"][0]["workers"][0]["waits"].empty());
  (void)session_->cancel_query(query_, "seen enough");
}

TEST_F(EventLoop, that_tries_nothing_waits_for_its_condition) {
  (void)worker_->ready_descriptor();
  ASSERT_EQ(worker_->arm([] { return false; }), Outcome::would_wait);
  const json waits = stat()["nodes"][0]["workers"][0]["waits"];
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0]["kind"], "condition");
}

// Explain says by its exit code whether something waits.
TEST_F(EventLoop, makes_explain_answer_otherwise_than_an_idle_one) {
  const std::vector<std::string> explain = {"explain", "--folder", folder_.path(), "--interval",
                                            "0.02"};
  CommandResult result = run_faro(explain);
  EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  Turn turn(*worker_, query_, 1);
  (void)worker_->ready_descriptor();
  while (worker_->arm([&] { return turn(); }) == Outcome::done) {
  }
  (void)explain_until([](const json&) { return true; });
  EXPECT_EQ(run_faro(explain).exit_code, kWaits);
  std::vector<std::string> of_another = explain;
  of_another.insert(of_another.end(), {"--query", "0:4711"});
  result = run_faro(of_another);
  EXPECT_EQ(result.exit_code, 0) << "no such query waits";
  EXPECT_TRUE(contains(result.output, "no query 0:4711 runs")) << result.output;
  (void)session_->cancel_query(query_, "seen enough");
}

}  // namespace
}  // namespace faro::test
