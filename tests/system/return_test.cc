// Return, with real processes: a node is killed, or stopped for too long, and starts again while the
// others go on. The next query is over all nodes and complete, and the others keep nothing of the dead.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/child.h"
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
constexpr uint32_t kNodes = 3;  // with a worker each
constexpr uint32_t kVictim = 2;
constexpr uint64_t kRows = 20'000;  // of each worker

/// Large rings, so that one that is kept shows.
constexpr uint64_t kRingBytes = uint64_t{1} << 20;

uint64_t row_of(uint32_t worker, uint64_t number) { return (uint64_t{worker} << 32) + number; }

uint64_t sum_of_all_rows() {
  uint64_t sum = 0;
  for (uint32_t worker = 0; worker < kNodes; ++worker) {
    for (uint64_t i = 0; i < kRows; ++i) sum += row_of(worker, i);
  }
  return sum;
}

/// A node that does what the test says, line by line.
class ReturnNode {
 public:
  ReturnNode(uint32_t number, const Child::Side& parent) : number_(number), parent_(parent) {}

  int run(Result<std::unique_ptr<Session>> opened) {
    if (!opened.ok()) return complain(opened.status().to_string());
    session_ = std::move(*opened);
    session_->listen(events_->listener());
    Watchdog watchdog(kLimit, [this] { return fmt::format("node {}", number_); });
    parent_.say("open");
    for (;;) {
      const std::string line = parent_.hear();
      const std::string command = line.substr(0, line.find(' '));
      if (command == "begin") {
        parent_.say(line_of(session_->begin_query()));
      } else if (command == "query") {
        query(query_in(line, command.size()));
      } else if (command == "stuck") {
        stuck(query_in(line, command.size()));
      } else if (command == "await") {
        const Status there = session_->await_node(kVictim, Wait::at_most(seconds(20)));
        parent_.say(fmt::format("{} {}", code_name(there.code()), session_->has_node(kVictim)));
      } else if (command == "told") {
        parent_.say(events_->await(line.substr(command.size() + 1)));
      } else if (command == "count") {
        parent_.say(fmt::format("{} {} {}", entries_of("/proc/self/fd"),
                                entries_of("/proc/self/task"), mapped_bytes()));
      } else {
        parent_.say(session_->close().to_string());
        return 0;
      }
    }
  }

 private:
  int complain(const std::string& what) {
    parent_.say("complaint: " + what);
    return 1;
  }
  Worker& worker() { return session_->worker(0); }

  // Says the number and the sum of the rows that came, or why it failed.
  void query(const QueryId& id) {
    uint64_t rows = 0;
    uint64_t sum = 0;
    Status failure;
    Result<Shuffle> opened = worker().open_shuffle({id, 0, sizeof(uint64_t), {}, {}});
    if (opened.ok()) {
      Shuffle shuffle = std::move(*opened);
      Outcome outcome = Outcome::done;
      for (uint64_t i = 0; i < kRows && outcome == Outcome::done; ++i) {
        const uint64_t row = row_of(number_, i);
        outcome = shuffle.sender()->send(static_cast<uint32_t>(i % kNodes),
                                         std::as_bytes(std::span(&row, 1)));
      }
      if (outcome == Outcome::done) outcome = shuffle.sender()->finish();
      Batch batch;
      while (outcome == Outcome::done &&
             (outcome = shuffle.receiver()->receive(batch)) == Outcome::done) {
        rows += batch.row_count();
        for (size_t at = 0; at < batch.bytes().size(); at += sizeof(uint64_t)) {
          uint64_t row = 0;
          std::memcpy(&row, batch.bytes().data() + at, sizeof row);
          sum += row;
        }
      }
    }
    Status cause;
    if (end_query(worker(), id, cause) == Outcome::done) {
      parent_.say(fmt::format("{} {}", rows, sum));
    } else {
      parent_.say("failed " + cause.to_string());
    }
  }

  // In the middle of a query until something happens to the process, or to the query.
  void stuck(const QueryId& id) {
    Result<Shuffle> opened = worker().open_shuffle({id, 0, sizeof(uint64_t), {}, {}});
    if (!opened.ok()) return parent_.say("complaint: " + opened.status().to_string());
    Shuffle shuffle = std::move(*opened);
    for (uint64_t i = 0; i < 100; ++i) {
      const uint64_t row = row_of(number_, i);
      (void)shuffle.sender()->send(static_cast<uint32_t>(i % kNodes),
                                   std::as_bytes(std::span(&row, 1)));
    }
    (void)shuffle.sender()->flush();
    parent_.say("stuck");
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
    }
    parent_.say("failed " + shuffle.status().to_string());
  }

  const uint32_t number_;
  const Child::Side& parent_;
  const std::shared_ptr<RecordedEvents> events_ = std::make_shared<RecordedEvents>();
  std::unique_ptr<Session> session_;
};

class ReturnOver : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::vector<ListeningSocket> listeners;
    for (uint32_t n = 0; n < kNodes; ++n) {
      Result<ListeningSocket> listener = ListeningSocket::bind(listen_address(n));
      ASSERT_TRUE(listener.ok());
      // Nobody dials the last node: whoever starts in its place may listen elsewhere.
      const std::string& address = listener->address();
      addresses_ += n == kVictim ? "," + address.substr(0, address.rfind(':')) + ":0"
                                 : (n == 0 ? "" : ",") + address;
      listeners.push_back(std::move(*listener));
    }
    for (uint32_t n = 0; n < kNodes; ++n) nodes_.push_back(start(n, listeners));
    listeners.clear();
    for (uint32_t n = 0; n < kNodes; ++n) ASSERT_EQ(hear(n), "open") << n;
  }

  std::unique_ptr<Child> start(uint32_t n, std::vector<ListeningSocket>& listeners) {
    return std::make_unique<Child>([&, n](const Child::Side& parent) {
      std::vector<ListeningSocket> own;
      if (n != kVictim) own.push_back(std::move(listeners[n]));
      listeners.clear();  // those of the others are theirs
      const Result<Config> config = config_of(n, addresses_,
                                              {{"transport", GetParam()},
                                               {"ring.bytes", std::to_string(kRingBytes)},
                                               {"liveness.timeout_ms", "1000"}});
      if (!config.ok()) return 1;
      ReturnNode node(n, parent);
      return node.run(own.empty() ? Session::open(*config)
                                  : Session::open(*config, std::move(own.front())));
    });
  }
  std::unique_ptr<Child> start_again() {
    std::vector<ListeningSocket> none;
    return start(kVictim, none);
  }

  std::string hear(uint32_t n) { return nodes_[n]->hear().value_or("(it has ended)"); }
  std::string ask(uint32_t n, const std::string& line) {
    nodes_[n]->say(line);
    return hear(n);
  }
  /// What each node says about one query over all.
  void expect_whole_query(uint32_t issuer) {
    const std::string id = ask(issuer, "begin");
    for (const auto& node : nodes_) node->say("query " + id);
    uint64_t rows = 0;
    uint64_t sum = 0;
    for (uint32_t n = 0; n < kNodes; ++n) {
      const std::string answer = hear(n);
      uint64_t its_rows = 0;
      uint64_t its_sum = 0;
      ASSERT_EQ(std::sscanf(answer.c_str(), "%lu %lu", &its_rows, &its_sum), 2) << n << answer;
      rows += its_rows;
      sum += its_sum;
    }
    EXPECT_EQ(rows, kNodes * kRows);
    EXPECT_EQ(sum, sum_of_all_rows());
  }
  /// Descriptors, threads, mapped bytes.
  std::array<uint64_t, 3> count(uint32_t n) {
    std::array<uint64_t, 3> counts{};
    std::sscanf(ask(n, "count").c_str(), "%lu %lu %lu", &counts[0], &counts[1], &counts[2]);
    return counts;
  }
  void expect_end() {
    for (const auto& node : nodes_) node->say("end");
    for (uint32_t n = 0; n < kNodes; ++n) {
      EXPECT_EQ(hear(n), "ok") << n;
      EXPECT_EQ(nodes_[n]->wait_for_end(), 0) << n;
    }
  }

  std::string addresses_;
  std::vector<std::unique_ptr<Child>> nodes_;
};

TEST_P(ReturnOver, a_killed_node_is_back_for_the_next_query_and_leaves_nothing) {
  constexpr int kReturns = 5;
  expect_whole_query(0);
  std::array<std::array<uint64_t, 3>, 2> before{};
  for (int returns = 0; returns < kReturns; ++returns) {
    if (returns == 1) before = {count(0), count(1)};
    // In the middle of a query, which fails by name.
    const std::string id = ask(0, "begin");
    EXPECT_EQ(ask(kVictim, "stuck " + id), "stuck");
    for (const uint32_t n : {0u, 1u}) nodes_[n]->say("query " + id);
    nodes_[kVictim]->signal(SIGKILL);
    for (const uint32_t n : {0u, 1u}) {
      const std::string answer = hear(n);
      EXPECT_TRUE(answer.starts_with("failed peer_lost") &&
                  answer.find("node 2 (") != std::string::npos)
          << n << ": " << answer;
    }
    for (const uint32_t n : {0u, 1u}) {
      EXPECT_TRUE(ask(n, "told lost 2").starts_with("lost 2 peer_lost: node 2 (")) << n;
      const std::string failed = "failed 0:" + id.substr(0, id.find(' ')) + " ";
      EXPECT_TRUE(ask(n, "told " + failed).starts_with(failed + "peer_lost: node 2 (")) << n;
    }
    nodes_[kVictim] = start_again();
    ASSERT_EQ(hear(kVictim), "open");
    for (const uint32_t n : {0u, 1u}) {
      EXPECT_EQ(ask(n, "await"), "ok true") << n;
      EXPECT_EQ(ask(n, "told returned"), "returned 2") << n;
    }
    expect_whole_query(returns % kNodes);
  }
  for (const uint32_t n : {0u, 1u}) {
    const auto after = count(n);
    EXPECT_EQ(after[0], before[n][0]) << "descriptors of node " << n;
    EXPECT_EQ(after[1], before[n][1]) << "threads of node " << n;
    EXPECT_LT(after[2], before[n][2] + kRingBytes) << "mapped bytes of node " << n;
  }
  expect_end();
}

TEST_P(ReturnOver, a_stopped_node_that_wakes_up_is_refused_and_disturbs_nobody) {
  const std::string id = ask(0, "begin");
  EXPECT_EQ(ask(kVictim, "stuck " + id), "stuck");
  for (const uint32_t n : {0u, 1u}) nodes_[n]->say("query " + id);
  nodes_[kVictim]->stop();
  for (const uint32_t n : {0u, 1u}) EXPECT_TRUE(hear(n).starts_with("failed peer_lost")) << n;
  const std::unique_ptr<Child> former = std::exchange(nodes_[kVictim], start_again());
  ASSERT_EQ(hear(kVictim), "open");
  former->signal(SIGCONT);
  // It goes on where it was, finds itself alone, and its query failed.
  EXPECT_TRUE(former->hear().value_or("").starts_with("failed peer_lost"));
  for (uint32_t issuer = 0; issuer < kNodes; ++issuer) expect_whole_query(issuer);
  former->say("begin");
  const std::string late = former->hear().value_or("");
  former->say("query " + late);
  EXPECT_TRUE(former->hear().value_or("").starts_with("failed peer_lost"));
  expect_whole_query(0);
  expect_end();
}

INSTANTIATE_TEST_SUITE_P(Transports, ReturnOver,
                         testing::ValuesIn(transports_to_test({"shm", "tcp"})),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace faro::test
