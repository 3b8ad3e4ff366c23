#include "lab/simulation/stage_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "faro/hash.h"

namespace faro::simulation {
namespace {

using Words = std::array<uint64_t, 3>;  // rows of the typed path

}  // namespace

StageRun::StageRun(Scene& scene, const StagePlan& plan, uint64_t rows, uint64_t enough_rows)
    : scene_(scene),
      generator_(scene.plan.seed, plan, scene.plan.worker_count()),
      my_receiver_(generator_.receiver_of(scene.me)),
      sends_(generator_.sends(scene.me)),
      receives_(my_receiver_ < generator_.receivers().size()),
      rows_(rows),
      enough_rows_(enough_rows),
      one_by_one_(scene.chance.one_in(6)),
      finishing_(!sends_),
      finished_(!sends_),
      ended_(!receives_) {}

bool StageRun::is_shared() const {
  const auto is_other = [this](uint32_t worker) { return worker != scene_.me; };
  return (sends_ || receives_) &&
         (std::any_of(generator_.senders().begin(), generator_.senders().end(), is_other) ||
          std::any_of(generator_.receivers().begin(), generator_.receivers().end(), is_other));
}

Status StageRun::open(const QueryId& id, bool otherwise) {
  if (!sends_ && !receives_) return Status::Ok();
  ShuffleSpec spec;
  spec.query = id;
  spec.stage = generator_.plan().stage;
  spec.row_bytes = generator_.plan().row_bytes;
  spec.senders = generator_.senders();
  spec.receivers = generator_.receivers();
  spec.format = std::string(100 * (spec.stage % 4), 'x');  // none, short ones, one that is cut
  opened_otherwise_ = otherwise;
  if (otherwise) {
    const std::vector<uint32_t>& all = scene_.plan.queries[generator_.plan().query].workers;
    const auto extra = std::find_if(all.begin(), all.end(), [&](uint32_t worker) {
      return std::find(spec.senders.begin(), spec.senders.end(), worker) == spec.senders.end();
    });
    if (extra != all.end()) {
      spec.senders.push_back(*extra);
    } else {
      std::erase(spec.senders,
                 spec.senders[0] == scene_.me ? spec.senders.back() : spec.senders[0]);
    }
  }
  Result<Shuffle> opened = scene_.worker.open_shuffle(spec);
  if (!opened.ok()) return opened.status();
  shuffle_ = std::move(*opened);
  if (receives_) {
    for (const uint32_t sender : generator_.senders())
      sources_[sender].next = generator_.next_for(my_receiver_, sender, 0);
  }
  scene_.between();
  return Status::Ok();
}

// --- sending

Outcome StageRun::send_some(uint64_t rows, bool wait) {
  rows = std::min(rows, rows_ - made_);
  const Spread spread = generator_.plan().spread;
  const bool one_each = spread == Spread::by_key || spread == Spread::one_key;
  const uint64_t way = scene_.chance.below(scene_.plan.is_tight ? 2 : 8);
  if (scene_.chance.one_in(16)) shuffle_.flush();
  if (one_each && way == 0) return send_by_claim(wait);
  if (one_each && way <= 2 && generator_.plan().row_bytes == sizeof(Words))
    return send_typed(rows, wait);
  Outcome outcome = Outcome::done;
  for (uint64_t i = 0; i < rows && outcome == Outcome::done; ++i) outcome = send_next(wait);
  return outcome;
}

Outcome StageRun::send_next(bool wait) {
  row_.resize(generator_.length(scene_.me, made_));
  generator_.fill(scene_.me, made_, row_);
  generator_.destinations(scene_.me, made_, to_);
  const Timeout limit = scene_.time_limit();
  Outcome outcome;
  if (generator_.plan().spread == Spread::broadcast) {
    outcome = wait ? shuffle_.broadcast(row_, limit) : shuffle_.try_broadcast(row_);
  } else if (generator_.plan().spread == Spread::multicast) {
    outcome = wait ? shuffle_.multicast(to_, row_, limit) : shuffle_.try_multicast(to_, row_);
  } else {
    outcome = wait ? shuffle_.send(to_[0], row_, limit) : shuffle_.try_send(to_[0], row_);
  }
  return sent(outcome, row_.size());
}

Outcome StageRun::sent(Outcome outcome, uint64_t bytes) {
  if (outcome == Outcome::done || outcome == Outcome::stopped) {
    ++made_;
    scene_.ledger.happened.large_rows += bytes > scene_.plan.ring_bytes / 4;
    scene_.world().note_progress();
  }
  if (outcome == Outcome::stopped) rows_ = made_;
  scene_.between();
  return outcome;
}

Outcome StageRun::send_typed(uint64_t rows, bool wait) {
  std::vector<Words> many(rows);
  for (uint64_t i = 0; i < rows; ++i)
    generator_.fill(scene_.me, made_ + i, std::as_writable_bytes(std::span(many[i])));
  Result<RowSender<Words>> sender = shuffle_.sender<Words>();
  if (!sender.ok()) {
    broken(fmt::format("no typed sender: {}", sender.status().to_string()));
    return Outcome::failed;
  }
  const auto key = [](const Words& row) { return row[0]; };
  const std::span<const Words> all(many);
  Outcome outcome = Outcome::done;
  const size_t taken = wait ? sender->send_all(all, FinalizerHash(), key, outcome)
                            : sender->try_send_all(all, FinalizerHash(), key, outcome);
  made_ += taken;
  if (taken > 0) scene_.world().note_progress();
  if (outcome == Outcome::stopped) rows_ = made_;
  scene_.between();
  return outcome;
}

// Mostly little; sometimes so much that the claim is larger than a frame, of rows that are not.
uint64_t StageRun::draw_claimed_too_much() {
  const uint64_t frame_bytes = scene_.plan.ring_bytes / 4;
  return scene_.chance.one_in(scene_.plan.is_tight ? 1 : 3)
             ? frame_bytes + scene_.chance.below(frame_bytes)
             : scene_.chance.below(200);
}

Outcome StageRun::send_by_claim(bool wait) {
  const uint64_t bytes = generator_.length(scene_.me, made_);
  generator_.destinations(scene_.me, made_, to_);
  const uint64_t extra = generator_.plan().row_bytes == 0 ? draw_claimed_too_much() : 0;
  const auto claim_row = [&](RowClaim& claim) {
    return wait ? shuffle_.claim(to_[0], bytes + extra, claim, scene_.time_limit())
                : shuffle_.try_claim(to_[0], bytes + extra, claim);
  };
  RowClaim claim;
  if (scene_.chance.one_in(2)) {  // one that is given up
    if (const Outcome outcome = claim_row(claim); outcome != Outcome::done) return sent(outcome, 0);
    std::fill(claim.data().begin(), claim.data().end(), std::byte{0xEE});
    claim.abort();
    scene_.between();
  }
  if (const Outcome outcome = claim_row(claim); outcome != Outcome::done) return sent(outcome, 0);
  ++scene_.ledger.happened.claims;
  scene_.ledger.happened.shrunk_claims +=
      bytes + extra > scene_.plan.ring_bytes / 4 && bytes < scene_.plan.ring_bytes / 4;
  generator_.fill(scene_.me, made_, claim.data().first(bytes));
  scene_.between();
  return sent(claim.commit(bytes).ok() ? Outcome::done : Outcome::failed, bytes);
}

Outcome StageRun::finish(bool wait) {
  const StagePlan& plan = generator_.plan();
  scene_.ledger.queries[plan.query].rows_made[{plan.stage, scene_.me}] = made_;
  finishing_ = true;
  const Outcome outcome = wait ? shuffle_.finish(scene_.time_limit()) : shuffle_.try_finish();
  finished_ = outcome == Outcome::done;
  if (finished_) scene_.world().note_progress();
  scene_.between();
  return outcome;
}

// --- receiving

Outcome StageRun::receive(bool wait, Batch& batch) {
  const Outcome outcome = take(wait, batch);
  scene_.between();
  if (outcome == Outcome::end_of_stream) {
    ended_ = true;
    check_end();
  }
  if (outcome != Outcome::done) return outcome;
  check(batch);
  taken_ += batch.row_count();
  if (taken_ > enough_rows_ && !stopped_) {
    stopped_ = true;
    ++scene_.ledger.happened.stops;
    shuffle_.stop();
  }
  return outcome;
}

Outcome StageRun::take(bool wait, Batch& batch) {
  const Timeout limit = scene_.time_limit();
  if (!one_by_one_ || stopped_)
    return wait ? shuffle_.take(batch, limit) : shuffle_.try_poll(batch);
  for (auto& [sender, source] : sources_) {
    if (source.ended) continue;
    const Outcome outcome =
        wait ? shuffle_.take_from(sender, batch, limit) : shuffle_.try_poll_from(sender, batch);
    source.ended = outcome == Outcome::end_of_stream;
    if (!source.ended) return outcome;
  }
  return Outcome::end_of_stream;
}

bool StageRun::is_trusted(uint32_t sender) const {
  return !scene_.cluster.faults().distrusted(scene_.plan.node_of(sender), scene_.node);
}

void StageRun::check(const Batch& batch) {
  const uint32_t sender = batch.sender();
  Happened& happened = scene_.ledger.happened;
  if (!is_trusted(sender)) {
    // Its contents may be anything, but the memory is there: every byte is read.
    for (const std::span<const std::byte> row : batch.each_row()) {
      ++happened.unchecked_rows;
      for (const std::byte b : row) happened.unchecked_sum += static_cast<uint64_t>(b);
    }
    return;
  }
  const auto found = sources_.find(sender);
  if (found == sources_.end()) return broken(fmt::format("rows of worker {}, no sender", sender));
  Source& source = found->second;
  uint32_t rows = 0;
  for (const std::span<const std::byte> row : batch.each_row()) {
    if (source.next == RowGenerator::kNone)
      return broken(fmt::format("worker {} sent a row that is for another", sender));
    row_.resize(generator_.length(sender, source.next));
    generator_.fill(sender, source.next, row_);
    if (row.size() != row_.size()) {
      return broken(fmt::format("row {} of worker {} has {} bytes, not {}", source.next, sender,
                                row.size(), row_.size()));
    }
    if (!row.empty() && std::memcmp(row.data(), row_.data(), row.size()) != 0)
      return broken(fmt::format("row {} of worker {} has other bytes", source.next, sender));
    source.received = source.next + 1;
    source.next = generator_.next_for(my_receiver_, sender, source.next + 1);
    ++rows;
    happened.bytes += row.size();
  }
  if (rows != batch.row_count())
    return broken(fmt::format("{} rows of worker {}, not {}", rows, sender, batch.row_count()));
  happened.rows += rows;
  scene_.world().note_progress();
}

void StageRun::check_end() {
  if (stopped_ || opened_otherwise_) return;
  const StagePlan& plan = generator_.plan();
  const auto& rows_made = scene_.ledger.queries[plan.query].rows_made;
  for (const auto& [sender, source] : sources_) {
    if (!is_trusted(sender)) continue;
    const auto made = rows_made.find({plan.stage, sender});
    if (made == rows_made.end())
      return broken(fmt::format("the stream ends, but worker {} has not finished", sender));
    if (source.next < made->second || source.received > made->second) {
      return broken(
          fmt::format("the stream ends before row {} of worker {}, after row {}; it made {}",
                      source.next, sender, source.received, made->second));
    }
  }
}

void StageRun::broken(const std::string& what) {
  scene_.world().violation(fmt::format("query {} stage {} at worker {}: {}",
                                       generator_.plan().query, generator_.plan().stage, scene_.me,
                                       what));
}

}  // namespace faro::simulation
