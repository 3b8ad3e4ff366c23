#include "stage.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace outside {

using faro::Batch;
using faro::Outcome;
using faro::Wait;

namespace {

uint32_t place_of(const StagePlan& plan, uint32_t worker) {
  const auto found = plan.places.find(worker);
  return found == plan.places.end() ? plan.place_count : found->second;
}

uint32_t index_in(const std::vector<uint32_t>& workers, uint32_t worker) {
  return static_cast<uint32_t>(std::find(workers.begin(), workers.end(), worker) - workers.begin());
}

bool is_in(const std::vector<uint32_t>& workers, uint32_t worker) {
  return std::find(workers.begin(), workers.end(), worker) != workers.end();
}

}  // namespace

Stage::Stage(Scene& scene, const StagePlan& plan, uint64_t enough)
    : scene_(scene),
      rows_(scene.plan.seed, plan),
      sends_(is_in(plan.senders, scene.me)),
      my_place_(place_of(plan, scene.me)),
      one_by_one_(scene.chance.one_in(5) && plan.delivery != faro::Delivery::node),
      enough_(enough),
      count_(sends_ ? rows_.count(scene.me) : 0),
      finished_(!sends_),
      ended_(my_place_ == plan.place_count) {}

faro::Status Stage::open(const faro::QueryId& id) {
  if (!sends_ && ended_) return faro::Status::Ok();
  const StagePlan& plan = rows_.plan();
  faro::ShuffleSpec spec{id, plan.number, plan.row_bytes, plan.senders, plan.receivers};
  spec.delivery = plan.delivery;
  faro::Result<faro::Shuffle> opened = scene_.worker.open_shuffle(spec);
  if (!opened.ok()) return opened.status();
  shuffle_ = std::move(*opened);
  const faro::Result<faro::ShuffleSender> sending = shuffle_.sender();
  if (sending.ok() != sends_) broken("sender(): " + sending.status().to_string());
  if (sending.ok()) sender_ = *sending;
  const faro::Result<faro::ShuffleReceiver> receiving = shuffle_.receiver();
  if (receiving.ok() == ended_) broken("receiver(): " + receiving.status().to_string());
  if (!ended_) {
    for (const uint32_t sender : plan.senders)
      sources_[sender].next = rows_.next_for(my_place_, sender, 0);
  }
  return faro::Status::Ok();
}

// --- sending

Outcome Stage::send_some(uint64_t rows, bool wait) {
  rows = std::min(rows, count_ - made_);
  if (scene_.chance.one_in(16)) (void)sender_.flush();
  const StagePlan& plan = rows_.plan();
  const bool one_each = plan.spread == Spread::repartition || plan.spread == Spread::one_key;
  const uint64_t way = scene_.chance.below(6);
  if (one_each && way == 0) return send_claimed(wait);
  if (one_each && way <= 2 && plan.row_bytes == 8)
    return send_typed<uint64_t>(rows, wait, [](uint64_t row) { return row; });
  if (one_each && way <= 2 && plan.row_bytes == sizeof(Row24))
    return send_typed<Row24>(rows, wait, [](const Row24& row) { return row.words[0]; });
  Outcome outcome = Outcome::done;
  for (uint64_t i = 0; i < rows && outcome == Outcome::done && made_ < count_; ++i) {
    outcome = way == 3 && one_each ? send_in_place(wait) : send_next(wait);
  }
  return outcome;
}

Outcome Stage::send_next(bool wait) {
  row_.resize(rows_.length(scene_.me, made_));
  rows_.fill(scene_.me, made_, row_);
  rows_.destinations(scene_.me, made_, to_);
  const Wait how = scene_.how(wait);
  switch (rows_.plan().spread) {
    case Spread::broadcast:
      return sent(sender_.broadcast(row_, how), how);
    case Spread::multicast:
      return sent(sender_.multicast(to_, row_, how), how);
    default:
      return sent(sender_.send(to_[0], row_, how), how);
  }
}

Outcome Stage::send_in_place(bool wait) {
  row_.resize(rows_.length(scene_.me, made_));
  rows_.fill(scene_.me, made_, row_);
  rows_.destinations(scene_.me, made_, to_);
  const auto fill = [this](std::byte* to) { std::copy(row_.begin(), row_.end(), to); };
  const Wait how = scene_.how(wait);
  return sent(sender_.write(to_[0], row_.size(), fill, how), how);
}

Outcome Stage::send_claimed(bool wait) {
  const uint64_t bytes = rows_.length(scene_.me, made_);
  rows_.destinations(scene_.me, made_, to_);
  uint64_t extra = 0;
  if (rows_.plan().row_bytes == 0) {
    const uint64_t frame_bytes = scene_.plan.ring_bytes / 4;
    extra = scene_.chance.one_in(3) ? frame_bytes + scene_.chance.below(frame_bytes)
                                    : scene_.chance.below(200);
  }
  const Wait how = scene_.how(wait);
  faro::RowClaim claim;
  const auto claim_row = [&] { return sender_.claim(to_[0], bytes + extra, claim, how); };
  Outcome outcome = claim_row();
  if (outcome == Outcome::done && scene_.chance.one_in(4)) {  // one that is given up
    std::fill(claim.data().begin(), claim.data().end(), std::byte{0xEE});
    claim.abort();
    outcome = claim_row();
  }
  if (outcome != Outcome::done) {
    check_answer(outcome, how, "claim");
    if (outcome == Outcome::stopped) count_ = made_;
    return outcome;
  }
  if (claim.data().size() != bytes + extra) broken("a claim of another size");
  rows_.fill(scene_.me, made_, claim.data().first(bytes));
  return sent(claim.commit(bytes).ok() ? Outcome::done : Outcome::failed, Wait::forever());
}

template <typename Row, typename Key>
Outcome Stage::send_typed(uint64_t rows, bool wait, Key key) {
  std::vector<Row> many(rows);
  for (uint64_t i = 0; i < rows; ++i)
    rows_.fill(scene_.me, made_ + i, std::as_writable_bytes(std::span(&many[i], 1)));
  faro::Result<faro::RowSender<Row>> sender = shuffle_.sender<Row>();
  if (!sender.ok()) {
    broken("no typed sender: " + sender.status().to_string());
    return Outcome::failed;
  }
  const std::span<const Row> all(many);
  const Wait how = scene_.how(wait);
  const auto [taken, outcome] = sender->send_all(all, faro::FinalizerHash(), key, how);
  made_ += taken;
  if (outcome == Outcome::done && taken != rows) broken("send_all: done, but not all are sent");
  check_answer(outcome, how, "send_all");
  if (outcome == Outcome::stopped) count_ = made_;
  return outcome;
}

Outcome Stage::sent(Outcome outcome, Wait how) {
  if (outcome == Outcome::done) ++made_;
  if (outcome == Outcome::stopped) count_ = made_;
  check_answer(outcome, how, "send");
  return outcome;
}

Outcome Stage::finish(bool wait) {
  const Wait how = scene_.how(wait);
  const Outcome outcome = sender_.finish(how);
  check_answer(outcome, how, "finish");
  if (outcome == Outcome::stopped || outcome == Outcome::end_of_stream)
    broken(std::string("finish: ") + faro::outcome_name(outcome));
  finished_ = outcome == Outcome::done;
  return outcome;
}

// --- receiving

Outcome Stage::receive(bool wait, Batch& batch) {
  const Outcome outcome = take(wait, batch);
  if (outcome == Outcome::end_of_stream) {
    ended_ = true;
    check_end();
  }
  if (outcome != Outcome::done) return outcome;
  check(batch);
  taken_ += batch.row_count();
  if (taken_ > enough_ && !stopped_) {
    stopped_ = true;
    if (shuffle_.receiver()->stop() != Outcome::done && shuffle_.status().ok())
      broken("stop: no cause");
  }
  return outcome;
}

Outcome Stage::take(bool wait, Batch& batch) {
  const faro::ShuffleReceiver receiver = *shuffle_.receiver();
  const Wait how = scene_.how(wait);
  if (!one_by_one_ || stopped_) {
    const Outcome outcome = receiver.receive(batch, how);
    check_answer(outcome, how, "receive");
    return outcome;
  }
  const std::vector<uint32_t>& senders = rows_.plan().senders;
  for (auto& [sender, source] : sources_) {
    if (source.ended) continue;
    const Outcome outcome = receiver.receive_from(index_in(senders, sender), batch, how);
    check_answer(outcome, how, "receive_from");
    source.ended = outcome == Outcome::end_of_stream;
    if (outcome == Outcome::done && senders[batch.sender()] != sender)
      broken("receive_from: another's rows");
    if (!source.ended) return outcome;
  }
  return Outcome::end_of_stream;
}

template <typename Row>
void Stage::check_typed(const Batch& batch) {
  const std::span<const Row> rows = batch.rows<Row>();
  if (rows.size() != batch.row_count() ||
      std::memcmp(rows.data(), batch.bytes().data(), batch.bytes().size()) != 0)
    broken("rows<Row>() has other rows than bytes()");
}

void Stage::check(const Batch& batch) {
  const std::vector<uint32_t>& senders = rows_.plan().senders;
  if (batch.sender() >= senders.size()) return broken("rows of a sender that there is not");
  const uint32_t sender = senders[batch.sender()];
  if (rows_.plan().row_bytes == 8) check_typed<uint64_t>(batch);
  if (rows_.plan().row_bytes == sizeof(Row24)) check_typed<Row24>(batch);
  if (rows_.plan().delivery == faro::Delivery::node) return add_to_node(batch, sender);
  uint64_t& next = sources_[sender].next;
  uint32_t rows = 0;
  for (const std::span<const std::byte> row : batch.each_row()) {
    const std::string which =
        "row " + std::to_string(next) + " of worker " + std::to_string(sender);
    if (next >= rows_.count(sender)) return broken(which + " is one too many");
    row_.resize(rows_.length(sender, next));
    rows_.fill(sender, next, row_);
    if (row.size() != row_.size()) {
      return broken(which + " has " + std::to_string(row.size()) + " bytes, not " +
                    std::to_string(row_.size()));
    }
    if (!row.empty() && std::memcmp(row.data(), row_.data(), row.size()) != 0)
      return broken(which + " has other bytes");
    next = rows_.next_for(my_place_, sender, next + 1);
    ++rows;
  }
  if (rows != batch.row_count()) broken("row_count() says another number of rows");
  scene_.rows += rows;
}

// Which of its sender's rows they are is told by all workers of the node together.
void Stage::add_to_node(const Batch& batch, uint32_t sender) {
  RowSum taken;
  for (const std::span<const std::byte> row : batch.each_row()) taken.add(sender, row);
  if (taken.rows != batch.row_count()) broken("row_count() says another number of rows");
  scene_.taken.add(rows_.plan().query, number(), taken);
  scene_.rows += taken.rows;
}

// The last worker of the node that comes to the end knows that each row was handed out once. There is none if one has stopped.
void Stage::check_node() {
  const StagePlan& plan = rows_.plan();
  size_t workers = 0;
  for (const auto& [worker, place] : plan.places) workers += place == my_place_ ? 1 : 0;
  RowSum taken;
  if (!scene_.taken.end(plan.query, plan.number, workers, taken)) return;
  RowSum expected;
  for (const uint32_t sender : plan.senders) {
    for (uint64_t row = rows_.next_for(my_place_, sender, 0); row < rows_.count(sender);
         row = rows_.next_for(my_place_, sender, row + 1)) {
      row_.resize(rows_.length(sender, row));
      rows_.fill(sender, row, row_);
      expected.add(sender, row_);
    }
  }
  if (!(taken == expected)) {
    broken("its node was handed out " + std::to_string(taken.rows) + " rows, not these " +
           std::to_string(expected.rows));
  }
}

void Stage::check_end() {
  if (stopped_) return;
  if (rows_.plan().delivery == faro::Delivery::node) return check_node();
  for (const auto& [sender, source] : sources_) {
    if (source.next < rows_.count(sender)) {
      broken("the stream ends before row " + std::to_string(source.next) + " of worker " +
             std::to_string(sender) + ", which sends " + std::to_string(rows_.count(sender)));
    }
  }
}

void Stage::check_answer(Outcome outcome, Wait how, const char* call) {
  if ((outcome == Outcome::would_wait && !how.is_none()) ||
      (outcome == Outcome::deadline && (how.is_none() || how.is_forever())))
    broken(std::string(call) + ": " + faro::outcome_name(outcome));
}

void Stage::broken(const std::string& what) {
  scene_.broken("query " + std::to_string(rows_.plan().query) + " stage " +
                std::to_string(rows_.plan().number) + " at worker " + std::to_string(scene_.me) +
                ": " + what);
}

}  // namespace outside
