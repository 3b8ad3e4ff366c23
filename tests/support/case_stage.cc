// Stage: rows that are known beforehand, sent and checked.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "support/cases.h"

namespace faro::test {
namespace {

using Words = std::array<uint64_t, 3>;  // rows of the typed path

std::vector<uint32_t> resolve(const std::vector<uint32_t>& named, uint32_t count) {
  if (!named.empty()) return named;
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

}  // namespace

Stage::Stage(Program& program, StagePlan plan)
    : program_(program),
      plan_(std::move(plan)),
      senders_(resolve(plan_.senders, program.count)),
      receivers_(resolve(plan_.receivers, program.count)),
      sources_(program.count) {
  sends_ = std::find(senders_.begin(), senders_.end(), program.me) != senders_.end();
  const auto it = std::find(receivers_.begin(), receivers_.end(), program.me);
  receives_ = it != receivers_.end();
  my_receiver_ = static_cast<uint32_t>(it - receivers_.begin());
}

Status Stage::open(const QueryId& id) {
  program_.doing(Step::opens, plan_.query, plan_.stage);
  ShuffleSpec spec;
  spec.query = id;
  spec.stage = plan_.stage;
  spec.row_bytes = plan_.row_bytes;
  spec.senders = plan_.senders;
  spec.receivers = plan_.receivers;
  Result<Shuffle> opened = program_.worker.open_shuffle(spec);
  if (!opened.ok()) return opened.status();
  shuffle_ = std::move(*opened);
  if (receives_) {
    for (uint32_t sender : senders_) skip_to_mine(sender);
  }
  program_.host.between();
  return Status::Ok();
}

Status Stage::error(Outcome outcome, const char* what) const {
  const Status cause = shuffle_.status();
  return Status(
      outcome == Outcome::failed && !cause.ok() ? cause.code() : Code::internal_error,
      fmt::format("query {} stage {} at worker {}: {} answered {}: {}", plan_.query, plan_.stage,
                  program_.me, what, outcome_name(outcome), cause.to_string()));
}

// --- what each row is

uint64_t Stage::key(uint32_t sender, uint64_t row) const {
  if (plan_.spread == Spread::one_key) return mix(program_.seed, plan_.stage);
  return mix(program_.seed, plan_.query * 64 + plan_.stage, sender, row);
}

uint64_t Stage::length(uint32_t sender, uint64_t row) const {
  if (plan_.row_bytes != 0) return plan_.row_bytes;
  const uint64_t span = plan_.most_bytes - plan_.least_bytes + 1;
  return plan_.least_bytes +
         mix(program_.seed, plan_.query * 64 + plan_.stage, sender, row, 7) % span;
}

void Stage::fill(uint32_t sender, uint64_t row, std::span<std::byte> bytes) const {
  const uint64_t base = mix(program_.seed, plan_.query * 64 + plan_.stage, sender, row, 8);
  uint64_t word = key(sender, row);
  for (size_t at = 0; at < bytes.size(); at += sizeof word) {
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
    word = (base + at) * 0x9E3779B97F4A7C15u;
  }
}

void Stage::destinations(uint32_t sender, uint64_t row, std::vector<uint32_t>& to) const {
  const auto all = static_cast<uint32_t>(receivers_.size());
  to.clear();
  switch (plan_.spread) {
    case Spread::by_key:
    case Spread::one_key:
      to.push_back(partition(FinalizerHash()(key(sender, row)), all));
      return;
    case Spread::broadcast:
      for (uint32_t r = 0; r < all; ++r) to.push_back(r);
      return;
    case Spread::multicast: {
      const uint64_t draw = key(sender, row);
      for (uint32_t r = 0; r < all; ++r) {
        if ((draw >> (r % 61) & 1) != 0) to.push_back(r);
      }
      if (to.empty()) to.push_back(static_cast<uint32_t>(draw % all));
      return;
    }
  }
}

bool Stage::is_for_me(uint32_t sender, uint64_t row) const {
  const auto all = static_cast<uint32_t>(receivers_.size());
  switch (plan_.spread) {
    case Spread::by_key:
    case Spread::one_key:
      return partition(FinalizerHash()(key(sender, row)), all) == my_receiver_;
    case Spread::broadcast:
      return true;
    case Spread::multicast: {
      std::vector<uint32_t> to;
      destinations(sender, row, to);
      return std::find(to.begin(), to.end(), my_receiver_) != to.end();
    }
  }
  return false;
}

void Stage::skip_to_mine(uint32_t sender) {
  uint64_t& next = sources_[sender].next;
  // With one key all rows are for one receiver: the others would look for ever.
  if (plan_.spread == Spread::one_key && !is_for_me(sender, next)) {
    next = UINT64_MAX;
    return;
  }
  // By chance a row is for this worker at the latest after a few receiver counts; the bound only
  // keeps a broken spread from hanging the test.
  for (uint64_t tries = 0; tries < 1'000'000 && !is_for_me(sender, next); ++tries) ++next;
}

// --- sending

Outcome Stage::send_next(bool wait) {
  row_.resize(length(program_.me, made_));
  fill(program_.me, made_, row_);
  destinations(program_.me, made_, to_);
  program_.doing(plan_.spread == Spread::broadcast ? Step::broadcasts : Step::sends, plan_.query,
                 plan_.stage, receivers_[to_[0]]);
  Outcome outcome;
  if (plan_.spread == Spread::broadcast) {
    outcome = wait ? shuffle_.broadcast(row_) : shuffle_.try_broadcast(row_);
  } else if (plan_.spread == Spread::multicast) {
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
  program_.doing(Step::sends, plan_.query, plan_.stage);
  std::vector<Words> many(rows);
  for (uint64_t i = 0; i < rows; ++i)
    fill(program_.me, made_ + i, std::as_writable_bytes(std::span(many[i])));
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
  program_.doing(Step::sends, plan_.query, plan_.stage);
  const uint64_t bytes = length(program_.me, made_);
  destinations(program_.me, made_, to_);
  const uint64_t extra = play && plan_.row_bytes == 0 ? program_.own.below(200) : 0;
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
  fill(program_.me, made_, claim.data().first(bytes));
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
  program_.board.rows_made[plan_.query][plan_.stage][program_.me].store(made_ + 1,
                                                                        std::memory_order_release);
}

Status Stage::finish() {
  program_.doing(Step::finishes, plan_.query, plan_.stage);
  publish();
  const Outcome outcome = shuffle_.finish();
  program_.host.between();
  return outcome == Outcome::done ? Status::Ok() : error(outcome, "finish");
}

Outcome Stage::try_finish() {
  program_.doing(Step::finishes, plan_.query, plan_.stage);
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
                  fmt::format("query {} stage {} at worker {}, from worker {}: {}", plan_.query,
                              plan_.stage, program_.me, sender, what));
  };
  if (std::find(senders_.begin(), senders_.end(), sender) == senders_.end())
    return broken("no sender of this stage");
  uint32_t rows = 0;
  for (const std::span<const std::byte> row : batch.each_row()) {
    uint64_t& next = sources_[sender].next;
    if (next == UINT64_MAX) return broken("a row that is for another worker");
    expected_.resize(length(sender, next));
    fill(sender, next, expected_);
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
  program_.doing(Step::takes, plan_.query, plan_.stage);
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
  for (uint32_t sender : senders_) {
    const uint64_t made =
        program_.board.rows_made[plan_.query][plan_.stage][sender].load(std::memory_order_acquire);
    if (made == 0 || sources_[sender].next < made - 1) {
      return Status(
          Code::internal_error,
          fmt::format("query {} stage {} at worker {}: end of stream before row {} of "
                      "worker {}, which made {}",
                      plan_.query, plan_.stage, program_.me, sources_[sender].next, sender, made));
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
