// Stage: rows that are known beforehand, sent and checked.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "support/cases.h"

namespace faro::test {
namespace {

using Words = std::array<uint64_t, 3>;  // rows of the typed path

}  // namespace

Stage::Stage(Program& program, StagePlan plan)
    : program_(program),
      generator_(program.seed, std::move(plan), program.count),
      sources_(program.count) {
  sends_ = generator_.sends(program.me);
  my_receiver_ = generator_.receiver_of(program.me);
  receives_ = my_receiver_ < generator_.receivers().size();
}

Status Stage::open(const QueryId& id) {
  program_.doing(Step::opens, plan().query, plan().stage);
  ShuffleSpec spec;
  spec.query = id;
  spec.stage = plan().stage;
  spec.row_bytes = plan().row_bytes;
  spec.senders = plan().senders;
  spec.receivers = plan().receivers;
  Result<Shuffle> opened = program_.worker.open_shuffle(spec);
  if (!opened.ok()) return opened.status();
  shuffle_ = std::move(*opened);
  if (receives_) {
    for (uint32_t sender : generator_.senders()) skip_to_mine(sender);
  }
  program_.host.between();
  return Status::Ok();
}

Status Stage::error(Outcome outcome, const char* what) const {
  const Status cause = shuffle_.status();
  return Status(
      outcome == Outcome::failed && !cause.ok() ? cause.code() : Code::internal_error,
      fmt::format("query {} stage {} at worker {}: {} answered {}: {}", plan().query, plan().stage,
                  program_.me, what, outcome_name(outcome), cause.to_string()));
}

void Stage::skip_to_mine(uint32_t sender) {
  uint64_t& next = sources_[sender].next;
  next = generator_.next_for(my_receiver_, sender, next);
}

// --- sending

Outcome Stage::send_next(bool wait) {
  row_.resize(generator_.length(program_.me, made_));
  generator_.fill(program_.me, made_, row_);
  generator_.destinations(program_.me, made_, to_);
  program_.doing(plan().spread == Spread::broadcast ? Step::broadcasts : Step::sends, plan().query,
                 plan().stage, generator_.receivers()[to_[0]]);
  Outcome outcome;
  if (plan().spread == Spread::broadcast) {
    outcome = wait ? shuffle_.broadcast(row_) : shuffle_.try_broadcast(row_);
  } else if (plan().spread == Spread::multicast) {
    outcome = wait ? shuffle_.multicast(to_, row_) : shuffle_.try_multicast(to_, row_);
  } else {
    outcome = wait ? shuffle_.send(to_[0], row_) : shuffle_.try_send(to_[0], row_);
  }
  if (outcome == Outcome::done || outcome == Outcome::stopped) {
    ++made_;
    if (row_.size() > program_.scale.ring_bytes / 4)
      program_.board.large_rows.fetch_add(1, std::memory_order_relaxed);
    program_.host.progress();
  }
  program_.host.between();
  return outcome;
}

Outcome Stage::send_many(uint64_t rows) {
  program_.doing(Step::sends, plan().query, plan().stage);
  std::vector<Words> many(rows);
  for (uint64_t i = 0; i < rows; ++i)
    generator_.fill(program_.me, made_ + i, std::as_writable_bytes(std::span(many[i])));
  Result<RowSender<Words>> sender = shuffle_.sender<Words>();
  if (!sender.ok()) return Outcome::failed;
  Outcome outcome = Outcome::done;
  made_ += sender->send_all(
      std::span<const Words>(many), FinalizerHash(), [](const Words& row) { return row[0]; },
      outcome);
  program_.host.progress();
  program_.host.between();
  return outcome;
}

Outcome Stage::claim_next(bool play) {
  program_.doing(Step::sends, plan().query, plan().stage);
  const uint64_t bytes = generator_.length(program_.me, made_);
  generator_.destinations(program_.me, made_, to_);
  const uint64_t extra = play && plan().row_bytes == 0 ? program_.own.below(200) : 0;
  RowClaim claim;
  if (play && program_.own.one_in(2)) {
    const Outcome outcome = shuffle_.claim(to_[0], bytes + extra, claim);
    if (outcome != Outcome::done) return outcome;
    std::fill(claim.data().begin(), claim.data().end(), std::byte{0xEE});
    claim.abort();
    program_.host.between();
  }
  const Outcome outcome = shuffle_.claim(to_[0], bytes + extra, claim);
  if (outcome != Outcome::done) return outcome;
  program_.board.claims.fetch_add(1, std::memory_order_relaxed);
  generator_.fill(program_.me, made_, claim.data().first(bytes));
  program_.host.between();
  const Status status = claim.commit(bytes);
  if (!status.ok()) return Outcome::failed;
  ++made_;
  program_.host.progress();
  return Outcome::done;
}

Status Stage::send_rows(uint64_t rows) {
  for (uint64_t i = 0; i < rows; ++i) {
    const Outcome outcome = send_next();
    if (outcome == Outcome::stopped) return Status::Ok();
    if (outcome != Outcome::done) return error(outcome, "send");
  }
  return Status::Ok();
}

void Stage::publish() {
  program_.board.rows_made[plan().query][plan().stage][program_.me].store(
      made_ + 1, std::memory_order_release);
}

Status Stage::finish() {
  program_.doing(Step::finishes, plan().query, plan().stage);
  publish();
  const Outcome outcome = shuffle_.finish();
  program_.host.between();
  return outcome == Outcome::done ? Status::Ok() : error(outcome, "finish");
}

Outcome Stage::try_finish() {
  program_.doing(Step::finishes, plan().query, plan().stage);
  publish();
  const Outcome outcome = shuffle_.try_finish();
  program_.host.between();
  return outcome;
}

// --- receiving

Status Stage::check(const Batch& batch) {
  const uint32_t sender = batch.sender();
  const auto broken = [&](std::string what) {
    return Status(Code::internal_error,
                  fmt::format("query {} stage {} at worker {}, from worker {}: {}", plan().query,
                              plan().stage, program_.me, sender, what));
  };
  if (std::find(generator_.senders().begin(), generator_.senders().end(), sender) ==
      generator_.senders().end())
    return broken("no sender of this stage");
  uint32_t rows = 0;
  for (const std::span<const std::byte> row : batch.each_row()) {
    uint64_t& next = sources_[sender].next;
    if (next == UINT64_MAX) return broken("a row that is for another worker");
    expected_.resize(generator_.length(sender, next));
    generator_.fill(sender, next, expected_);
    if (row.size() != expected_.size()) {
      return broken(
          fmt::format("row {} has {} bytes instead of {}", next, row.size(), expected_.size()));
    }
    if (!row.empty() && std::memcmp(row.data(), expected_.data(), row.size()) != 0)
      return broken(fmt::format("row {} has other bytes", next));
    ++next;
    skip_to_mine(sender);
    ++rows;
  }
  if (rows != batch.row_count())
    return broken(fmt::format("{} rows instead of {}", rows, batch.row_count()));
  program_.board.rows_checked.fetch_add(rows, std::memory_order_relaxed);
  program_.host.progress();
  return Status::Ok();
}

Status Stage::take_one(bool& end) {
  program_.doing(Step::takes, plan().query, plan().stage);
  Batch batch;
  const Outcome outcome = shuffle_.take(batch);
  program_.host.between();
  end = outcome == Outcome::end_of_stream;
  if (end) return check_end();
  if (outcome != Outcome::done) return error(outcome, "take");
  return check(batch);
}

Status Stage::take_to_end() {
  for (bool end = false; !end;) FARO_RETURN_IF_ERROR(take_one(end));
  return Status::Ok();
}

Status Stage::check_end() {
  if (stopped_ || !receives_) return Status::Ok();
  for (uint32_t sender : generator_.senders()) {
    const uint64_t made = program_.board.rows_made[plan().query][plan().stage][sender].load(
        std::memory_order_acquire);
    if (made == 0 || sources_[sender].next < made - 1) {
      return Status(Code::internal_error,
                    fmt::format("query {} stage {} at worker {}: end of stream before row {} of "
                                "worker {}, which made {}",
                                plan().query, plan().stage, program_.me, sources_[sender].next,
                                sender, made));
    }
  }
  return Status::Ok();
}

void Stage::stop() {
  stopped_ = true;
  program_.board.stops.fetch_add(1, std::memory_order_relaxed);
  shuffle_.stop();
}

}  // namespace faro::test
