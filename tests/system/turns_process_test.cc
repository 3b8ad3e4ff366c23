// Nodes that send their rows in turns over tcp, as processes. One of them is killed in the middle of its turn, with half a
// message in its socket: the others go on, send all their rows in turns, and come to rest. Who has little to send, and who has
// nothing, tells nobody of turns.
//
// The linker leads sendmsg to this file (CMakeLists.txt), which counts what is told of turns, and at which the victim dies.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/child.h"
#include "support/query_end.h"
#include "support/session_cluster.h"
#include "support/watchdog.h"
#include "system/node_processes.h"
#include "wire/data_message.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::atomic<uint64_t> turns_told{0};       // by this process
std::atomic<int64_t> rows_until_death{0};  // sends of rows, with the one that kills it; 0: it lives

// Under the thread sanitizer links call the system without sendmsg.
#if defined(__SANITIZE_THREAD__)
constexpr bool kCountsSends = false;
#else
constexpr bool kCountsSends = true;
#endif
constexpr const char* kNotCounted = "what links send is not counted under the thread sanitizer";

bool is_rows(const msghdr& message) {
  size_t bytes = 0;
  for (size_t i = 0; i < message.msg_iovlen; ++i) bytes += message.msg_iov[i].iov_len;
  return bytes >= 1024;
}

bool begins_with_turn(const msghdr& message) {
  wire::DataMessage first;
  if (message.msg_iovlen == 0 || message.msg_iov[0].iov_len < sizeof first) return false;
  std::memcpy(&first, message.msg_iov[0].iov_base, sizeof first);
  return wire::is_turn(first);
}

}  // namespace
}  // namespace faro::test

extern "C" {
// NOLINTBEGIN: the names are the linker's
ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  using namespace faro::test;
  if (begins_with_turn(*message)) ++turns_told;
  if (rows_until_death > 0 && is_rows(*message) && --rows_until_death == 0) {
    msghdr half = *message;
    half.msg_iovlen = 1;
    iovec piece = message->msg_iov[0];
    piece.iov_len = (piece.iov_len + 1) / 2;
    half.msg_iov = &piece;
    (void)__real_sendmsg(fd, &half, flags);
    kill(getpid(), SIGKILL);
  }
  return __real_sendmsg(fd, message, flags);
}
// NOLINTEND
}

namespace faro::test {
namespace {

constexpr seconds kLimit{50};
constexpr uint32_t kNodes = 4;  // with a worker each
constexpr uint32_t kVictim = 2;
constexpr uint64_t kRows = 30'000;  // of each worker to each
constexpr uint64_t kFewRows = 10;

/// A node that does what the test says, line by line.
class TurnsNode {
 public:
  TurnsNode(uint32_t number, const Child::Side& parent) : number_(number), parent_(parent) {}

  int run(Result<std::unique_ptr<Session>> opened) {
    if (!opened.ok()) {
      parent_.say("complaint: " + opened.status().to_string());
      return 1;
    }
    session_ = std::move(*opened);
    Watchdog watchdog(kLimit, [this] { return fmt::format("node {}", number_); });
    parent_.say("open");
    for (;;) {
      const std::string line = parent_.hear();
      const std::string command = line.substr(0, line.find(' '));
      if (command == "begin") {
        parent_.say(line_of(session_->begin_query()));
      } else if (command == "little") {
        query(query_in(line, command.size()), {0, 1, 2, 3}, kFewRows);
      } else if (command == "told") {
        parent_.say(std::to_string(turns_told));
      } else if (command == "all") {
        query(query_in(line, command.size()), {0, 1, 2, 3}, kRows);
      } else if (command == "survivors") {
        query(query_in(line, command.size()), {0, 1, 3}, kRows);
      } else if (command == "die") {
        rows_until_death = std::stoll(line.substr(command.size()));
      } else if (command == "sent") {
        say_sent();
      } else if (command == "rest") {
        parent_.say(comes_to_rest() ? "rests" : "takes turns still");
      } else {
        parent_.say(session_->close().to_string());
        return 0;
      }
    }
  }

 private:
  // Says how many rows came, or why it failed.
  void query(const QueryId& id, const std::vector<uint32_t>& workers, uint64_t rows_to_each) {
    const Status declared = session_->declare_query(id, workers);
    if (!declared.ok()) return parent_.say("failed " + declared.to_string());
    Worker& worker = session_->worker(0);
    uint64_t rows = 0;
    Result<Shuffle> opened = worker.open_shuffle({id, 0, sizeof(uint64_t), workers, workers});
    if (opened.ok()) {
      Shuffle shuffle = std::move(*opened);
      Outcome outcome = Outcome::done;
      for (uint64_t row = 0; row < rows_to_each && outcome == Outcome::done; ++row) {
        for (uint32_t to = 0; to < workers.size(); ++to) {
          outcome = shuffle.sender()->send(to, std::as_bytes(std::span(&row, 1)));
          if (outcome != Outcome::done) break;
        }
      }
      if (outcome == Outcome::done) outcome = shuffle.sender()->finish();
      Batch batch;
      while (outcome == Outcome::done &&
             (outcome = shuffle.receiver()->receive(batch)) == Outcome::done)
        rows += batch.row_count();
    }
    Status cause;
    if (end_query(worker, id, cause) == Outcome::done) {
      parent_.say(fmt::format("{}", rows));
    } else {
      parent_.say("failed " + cause.to_string());
    }
  }

  // Bytes to other nodes, and of these in turns.
  void say_sent() {
    uint64_t bytes = 0;
    uint64_t in_turns = 0;
    for (const LinkMetrics& link : session_->metrics().links) {
      if (link.node == number_) continue;
      bytes += link.bytes_sent;
      in_turns += link.turn_bytes;
    }
    parent_.say(fmt::format("{} {}", bytes, in_turns));
  }

  // A node that is not at rest tells of its turn each 5 ms.
  static bool comes_to_rest() {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      const uint64_t before = turns_told;
      std::this_thread::sleep_for(milliseconds(300));
      if (turns_told == before) return true;
    }
    return false;
  }

  const uint32_t number_;
  const Child::Side& parent_;
  std::unique_ptr<Session> session_;
};

class TurnsOfProcesses : public testing::Test {
 protected:
  /// `from`: network.schedule_from.
  void open(const char* from) {
    BoundNodes bound(kNodes);
    for (uint32_t n = 0; n < kNodes; ++n) {
      nodes_.push_back(std::make_unique<Child>([&, n](const Child::Side& parent) {
        ListeningSocket own = std::move(bound.listeners[n]);
        bound.listeners.clear();  // those of the others are theirs
        const Result<Config> config = config_of(n, bound.addresses,
                                                {{"transport", "tcp"},
                                                 {"ring.bytes", "64 KiB"},
                                                 {"transfer.threshold_bytes", "16 KiB"},
                                                 {"liveness.timeout_ms", "10000"},
                                                 {"network.schedule", "phases"},
                                                 {"network.turn_bytes", "32 KiB"},
                                                 {"network.schedule_from", from}});
        if (!config.ok()) return 1;
        return TurnsNode(n, parent).run(Session::open(*config, std::move(own)));
      }));
    }
    bound.listeners.clear();
    for (uint32_t n = 0; n < kNodes; ++n) ASSERT_EQ(hear(n), "open") << n;
  }

  std::string hear(uint32_t n) { return nodes_[n]->hear().value_or("(it has ended)"); }
  std::string ask(uint32_t n, const std::string& line) {
    nodes_[n]->say(line);
    return hear(n);
  }
  struct Sent {
    uint64_t bytes = 0;
    uint64_t in_turns = 0;
  };
  Sent sent(uint32_t n) {
    Sent sent;
    std::sscanf(ask(n, "sent").c_str(), "%lu %lu", &sent.bytes, &sent.in_turns);
    return sent;
  }

  static constexpr uint32_t kSurvivors[] = {0, 1, 3};
  std::vector<std::unique_ptr<Child>> nodes_;
};

/// With how many sends of rows the victim dies: it has more of them, as each takes at most a ring.
class KilledInItsTurn : public TurnsOfProcesses, public testing::WithParamInterface<int> {};

TEST_P(KilledInItsTurn, is_done_without_by_the_others_whose_rounds_go_on_and_end) {
  if (!kCountsSends) GTEST_SKIP() << kNotCounted;
  ASSERT_NO_FATAL_FAILURE(open("1"));
  nodes_[kVictim]->say(fmt::format("die {}", GetParam()));
  std::string id = ask(0, "begin");
  for (const auto& node : nodes_) node->say("all " + id);
  for (const uint32_t n : kSurvivors) {
    const std::string answer = hear(n);
    EXPECT_TRUE(answer.starts_with("failed peer_lost") &&
                answer.find("node 2 (") != std::string::npos)
        << n << ": " << answer;
  }
  EXPECT_EQ(hear(kVictim), "(it has ended)");

  Sent before[kNodes];
  for (const uint32_t n : kSurvivors) before[n] = sent(n);
  id = ask(1, "begin");
  for (const uint32_t n : kSurvivors) nodes_[n]->say("survivors " + id);
  for (const uint32_t n : kSurvivors) EXPECT_EQ(hear(n), std::to_string(3 * kRows)) << n;
  for (const uint32_t n : kSurvivors) {
    const Sent after = sent(n);
    EXPECT_GE((after.in_turns - before[n].in_turns) * 10, (after.bytes - before[n].bytes) * 9) << n;
  }
  for (const uint32_t n : kSurvivors) nodes_[n]->say("rest");
  for (const uint32_t n : kSurvivors) EXPECT_EQ(hear(n), "rests") << n;
  for (const uint32_t n : kSurvivors) {
    EXPECT_EQ(ask(n, "end"), "ok") << n;
    EXPECT_EQ(nodes_[n]->wait_for_end(), 0) << n;
  }
}

TEST_F(TurnsOfProcesses, are_not_told_of_for_little_nor_for_nothing) {
  if (!kCountsSends) GTEST_SKIP() << kNotCounted;
  ASSERT_NO_FATAL_FAILURE(open("32 KiB"));
  // Whom they follow they say when they are linked.
  for (const auto& node : nodes_) node->say("rest");
  for (uint32_t n = 0; n < kNodes; ++n) ASSERT_EQ(hear(n), "rests") << n;
  uint64_t before[kNodes];
  for (uint32_t n = 0; n < kNodes; ++n) before[n] = std::stoull(ask(n, "told"));
  for (int i = 0; i < 10; ++i) {
    const std::string id = ask(0, "begin");
    for (const auto& node : nodes_) node->say("little " + id);
    for (uint32_t n = 0; n < kNodes; ++n) EXPECT_EQ(hear(n), std::to_string(kNodes * kFewRows));
  }
  for (const auto& node : nodes_) node->say("rest");
  for (uint32_t n = 0; n < kNodes; ++n) EXPECT_EQ(hear(n), "rests") << n;
  for (uint32_t n = 0; n < kNodes; ++n)
    EXPECT_EQ(std::stoull(ask(n, "told")), before[n]) << n << " has told of turns";
  for (uint32_t n = 0; n < kNodes; ++n) EXPECT_EQ(ask(n, "end"), "ok") << n;
}

INSTANTIATE_TEST_SUITE_P(SendsOfRows, KilledInItsTurn, testing::Values(1, 2, 3, 5, 8),
                         [](const auto& param) { return fmt::format("{}", param.param); });

}  // namespace
}  // namespace faro::test
