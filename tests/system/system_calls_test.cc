// Two nodes over shared memory and TCP, one of whose system calls fails: each kind of call, its first, second, … use, until
// there are no more of them. Whatever fails, no row is lost in silence, nobody hangs or crashes, and no descriptor is left.
#include "system/system_calls.h"
#include "system/node_processes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faro/log.h"
#include "support/query_end.h"
#include "support/session_cluster.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"

namespace faro::test {
namespace {

constexpr uint32_t kNodes = 2;
constexpr int kRows = 60;  // by each worker to each: far more than a ring has room for
constexpr size_t kRowBytes = 1000;

/// How a run ended for one node.
struct Ended {
  Status opened;
  Outcome query = Outcome::failed;
  Status cause;  // if it has failed
  int rows = 0;
  bool rows_are_right = true;

  std::string text() const {
    return fmt::format("open: {}; query: {} {}; {} rows", opened.to_string(), outcome_name(query),
                       cause.to_string(), rows);
  }
};

/// Sends to everyone, itself too, before it takes anything: what its ring has no room for goes to the overflow file.
Outcome exchange_rows(Shuffle& shuffle, Ended& ended) {
  std::vector<std::byte> row(kRowBytes);
  for (int i = 0; i < kRows; ++i) {
    std::fill(row.begin(), row.end(), static_cast<std::byte>(i));
    for (uint32_t receiver = 0; receiver < kNodes; ++receiver) {
      if (const Outcome sent = shuffle.sender()->send(receiver, row); sent != Outcome::done)
        return sent;
    }
  }
  if (const Outcome finished = shuffle.sender()->finish(); finished != Outcome::done)
    return finished;
  std::array<int, kNodes> next{};
  Batch batch;
  for (;;) {
    const Outcome taken = shuffle.receiver()->receive(batch);
    if (taken != Outcome::done) return taken;
    for (const std::span<const std::byte> each : batch.each_row()) {
      ++ended.rows;
      const auto number = static_cast<std::byte>(next[batch.sender()]++);
      ended.rows_are_right = ended.rows_are_right && each.size() == kRowBytes &&
                             each.front() == number && each.back() == number;
    }
    batch.release();
  }
}

void run_query(Session& session, const QueryId& query, Ended& ended) {
  Worker& worker = session.worker(0);
  {
    Result<Shuffle> shuffle = worker.open_shuffle({query, 0, kRowBytes, {}, {}});
    if (!shuffle.ok()) {
      ended.cause = shuffle.status();
      (void)session.cancel_query(query, "it cannot open its shuffle");
    } else if (exchange_rows(*shuffle, ended) != Outcome::end_of_stream) {
      ended.cause = shuffle->status();
      (void)session.cancel_query(query, ended.cause.message());
    }
  }
  Status cause;
  ended.query = end_query(worker, query, cause);
  if (!cause.ok()) ended.cause = cause;
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class SystemCalls : public testing::TestWithParam<const char*> {
 protected:
  SystemCalls() {
    always_has_memory();  // the test; the node's own threads have to do without
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~SystemCalls() override { set_log_sink({}); }

  /// A run in which the n-th such call fails. Returns how many there were.
  size_t run(const SystemCall& call, size_t n) {
    const size_t before = open_descriptors();
    std::array<Ended, kNodes> ended;
    size_t calls = 0;
    {
      const Watchdog watchdog(std::chrono::seconds(50), [&] {
        return fmt::format("{} number {} over {}: {} / {}", call.name, n, GetParam(),
                           ended[0].text(), ended[1].text());
      });
      BoundNodes bound(kNodes);
      std::promise<std::optional<QueryId>> begun;
      const std::shared_future<std::optional<QueryId>> query = begun.get_future().share();
      std::barrier started(kNodes + 1);
      std::barrier done(kNodes);
      std::vector<std::thread> threads;
      for (uint32_t node = 0; node < kNodes; ++node) {
        threads.emplace_back([&, node] {
          always_has_memory();
          const Config config = config_of(node, bound.addresses, settings()).value();
          started.arrive_and_wait();
          started.arrive_and_wait();
          Result<std::unique_ptr<Session>> session =
              Session::open(config, std::move(bound.listeners[node]));
          ended[node].opened = session.status();
          if (node == 0) {
            begun.set_value(session.ok() ? std::optional((*session)->begin_query()) : std::nullopt);
          }
          if (session.ok() && query.get()) run_query(**session, *query.get(), ended[node]);
          // A node that leaves early would be one that is lost to the other.
          done.arrive_and_wait();
          if (session.ok()) (void)(*session)->close();
        });
      }
      started.arrive_and_wait();  // no thread of the test is started from here on
      const FailingCall failing(call, n);
      started.arrive_and_wait();
      for (std::thread& thread : threads) thread.join();
      calls = failing.count();
    }
    check(fmt::format("{} number {} over {}: {} / {}", call.name, n, GetParam(), ended[0].text(),
                      ended[1].text()),
          ended);
    EXPECT_EQ(open_descriptors(), before) << call.name << " number " << n;
    return calls;
  }

 private:
  SettingList settings() const {
    return small_rings({{"transport", GetParam()},
                        {"connect.timeout_ms", "600"},
                        {"close.timeout_ms", "1500"},
                        {"overflow.memory_bytes", "0"},
                        {"overflow.folder", folder_.path()},
                        {"counters.folder", folder_.path()}});
  }

  static void check(const std::string& what, const std::array<Ended, kNodes>& ended) {
    bool somebody_is_done = false;
    for (const Ended& each : ended) {
      EXPECT_TRUE(each.rows_are_right) << what;
      EXPECT_NE(each.opened.code(), Code::internal_error) << what;
      if (!each.opened.ok()) {
        EXPECT_FALSE(each.opened.message().empty()) << what;
      }
      if (each.opened.ok() && each.query != Outcome::done) {
        EXPECT_EQ(each.query, Outcome::failed) << what;
      }
      somebody_is_done = somebody_is_done || each.query == Outcome::done;
    }
    if (!somebody_is_done) {
      // Somebody knows why.
      bool says_why = false;
      for (const Ended& each : ended) says_why |= !each.opened.ok() || !each.cause.ok();
      EXPECT_TRUE(says_why) << what;
      return;
    }
    // The issuer decides. Another node may lose the link to it before it hears of that.
    EXPECT_EQ(ended[0].query, Outcome::done) << what;
    for (const Ended& each : ended) {
      EXPECT_EQ(each.rows, kRows * static_cast<int>(kNodes)) << what;
      if (each.query != Outcome::done) {
        EXPECT_EQ(each.cause.code(), Code::peer_lost) << what;
      }
    }
  }

  const TemporaryFolder folder_;
};

TEST_P(SystemCalls, that_fail_lose_no_row_hang_nobody_and_leave_nothing) {
  for (const SystemCall& call : system_calls()) {
    // All of the first; later ones are ever more alike.
    size_t runs = 0;
    const size_t all = call.name == std::string_view("memory") ? 256 : 8;
    for (size_t n = 1; !HasFailure(); n += n < all ? 1 : n / 2) {
      if (run(call, n) < n) break;
      ++runs;
    }
    RecordProperty(call.name, static_cast<int>(runs));
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, SystemCalls, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace faro::test
