#include "lab/bench/run_time_width.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "faro/session.h"
#include "lab/bench/figures.h"
#include "lab/bench/one_thread.h"
#include "lab/workload/integer_rows.h"
#include "lab/workload/row_loops.h"

namespace faro::bench {
namespace {

using workload::kRowWidths, workload::RowSum;

constexpr size_t kBlockBytes =
    16 * 1024;  // of rows that are made at once, apart from what is timed

/// What one round has taken.
struct Taken {
  LapTime send;
  LapTime receive;
  RowSum sum;
};

/// One round of one way: a query of one shuffle, from the first worker to itself or to several.
template <uint32_t kRowBytes>
class Round {
 public:
  using Codec = workload::RowCodec<kRowBytes>;
  using Row = workload::IntegerRow<kRowBytes>;

  Round(RowWay way, const RunTimeWidthJob& job) : way_(way), rows_(job.rows) {
    block_.reserve(kBlockRows);
    receivers_.resize(way >= RowWay::typed_all ? job.receivers : 1);
  }

  Result<Taken> run(Session& session) {
    const QueryId query = session.begin_query();
    const uint32_t width = way_ == RowWay::by_offsets ? 0 : kRowBytes;
    std::vector<uint32_t> to(receivers_.size());
    std::iota(to.begin(), to.end(), 0u);
    std::vector<Shuffle> shuffles;
    for (uint32_t w = 0; w < receivers_.size(); ++w) {
      FARO_ASSIGN_OR_RETURN(Shuffle shuffle,
                            session.worker(w).open_shuffle({query, 0, width, {0}, to}));
      FARO_ASSIGN_OR_RETURN(receivers_[w], shuffle.receiver());
      shuffles.push_back(std::move(shuffle));
    }
    FARO_ASSIGN_OR_RETURN(bytes_sender_, shuffles[0].sender());
    if (width != 0) {
      FARO_ASSIGN_OR_RETURN(sender_, shuffles[0].template sender<Row>());
    }
    size_t ended = 0;
    while (ended < receivers_.size()) {
      if (!finished_ && send() == Outcome::failed) return shuffles[0].status();
      for (size_t w = ended; w < receivers_.size(); ++w) {
        const Outcome outcome = receive(receivers_[w]);
        if (outcome == Outcome::failed) return shuffles[w].status();
        if (outcome == Outcome::end_of_stream && w == ended) ++ended;
      }
    }
    for (Shuffle& shuffle : shuffles) shuffle.close();
    FARO_RETURN_IF_ERROR(end_everywhere(session, query));
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
      outcome = block_.empty() ? bytes_sender_.finish(Wait::none()) : send_block();
      taken_.send.stop();
      finished_ = block_.empty() && outcome == Outcome::done;
    }
    return outcome;
  }

  void make_block() {
    block_.resize(std::min(kBlockRows, rows_ - made_));
    to_.resize(block_.size());
    for (size_t i = 0; i < block_.size(); ++i) {
      Codec::write(block_[i].bytes, made_++);
      to_[i] =
          partition(FinalizerHash{}(key_of(block_[i])), static_cast<uint32_t>(receivers_.size()));
    }
    offsets_.resize(block_.size() + 1);
    for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = static_cast<uint32_t>(i * kRowBytes);
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
      case RowWay::typed_all:
        return send_many(sender_.send_all(std::span<const Row>(block_).subspan(at_),
                                          FinalizerHash{}, key_of, Wait::none()));
      case RowWay::by_key:
        return send_many(bytes_sender_.send_all(rest(), rest_count(), {0, sizeof(uint64_t)},
                                                KeyHash::finalizer, Wait::none()));
      case RowWay::to_vector:
        return send_many(
            bytes_sender_.send_rows(rest(), rest_count(), to_.data() + at_, Wait::none()));
      case RowWay::by_offsets:
        return send_many(bytes_sender_.send_rows(bytes_of(block_[0], 0).data(),
                                                 offsets_.data() + at_, rest_count(),
                                                 to_.data() + at_, Wait::none()));
    }
    return Outcome::failed;
  }

  static uint64_t key_of(const Row& row) noexcept {
    uint64_t key;
    std::memcpy(&key, row.bytes, sizeof key);
    return key;
  }
  const std::byte* rest() const { return bytes_of(block_[at_], 0).data(); }
  size_t rest_count() const { return block_.size() - at_; }
  Outcome send_many(Sent sent) {
    at_ += sent.rows;
    return sent.outcome;
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
    const ShuffleSender sender = bytes_sender_;
    const size_t width = width_;
    return send_each(
        [&](const Row& row) { return sender.send(0, bytes_of(row, width), Wait::none()); });
  }
  [[gnu::noinline]] Outcome write_bytes() {
    const ShuffleSender sender = bytes_sender_;
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
    const ShuffleSender sender = bytes_sender_;
    const size_t width = width_;
    return send_each(
        [&](const Row& row) { return sender.broadcast(bytes_of(row, width), Wait::none()); });
  }

  static std::span<const std::byte> bytes_of(const Row& row, size_t width) {
    return {reinterpret_cast<const std::byte*>(row.bytes), width};
  }

  bool is_typed() const {
    return way_ == RowWay::typed || way_ == RowWay::typed_broadcast || way_ == RowWay::typed_all;
  }

  /// All there is.
  Outcome receive(const ShuffleReceiver& receiver) {
    while (true) {
      taken_.receive.start();
      const Outcome outcome = receiver.receive(batch_, Wait::none());
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
  ShuffleSender bytes_sender_;
  std::vector<ShuffleReceiver> receivers_;
  Batch batch_;
  std::vector<Row> block_;         // not yet sent: from at_ on
  std::vector<uint32_t> to_;       // of the block
  std::vector<uint32_t> offsets_;  // of the block
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
  return Round<kRowWidths[kWidth]>(way, job).run(session);
}

}  // namespace

Result<RunTimeWidthFigures> run_run_time_width(const RunTimeWidthJob& job, const Config& config) {
  Config own = config;
  FARO_RETURN_IF_ERROR(own.set("cluster.nodes", "127.0.0.1:0"));
  FARO_RETURN_IF_ERROR(own.set("cluster.workers", std::to_string(job.receivers)));
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
