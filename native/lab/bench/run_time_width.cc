#include "lab/bench/run_time_width.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "base/return_if_error.h"
#include "faro/session.h"
#include "lab/workload/integer_rows.h"
#include "lab/workload/row_loops.h"

namespace faro::bench {
namespace {

using workload::kRowWidths, workload::RowSum;

constexpr size_t kBlockBytes =
    16 * 1024;  // of rows that are made at once, apart from what is timed

uint64_t thread_cpu_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

/// CPU time of this thread in laps of some microseconds, without what looking at the clock takes: half a microsecond each on some
/// machines.
class LapTime {
 public:
  void start() noexcept { start_ns_ = thread_cpu_ns(); }
  void stop() noexcept {
    ns_ += thread_cpu_ns() - start_ns_;
    ++laps_;
  }
  double ns(double empty_lap_ns) const noexcept {
    return static_cast<double>(ns_) - static_cast<double>(laps_) * empty_lap_ns;
  }

  static double empty_lap_ns() noexcept {
    constexpr uint32_t kLaps = 10'000;
    LapTime time;
    for (uint32_t lap = 0; lap < kLaps; ++lap) {
      time.start();
      time.stop();
    }
    return time.ns(0) / kLaps;
  }

 private:
  uint64_t start_ns_ = 0;
  uint64_t ns_ = 0;
  uint64_t laps_ = 0;
};

/// What one round has taken.
struct Taken {
  LapTime send;
  LapTime receive;
  RowSum sum;
};

/// One round of one way: a query of one shuffle, from a worker to itself.
template <uint32_t kRowBytes>
class Round {
 public:
  using Codec = workload::RowCodec<kRowBytes>;
  using Row = workload::IntegerRow<kRowBytes>;

  Round(RowWay way, uint64_t rows) : way_(way), rows_(rows) { block_.reserve(kBlockRows); }

  Result<Taken> run(Session& session) {
    Worker& worker = session.worker(0);
    const QueryId query = session.begin_query();
    FARO_ASSIGN_OR_RETURN(Shuffle shuffle, worker.open_shuffle({query, 0, kRowBytes, {}, {}}));
    FARO_ASSIGN_OR_RETURN(sender_, shuffle.template sender<Row>());
    FARO_ASSIGN_OR_RETURN(receiver_, shuffle.receiver());
    Outcome outcome = Outcome::done;
    while (outcome != Outcome::end_of_stream) {
      if (!finished_) outcome = send();
      if (outcome != Outcome::failed) outcome = receive();
      if (outcome == Outcome::failed) return shuffle.status();
    }
    shuffle.close();
    if (worker.end_query(query) != Outcome::done) return worker.status();
    return taken_;
  }

 private:
  static constexpr uint64_t kBlockRows = kBlockBytes / kRowBytes;

  /// As much as there is room for.
  Outcome send() {
    Outcome outcome = Outcome::done;
    while (outcome == Outcome::done && !finished_) {
      if (at_ == block_.size()) make_block();
      taken_.send.start();
      outcome = block_.empty() ? sender_.finish(Wait::none()) : send_block();
      taken_.send.stop();
      finished_ = block_.empty() && outcome == Outcome::done;
    }
    return outcome;
  }

  void make_block() {
    block_.resize(std::min(kBlockRows, rows_ - made_));
    for (Row& row : block_) Codec::write(row.bytes, made_++);
    at_ = 0;
  }

  Outcome send_block() {
    switch (way_) {
      case RowWay::typed:
        return send_typed();
      case RowWay::bytes:
        return send_bytes();
      case RowWay::in_place:
        return write_bytes();
      case RowWay::typed_broadcast:
        return broadcast_typed();
      case RowWay::bytes_broadcast:
        return broadcast_bytes();
    }
    return Outcome::failed;
  }

  template <typename SendRow>
  [[gnu::always_inline]] Outcome send_each(const SendRow& send_row) {
    const Row* const rows = block_.data();
    const size_t count = block_.size();
    Outcome outcome = Outcome::done;
    size_t at = at_;
    while (at < count && (outcome = send_row(rows[at])) == Outcome::done) ++at;
    at_ = at;
    return outcome;
  }

  [[gnu::noinline]] Outcome send_typed() {
    const RowSender<Row> sender = sender_;
    return send_each([&](const Row& row) { return sender.send(0, row, Wait::none()); });
  }
  [[gnu::noinline]] Outcome send_bytes() {
    const ShuffleSender sender = sender_;
    const size_t width = width_;
    return send_each(
        [&](const Row& row) { return sender.send(0, bytes_of(row, width), Wait::none()); });
  }
  [[gnu::noinline]] Outcome write_bytes() {
    const ShuffleSender sender = sender_;
    const size_t width = width_;
    return send_each([&](const Row& row) {
      return sender.write(
          0, width, [&](std::byte* to) { std::memcpy(to, row.bytes, kRowBytes); }, Wait::none());
    });
  }
  [[gnu::noinline]] Outcome broadcast_typed() {
    const RowSender<Row> sender = sender_;
    return send_each([&](const Row& row) {
      return sender.broadcast_all({&row, 1}, Wait::none()).outcome;
    });
  }
  [[gnu::noinline]] Outcome broadcast_bytes() {
    const ShuffleSender sender = sender_;
    const size_t width = width_;
    return send_each(
        [&](const Row& row) { return sender.broadcast(bytes_of(row, width), Wait::none()); });
  }

  static std::span<const std::byte> bytes_of(const Row& row, size_t width) {
    return {reinterpret_cast<const std::byte*>(row.bytes), width};
  }

  bool is_typed() const { return way_ == RowWay::typed || way_ == RowWay::typed_broadcast; }

  /// All there is.
  Outcome receive() {
    while (true) {
      taken_.receive.start();
      const Outcome outcome = receiver_.receive(batch_, Wait::none());
      if (outcome != Outcome::done) return outcome;
      taken_.sum += is_typed() ? sum_typed(batch_) : sum_bytes(batch_);
      batch_.release();
      taken_.receive.stop();
    }
  }

  [[gnu::noinline]] static RowSum sum_typed(const Batch& batch) {
    RowSum sum;
    for (const Row& row : batch.rows<Row>()) sum.add(Codec::read(row.bytes, sum.damage));
    return sum;
  }
  [[gnu::noinline]] static RowSum sum_bytes(const Batch& batch) {
    RowSum sum;
    for (const std::span<const std::byte> row : batch.each_row()) {
      if (row.size() != kRowBytes) return {};
      sum.add(Codec::read(row.data(), sum.damage));
    }
    return sum;
  }

  const RowWay way_;
  const uint64_t rows_;
  const volatile size_t width_ = kRowBytes;  // volatile: the compiler does not know it
  RowSender<Row> sender_;
  ShuffleReceiver receiver_;
  Batch batch_;
  std::vector<Row> block_;  // not yet sent: from at_ on
  size_t at_ = 0;
  uint64_t made_ = 0;
  bool finished_ = false;
  Taken taken_;
};

template <size_t kWidth = 0>
Result<Taken> run_round(const RunTimeWidthJob& job, RowWay way, Session& session) {
  if constexpr (kWidth + 1 < std::size(kRowWidths)) {
    if (job.row_bytes != kRowWidths[kWidth]) return run_round<kWidth + 1>(job, way, session);
  }
  if (job.row_bytes != kRowWidths[kWidth]) {
    return Status(Code::invalid_argument,
                  fmt::format("rows of {} bytes are not compiled", job.row_bytes));
  }
  return Round<kRowWidths[kWidth]>(way, job.rows).run(session);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Result<RunTimeWidthFigures> run_run_time_width(const RunTimeWidthJob& job, const Config& config) {
  Config own = config;
  FARO_RETURN_IF_ERROR(own.set("cluster.nodes", "127.0.0.1:0"));
  FARO_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(own));
  const workload::Totals expected = workload::totals_of(job.rows);
  RunTimeWidthFigures figures;
  std::array<std::vector<double>, kRowWays> sent, received;
  const double empty_lap_ns = LapTime::empty_lap_ns();
  for (uint32_t round = 0; round <= job.rounds; ++round) {
    for (size_t way = 0; way < kRowWays; ++way) {
      FARO_ASSIGN_OR_RETURN(const Taken taken, run_round(job, static_cast<RowWay>(way), *session));
      figures.verified = figures.verified && taken.sum.totals() == expected;
      if (round == 0) continue;  // warms up
      const auto rows = static_cast<double>(job.rows);
      sent[way].push_back(taken.send.ns(empty_lap_ns) / rows);
      received[way].push_back(taken.receive.ns(empty_lap_ns) / rows);
    }
  }
  for (size_t way = 0; way < kRowWays; ++way) {
    figures.send_ns[way] = median(sent[way]);
    figures.receive_ns[way] = median(received[way]);
  }
  return figures;
}

}  // namespace faro::bench
