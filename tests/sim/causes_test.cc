// Why a query has failed, as every worker is told it: a part that fails closes its shuffles and says why, in any order. By a
// clock that is set by hand.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "faro/merge.h"
#include "shuffle/query/last_resorts.h"
#include "sim/cluster.h"
#include "support/expect.h"

namespace faro::test {
namespace {

constexpr base::Nanoseconds kTellDelay = shuffle::LastResorts::kTellDelay;
const Status kFailure(Code::internal_error, "BadRow: negative price");
constexpr const char* kText = "worker 1 failed: internal_error: BadRow: negative price";

/// Worker 1, on node 0 with worker 0, fails; workers 0 and 2 wait for its rows.
class Causes : public testing::Test {
 protected:
  using Part = std::function<void(Worker& worker)>;

  void SetUp() override {
    ClusterShape shape;
    shape.workers_per_node = {2, 1};
    cluster_ = std::make_unique<SimCluster>(7, shape);
    ASSERT_TRUE(cluster_->open_sessions().ok()) << world().report();
    begin();
  }
  void begin() {
    query_ = cluster_->session(0).begin_query();
    causes_.assign(3, Status::Ok());
    told_at_.assign(3, 0);
    failed_at_ = 0;
  }
  sim::World& world() { return cluster_->world(); }
  Worker& worker(uint32_t number) { return cluster_->session(number / 2).worker(number % 2); }

  ShuffleSpec stage(uint32_t number, uint32_t row_bytes = sizeof(uint64_t)) const {
    return {query_, number, row_bytes, {}, {}};
  }
  Shuffle open(Worker& worker, uint32_t number, uint32_t row_bytes = sizeof(uint64_t)) {
    Result<Shuffle> opened = worker.open_shuffle(stage(number, row_bytes));
    EXPECT_TRUE(is_ok(opened));
    return opened.ok() ? std::move(*opened) : Shuffle();
  }
  void end(uint32_t number, const Status& failure = Status::Ok()) {
    Worker& at = worker(number);
    if (at.end_query(query_, failure) == Outcome::failed) causes_[number] = at.status();
  }
  /// Waits for rows of stage 0, and ends the query when it fails.
  void wait_for_rows(uint32_t number) {
    Shuffle shuffle = open(worker(number), 0);
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
    }
    told_at_[number] = world().now();
    batch.release();
    shuffle.close();
    end(number);
  }
  /// The others wait; worker 1 does `part`.
  void run(const Part& part) {
    for (const uint32_t number : {0u, 2u})
      cluster_->spawn(number / 2, number % 2, [this, number] { wait_for_rows(number); });
    cluster_->spawn(0, 1, [this, &part] { part(worker(1)); });
    ASSERT_TRUE(cluster_->run().ok()) << world().report();
  }
  void expect_everywhere(Code code, const std::string& text) {
    for (uint32_t w = 0; w < 3; ++w) {
      EXPECT_EQ(causes_[w].code(), code) << w << ": " << causes_[w].to_string();
      EXPECT_EQ(causes_[w].message(), text) << w;
    }
  }
  void expect_failure_everywhere(const Part& part) {
    run(part);
    expect_everywhere(Code::query_failed, kText);
  }
  /// Without the time that passes until the others wait.
  void until_others_wait() { cluster_->sleep(1'000'000); }
  /// Worker 1 closes its sender of stage 0.
  void close_one() {
    until_others_wait();
    open(worker(1), 0).close();
    failed_at_ = world().now();
  }
  base::Nanoseconds told_after(uint32_t number) const { return told_at_[number] - failed_at_; }

  std::unique_ptr<SimCluster> cluster_;
  QueryId query_;
  std::vector<Status> causes_;  // by worker
  std::vector<base::Nanoseconds> told_at_;
  base::Nanoseconds failed_at_ = 0;
};

// --- a part that fails, and says why

TEST_F(Causes, the_failure_is_told_alone_when_an_exception_has_closed_the_shuffles) {
  expect_failure_everywhere([&](Worker& worker) {
    until_others_wait();
    try {
      Shuffle first = open(worker, 0);
      Shuffle second = open(worker, 1);
      EXPECT_EQ(first.sender<uint64_t>()->send(2, 1), Outcome::done);
      throw std::runtime_error("negative price");
    } catch (const std::runtime_error&) {
      end(1, kFailure);
    }
  });
}

TEST_F(Causes, shuffles_may_be_closed_in_any_order_before_and_after_it_is_said) {
  for (const std::vector<uint32_t>& order :
       std::vector<std::vector<uint32_t>>{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {1, 0, 2}}) {
    for (size_t before = 0; before <= order.size(); ++before) {
      SCOPED_TRACE(before);
      begin();
      expect_failure_everywhere([&](Worker& worker) {
        until_others_wait();
        std::vector<Shuffle> shuffles;
        for (uint32_t s = 0; s < order.size(); ++s) shuffles.push_back(open(worker, s));
        for (size_t i = 0; i < before; ++i) shuffles[order[i]].close();
        end(1, kFailure);
        EXPECT_EQ(worker.metrics().open_shuffles, 0u);
        for (size_t i = before; i < order.size(); ++i) {
          EXPECT_FALSE(shuffles[order[i]].is_open());
          shuffles[order[i]].close();
        }
      });
    }
  }
}

TEST_F(Causes, what_is_still_open_answers_by_errors_when_the_part_has_ended) {
  expect_failure_everywhere([&](Worker& worker) {
    until_others_wait();
    Shuffle rows = open(worker, 0, 8);
    Shuffle texts = open(worker, 1, 0);
    const RowSender<uint64_t> sender = *rows.sender<uint64_t>();
    const ShuffleSender any = *texts.sender();
    const ShuffleReceiver receiver = *rows.receiver();
    RowClaim claim;
    ASSERT_EQ(any.claim(2, 100'000, claim), Outcome::done);  // larger than a ring
    Batch held;
    ASSERT_EQ(sender.send(1, 5), Outcome::done);
    ASSERT_EQ(receiver.receive(held), Outcome::done);
    ASSERT_EQ(sender.send(2, 5), Outcome::done);  // stays in its open frame
    end(1, kFailure);

    for (uint32_t to = 0; to < 3; ++to) EXPECT_EQ(sender.send(to, 6), Outcome::failed);
    EXPECT_EQ(sender.status().message(), kText);
    const std::vector<std::byte> row(8);
    EXPECT_EQ(any.send(2, row), Outcome::failed);
    EXPECT_EQ(any.broadcast(row), Outcome::failed);
    EXPECT_EQ(any.flush(), Outcome::failed);
    EXPECT_EQ(any.finish(), Outcome::failed);
    EXPECT_FALSE(claim.commit(3).ok());
    RowClaim another;
    EXPECT_EQ(any.claim(2, 8, another), Outcome::failed);
    Batch batch;
    EXPECT_EQ(receiver.receive(batch), Outcome::failed);
    EXPECT_EQ(receiver.receive_from(0, batch), Outcome::failed);
    EXPECT_EQ(receiver.stop(), Outcome::failed);
    EXPECT_EQ(rows.status().message(), kText);
    EXPECT_EQ(rows.cancel("late").message(), kText);
    EXPECT_EQ(rows.sender().status().code(), Code::closed);
    EXPECT_EQ(rows.receiver().status().code(), Code::closed);
    EXPECT_EQ(rows.spec().stage, 0u);
    EXPECT_EQ(rows.metrics().stage, 0u);
    EXPECT_EQ(held.row_count(), 1u);
    texts.close();
    held.release();
    rows.close();
    EXPECT_EQ(worker.metrics().held_frames, 0u);
  });
}

TEST_F(Causes, a_failure_is_told_by_who_merges_and_by_an_exchange) {
  expect_failure_everywhere([&](Worker& worker) {
    until_others_wait();
    Shuffle exchanged = open(worker, 0);
    Shuffle sorted = open(worker, 1);
    auto merged = MergingReceiver<uint64_t>::make(sorted);
    uint64_t row = 0;
    EXPECT_EQ(merged->next(row, Wait::none()), Outcome::would_wait);
    const auto none = [](const ShuffleSender&) { return Outcome::would_wait; };
    EXPECT_EQ(worker.exchange(
                  exchanged, none, [](Batch&) {}, Wait::none()),
              Outcome::would_wait);
    end(1, kFailure);
    EXPECT_EQ(merged->next(row), Outcome::failed);
    EXPECT_EQ(worker.exchange(exchanged, none, [](Batch&) {}), Outcome::failed);
    EXPECT_EQ(worker.status().code(), Code::closed);
  });
}

TEST_F(Causes, an_event_loop_says_it_in_its_turn_and_by_a_wait) {
  for (const bool arms : {true, false}) {
    begin();
    expect_failure_everywhere([&](Worker& worker) {
      ASSERT_TRUE(worker.on_ready([] {}).ok());
      close_one();
      Outcome outcome = Outcome::would_wait;
      const auto turn = [&] {
        outcome = worker.end_query(query_, kFailure, Wait::none());
        if (outcome == Outcome::failed) causes_[1] = worker.status();
        return outcome != Outcome::would_wait;
      };
      EXPECT_EQ(arms ? worker.arm(turn) : worker.wait_until(turn), Outcome::done);
    });
  }
}

TEST_F(Causes, a_worker_has_room_for_others_after_it_was_closed_by_a_failure) {
  run([&](Worker& worker) {
    std::vector<Shuffle> kept;
    kept.push_back(open(worker, 0));
    until_others_wait();
    end(1, kFailure);
    const uint64_t limit = cluster_->settings(0).shuffle_limit;
    const QueryId failed = std::exchange(query_, cluster_->session(0).begin_query());
    for (uint32_t s = 0; s < limit; ++s) kept.push_back(open(worker, s));
    (void)worker.end_query(query_, kFailure);
    query_ = failed;
  });
}

// --- a close that nobody explains

TEST_F(Causes, an_unexplained_close_is_told_after_its_time_by_the_network_thread) {
  run([&](Worker&) {
    close_one();
    world().sleep(10 * kTellDelay);  // the worker calls nothing
    end(1);
  });
  expect_everywhere(Code::query_cancelled, "worker 1 closed its sender of stage 0 without finish");
  for (const uint32_t other : {0u, 2u}) {
    EXPECT_GE(told_after(other), kTellDelay) << other;
    EXPECT_LT(told_after(other), kTellDelay + kTellDelay / 2) << other;
  }
}

TEST_F(Causes, a_failure_that_comes_too_late_is_not_told) {
  run([&](Worker&) {
    close_one();
    world().sleep(2 * kTellDelay);
    end(1, kFailure);
  });
  expect_everywhere(Code::query_cancelled, "worker 1 closed its sender of stage 0 without finish");
}

TEST_F(Causes, an_unexplained_close_is_told_at_once_by_any_other_call) {
  using Call = std::function<void(Worker & worker, Shuffle & other)>;
  const std::vector<std::pair<const char*, Call>> calls = {
      {"opens a shuffle",
       [&](Worker& worker, Shuffle&) { EXPECT_FALSE(worker.open_shuffle(stage(5)).ok()); }},
      {"looks at a condition",
       [](Worker& worker, Shuffle&) {
         EXPECT_EQ(worker.wait_until([] { return false; }, Wait::none()), Outcome::would_wait);
       }},
      {"waits for nothing",
       [](Worker& worker, Shuffle&) {
         EXPECT_EQ(worker.wait_until([] { return true; }), Outcome::done);
       }},
      {"sends",
       [](Worker&, Shuffle& other) {
         (void)other.sender()->send(0, std::vector<std::byte>(8), Wait::none());
       }},
      {"flushes", [](Worker&, Shuffle& other) { (void)other.sender()->flush(); }},
      {"receives",
       [](Worker&, Shuffle& other) {
         Batch batch;
         (void)other.receiver()->receive(batch, Wait::none());
       }},
      {"ends another query",
       [&](Worker& worker, Shuffle&) {
         (void)worker.end_query(cluster_->session(0).begin_query(), kFailure, Wait::none());
       }},
      {"ends it well",
       [&](Worker& worker, Shuffle&) { (void)worker.end_query(query_, Wait::none()); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    begin();
    run([&](Worker& worker) {
      Shuffle other = open(worker, 1);
      close_one();
      call(worker, other);
      EXPECT_EQ(other.status().code(), Code::query_cancelled);
      until_others_wait();
      end(1, kFailure);
    });
    expect_everywhere(Code::query_cancelled,
                      "worker 1 closed its sender of stage 0 without finish");
    for (const uint32_t other : {0u, 2u}) EXPECT_LT(told_after(other), kTellDelay / 2) << other;
  }
}

TEST_F(Causes, what_fails_the_query_meanwhile_is_its_cause) {
  const std::vector<std::pair<std::function<void(Shuffle & other)>, const char*>> ways = {
      {[](Shuffle& other) { EXPECT_TRUE(is_ok(other.cancel("the user left"))); },
       "cancelled by worker 1: the user left"},
      {[&](Shuffle&) { (void)cluster_->session(0).cancel_query(query_, "the user left"); },
       "cancelled on node 0 (simulated:0): the user left"},
      {[&](Shuffle&) { (void)cluster_->session(1).cancel_query(query_, "the user left"); },
       "cancelled on node 1 (simulated:1): the user left"},
  };
  for (const auto& [cancel, text] : ways) {
    SCOPED_TRACE(text);
    begin();
    run([&](Worker& worker) {
      Shuffle other = open(worker, 1);
      close_one();
      cancel(other);
      until_others_wait();
      end(1, kFailure);
    });
    for (const Status& cause : causes_) {
      EXPECT_EQ(cause.code(), Code::query_cancelled) << cause.to_string();
      EXPECT_NE(cause.message().find("the user left"), std::string::npos) << cause.to_string();
    }
  }
}

TEST_F(Causes, the_failure_of_another_worker_is_told_alone_too) {
  run([&](Worker&) {
    close_one();
    until_others_wait();
    end(1, kFailure);
  });
  expect_everywhere(Code::query_failed, kText);
  // Now both close, and the other one says why first.
  begin();
  for (const uint32_t number : {0u, 1u, 2u}) {
    cluster_->spawn(number / 2, number % 2, [this, number] {
      if (number == 0) return wait_for_rows(0);
      until_others_wait();
      open(worker(number), 0).close();
      world().sleep(number == 2 ? 1'000'000 : 20'000'000);
      end(number, kFailure);
    });
  }
  ASSERT_TRUE(cluster_->run().ok()) << world().report();
  expect_everywhere(Code::query_failed, "worker 2 failed: internal_error: BadRow: negative price");
}

TEST_F(Causes, another_thread_closes_a_shuffle_and_the_owner_has_its_worker_still) {
  run([&](Worker& worker) {
    until_others_wait();
    Shuffle shuffle = open(worker, 0);
    std::thread collector([&] { shuffle.close(); });
    collector.join();
    end(1, kFailure);
  });
  expect_everywhere(Code::query_failed, kText);
}

}  // namespace
}  // namespace faro::test
