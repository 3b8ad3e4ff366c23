// Shuffles in trouble, with real processes: one is killed, or stops answering, in any phase of a
// query; a disk is full. Who needs it is told, with the peer's name and within the time limit, and
// nobody else.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/child.h"
#include "support/session_cluster.h"
#include "support/test_network.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr seconds kLimit{40};
constexpr uint32_t kVictim = 2;  // of three nodes with a worker each
constexpr milliseconds kLiveness{1000};

std::vector<std::byte> filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

/// What the victim is doing when it is hit; the others do the same.
enum class Phase {
  opened,      // connected, nothing else
  first_rows,  // shuffles are open, first rows are on their way
  mid,         // everybody sends and takes
  finished,    // it has sent all and finished, and does not take
  ended,       // it waits for the outcome of the query
  closing,     // the query is over for all; it closes its session
};
constexpr Phase kPhases[] = {Phase::opened,   Phase::first_rows, Phase::mid,
                             Phase::finished, Phase::ended,      Phase::closing};
constexpr const char* kPhaseNames[] = {"opened",   "first_rows", "mid",
                                       "finished", "ended",      "closing"};

struct Trouble {
  std::string name;
  std::string transport;
  int signal;
};

const std::vector<Trouble>& troubles() {
  static const std::vector<Trouble> all = [] {
    std::vector<Trouble> made;
    for (const std::string& transport : transports_to_test({"shm", "tcp"}))
      made.push_back({"killed_" + transport, transport, SIGKILL});
    // Heartbeats notice it, on whatever transport: one is enough.
    made.push_back({"stopped_" + made.front().transport, made.front().transport, SIGSTOP});
    return made;
  }();
  return all;
}

/// A node of the test. Lines go both ways: query ids, commands, reports.
class TroubleNode {
 public:
  TroubleNode(uint32_t number, const std::string& addresses, Listener listener,
              const std::string& transport, Phase phase, const Child::Side& parent)
      : number_(number), phase_(phase), parent_(parent) {
    Result<Config> config =
        config_of(number, addresses,
                  small_rings({{"transport", transport},
                               {"liveness.timeout_ms", std::to_string(kLiveness.count())},
                               {"close.timeout_ms", "3000"}}));
    if (!config.ok()) return;
    Result<std::unique_ptr<Session>> opened = Session::open(*config, std::move(listener));
    if (opened.ok()) session_ = std::move(*opened);
  }

  int run() {
    if (session_ == nullptr) return complain("did not open");
    Watchdog watchdog(kLimit, [this] {
      return fmt::format("node {}, {} queries run", number_, session_->metrics().queries_running);
    });
    // The issuer of the query of all is node 0; that of the query without the victim is node 1.
    if (number_ == 0) tell_query();
    const QueryId all = hear_query();
    if (number_ == 1) tell_query();
    const QueryId without = hear_query();
    if (number_ != kVictim) {
      // What goes on without the victim, in a query of nodes 0 and 1, on the same worker.
      if (!session_->declare_query(without, {0, 1}).ok()) return complain("declare_query");
    }
    return number_ == kVictim ? run_victim(all) : run_survivor(all, without);
  }

 private:
  Worker& worker() { return session_->worker(0); }
  int complain(const std::string& what) {
    parent_.say("complaint: " + what);
    return 1;
  }
  void tell_query() {
    const QueryId id = session_->begin_query();
    parent_.say(fmt::format("{} {} {}", id.counter, id.incarnation, id.issuer));
  }
  QueryId hear_query() {
    QueryId id;
    std::sscanf(parent_.hear().c_str(), "%lu %lu %u", &id.counter, &id.incarnation, &id.issuer);
    return id;
  }
  Shuffle open(const QueryId& id, std::vector<uint32_t> workers) {
    Result<Shuffle> shuffle = worker().open_shuffle({id, 0, 64, workers, workers});
    return shuffle.ok() ? std::move(*shuffle) : Shuffle();
  }

  // Does its part up to the phase, says so, and waits for its fate.
  int run_victim(const QueryId& all) {
    if (phase_ == Phase::opened) return await_fate();
    Shuffle shuffle = open(all, {0, 1, 2});
    for (uint32_t r = 0; r < 3; ++r) (void)shuffle.send(r, filled(64, 1));
    shuffle.flush();
    if (phase_ == Phase::first_rows) return await_fate();
    if (phase_ == Phase::mid) {
      parent_.say("there");
      for (uint32_t i = 0;; ++i) {
        if (shuffle.try_send(i % 3, filled(64, 1)) == Outcome::failed)
          return complain("send failed");
        Batch batch;
        if (shuffle.try_poll(batch) == Outcome::failed) return complain("poll failed");
      }
    }
    (void)shuffle.finish();
    if (phase_ == Phase::finished) return await_fate();
    Batch batch;
    while (shuffle.take(batch) == Outcome::done) {
    }
    shuffle.close();
    if (phase_ == Phase::ended) {
      // Node 1 does not end before the victim is hit.
      (void)worker().try_end_query(all);
      return await_fate();
    }
    Status cause;
    if (worker().end_query(all, &cause) != Outcome::done) return complain(cause.to_string());
    parent_.say("there");
    (void)session_->close();
    return 0;
  }
  int await_fate() {
    parent_.say("there");
    // A worker that only waits: what others need of it is moved on.
    (void)worker().wait_until([] { return false; }, kLimit);
    return complain("nothing happened");
  }

  int run_survivor(const QueryId& all, const QueryId& without) {
    Shuffle other = open(without, {0, 1});
    if (!other.is_open()) return complain("the other query did not open");
    for (int i = 0; i < 100; ++i) {
      if (other.send(static_cast<uint32_t>(i % 2), filled(64, 7)) != Outcome::done)
        return complain("the other query: " + other.status().to_string());
    }

    const Status failure = use_victim(all);
    Status cause;
    const bool holds_back = phase_ == Phase::ended && number_ == 1;
    if (holds_back) parent_.hear();  // "it was hit"
    const Outcome ended = worker().end_query(all, &cause);
    if (phase_ == Phase::closing) {
      if (ended != Outcome::done) return complain("the end of a good query: " + cause.to_string());
    } else if (phase_ != Phase::ended || ended != Outcome::done) {
      // (Who had ended before it was hit may or may not have been in time.)
      if (ended != Outcome::failed || cause.code() != Code::peer_lost)
        return complain(
            fmt::format("the query ended as {}: {}", outcome_name(ended), cause.to_string()));
      if (cause.message().find("node 2") == std::string_view::npos)
        return complain("the lost node is not named: " + cause.to_string());
      if (!failure.ok() && failure.code() != Code::peer_lost)
        return complain("the shuffle failed as " + failure.to_string());
    }
    parent_.say(fmt::format("told {}", outcome_name(ended)));

    // The other query goes on.
    for (int i = 0; i < 2000; ++i) {
      if (other.send(static_cast<uint32_t>(i % 2), filled(64, 7)) != Outcome::done)
        return complain("the other query: " + other.status().to_string());
    }
    if (other.finish() != Outcome::done) return complain("finish: " + other.status().to_string());
    uint32_t rows = 0;
    Batch batch;
    Outcome outcome;
    while ((outcome = other.take(batch)) == Outcome::done) rows += batch.row_count();
    if (outcome != Outcome::end_of_stream || rows != 2100)
      return complain(
          fmt::format("the other query: {} rows, {}", rows, other.status().to_string()));
    other.close();
    if (worker().end_query(without, &cause) != Outcome::done)
      return complain("the end of the other query: " + cause.to_string());

    const SessionMetrics metrics = session_->metrics();
    if (metrics.overflow_memory_bytes != 0 || metrics.overflow_file_bytes != 0)
      return complain("something is left in overflow");
    const auto closing = Clock::now();
    const Status closed = session_->close();
    if (!closed.ok()) return complain("close: " + closed.to_string());
    // A stopped node says no BYE: close.timeout_ms is how long that is waited for.
    if (Clock::now() - closing > seconds(5)) return complain("close took too long");
    parent_.say("well");
    return 0;
  }

  // The query with the victim, until it fails or is over.
  Status use_victim(const QueryId& all) {
    Shuffle shuffle = open(all, {0, 1, 2});
    if (!shuffle.is_open()) return Status::Ok();  // the end says why
    Outcome outcome = Outcome::done;
    const int rows = phase_ == Phase::mid ? 1 << 30 : 300;
    for (int i = 0; i < rows && outcome == Outcome::done; ++i)
      outcome = shuffle.send(static_cast<uint32_t>(i % 3), filled(64, 1));
    if (outcome == Outcome::done) outcome = shuffle.finish();
    Batch batch;
    while (outcome == Outcome::done) outcome = shuffle.take(batch);
    return outcome == Outcome::end_of_stream ? Status::Ok() : shuffle.status();
  }

  const uint32_t number_;
  const Phase phase_;
  const Child::Side& parent_;
  std::unique_ptr<Session> session_;
};

class ShuffleTrouble : public testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(ShuffleTrouble, a_node_that_is_gone_fails_its_queries_by_name_and_no_others) {
  const Trouble& trouble = troubles()[std::get<0>(GetParam())];
  const Phase phase = kPhases[std::get<1>(GetParam())];
  std::vector<Listener> listeners;
  std::string addresses;
  for (uint32_t n = 0; n < 3; ++n) {
    Result<Listener> listener = Listener::bind(listen_address(n));
    ASSERT_TRUE(listener.ok());
    addresses += (n == 0 ? "" : ",") + listener->address();
    listeners.push_back(std::move(*listener));
  }
  std::vector<std::unique_ptr<Child>> nodes;
  for (uint32_t n = 0; n < 3; ++n) {
    nodes.push_back(std::make_unique<Child>([&, n](const Child::Side& parent) {
      return TroubleNode(n, addresses, std::move(listeners[n]), trouble.transport, phase, parent)
          .run();
    }));
  }
  const auto hear = [&](uint32_t n) { return nodes[n]->hear().value_or("(it has ended)"); };
  for (const uint32_t issuer : {0u, 1u}) {
    const std::string id = hear(issuer);
    for (const auto& node : nodes) node->say(id);
  }
  ASSERT_EQ(hear(kVictim), "there");
  const auto hit = Clock::now();
  nodes[kVictim]->signal(trouble.signal);
  nodes[1]->say("it was hit");
  const std::string told = hear(0);
  EXPECT_TRUE(told == "told failed" || told == "told done") << told;
  EXPECT_EQ(hear(1), told) << "the outcome is the same for all";
  if (phase != Phase::closing) {
    // A killed process is seen at once; one that is silent after the time limit and a heartbeat.
    EXPECT_LT(Clock::now() - hit, trouble.signal == SIGKILL ? seconds(5) : kLiveness + seconds(5));
  }
  for (const uint32_t n : {0u, 1u}) {
    EXPECT_EQ(hear(n), "well") << "node " << n;
    EXPECT_EQ(nodes[n]->wait_for_end(), 0) << "node " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Phases, ShuffleTrouble,
                         testing::Combine(testing::Range<size_t>(0, troubles().size()),
                                          testing::Range<size_t>(0, std::size(kPhases))),
                         [](const auto& param) {
                           return troubles()[std::get<0>(param.param)].name + "_" +
                                  kPhaseNames[std::get<1>(param.param)];
                         });

// --- a full disk

bool write_file(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  return file.good();
}

// A small file system of this process alone. False if the system does not permit it.
bool mount_small_disk(const std::string& at, const char* size) {
  const uid_t uid = getuid();
  const gid_t gid = getgid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!write_file("/proc/self/setgroups", "deny") ||
        !write_file("/proc/self/uid_map", fmt::format("0 {} 1", uid)) ||
        !write_file("/proc/self/gid_map", fmt::format("0 {} 1", gid)))
      return false;
  }
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", at.c_str(), "tmpfs", 0, fmt::format("size={}", size).c_str()) == 0;
}

TEST(ShuffleDisk, a_full_disk_fails_the_query_that_uses_most_and_no_other) {
  std::string folder = testing::TempDir() + "/faro_small_disk_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Child child([&](const Child::Side& parent) {
    if (!mount_small_disk(folder, "256k")) {
      parent.say("skip");
      return 0;
    }
    Watchdog watchdog(kLimit, [] { return std::string("the full disk"); });
    const auto complain = [&](const std::string& what) {
      parent.say(what);
      return 1;
    };
    SessionCluster cluster(
        1, small_rings({{"overflow.memory_bytes", "0"}, {"overflow.folder", folder}}));
    if (!cluster.status().ok()) return complain(cluster.status().to_string());
    Worker& worker = cluster[0].worker(0);
    const QueryId big = cluster[0].begin_query();
    const QueryId small = cluster[0].begin_query();
    Shuffle glutton = std::move(*worker.open_shuffle({big, 0, 100, {}, {}}));
    Shuffle modest = std::move(*worker.open_shuffle({small, 1, 100, {}, {}}));
    for (int i = 0; i < 50; ++i) {
      if (modest.send(0, filled(100, i)) != Outcome::done) return complain("the small query");
    }
    Outcome outcome = Outcome::done;
    for (int i = 0; i < 100'000 && outcome == Outcome::done; ++i)
      outcome = glutton.send(0, filled(100, i));
    const Status status = glutton.status();
    if (outcome != Outcome::failed || status.code() != Code::overflow_exhausted)
      return complain(fmt::format("{}: {}", outcome_name(outcome), status.to_string()));
    for (const std::string& word : {std::string("No space left"), folder}) {
      if (status.message().find(word) == std::string_view::npos)
        return complain(fmt::format("\"{}\" is missing in: {}", word, status.to_string()));
    }
    glutton.close();
    if (worker.end_query(big) != Outcome::failed) return complain("the big query did not fail");
    if (modest.finish() != Outcome::done) return complain(modest.status().to_string());
    uint32_t rows = 0;
    Batch batch;
    while (modest.take(batch) == Outcome::done) rows += batch.row_count();
    if (rows != 50) return complain(fmt::format("{} rows: {}", rows, modest.status().to_string()));
    modest.close();
    if (worker.end_query(small) != Outcome::done) return complain("the small query failed");
    if (cluster[0].metrics().overflow_file_bytes != 0) return complain("something is left");
    cluster.close();
    parent.say("well");
    return 0;
  });
  const std::string answer = child.hear().value_or("(it has ended)");
  const int code = child.wait_for_end();
  rmdir(folder.c_str());
  if (answer == "skip") GTEST_SKIP() << "this system permits no mounts of its own";
  EXPECT_EQ(answer, "well");
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace faro::test
