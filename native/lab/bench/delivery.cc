#include "lab/bench/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "base/return_if_error.h"
#include "base/settings.h"
#include "faro/hash.h"
#include "faro/session.h"
#include "lab/bench/cluster.h"
#include "lab/bench/node_life.h"
#include "lab/bench/two_stage_job.h"

namespace faro::bench {
namespace {

using workload::EndsCodec;

constexpr std::string_view kCaseNames[] = {"skewed", "absent", "holding", "wide", "broadcast"};
constexpr uint64_t kFrequentKey = 7;
constexpr uint64_t kBlockRows = 512;  // that are made between two looks at what has come
constexpr uint32_t kWideRowsAtOnce = 4;
constexpr uint32_t kOddWorker = 1;  // that is absent, or holds

/// How one run of the job differs from the others.
struct Way {
  std::string_view name;
  Delivery delivery = Delivery::node;
  bool without_odd_worker = false;  // it does not receive
  bool is_absent = false;
  bool holds = false;
  bool same_memory = false;   // rings as many times larger as there are fewer of them
  bool copies_alone = false;  // no carrier takes part
  bool hands_on = false;      // what one thread copies in another one copies out
};

std::vector<Way> ways_of(DeliveryCase which) {
  switch (which) {
    case DeliveryCase::skewed:
      return {{.name = "worker", .delivery = Delivery::worker}, {.name = "node"}};
    case DeliveryCase::absent:
      return {{.name = "all"}, {.name = "absent", .is_absent = true}};
    case DeliveryCase::holding:
      return {{.name = "without", .without_odd_worker = true}, {.name = "holding", .holds = true}};
    case DeliveryCase::wide:
      return {{.name = "handed_on", .copies_alone = true, .hands_on = true},
              {.name = "copies", .copies_alone = true},
              {.name = "node"}};
    case DeliveryCase::broadcast:
      return {{.name = "worker", .delivery = Delivery::worker},
              {.name = "replicate", .delivery = Delivery::replicate},
              {.name = "same_memory", .delivery = Delivery::replicate, .same_memory = true}};
  }
  return {};
}

/// Takes as many instructions for each row, whatever comes of them.
void work_on(uint64_t n, uint32_t steps) noexcept {
  for (uint32_t step = 0; step < steps; ++step) {
    n = n * 0x9e3779b97f4a7c15ULL + 1;
    asm volatile("" : "+r"(n));
  }
}

/// Workers of one process that have received all, over all rounds: each process has its own after the fork.
class Ended {
 public:
  void add() noexcept {
    count_.fetch_add(1, std::memory_order_release);  // pairs with wait_for
    count_.notify_all();
  }
  /// Blocks without a call of the library.
  void wait_for(uint32_t count) noexcept {
    for (uint32_t now; (now = count_.load(std::memory_order_acquire)) < count;) count_.wait(now);
  }

 private:
  std::atomic<uint32_t> count_{0};
};

/// What all workers have in common, rows of 8 bytes or of 64 KiB.
class DeliveryWorker : public RoundWorker {
 public:
  DeliveryWorker(const DeliveryJob& job, const Way& way, Ended& ended, Worker& worker,
                 std::atomic<uint64_t>& progress)
      : job_(job),
        way_(way),
        ended_(ended),
        worker_(worker),
        progress_(progress),
        is_odd_(worker.number() == kOddWorker),
        sends_(!(is_odd_ && job.which == DeliveryCase::holding)),
        receives_(!(is_odd_ && way.without_odd_worker)) {}

  Status run(const QueryId& query) final {
    sum_ = {};
    if (sends_ || receives_) FARO_RETURN_IF_ERROR(run_shuffle(query));
    return end_query(worker_, query);
  }

  Totals totals() const final { return sum_.totals(); }

 protected:
  virtual Status begin(const Shuffle& shuffle) = 0;
  /// Some of rest(). Answers as ExchangePart::Produce.
  virtual Outcome send(const ShuffleSender& sender, Wait wait) = 0;
  virtual void add_up(const Batch& batch) = 0;

  const DeliveryJob& job() const { return job_; }
  IntegerRange& rest() { return rest_; }
  RowSum& sum() { return sum_; }

 private:
  Status run_shuffle(const QueryId& query) {
    ShuffleSpec spec{query, 0, job_.row_bytes(), {}, {}};
    if (job_.which == DeliveryCase::holding) spec.senders = all_but_the_odd_one();
    if (way_.without_odd_worker) spec.receivers = all_but_the_odd_one();
    spec.delivery = way_.delivery;
    FARO_ASSIGN_OR_RETURN(Shuffle shuffle, worker_.open_shuffle(spec));
    if (sends_) FARO_RETURN_IF_ERROR(begin(shuffle));
    rest_ = sends_ ? own_rows() : IntegerRange{};
    const bool is_absent = way_.is_absent && is_odd_;
    if (is_absent) FARO_RETURN_IF_ERROR(send_alone(shuffle));
    const Outcome outcome = worker_.exchange(
        shuffle,
        sends_ && !is_absent
            ? [this](const ShuffleSender& sender) { return send(sender, Wait::none()); }
            : ExchangePart::Produce{},
        receives_ ? [this](Batch& batch) { take(batch); } : ExchangePart::Consume{});
    if (outcome != Outcome::end_of_stream) return worker_.status();
    if (!is_absent) ended_.add();
    shuffle.close();
    return Status::Ok();
  }

  std::vector<uint32_t> all_but_the_odd_one() const {
    std::vector<uint32_t> all(job_.worker_count());
    std::iota(all.begin(), all.end(), 0);
    std::erase(all, kOddWorker);
    return all;
  }

  /// The rows that this worker sends.
  IntegerRange own_rows() const {
    const IntegerRange all{0, job_.rows};
    const uint32_t number = worker_.number();
    if (job_.which != DeliveryCase::holding) return all.part(number, job_.worker_count());
    return all.part(number < kOddWorker ? number : number - 1, job_.worker_count() - 1);
  }

  /// Sends all, and makes no call until the other workers of this process have received all.
  Status send_alone(const Shuffle& shuffle) {
    FARO_ASSIGN_OR_RETURN(const ShuffleSender sender, shuffle.sender());
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done) outcome = send(sender, Wait::forever());
    if (outcome != Outcome::end_of_stream || sender.finish() != Outcome::done)
      return sender.status();
    ended_.wait_for(++round_ * (job_.workers_per_process - 1));
    return Status::Ok();
  }

  void take(Batch& batch) {
    if (way_.holds && is_odd_) std::this_thread::sleep_for(std::chrono::nanoseconds(job_.hold_ns));
    add_up(batch);
    progress_.store(sum_.count, std::memory_order_relaxed);
  }

  const DeliveryJob job_;
  const Way way_;
  Ended& ended_;
  Worker& worker_;
  std::atomic<uint64_t>& progress_;
  const bool is_odd_;
  const bool sends_;
  const bool receives_;
  IntegerRange rest_;
  RowSum sum_;
  uint32_t round_ = 0;
};

/// Rows of an integer each, on which a receiver works.
class NarrowWorker final : public DeliveryWorker {
 public:
  using DeliveryWorker::DeliveryWorker;

 private:
  using Row = workload::IntegerRow<8>;
  using Codec = RowCodec<8>;

  Status begin(const Shuffle& shuffle) override {
    FARO_ASSIGN_OR_RETURN(sender_, shuffle.sender<Row>());
    return Status::Ok();
  }

  Outcome send(const ShuffleSender&, Wait wait) override {
    if (rest().empty()) return Outcome::end_of_stream;
    block_.resize(std::min(kBlockRows, rest().size()));
    for (size_t i = 0; i < block_.size(); ++i) Codec::write(block_[i].bytes, rest().begin + i);
    const bool skewed = job().which == DeliveryCase::skewed;
    const auto key_of = [skewed](const Row& row) noexcept {
      const uint64_t n = Row::key_of(row);
      return skewed && n % 4 != 0 ? kFrequentKey : n;
    };
    const Sent sent = sender_.send_all(std::span<const Row>(block_), FinalizerHash{}, key_of, wait);
    rest().begin += sent.rows;
    return sent.outcome;
  }

  void add_up(const Batch& batch) override {
    for (const Row& row : batch.rows<Row>()) {
      const uint64_t n = Codec::read(row.bytes, sum().damage);
      work_on(n, job().steps_per_row);
      sum().add(n);
    }
  }

  RowSender<Row> sender_;
  std::vector<Row> block_;
};

/// Rows to all workers.
class BroadcastWorker final : public DeliveryWorker {
 public:
  using DeliveryWorker::DeliveryWorker;

 private:
  static constexpr uint32_t kRowBytes = DeliveryJob::kBroadcastRowBytes;
  using Row = workload::IntegerRow<kRowBytes>;
  using Loops = workload::RowLoops<kRowBytes>;

  Status begin(const Shuffle& shuffle) override {
    FARO_ASSIGN_OR_RETURN(sender_, shuffle.sender<Row>());
    made_ = 0;
    return Status::Ok();
  }

  Outcome send(const ShuffleSender&, Wait wait) override {
    if (rest().empty()) return Outcome::end_of_stream;
    if (made_ == 0) {  // rows that find no room are kept
      made_ = std::min(kBlockRows, rest().size());
      block_.resize(made_);
      Loops::generate(rest().begin, made_, block_.data());
    }
    const Sent sent = sender_.broadcast_all(std::span<const Row>(block_).last(made_), wait);
    made_ -= sent.rows;
    rest().begin += sent.rows;
    return sent.outcome;
  }

  void add_up(const Batch& batch) override {
    const std::span<const Row> rows = batch.rows<Row>();
    sum() += Loops::sum(rows.data(), rows.size());
  }

  RowSender<Row> sender_;
  std::vector<Row> block_;
  size_t made_ = 0;  // of the block, not yet sent: the last ones
};

/// Memory that rows of 64 KiB are copied from and to.
struct WideRow {
  std::vector<std::byte> from{DeliveryJob::kWideRowBytes};
  std::vector<std::byte> to{DeliveryJob::kWideRowBytes};

  void take(const std::byte* row, RowSum& sum) {
    std::memcpy(to.data(), row, to.size());
    sum.add(EndsCodec::read(to, sum.damage));
  }
};

class WideWorker final : public DeliveryWorker {
 public:
  using DeliveryWorker::DeliveryWorker;

 private:
  Status begin(const Shuffle&) override { return Status::Ok(); }

  Outcome send(const ShuffleSender& sender, Wait wait) override {
    Outcome outcome = Outcome::done;
    for (uint32_t i = 0; i < kWideRowsAtOnce && outcome == Outcome::done; ++i) {
      if (rest().empty()) return Outcome::end_of_stream;
      const uint64_t n = rest().begin;
      EndsCodec::write(row_.from, n);
      const uint32_t to = workload::destination_of<FinalizerHash>(n, sender.receiver_count());
      outcome = sender.send(to, row_.from, wait);
      if (outcome == Outcome::done) ++rest().begin;
    }
    return outcome;
  }

  void add_up(const Batch& batch) override {
    for (const std::span<const std::byte> row : batch.each_row()) row_.take(row.data(), sum());
  }

  WideRow row_;
};

/// Rows that one thread copies in and another one copies out: memory that both share, as large as the rings of a worker. All zero at
/// first. Positions count rows.
struct SharedRows {
  alignas(
      64) std::atomic<uint64_t> written;   // by who copies in; released, and acquired by the other
  alignas(64) std::atomic<uint64_t> read;  // by who copies out; released, and acquired by the other

  std::byte* row(uint64_t at, uint64_t slots) noexcept {
    return reinterpret_cast<std::byte*>(this + 1) + at % slots * DeliveryJob::kWideRowBytes;
  }
  static uint64_t bytes(uint64_t slots) {
    return sizeof(SharedRows) + slots * DeliveryJob::kWideRowBytes;
  }
};

/// Copies rows without a carrier: in and out itself, or in for the next worker, and out what the one before has copied in.
class CopyingWorker {
 public:
  CopyingWorker(const DeliveryJob& job, uint32_t worker, uint64_t slots, bool hands_on,
                std::byte* memory)
      : range_(IntegerRange{0, job.rows}.part(worker, job.worker_count())),
        slots_(slots),
        to_(at(memory, worker)),
        before_((hands_on ? worker + job.worker_count() - 1 : worker) % job.worker_count()),
        from_(at(memory, before_)),
        expected_(IntegerRange{0, job.rows}.part(before_, job.worker_count()).size()) {}

  Status run_round() {
    sum_ = {};
    IntegerRange rest = range_;
    const uint64_t end = from_.read.load(std::memory_order_relaxed) + expected_;
    while (true) {
      const bool moved = copy_out() | copy_in(rest);
      if (rest.empty() && from_.read.load(std::memory_order_relaxed) == end) return Status::Ok();
      if (!moved) std::this_thread::yield();
    }
  }
  Totals totals() const { return sum_.totals(); }

 private:
  SharedRows& at(std::byte* memory, uint32_t worker) const {
    return *reinterpret_cast<SharedRows*>(memory + worker * SharedRows::bytes(slots_));
  }

  bool copy_in(IntegerRange& rest) {
    const uint64_t written = to_.written.load(std::memory_order_relaxed);
    if (rest.empty() || written - to_.read.load(std::memory_order_acquire) == slots_) return false;
    EndsCodec::write(row_.from, rest.begin++);
    std::memcpy(to_.row(written, slots_), row_.from.data(), row_.from.size());
    to_.written.store(written + 1, std::memory_order_release);
    return true;
  }

  bool copy_out() {
    const uint64_t read = from_.read.load(std::memory_order_relaxed);
    if (from_.written.load(std::memory_order_acquire) == read) return false;
    row_.take(from_.row(read, slots_), sum_);
    from_.read.store(read + 1, std::memory_order_release);
    return true;
  }

  const IntegerRange range_;
  const uint64_t slots_;
  SharedRows& to_;
  const uint32_t before_;
  SharedRows& from_;
  const uint64_t expected_;  // rows of whom it copies out
  WideRow row_;
  RowSum sum_;
};

struct Once {
  RunFigures figures;
  uint64_t bytes_to_others = 0;
};

Result<Once> copy_once(const DeliveryJob& job, bool hands_on, const Config& config,
                       const Expectation& expected, const RunOptions& once) {
  FARO_ASSIGN_OR_RETURN(const base::Settings settings,
                        base::Settings::resolve_without_nodes(config));
  const uint64_t slots =
      std::max<uint64_t>(2, job.process_count * settings.ring_bytes / job.row_bytes());
  ProcessGroupOptions group = group_options(job.process_count, job.workers_per_process, once);
  group.shared_bytes = job.worker_count() * SharedRows::bytes(slots);
  const auto body = [&](GroupMember& member) {
    member.run_workers([&](uint32_t local) {
      CopyingWorker worker(job, member.global_worker(local), slots, hands_on,
                           static_cast<std::byte*>(member.shared_area()));
      return member.run_rounds(local, worker);
    });
    return Status::Ok();
  };
  FARO_ASSIGN_OR_RETURN(const std::vector<RunFigures> rounds,
                        run_group(group, expected, once, body));
  return Once{rounds.front(), 0};
}

Result<Once> run_once(const DeliveryJob& job, const Way& way, const Config& config) {
  const RunOptions once;  // and once before, to warm up
  const uint64_t copies = job.copies();
  const Totals each = workload::totals_of(job.rows);
  const Expectation expected{
      job.rows, copies * job.rows, {copies * each.count, copies * each.checksum}};
  if (way.copies_alone) return copy_once(job, way.hands_on, config, expected, once);
  Config own = config;
  FARO_RETURN_IF_ERROR(
      own.set("lane.ends", way.delivery == Delivery::worker ? "workers" : "node", "bench"));
  if (way.same_memory) {
    FARO_ASSIGN_OR_RETURN(const base::Settings settings,
                          base::Settings::resolve_without_nodes(config));
    const uint64_t larger = settings.ring_bytes * std::bit_ceil(job.workers_per_process);
    FARO_RETURN_IF_ERROR(own.set("ring.bytes", larger, "bench"));
  }
  Ended ended;
  const MakeRoundWorker make =
      [&](Session&, Worker& worker,
          std::atomic<uint64_t>& progress) -> std::unique_ptr<RoundWorker> {
    if (job.which == DeliveryCase::wide)
      return std::make_unique<WideWorker>(job, way, ended, worker, progress);
    if (job.which == DeliveryCase::broadcast)
      return std::make_unique<BroadcastWorker>(job, way, ended, worker, progress);
    return std::make_unique<NarrowWorker>(job, way, ended, worker, progress);
  };
  FARO_ASSIGN_OR_RETURN(const FaroRun run,
                        run_cluster({job.process_count, job.workers_per_process, expected, make},
                                    {.config = own}, once));
  Once once_run{run.rounds.front(), 0};
  for (const NodeReport& node : run.nodes) {
    for (const LinkMetrics& link : node.metrics.links)
      if (link.transport != "local") once_run.bytes_to_others += link.bytes_sent;
  }
  return once_run;
}

}  // namespace

Result<DeliveryCase> parse_delivery_case(std::string_view name) {
  const auto found = std::ranges::find(kCaseNames, name);
  if (found != std::end(kCaseNames))
    return static_cast<DeliveryCase>(std::distance(std::begin(kCaseNames), found));
  return Status(Code::invalid_argument, fmt::format("case = {}: must be {}", name, kDeliveryCases));
}

uint32_t DeliveryJob::row_bytes() const noexcept {
  if (which == DeliveryCase::wide) return kWideRowBytes;
  return which == DeliveryCase::broadcast ? kBroadcastRowBytes : 8;
}

Status DeliveryJob::validate() const {
  FARO_RETURN_IF_ERROR((TwoStageJob{process_count, workers_per_process, 0}.validate()));
  if (workers_per_process >= 2) return Status::Ok();
  if (which != DeliveryCase::absent && which != DeliveryCase::holding) return Status::Ok();
  return Status(Code::invalid_argument,
                fmt::format("workers per process = {}: must be 2 or more, for one of them receives "
                            "nothing or is slow",
                            workers_per_process));
}

Result<std::vector<DeliveryWay>> run_delivery(const DeliveryJob& job, const Config& config) {
  FARO_RETURN_IF_ERROR(job.validate());
  const std::vector<Way> ways = ways_of(job.which);
  std::vector<DeliveryWay> all;
  for (const Way& way : ways) all.push_back({std::string(way.name), {}, {}, 0});
  for (uint32_t round = 0; round < job.rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) {
      FARO_ASSIGN_OR_RETURN(const Once once, run_once(job, ways[i], config));
      all[i].rounds.push_back(once.figures);
      all[i].bytes_to_others = once.bytes_to_others;
    }
  }
  for (DeliveryWay& way : all) way.median = median_of(way.rounds);
  return all;
}

double least_seconds(const RunFigures& run, uint32_t processors) noexcept {
  return std::max(run.busiest_cpu_seconds, run.cpu_seconds / processors);
}

double most_loaded(uint64_t rows, double part_of_one_key, uint32_t units) {
  std::vector<uint64_t> loads(units);
  const auto frequent = static_cast<uint64_t>(static_cast<double>(rows) * part_of_one_key);
  loads[workload::destination_of<FinalizerHash>(kFrequentKey, units)] += frequent;
  for (uint64_t key = frequent; key < rows; ++key)
    ++loads[workload::destination_of<FinalizerHash>(key, units)];
  return static_cast<double>(*std::ranges::max_element(loads)) * units / static_cast<double>(rows);
}

}  // namespace faro::bench
