// What lies at the end of a node at which lanes end (lane.ends = node or both), as `faro explain` and `faro stat` show it: which worker keeps a
// ring, by a batch that it holds or by rows that it does not take.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/child.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"
#include "system/command_runner.h"

namespace faro::test {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kStage = 5;
constexpr uint32_t kRowBytes = 64;

/// Two nodes: one of worker 0, which sends, and one of workers 1 and 2. The parameter is lane.ends.
class NodeEnd : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(is_ok(cluster_.status()));
    query_ = cluster_[0].begin_query();
  }

  Worker& worker(uint32_t number) { return cluster_.worker(number); }
  Shuffle open(uint32_t number, Delivery delivery, std::vector<uint32_t> receivers) {
    ShuffleSpec spec{query_, kStage, kRowBytes, {0}, std::move(receivers)};
    spec.delivery = delivery;
    return value_of(worker(number).open_shuffle(spec));
  }
  Outcome send_row(Shuffle& shuffle, Wait wait) {
    return shuffle.sender()->send(0, std::vector<std::byte>(kRowBytes), wait);
  }
  /// Waits for room until the query is cancelled.
  void send_until_cancelled(Shuffle& shuffle) {
    Outcome outcome;
    while ((outcome = send_row(shuffle, Wait::forever())) == Outcome::done) {
    }
    EXPECT_EQ(outcome, Outcome::failed);
    worker(0).release_ownership();
  }
  void cancel() { (void)cluster_[0].cancel_query(query_, "seen enough"); }
  std::string stage_name() const { return "stage 5 of query " + query_.to_string(); }

  json look(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "--folder", folder_.path(), "--interval", "0.05"});
    return json::parse(run_faro(arguments).output, nullptr, false);
  }
  /// Until `enough` or too long; the last look.
  json look_until(const std::vector<std::string>& arguments,
                  const std::function<bool(const json&)>& enough) {
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    json seen;
    do {
      seen = look(arguments);
    } while (!enough(seen) && Clock::now() < deadline);
    return seen;
  }
  json explain_until_says(const std::string& text) {
    return look_until({"explain"}, [&](const json& seen) { return contains(seen.dump(), text); });
  }
  json stat_until(const std::function<bool(const json&)>& enough) {
    return look_until({"stat", "--once"}, enough);
  }

  TemporaryFolder folder_;
  // Ticks are four times as often as liveness.timeout_ms.
  SessionCluster cluster_{2, small_rings({{"counters.folder", folder_.path()},
                                          {"cluster.workers", "1,2"},
                                          {"lane.ends", GetParam()},
                                          {"liveness.timeout_ms", "4000"}})};
  QueryId query_;
};

// Worker 1 holds a batch and waits, by means of the engine's own, for worker 2 of its node. That waits for rows, which do not come:
// their sender has no room in the ring, which stands behind the batch.
TEST_P(NodeEnd, a_worker_that_holds_a_batch_while_it_waits_for_another_of_its_node_is_named) {
  Shuffle sends = open(0, Delivery::node, {1, 2});
  std::promise<void> held;
  std::promise<void> other_is_done;
  std::thread holder([&] {
    Shuffle takes = open(1, Delivery::node, {1, 2});
    Batch batch;
    EXPECT_EQ(takes.receiver()->receive(batch), Outcome::done);
    held.set_value();
    other_is_done.get_future().wait();
    batch.release();
    worker(1).release_ownership();
  });
  ASSERT_EQ(send_row(sends, Wait::none()), Outcome::done);
  ASSERT_EQ(sends.sender()->flush(), Outcome::done);
  worker(0).release_ownership();
  held.get_future().wait();
  std::thread sender([&] { send_until_cancelled(sends); });
  std::thread other([&] {
    Shuffle takes = open(2, Delivery::node, {1, 2});
    Batch batch;
    Outcome outcome;
    while ((outcome = takes.receiver()->receive(batch)) == Outcome::done) {
    }
    EXPECT_EQ(outcome, Outcome::failed);
    other_is_done.set_value();
    worker(2).release_ownership();
  });
  const json seen = look_until({"explain"}, [](const json& now) {
    return now["queries"].size() == 1 && now["queries"][0]["waits"].size() == 2 &&
           now["queries"][0]["causes"].size() == 1 &&
           contains(now["queries"][0]["causes"][0]["text"], "release or detach its batches");
  });
  const json shown = look({"stat", "--once"});
  const CommandResult table = run_faro({"stat", "--once", "--folder", folder_.path()});
  cancel();
  for (std::thread* const each : {&sender, &other, &holder}) each->join();
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  const json& one = seen["queries"][0];
  ASSERT_EQ(one["waits"].size(), 2u) << seen;
  EXPECT_EQ(one["waits"][0]["worker"], 0);
  EXPECT_EQ(one["waits"][0]["for"], "room towards node 1, " + stage_name());
  EXPECT_EQ(one["waits"][1]["worker"], 2);
  EXPECT_EQ(one["waits"][1]["for"], "rows from worker 0, " + stage_name());
  ASSERT_EQ(one["causes"].size(), 1u) << seen;
  EXPECT_EQ(one["causes"][0]["waiting"], 2) << "both waits end there";
  const std::string cause = one["causes"][0]["text"];
  EXPECT_TRUE(contains(cause, "worker 1 of node 1 (")) << cause;
  EXPECT_TRUE(contains(cause, ") keeps that ring, for it holds ")) << cause;
  EXPECT_TRUE(contains(
      cause, " from worker 0, " + stage_name() + ": it makes no call of Faro; holds 1 frame"))
      << cause;
  EXPECT_TRUE(contains(table.output, "! node 1 does not drain: 1 worker waits")) << table.output;
  EXPECT_TRUE(contains(table.output, "    worker 1 holds ")) << table.output;
  EXPECT_EQ(shown["nodes"][1]["node_end"]["counters"]["untaken_frames"], 0)
      << "worker 2 has taken all that came: " << shown;
}

// Rows for worker 1 alone, which makes no call. Worker 2 has looked once, and so sorted what had come. With lane.ends = both
// what is delivered to a worker does not come there.
TEST_P(NodeEnd, a_worker_that_does_not_take_what_lies_there_for_it_is_named) {
  const Delivery delivery =
      GetParam() == std::string("both") ? Delivery::replicate : Delivery::worker;
  Shuffle takes = open(1, delivery, {1});
  worker(1).release_ownership();
  Shuffle sends = open(0, delivery, {1});
  while (send_row(sends, Wait::none()) == Outcome::done) {
  }
  worker(0).release_ownership();
  EXPECT_EQ(worker(2).wait_until([] { return false; }, Wait::none()), Outcome::would_wait);
  worker(2).release_ownership();
  std::thread sender([&] { send_until_cancelled(sends); });
  const json seen = explain_until_says("has not taken");
  const json shown = stat_until([](const json& now) {
    return now["nodes"].size() == 2 && now["nodes"][1]["node_end"]["untaken"].size() == 1;
  });
  const CommandResult table = run_faro({"stat", "--once", "--folder", folder_.path()});
  cancel();
  sender.join();
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  ASSERT_EQ(seen["queries"][0]["causes"].size(), 1u) << seen;
  const std::string cause = seen["queries"][0]["causes"][0]["text"];
  EXPECT_TRUE(contains(cause, "worker 1 of node 1 (")) << cause;
  EXPECT_TRUE(contains(cause, " keeps that ring, for it has not taken ")) << cause;
  EXPECT_TRUE(contains(cause, " from worker 0, " + stage_name() + ": it makes no call of Faro"))
      << cause;
  const json& node = shown["nodes"][1];
  ASSERT_EQ(node["node_end"]["untaken"].size(), 1u) << shown;
  const json& stream = node["node_end"]["untaken"][0];
  EXPECT_EQ(stream["query"], query_.to_string());
  EXPECT_EQ(stream["stage"], kStage);
  EXPECT_EQ(stream["sender"], 0);
  EXPECT_EQ(stream["readers"], json({1}));
  EXPECT_FALSE(stream["any_reader"]);
  EXPECT_GT(stream["frames"], 0);
  EXPECT_EQ(node["node_end"]["counters"]["untaken_frames"], stream["frames"]);
  EXPECT_EQ(node["node_end"]["counters"]["untaken_streams"], 1);
  EXPECT_EQ(node["workers"][0]["node_end"]["streams"], 1);
  EXPECT_GT(node["workers"][0]["node_end"]["untaken_ns"], 0);
  EXPECT_EQ(node["workers"][1]["node_end"]["streams"], 0);
  EXPECT_TRUE(contains(table.output, "    worker 1 has not taken ")) << table.output;
  EXPECT_TRUE(contains(table.output, "node's end")) << table.output;
  EXPECT_FALSE(shown["nodes"][0]["node_end"]["untaken"].size()) << "nothing was sent to node 0";

  const json later = stat_until([](const json& now) {
    return now["nodes"].size() == 2 && now["nodes"][1]["node_end"]["untaken"].empty() &&
           now["nodes"][1]["node_end"]["counters"]["untaken_frames"] == 0;
  });
  EXPECT_EQ(later["nodes"][1]["node_end"]["counters"]["untaken_streams"], 0) << later;
  EXPECT_EQ(later["nodes"][1]["workers"][0]["node_end"]["streams"], 0) << later;
  EXPECT_EQ(later["nodes"][1]["workers"][0]["node_end"]["untaken_ns"], 0) << later;
}

// A broadcast that worker 2 has read, as far as it has come, and worker 1 has not.
TEST_P(NodeEnd, a_worker_that_does_not_read_a_broadcast_is_named_and_no_other) {
  Shuffle reads_not = open(1, Delivery::replicate, {1, 2});
  worker(1).release_ownership();
  Shuffle reads = open(2, Delivery::replicate, {1, 2});
  Shuffle sends = open(0, Delivery::replicate, {1, 2});
  while (send_row(sends, Wait::none()) == Outcome::done) {
  }
  worker(0).release_ownership();
  Batch batch;
  while (reads.receiver()->receive(batch, Wait::none()) == Outcome::done) {
  }
  worker(2).release_ownership();
  std::thread sender([&] { send_until_cancelled(sends); });
  const json seen = explain_until_says("has not taken");
  const json shown = stat_until([](const json& now) {
    return now["nodes"].size() == 2 && now["nodes"][1]["node_end"]["untaken"].size() == 1 &&
           now["nodes"][1]["node_end"]["untaken"][0]["readers"] == json({1});
  });
  cancel();
  sender.join();
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  ASSERT_EQ(seen["queries"][0]["causes"].size(), 1u) << seen;
  const std::string cause = seen["queries"][0]["causes"][0]["text"];
  EXPECT_TRUE(contains(cause, "worker 1 of node 1 (")) << cause;
  EXPECT_TRUE(contains(cause, " keeps that ring, for it has not taken ")) << cause;
  ASSERT_EQ(shown["nodes"][1]["node_end"]["untaken"].size(), 1u) << shown;
  EXPECT_EQ(shown["nodes"][1]["node_end"]["untaken"][0]["readers"], json({1})) << shown;
}

// What any worker of the node may take: both are named if neither does.
TEST_P(NodeEnd, all_workers_are_named_that_could_take_rows_and_do_not) {
  Shuffle one = open(1, Delivery::node, {1, 2});
  worker(1).release_ownership();
  Shuffle other = open(2, Delivery::node, {1, 2});
  Shuffle sends = open(0, Delivery::node, {1, 2});
  while (send_row(sends, Wait::none()) == Outcome::done) {
  }
  worker(0).release_ownership();
  EXPECT_EQ(worker(2).wait_until([] { return false; }, Wait::none()), Outcome::would_wait);
  worker(2).release_ownership();
  std::thread sender([&] { send_until_cancelled(sends); });
  const json seen = explain_until_says("has, as others of its node, not taken");
  cancel();
  sender.join();
  ASSERT_EQ(seen["queries"].size(), 1u) << seen;
  ASSERT_EQ(seen["queries"][0]["causes"].size(), 2u) << seen;
  for (const uint32_t number : {1u, 2u}) {
    const std::string cause = seen["queries"][0]["causes"][number - 1]["text"];
    EXPECT_TRUE(contains(cause, "worker " + std::to_string(number) + " of node 1 (")) << cause;
  }
}

INSTANTIATE_TEST_SUITE_P(Ends, NodeEnd, testing::Values("node", "both"),
                         [](const auto& ends) { return std::string(ends.param); });

}  // namespace
}  // namespace faro::test
