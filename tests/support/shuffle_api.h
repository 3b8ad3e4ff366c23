// ShuffleApi: what tests of the public API of a session's shuffles share. Real sessions in one process.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/query_end.h"
#include "support/session_cluster.h"
#include "support/watchdog.h"

namespace faro::test {

inline std::vector<std::byte> filled(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

/// Until a worker that another thread uses has gone to sleep.
inline void until_asleep(const Worker& worker) {
  while (worker.metrics().sleeps == 0) std::this_thread::yield();
}

/// Sends a row on its way at once.
inline void send_now(Shuffle& shuffle, std::span<const std::byte> row, uint32_t receiver = 0) {
  EXPECT_EQ(shuffle.sender()->send(receiver, row), Outcome::done);
  (void)shuffle.sender()->flush();
}
inline Batch take_batch(Shuffle& shuffle) {
  Batch batch;
  EXPECT_EQ(shuffle.receiver()->receive(batch), Outcome::done) << shuffle.status().to_string();
  return batch;
}
/// Takes all that comes before the end of stream; how many rows it is.
inline uint64_t take_rows(Shuffle& shuffle) {
  uint64_t rows = 0;
  Batch batch;
  while (shuffle.receiver()->receive(batch) == Outcome::done) rows += batch.row_count();
  return rows;
}

/// That a call of `used`, a worker or a shuffle, has failed, and why.
template <class Used>
void expect_failed(Outcome outcome, const Used& used, Code code,
                   std::initializer_list<std::string_view> parts = {},
                   const std::source_location& at = std::source_location::current()) {
  const testing::ScopedTrace trace(at.file_name(), static_cast<int>(at.line()), "");
  EXPECT_EQ(outcome, Outcome::failed);
  expect_error(used.status(), code, parts, at);
}

class ShuffleApi : public testing::Test {
 protected:
  void open(uint32_t nodes, SettingList settings = {}) {
    // One link needs real memory: not shared, so that the thread sanitizer sees it.
    settings.insert(settings.begin(), {"transport", "tcp"});
    cluster_ = std::make_unique<SessionCluster>(nodes, small_rings(settings));
    ASSERT_TRUE(is_ok(cluster_->status()));
  }
  /// Node 0 begins the query.
  QueryId open_and_begin(uint32_t nodes, const SettingList& settings = {}) {
    open(nodes, settings);
    return session().begin_query();
  }
  Session& session(uint32_t node = 0) { return (*cluster_)[node]; }
  Worker& worker(uint32_t number = 0) { return cluster_->worker(number); }

  ShuffleSpec spec(const QueryId& query, uint32_t stage, uint32_t row_bytes,
                   std::vector<uint32_t> senders = {}, std::vector<uint32_t> receivers = {}) {
    return {query, stage, row_bytes, std::move(senders), std::move(receivers)};
  }
  Shuffle open_shuffle(Worker& at, const ShuffleSpec& what) {
    Result<Shuffle> opened = at.open_shuffle(what);
    EXPECT_TRUE(is_ok(opened));
    return opened.ok() ? std::move(*opened) : Shuffle();
  }
  /// Ends a worker's part, whose last shuffle this is, in a query that is done.
  void close_and_end(Shuffle& shuffle, uint32_t number, const QueryId& id) {
    shuffle.close();
    Status cause;
    EXPECT_EQ(end_query(worker(number), id, cause), Outcome::done) << cause.to_string();
  }
  /// Ends a worker's part in a query that fails; why it does.
  Status end_failed(Worker& at, const QueryId& id, const Status& failure = Status::Ok(),
                    Wait wait = Wait::forever()) {
    Status cause;
    EXPECT_EQ(end_query(at, id, failure, cause, wait), Outcome::failed);
    return cause;
  }
  /// Sends and takes one row in a query of its own: the session works.
  void expect_working() {
    const QueryId id = session().begin_query();
    cluster_->run_workers([&](uint32_t w) {
      Shuffle shuffle = open_shuffle(worker(w), spec(id, 0, 8));
      for (uint32_t r = 0; r < shuffle.spec().receivers.size(); ++r)
        EXPECT_EQ(shuffle.sender()->send(r, filled(8, 1)), Outcome::done);
      EXPECT_EQ(shuffle.sender()->finish(), Outcome::done);
      EXPECT_EQ(take_rows(shuffle), cluster_->worker_count());
      close_and_end(shuffle, w, id);
    });
  }

  Watchdog watchdog_{std::chrono::seconds(40), [this] {
                       std::string text;
                       for (uint32_t n = 0; cluster_ != nullptr && n < cluster_->size(); ++n) {
                         if (cluster_->session(n) == nullptr) continue;
                         text += fmt::format("node {}: {} queries run\n", n,
                                             cluster_->session(n)->metrics().queries_running);
                       }
                       return text;
                     }};
  std::unique_ptr<SessionCluster> cluster_;
};

}  // namespace faro::test
