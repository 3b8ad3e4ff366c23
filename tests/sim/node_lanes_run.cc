#include "sim/node_lanes_run.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "faro/session.h"
#include "node/node_core.h"
#include "node/session_access.h"
#include "shuffle/overflow/overflow.h"
#include "sim/cluster.h"

namespace faro::test {
namespace {

// A node with one worker, 0, which sends, and one with two or more, from 1 on. Two rings lead from worker 0 to these.
ClusterShape shape_of(uint64_t seed, uint32_t workers, const char* drain_delay_us) {
  ClusterShape shape;
  shape.workers_per_node = {1, workers};
  shape.knobs.stall_limit = 2'000'000'000;
  shape.knobs.preempted_one_in = 1 + seed % 4;
  shape.configure = [drain_delay_us](Config& config, uint32_t) {
    for (const auto& [name, value] :
         {std::pair("lane.ends", "node"), std::pair("ring.per_lane", "2"),
          std::pair("ring.bytes", "4096"), std::pair("wait.sleep_ms", "10000"),
          std::pair("drain.delay_us", drain_delay_us)})
      (void)config.set(name, std::string_view(value));
  };
  return shape;
}

/// What the workers do, in a world of its own.
class Run {
 public:
  explicit Run(uint64_t seed, uint32_t workers = 2, const char* drain_delay_us = "10000000")
      : cluster_(seed, shape_of(seed, workers, drain_delay_us)), workers_(workers) {}
  virtual ~Run() = default;

  std::string run() {
    Status ran = cluster_.open_sessions();
    if (!ran.ok()) return ran.to_string();
    query_ = cluster_.session(0).begin_query();
    cluster_.spawn(0, 0, [this] { part(0, [this] { send(); }); });
    cluster_.spawn(1, 0, [this] { part(1, [this] { go_by(); }); });
    cluster_.spawn(1, 1, [this] { part(2, [this] { receive(); }); });
    if (workers_ > 2) cluster_.spawn(1, 2, [this] { part(3, [this] { look_on(); }); });
    ran = cluster_.run();
    return ran.ok() ? violation_ : ran.to_string();
  }

 protected:
  virtual void send() = 0;
  /// Worker 1, which does its own, and makes no call while `until` waits.
  virtual void go_by() = 0;
  /// Worker 2, for which the rows of stage 0 are.
  virtual void receive() {
    const Shuffle shuffle = open(2, 0);
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      note_awake(2);
      received_ += batch.row_count();
    }
  }

  /// Worker 3, if there is one.
  virtual void look_on() {}

  ShuffleSpec spec(uint32_t stage, std::vector<uint32_t> receivers, Delivery delivery) {
    ShuffleSpec made{query_, stage, sizeof(uint64_t), {0}, std::move(receivers)};
    made.delivery = delivery;
    return made;
  }
  Worker& worker(uint32_t number) {
    return number == 0 ? cluster_.session(0).worker(0) : cluster_.session(1).worker(number - 1);
  }
  /// Stage 0 is for worker 2, all others for worker 1; stage 2 goes by the same ring.
  Shuffle open(uint32_t number, uint32_t stage) {
    return open(number, spec(stage, {stage == 0 ? 2u : 1u}, Delivery::worker));
  }
  /// Stage 0, for any of them.
  Shuffle open_for_any(uint32_t number) { return open(number, spec(0, {1, 2}, Delivery::node)); }
  Shuffle open(uint32_t number, const ShuffleSpec& spec) {
    Result<Shuffle> shuffle = worker(number).open_shuffle(spec);
    if (!shuffle.ok()) violate(shuffle.status().to_string());
    return shuffle.ok() ? std::move(*shuffle) : Shuffle();
  }
  void violate(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  void until(const std::function<bool()>& condition) {
    cluster_.world().wait_until(condition, base::kForever, "the others");
  }
  void note_awake(uint32_t number) { sleeps_[number] = worker(number).metrics().sleeps; }
  /// Since that was noted.
  bool is_asleep(uint32_t number) { return worker(number).metrics().sleeps > sleeps_[number]; }
  /// Sends a first row, and lets worker 2 ask once for senders that have not opened, which it does after 100 ms.
  void begin(const Shuffle& shuffle) {
    send_now(shuffle, 0);
    until([this] { return received_ == 1; });
    cluster_.sleep(300 * base::kMillisecond);
  }
  static void send_now(const Shuffle& shuffle, uint64_t row) {
    (void)shuffle.sender<uint64_t>()->send(0, row);
    (void)shuffle.sender()->flush();
  }

  SimCluster cluster_;
  QueryId query_;
  uint64_t received_ = 0;  // by worker 2

 private:
  void part(uint32_t number, const std::function<void()>& body) {
    body();
    if (worker(number).end_query(query_) != Outcome::done)
      violation_ += worker(number).status().to_string();
  }

  const uint32_t workers_;
  std::array<uint64_t, 4> sleeps_{};
  std::string violation_;
};

// Both sleep, and worker 1 is rung every second time. What it waited for is there already.
class Rung final : public Run {
 public:
  using Run::Run;

 private:
  static constexpr uint64_t kRows = 4;

  void send() override {
    const Shuffle shuffle = open(0, 0);
    begin(shuffle);
    for (uint64_t row = 1; row < kRows; ++row) {
      until([this, row] { return received_ == row && is_asleep(1) && is_asleep(2); });
      ++there_;
      send_now(shuffle, row);
    }
    until([this] { return received_ == kRows; });
    (void)shuffle.sender()->finish();
  }
  void go_by() override {
    for (uint64_t row = 1; row < kRows; ++row) {
      (void)worker(1).wait_until([this, row] { return there_ >= row; });
      until([this, row] { return received_ > row; });
      note_awake(1);
    }
  }

  uint64_t there_ = 0;
};

// Rows are for any worker of the node. Worker 2 has opened their stage, but sleeps for something else, and worker 3, which has not, is
// the one that hears of every third.
class PassedOn final : public Run {
 public:
  explicit PassedOn(uint64_t seed) : Run(seed, 3) {}

 private:
  static constexpr uint64_t kRows = 12;

  void send() override {
    const Shuffle shuffle = open_for_any(0);
    until([this] { return has_opened_; });
    cluster_.sleep(10 * base::kMillisecond);  // all sleep
    for (uint64_t row = 0; row < kRows; ++row) {
      send_now(shuffle, row);
      cluster_.sleep(10 * base::kMillisecond);
      if (received_ != row + 1) return violate("a row that nobody took in time");
    }
    (void)shuffle.sender()->finish();
  }
  void go_by() override {
    const Shuffle shuffle = open_for_any(1);
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      received_ += batch.row_count();
      if (received_ < kRows) continue;
      worker(2).wake();
      worker(3).wake();
    }
  }
  void receive() override {
    const Shuffle shuffle = open_for_any(2);
    has_opened_ = true;
    (void)worker(2).wait_until([this] { return received_ == kRows; });
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) violate("a row for worker 2");
  }
  void look_on() override {
    (void)worker(3).wait_until([this] { return received_ == kRows; });
  }

  bool has_opened_ = false;
};

// Rows are for any worker of the node. Worker 1 takes some and stops; worker 2 takes the rest.
class Stops final : public Run {
 public:
  using Run::Run;

 private:
  static constexpr uint64_t kRows = 3000;

  void send() override {
    const Shuffle shuffle = open_for_any(0);
    for (uint64_t row = 0; row < kRows; ++row) (void)shuffle.sender<uint64_t>()->send(0, row);
    (void)shuffle.sender()->finish();
  }
  void go_by() override {
    const Shuffle shuffle = open_for_any(1);
    Batch batch;
    if (shuffle.receiver()->receive(batch) == Outcome::done) received_ += batch.row_count();
    batch.release();
    (void)shuffle.receiver()->stop();
  }
  void receive() override {
    const Shuffle shuffle = open_for_any(2);
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) received_ += batch.row_count();
    // Worker 1 may not have counted yet what it has taken.
    cluster_.sleep(base::kMillisecond);
    if (received_ != kRows) violate("rows that nobody got");
  }
};

// Rows are for each worker of the node, and wait in overflow. Workers 1 and 2 read them while worker 3, for which they stay, does not.
class ReadByEach final : public Run {
 public:
  explicit ReadByEach(uint64_t seed) : Run(seed, 3, "1000") {}

 private:
  static constexpr uint64_t kRows = 5'000;

  Shuffle open_for_each(uint32_t number) {
    return open(number, spec(0, {1, 2, 3}, Delivery::replicate));
  }
  void send() override {
    const Shuffle shuffle = open_for_each(0);
    for (uint64_t row = 0; row < kRows; ++row) (void)shuffle.sender<uint64_t>()->send(0, row);
    (void)shuffle.sender()->finish();
    has_sent_ = true;
    for (const uint32_t number : {1, 2}) worker(number).wake();
  }
  void go_by() override {
    read_when(1, [this] { return has_sent_; });
  }
  void receive() override {
    read_when(2, [this] { return has_sent_; });
  }
  void look_on() override {
    read_when(3, [this] { return have_read_ == 2; });
  }
  void read_when(uint32_t number, const std::function<bool()>& condition) {
    const Shuffle shuffle = open_for_each(number);
    (void)worker(number).wait_until(condition);
    uint64_t rows = 0;
    Batch batch;
    while (shuffle.receiver()->receive(batch) == Outcome::done) {
      rows += batch.row_count();
      const uint64_t charged = SessionAccess::core(cluster_.session(1)).overflow().memory_bytes();
      if (charged > most_to_charge())
        violate(fmt::format("{} bytes of overflow for at most {}", charged, most_to_charge()));
    }
    batch.release();
    if (rows != kRows) violate(fmt::format("worker {} has read {} rows", number, rows));
    ++have_read_;
    worker(3).wake();
  }
  // What was moved, a block for each frame with what it takes beside its bytes; and OPEN.
  uint64_t most_to_charge() {
    uint64_t most = shuffle::Overflow::taken_in_memory(64) + shuffle::Overflow::kDescriptionBytes;
    for (const uint32_t number : {1, 2, 3}) {
      const WorkerMetrics metrics = worker(number).metrics();
      most += metrics.bytes_spilled +
              metrics.frames_spilled *
                  (shuffle::Overflow::taken_in_memory(16) + shuffle::Overflow::kDescriptionBytes);
    }
    return most;
  }

  bool has_sent_ = false;
  uint32_t have_read_ = 0;
};

// Worker 1 holds half of the ring, releases it when the sender waits for just that, and makes no call then.
class Released final : public Run {
 public:
  using Run::Run;

 private:
  void send() override {
    const Shuffle other = open(0, 2);
    const Shuffle shuffle = open(0, 0);
    begin(shuffle);
    const auto sender = other.sender<uint64_t>();
    for (uint64_t row = 0; sender->send(0, row, Wait::none()) == Outcome::done; ++row) continue;
    (void)other.sender()->flush();
    until([this] { return holds_; });
    is_blocked_ = true;
    note_awake(0);
    send_now(shuffle, 1);
    until([this] { return received_ == 2; });
    (void)shuffle.sender()->finish();
    (void)other.sender()->finish();
  }
  void go_by() override {
    const Shuffle shuffle = open(1, 2);
    Batch batch;
    (void)shuffle.receiver()->receive(batch);
    holds_ = true;
    until([this] { return is_blocked_ && is_asleep(0); });
    batch.release();
    until([this] { return received_ == 2; });
    while (shuffle.receiver()->receive(batch) == Outcome::done) continue;
  }

  bool holds_ = false;
  bool is_blocked_ = false;
};

// Rows come for both, by two rings. Worker 1 looks a few times meanwhile, and makes no call then until worker 2 has its row.
class LooksBeside final : public Run {
 public:
  explicit LooksBeside(uint64_t seed) : Run(seed), seed_(seed) {}

 private:
  static constexpr uint64_t kRows = 40;

  void send() override {
    const Shuffle shuffle = open(0, 0);
    const Shuffle other = open(0, 1);
    begin(shuffle);
    for (uint64_t row = 1; row < kRows; ++row) {
      until([this, row] { return received_ == row && trial_ == row; });
      send_now(other, row);
      send_now(shuffle, row);
    }
    (void)shuffle.sender()->finish();
    (void)other.sender()->finish();
  }
  void go_by() override {
    const Shuffle shuffle = open(1, 1);
    until([this] { return received_ == 1; });
    Batch batch;
    while (trial_ + 1 < kRows) {
      ++trial_;
      const uint64_t looks = (seed_ + trial_ * 7) % 300;
      for (uint64_t look = 0; look < looks && received_ <= trial_; ++look)
        (void)shuffle.receiver()->receive(batch, Wait::none());
      until([this] { return received_ > trial_; });
    }
    while (shuffle.receiver()->receive(batch) == Outcome::done) continue;
  }

  const uint64_t seed_;
  uint64_t trial_ = 0;
};

}  // namespace

simulation::RunReport run_node_lanes_seed(uint64_t seed) {
  simulation::RunReport report;
  report.seed = seed;
  report.violation = Rung(seed).run();
  if (report.violation.empty()) report.violation = PassedOn(seed).run();
  if (report.violation.empty()) report.violation = Stops(seed).run();
  if (report.violation.empty()) report.violation = ReadByEach(seed).run();
  if (report.violation.empty()) report.violation = Released(seed).run();
  if (report.violation.empty()) report.violation = LooksBeside(seed).run();
  return report;
}

}  // namespace faro::test
