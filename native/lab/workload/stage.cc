#include "lab/workload/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/return_if_error.h"
#include "faro/hash.h"

namespace faro::workload {
namespace {

using Words = std::array<uint64_t, 3>;  // rows of the typed path

}  // namespace

Stage::Stage(Participant& participant, RowGenerator rows, Habits habits)
    : participant_(participant),
      rows_(std::move(rows)),
      sends_(rows_.sends(participant.me)),
      habits_(habits),
      finished_(!sends_) {
  const uint32_t receiver = rows_.receiver_of(participant.me);
  if (receiver < rows_.receivers().size()) checker_.emplace(rows_, receiver);
  ended_ = !checker_;
  if (plan().delivery == Delivery::node) habits_.one_by_one = false;
}

bool Stage::is_shared_with(const std::vector<uint32_t>& workers) const {
  const auto takes_part = [this](uint32_t worker) {
    return worker != participant_.me && (std::ranges::count(rows_.senders(), worker) > 0 ||
                                         std::ranges::count(plan().receivers, worker) > 0);
  };
  return (sends() || receives()) && std::ranges::any_of(workers, takes_part);
}

ShuffleSpec Stage::spec(const QueryId& id) const {
  std::string format(100 * (plan().stage % 4), 'x');  // none, short ones, one that is cut
  ShuffleSpec spec{
      id, plan().stage, plan().row_bytes, plan().senders, plan().receivers, std::move(format)};
  spec.delivery = plan().delivery;
  spec.groups = rows_.groups(participant_.me);
  return spec;
}

Status Stage::open(const ShuffleSpec& spec) {
  participant_.doing(Step::opens, plan());
  is_as_planned_ = spec.senders == plan().senders;
  Result<Shuffle> opened = participant_.worker.open_shuffle(spec);
  if (!opened.ok() && opened.status().code() == Code::limit_exceeded && !spec.groups.empty()) {
    // There is no memory for its blocks: it names the members of a group in each call.
    ShuffleSpec without = spec;
    without.groups.clear();
    opened = participant_.worker.open_shuffle(without);
  }
  FARO_ASSIGN_OR_RETURN(shuffle_, std::move(opened));
  participant_.counts.grouped += sends_ && !shuffle_.spec().groups.empty();
  for (const uint32_t sender : shuffle_.spec().senders) senders_.push_back({sender});
  if (const Result<ShuffleSender> sender = shuffle_.sender(); sender.ok()) sender_ = *sender;
  if (const Result<ShuffleReceiver> receiver = shuffle_.receiver(); receiver.ok())
    receiver_ = *receiver;
  participant_.between();
  return Status::Ok();
}

Status Stage::status() const {
  if (!broken_.ok()) return broken_;
  const Status cause = shuffle_.status();
  return cause.ok() ? Status(Code::internal_error, "an operation failed without a cause") : cause;
}

bool Stage::broken(const std::string& what) {
  const std::string text = fmt::format("query {} stage {} at worker {}: {}", plan().query,
                                       plan().stage, participant_.me, what);
  broken_ = Status(Code::internal_error, text);
  participant_.broken(text);
  return false;
}

// --- sending

Outcome Stage::send_some(uint64_t rows, bool wait) {
  rows = std::min(rows, habits_.rows - made_);
  uint64_t way = participant_.chance.below(participant_.is_tight ? 2 : 8);
  if (names_members()) way = UINT64_MAX;
  if (participant_.chance.one_in(16)) (void)sender_.flush();
  if (!plan().has_copies() && way == 0) return send_by_claim(wait);
  if (!plan().has_copies() && way <= 2 && plan().row_bytes == sizeof(Words))
    return send_typed(rows, wait);
  Outcome outcome = Outcome::done;
  for (uint64_t i = 0; i < rows && outcome == Outcome::done; ++i) outcome = send_next(wait);
  return outcome;
}

Outcome Stage::send_next(bool wait) {
  row_.resize(rows_.length(participant_.me, made_));
  rows_.fill(participant_.me, made_, row_);
  rows_.destinations(participant_.me, made_, to_);
  if (names_members()) to_ = std::vector(rows_.groups(participant_.me)[to_[0]]);
  participant_.doing(Step::sends, plan(), first_receiver());
  const Wait limit = participant_.time_limit();
  const Wait how = wait ? limit : Wait::none();
  Outcome outcome;
  if (plan().spread == Spread::broadcast) {
    outcome = sender_.broadcast(row_, how);
  } else if (plan().spread == Spread::multicast || names_members()) {
    outcome = sender_.multicast(to_, row_, how);
  } else {
    outcome = sender_.send(to_[0], row_, how);
  }
  return sent(outcome, row_.size());
}

// Whether it names the members of a group one by one: the shuffle has no groups.
bool Stage::names_members() const {
  return shuffle_.spec().groups.empty() && !rows_.groups(participant_.me).empty();
}

// A worker that the row is for.
uint32_t Stage::first_receiver() const {
  const RowGenerator::Groups& groups = rows_.groups(participant_.me);
  return rows_.receivers()[groups.empty() || names_members() ? to_[0] : groups[to_[0]][0]];
}

Outcome Stage::sent(Outcome outcome, uint64_t bytes) {
  if (outcome == Outcome::done || outcome == Outcome::stopped) {
    ++made_;
    participant_.counts.large_rows += bytes > participant_.ring_bytes / 4;
    participant_.progress();
  }
  if (outcome == Outcome::stopped) habits_.rows = made_;
  participant_.between();
  return outcome;
}

Outcome Stage::send_typed(uint64_t rows, bool wait) {
  participant_.doing(Step::sends, plan());
  std::vector<Words> many(rows);
  for (uint64_t i = 0; i < rows; ++i)
    rows_.fill(participant_.me, made_ + i, std::as_writable_bytes(std::span(many[i])));
  Result<RowSender<Words>> sender = shuffle_.sender<Words>();
  if (!sender.ok()) {
    broken(fmt::format("no typed sender: {}", sender.status().to_string()));
    return Outcome::failed;
  }
  const auto key = [](const Words& row) { return row[0]; };
  const std::span<const Words> all(many);
  const Sent sent =
      sender->send_all(all, FinalizerHash(), key, wait ? Wait::forever() : Wait::none());
  made_ += sent.rows;
  if (sent.rows > 0) participant_.progress();
  if (sent.outcome == Outcome::stopped) habits_.rows = made_;
  participant_.between();
  return sent.outcome;
}

// Mostly little; sometimes so much that the claim is larger than a frame, of rows that are not.
uint64_t Stage::draw_claimed_too_much() {
  const uint64_t frame_bytes = participant_.ring_bytes / 4;
  return participant_.chance.one_in(participant_.is_tight ? 1 : 3)
             ? frame_bytes + participant_.chance.below(frame_bytes)
             : participant_.chance.below(200);
}

Outcome Stage::send_by_claim(bool wait) {
  const uint64_t bytes = rows_.length(participant_.me, made_);
  rows_.destinations(participant_.me, made_, to_);
  participant_.doing(Step::sends, plan(), first_receiver());
  const uint64_t extra = plan().row_bytes == 0 ? draw_claimed_too_much() : 0;
  const auto claim_row = [&](RowClaim& claim) {
    return sender_.claim(to_[0], bytes + extra, claim,
                         wait ? participant_.time_limit() : Wait::none());
  };
  RowClaim claim;
  if (participant_.chance.one_in(2)) {  // one that is given up
    if (const Outcome outcome = claim_row(claim); outcome != Outcome::done) return sent(outcome, 0);
    std::fill(claim.data().begin(), claim.data().end(), std::byte{0xEE});
    claim.abort();
    participant_.between();
  }
  if (const Outcome outcome = claim_row(claim); outcome != Outcome::done) return sent(outcome, 0);
  const uint64_t frame_bytes = participant_.ring_bytes / 4;
  ++participant_.counts.claims;
  participant_.counts.shrunk_claims += bytes + extra > frame_bytes && bytes < frame_bytes;
  rows_.fill(participant_.me, made_, claim.data().first(bytes));
  participant_.between();
  return sent(claim.commit(bytes).ok() ? Outcome::done : Outcome::failed, bytes);
}

Outcome Stage::finish(bool wait) {
  participant_.doing(Step::finishes, plan());
  participant_.tell_rows_made(plan(), made_);
  const Outcome outcome = sender_.finish(wait ? participant_.time_limit() : Wait::none());
  finished_ = outcome == Outcome::done;
  if (finished_) participant_.progress();
  participant_.between();
  return outcome;
}

// --- receiving

Outcome Stage::receive(bool wait, Batch& batch) {
  const Outcome outcome = take(wait, batch);
  participant_.between();
  if (outcome == Outcome::end_of_stream) {
    ended_ = true;
    return check_end() ? outcome : Outcome::failed;
  }
  if (outcome != Outcome::done) return outcome;
  if (!check(batch)) return Outcome::failed;
  if (taken_ > habits_.enough_rows && !stopped_) stop();
  return outcome;
}

Outcome Stage::take(bool wait, Batch& batch) {
  const Wait limit = participant_.time_limit();
  const Wait how = wait ? limit : Wait::none();
  if (!habits_.one_by_one || stopped_) {
    participant_.doing(Step::takes, plan());
    return receiver_.receive(batch, how);
  }
  for (uint32_t index = 0; index < senders_.size(); ++index) {
    if (senders_[index].ended) continue;
    participant_.doing(Step::takes, plan(), senders_[index].worker);
    const Outcome outcome = receiver_.receive_from(index, batch, how);
    if (outcome != Outcome::end_of_stream) return outcome;
    senders_[index].ended = true;
  }
  return Outcome::end_of_stream;
}

bool Stage::check(const Batch& batch) {
  const uint32_t sender = worker_of(batch);
  Counts& counts = participant_.counts;
  taken_ += batch.row_count();
  if (!participant_.is_trusted(sender)) {
    // Its contents may be anything, but the memory is there: every byte is read.
    for (const std::span<const std::byte> row : batch.each_row()) {
      ++counts.unchecked_rows;
      for (const std::byte b : row) counts.unchecked_sum += static_cast<uint64_t>(b);
    }
    return true;
  }
  uint32_t rows = 0;
  for (const std::span<const std::byte> row : batch.each_row()) {
    if (const std::string wrong = checker_->check(sender, row); !wrong.empty())
      return broken(wrong);
    if (plan().delivery == Delivery::node &&
        !participant_.takes_row(plan(), sender, checker_->number_of_last(sender))) {
      return broken(fmt::format("row {} of worker {} was handed out before",
                                checker_->number_of_last(sender), sender));
    }
    ++rows;
    counts.bytes += row.size();
  }
  if (rows != batch.row_count())
    return broken(fmt::format("{} rows of worker {}, not {}", rows, sender, batch.row_count()));
  if (const auto made = participant_.rows_made(plan(), sender); made && is_as_planned_) {
    if (const std::string wrong = checker_->check_number(sender, *made); !wrong.empty())
      return broken(wrong);
  }
  counts.rows += rows;
  participant_.progress();
  return true;
}

bool Stage::check_end() {
  if (!receives() || stopped_ || !is_as_planned_) return true;
  for (const uint32_t sender : rows_.senders()) {
    if (!participant_.is_trusted(sender)) continue;
    const std::string wrong = checker_->check_end(sender, participant_.rows_made(plan(), sender));
    if (!wrong.empty()) return broken(wrong);
  }
  return true;
}

void Stage::stop() {
  stopped_ = true;
  ++participant_.counts.stops;
  participant_.stops(plan());
  (void)receiver_.stop();
}

}  // namespace faro::workload
