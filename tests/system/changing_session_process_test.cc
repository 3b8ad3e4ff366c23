// Nodes that come and go, with real processes: a node is killed, or stopped, and removed; another process gets its number, at
// another address, while the others go on. They keep nothing of those that are gone.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "faro/nodes.h"
#include "support/child.h"
#include "support/held_address.h"
#include "support/query_end.h"
#include "support/recorded_events.h"
#include "support/session_cluster.h"
#include "support/test_network.h"
#include "support/traces.h"
#include "support/watchdog.h"
#include "system/node_processes.h"

namespace faro::test {
namespace {

using std::chrono::seconds;

constexpr seconds kLimit{50};
constexpr uint64_t kRows = 5'000;  // of each worker, to each
constexpr uint64_t kRingBytes = uint64_t{1} << 20;

std::vector<uint32_t> numbers_in(std::istream& line) {
  return {std::istream_iterator<uint32_t>(line), std::istream_iterator<uint32_t>()};
}

/// A node that does what the test says, line by line. It has one worker, whose number is the node's.
class ChangingNode {
 public:
  ChangingNode(uint32_t number, const Child::Side& parent) : number_(number), parent_(parent) {}

  int run(Result<std::unique_ptr<Session>> opened) {
    if (!opened.ok()) {
      parent_.say("complaint: " + opened.status().to_string());
      return 1;
    }
    session_ = std::move(*opened);
    session_->listen(events_->listener());
    Watchdog watchdog(kLimit, [this] { return fmt::format("node {}", number_); });
    parent_.say("open");
    for (;;) {
      std::istringstream line(parent_.hear());
      std::string command;
      line >> command;
      if (command == "end" || command.empty()) break;
      parent_.say(answer(command, line));
    }
    parent_.say(session_->close().to_string());
    return 0;
  }

 private:
  std::string answer(const std::string& command, std::istringstream& line) {
    Nodes nodes(*session_);
    if (command == "begin") return line_of(session_->begin_query());
    if (command == "told") {
      std::string what;
      uint32_t node = 0;
      uint64_t which = 1;
      line >> what >> node >> which;
      return events_->await(fmt::format("{} {}", what, node), which);
    }
    if (command == "count") {
      return fmt::format("{} {} {}", entries_of("/proc/self/fd"), entries_of("/proc/self/task"),
                         mapped_bytes());
    }
    if (command == "query") {
      QueryId id;
      line >> id.counter >> id.incarnation >> id.issuer;
      return query(id, numbers_in(line));
    }
    uint32_t node = 0;
    line >> node;
    if (command == "add") {
      std::string address;
      line >> address;
      return nodes.add({node, address}).to_string();
    }
    if (command == "drain") return nodes.drain(node).to_string();
    if (command == "remove") return nodes.remove(node).to_string();
    return session_->await_node(node, Wait::at_most(seconds(20))).to_string();
  }

  // The number of the rows that came, or why it failed.
  std::string query(const QueryId& id, const std::vector<uint32_t>& workers) {
    Status status = session_->declare_query(id, workers);
    Worker& worker = session_->worker(0);
    uint64_t rows = 0;
    if (Result<Shuffle> opened = worker.open_shuffle({id, 0, sizeof(uint64_t), {}, {}});
        opened.ok()) {
      Shuffle shuffle = std::move(*opened);
      Outcome outcome = Outcome::done;
      for (uint64_t i = 0; i < kRows * workers.size() && outcome == Outcome::done; ++i) {
        outcome = shuffle.sender()->send(static_cast<uint32_t>(i % workers.size()),
                                         std::as_bytes(std::span(&i, 1)));
      }
      if (outcome == Outcome::done) outcome = shuffle.sender()->finish();
      Batch batch;
      while (outcome == Outcome::done &&
             (outcome = shuffle.receiver()->receive(batch)) == Outcome::done) {
        rows += batch.row_count();
      }
    }
    if (end_query(worker, id, status) == Outcome::done) return std::to_string(rows);
    return "failed " + status.to_string();
  }

  const uint32_t number_;
  const Child::Side& parent_;
  const std::shared_ptr<RecordedEvents> events_ = std::make_shared<RecordedEvents>();
  std::unique_ptr<Session> session_;
};

class ChangingProcesses : public testing::TestWithParam<std::string> {
 protected:
  ChangingProcesses() {
    for (uint32_t n = 0; n < 4; ++n) move(n);
    id_ = address(0);
  }
  const std::string& address(uint32_t node) const { return held_.at(node)->address(); }
  void move(uint32_t node) { held_[node] = std::make_unique<HeldAddress>(listen_address(node)); }

  /// A process that opens its session with a list of these nodes.
  void start(uint32_t n, const std::set<uint32_t>& list) {
    std::string nodes;
    for (uint32_t each = 0; each <= *list.rbegin(); ++each)
      nodes += (each == 0 ? "" : ",") + (list.contains(each) ? address(each) : "-");
    nodes_[n] = std::make_unique<Child>([&, n](const Child::Side& parent) {
      const Result<Config> config = config_of(n, nodes,
                                              {{"cluster.id", id_},
                                               {"cluster.node_limit", "8"},
                                               {"transport", GetParam()},
                                               {"ring.bytes", std::to_string(kRingBytes)},
                                               {"liveness.timeout_ms", "1000"}});
      if (!config.ok()) return 1;
      ChangingNode node(n, parent);
      return node.run(Session::open(*config));
    });
  }
  void start_first(const std::set<uint32_t>& all) {
    for (const uint32_t n : all) start(n, all);
    for (const uint32_t n : all) ASSERT_EQ(hear(n), "open");
  }
  /// The others are told, and it comes.
  void add(uint32_t node, const std::set<uint32_t>& others) {
    for (const uint32_t n : others)
      EXPECT_EQ(ask(n, fmt::format("add {} {}", node, address(node))), "ok");
    std::set<uint32_t> list = others;
    list.insert(node);
    start(node, list);
    ASSERT_EQ(hear(node), "open");
    for (const uint32_t n : others) EXPECT_EQ(ask(n, fmt::format("await {}", node)), "ok");
  }

  std::string hear(uint32_t n) { return nodes_[n]->hear().value_or("(it has ended)"); }
  std::string ask(uint32_t n, const std::string& line) {
    nodes_[n]->say(line);
    return hear(n);
  }
  void begin_query(const std::set<uint32_t>& nodes) {
    const std::string id = ask(*nodes.begin(), "begin");
    for (const uint32_t n : nodes)
      nodes_[n]->say(fmt::format("query {} {}", id, fmt::join(nodes, " ")));
  }
  void expect_whole_query(const std::set<uint32_t>& nodes) {
    begin_query(nodes);
    for (const uint32_t n : nodes) EXPECT_EQ(hear(n), std::to_string(kRows * nodes.size())) << n;
  }
  void expect_end(const std::set<uint32_t>& nodes) {
    for (const uint32_t n : nodes) nodes_[n]->say("end");
    for (const uint32_t n : nodes) {
      EXPECT_EQ(hear(n), "ok") << n;
      EXPECT_EQ(nodes_[n]->wait_for_end(), 0) << n;
    }
  }
  /// Descriptors, threads, mapped bytes.
  std::array<uint64_t, 3> count(uint32_t n) {
    std::array<uint64_t, 3> counts{};
    std::sscanf(ask(n, "count").c_str(), "%lu %lu %lu", &counts[0], &counts[1], &counts[2]);
    return counts;
  }

  std::string id_;
  std::map<uint32_t, std::unique_ptr<HeldAddress>> held_;
  std::map<uint32_t, std::unique_ptr<Child>> nodes_;
};

INSTANTIATE_TEST_SUITE_P(Transports, ChangingProcesses,
                         testing::ValuesIn(transports_to_test({"shm", "tcp"})),
                         [](const auto& param) { return param.param; });

TEST_P(ChangingProcesses, the_number_of_a_killed_node_is_used_again_by_another_process) {
  start_first({0, 1, 2});
  expect_whole_query({0, 1, 2});
  // It has a number between those of the others: one of them dials it, it dials the other one.
  nodes_[1]->signal(SIGKILL);
  for (const uint32_t n : {0u, 2u}) {
    EXPECT_TRUE(ask(n, "told lost 1").starts_with("lost 1 peer_lost")) << n;
    EXPECT_EQ(ask(n, "remove 1"), "ok");
    EXPECT_EQ(ask(n, "told removed 1"), "removed 1");
  }
  expect_whole_query({0, 2});
  move(1);
  add(1, {0, 2});
  for (const uint32_t n : {0u, 2u}) EXPECT_EQ(ask(n, "told added 1"), "added 1");
  expect_whole_query({0, 1, 2});
  expect_end({0, 1, 2});
}

TEST_P(ChangingProcesses, a_removed_process_that_wakes_up_is_refused_while_another_has_its_number) {
  start_first({0, 1, 2});
  nodes_[2]->stop();
  for (const uint32_t n : {0u, 1u}) {
    EXPECT_EQ(ask(n, "remove 2"), "ok");
    EXPECT_EQ(ask(n, "told removed 2"), "removed 2");
  }
  const std::unique_ptr<Child> former = std::exchange(nodes_[2], nullptr);
  move(2);
  add(2, {0, 1});
  former->signal(SIGCONT);
  former->say("told lost 0");
  EXPECT_TRUE(former->hear().value_or("").starts_with("lost 0"));
  former->say("told lost 1");
  EXPECT_TRUE(former->hear().value_or("").starts_with("lost 1"));
  for (int i = 0; i < 3; ++i) expect_whole_query({0, 1, 2});
  former->say("begin");
  former->say("query " + former->hear().value_or("") + " 0 2");
  EXPECT_TRUE(former->hear().value_or("").starts_with("failed peer_lost"));
  expect_whole_query({0, 1, 2});
  expect_end({0, 1, 2});
}

TEST_P(ChangingProcesses, nodes_that_come_and_go_leave_nothing) {
  constexpr int kRounds = 6;
  start_first({0, 1});
  const std::map<uint32_t, std::array<uint64_t, 3>> first = {{0, count(0)}, {1, count(1)}};
  std::map<uint32_t, std::array<uint64_t, 3>> before;
  for (int round = 0; round < kRounds; ++round) {
    add(2, {0, 1});
    add(3, {0, 1, 2});
    expect_whole_query({0, 1, 2, 3});
    begin_query({0, 1, 3});
    for (const uint32_t n : {0u, 1u, 3u}) EXPECT_EQ(hear(n), std::to_string(kRows * 3));
    // One is drained, the other one is killed.
    for (const uint32_t n : {0u, 1u, 2u, 3u}) EXPECT_EQ(ask(n, "drain 2"), "ok");
    EXPECT_EQ(ask(2, "told drained 2"), "drained 2");
    expect_end({2});
    nodes_[3]->signal(SIGKILL);
    for (const uint32_t gone : {2u, 3u}) {
      for (const uint32_t n : {0u, 1u}) {
        EXPECT_EQ(ask(n, fmt::format("remove {}", gone)), "ok");
        EXPECT_EQ(ask(n, fmt::format("told removed {} {}", gone, round + 1)),
                  fmt::format("removed {}", gone));
      }
      move(gone);
    }
    expect_whole_query({0, 1});
    if (round == 1) before = {{0, count(0)}, {1, count(1)}};
  }
  for (const uint32_t n : {0u, 1u}) {
    auto after = count(n);
    // Connections that were closed linger a little.
    while (after[0] > first.at(n)[0] || after[1] > first.at(n)[1]) after = count(n);
    EXPECT_LT(after[2], before[n][2] + 2 * kRingBytes) << "mapped bytes of node " << n;
  }
  expect_end({0, 1});
}

}  // namespace
}  // namespace faro::test
