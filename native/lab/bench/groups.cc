#include "lab/bench/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
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

using workload::kRowWidths, workload::RowSum, workload::Totals;

constexpr size_t kBlockBytes =
    16 * 1024;                      // of rows that are made at once, apart from what is timed
constexpr uint32_t kReceivers = 4;  // workers 0 to 3; the next one sends
constexpr uint64_t kCopies = 2;     // of each row

/// What one round has taken, and what came to each receiver.
struct Taken {
  LapTime send;
  LapTime receive;
  std::array<RowSum, kReceivers> sums{};
  uint64_t rows = 0;
  uint64_t frames = 0;
};

/// One round of one way: a query of one shuffle.
template <uint32_t kRowBytes>
class Round {
 public:
  using Codec = workload::RowCodec<kRowBytes>;
  using Row = workload::IntegerRow<kRowBytes>;

  Round(GroupWay way, uint64_t rows) : way_(way), rows_(rows) {
    groups_mask_ = way == GroupWay::overlap || way == GroupWay::apart ? 1 : 0;
  }

  Result<Taken> run(Session& session) {
    ShuffleSpec spec{session.begin_query(), 0, kRowBytes, {kReceivers}, {0, 1, 2, 3}};
    if (way_ == GroupWay::broadcast) spec.receivers = {0, 1};
    if (way_ == GroupWay::one_group) spec.groups = {{0, 1}};
    if (way_ == GroupWay::overlap) spec.groups = {{0, 1}, {1, 2}};
    if (way_ == GroupWay::apart) spec.groups = {{0, 1}, {3, 2}};
    FARO_ASSIGN_OR_RETURN(Shuffle sending, session.worker(kReceivers).open_shuffle(spec));
    FARO_ASSIGN_OR_RETURN(sender_, sending.template sender<Row>());
    std::vector<Shuffle> shuffles;
    for (const uint32_t worker : spec.receivers) {
      FARO_ASSIGN_OR_RETURN(Shuffle shuffle, session.worker(worker).open_shuffle(spec));
      shuffles.push_back(std::move(shuffle));
    }
    for (size_t ended = 0; ended < shuffles.size();) {
      if (!finished_ && send() == Outcome::failed) return sending.status();
      for (size_t r = ended; r < shuffles.size(); ++r) {
        const Outcome outcome = receive(*shuffles[r].receiver(), taken_.sums[r]);
        if (outcome == Outcome::failed) return shuffles[r].status();
        if (outcome == Outcome::end_of_stream && r == ended) ++ended;
      }
    }
    for (const SentMetrics& sent : sending.metrics().sent) {
      taken_.rows += sent.rows;
      taken_.frames += sent.frames;
    }
    sending.close();
    for (Shuffle& shuffle : shuffles) shuffle.close();
    FARO_RETURN_IF_ERROR(end_everywhere(session, spec.query));
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
      outcome = block_.empty()                ? sender_.finish(Wait::none())
                : way_ == GroupWay::broadcast ? broadcast_block()
                                              : send_block();
      taken_.send.stop();
      finished_ = block_.empty() && outcome == Outcome::done;
    }
    return outcome;
  }

  void make_block() {
    first_ = made_;
    block_.resize(std::min(kBlockRows, rows_ - made_));
    for (Row& row : block_) Codec::write(row.bytes, made_++);
    at_ = 0;
  }

  [[gnu::noinline]] Outcome send_block() {
    const RowSender<Row> sender = sender_;
    const auto mask = static_cast<uint32_t>(groups_mask_);
    const auto first = static_cast<uint32_t>(first_);
    return each([&](size_t i) {
      return sender.send((first + static_cast<uint32_t>(i)) & mask, block_[i], Wait::none());
    });
  }
  [[gnu::noinline]] Outcome broadcast_block() {
    const RowSender<Row> sender = sender_;
    return each([&](size_t i) {
      return sender.broadcast_all({&block_[i], 1}, Wait::none()).outcome;
    });
  }
  template <typename SendRow>
  [[gnu::always_inline]] Outcome each(const SendRow& send_row) {
    const size_t count = block_.size();
    Outcome outcome = Outcome::done;
    size_t at = at_;
    while (at < count && (outcome = send_row(at)) == Outcome::done) ++at;
    at_ = at;
    return outcome;
  }

  /// All there is.
  Outcome receive(const ShuffleReceiver& receiver, RowSum& sum) {
    while (true) {
      taken_.receive.start();
      const Outcome outcome = receiver.receive(batch_, Wait::none());
      if (outcome != Outcome::done) return outcome;
      for (const Row& row : batch_.rows<Row>()) sum.add(Codec::read(row.bytes, sum.damage));
      batch_.release();
      taken_.receive.stop();
    }
  }

  const GroupWay way_;
  const uint64_t rows_;
  volatile uint32_t groups_mask_ = 0;  // volatile: both ways are the same loop
  RowSender<Row> sender_;
  Batch batch_;
  std::vector<Row> block_;  // not yet sent: from at_ on
  size_t at_ = 0;
  uint64_t first_ = 0;  // number of its first row
  uint64_t made_ = 0;
  bool finished_ = false;
  Taken taken_;
};

template <size_t kWidth = 0>
Result<Taken> run_round(const GroupsJob& job, GroupWay way, Session& session) {
  if constexpr (kWidth + 1 < std::size(kRowWidths)) {
    if (job.row_bytes != kRowWidths[kWidth]) return run_round<kWidth + 1>(job, way, session);
  }
  if (job.row_bytes != kRowWidths[kWidth]) {
    return Status(Code::invalid_argument,
                  fmt::format("rows of {} bytes are not compiled", job.row_bytes));
  }
  return Round<kRowWidths[kWidth]>(way, job.rows).run(session);
}

// Each row comes to one of receivers 0 and 2, and to one of the others.
bool is_all(const Taken& taken, const Totals& expected) {
  std::array<RowSum, kCopies> sums{};
  for (size_t r = 0; r < kReceivers; ++r) sums[r % kCopies] += taken.sums[r];
  return std::ranges::all_of(sums, [&](const RowSum& sum) { return sum.totals() == expected; });
}

}  // namespace

Result<GroupsFigures> run_groups(const GroupsJob& job, const Config& config) {
  Config own = config;
  FARO_RETURN_IF_ERROR(own.set("cluster.nodes", "127.0.0.1:0"));
  FARO_RETURN_IF_ERROR(own.set("cluster.workers", std::to_string(kReceivers + 1)));
  FARO_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(own));
  const Totals expected = workload::totals_of(job.rows);
  GroupsFigures figures;
  std::array<std::vector<double>, kGroupWays> sent, received;
  const double empty_lap_ns = LapTime::empty_lap_ns();
  for (uint32_t round = 0; round <= job.rounds; ++round) {
    for (size_t way = 0; way < kGroupWays; ++way) {
      FARO_ASSIGN_OR_RETURN(const Taken taken,
                            run_round(job, static_cast<GroupWay>(way), *session));
      figures.verified = figures.verified && is_all(taken, expected);
      if (round == 0) continue;  // warms up
      const auto copies = static_cast<double>(kCopies * job.rows);
      sent[way].push_back(taken.send.ns(empty_lap_ns) / copies);
      received[way].push_back(taken.receive.ns(empty_lap_ns) / copies);
      figures.ways[way].rows_per_frame = static_cast<double>(taken.rows) /
                                         static_cast<double>(std::max<uint64_t>(1, taken.frames));
    }
  }
  for (size_t way = 0; way < kGroupWays; ++way) {
    figures.ways[way].send_ns = median(sent[way]);
    figures.ways[way].receive_ns = median(received[way]);
  }
  return figures;
}

}  // namespace faro::bench
