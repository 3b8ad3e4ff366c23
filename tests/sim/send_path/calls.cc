#include "sim/send_path/calls.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

namespace faro::send_path {
namespace {

// By which the shuffle names a worker that sends.
uint32_t index_of(const StagePlan& plan, uint32_t sender) {
  const auto found = std::ranges::find(plan.senders, sender);
  return static_cast<uint32_t>(found - plan.senders.begin());
}

std::string name_of(const OpenStage& stage) {
  return fmt::format("worker {}, query {}, stage {}:", stage.worker, stage.query->index,
                     stage.stage);
}

const char* name_of(Wait wait) { return wait.is_none() ? "" : ", waits"; }

uint64_t digest_of(const Batch& batch) {
  return hash_bytes(batch.bytes().data(), batch.bytes().size());
}

// Looks at the node's overflow so often: it takes longer than most calls.
constexpr uint64_t kCallsPerMemoryLook = 8;

}  // namespace

Calls::Calls(const Plan& plan, Record& record, Scene& scene)
    : plan_(plan),
      record_(record),
      scene_(scene),
      claims_(plan.worker_count()),
      held_(plan.worker_count()) {
  if (!scene_.nodes().opened().ok()) rows_.violated("open: " + scene_.nodes().opened().to_string());
}

// --- what is noted

void Calls::answer(Outcome outcome, const Status& status) {
  record_.note(Kind::answer, "{} {}", outcome_name(outcome),
               outcome == Outcome::failed ? code_name(status.code()) : "");
  record_.count(std::string("answer ") + outcome_name(outcome));
}

// A call that was refused is no failure of its query.
void Calls::answer_of(OpenStage& stage, Outcome outcome, size_t rows) {
  const Status status = outcome != Outcome::failed ? Status()
                        : stage.sender             ? stage.sender->status()
                                                   : stage.shuffle.status();
  record_.note(Kind::answer, "{} {} after {}", outcome_name(outcome), code_name(status.code()),
               rows);
  record_.count(std::string("answer ") + outcome_name(outcome));
  const Category category = status.category();
  if (category == Category::query || category == Category::peer || category == Category::session)
    stage.query->failed = true;
}

void Calls::end_call(uint32_t worker, const OpenStage* stage) {
  scene_.note_rings();
  for (const std::vector<HeldBatch>& batches : held_) {
    for (const HeldBatch& held : batches) {
      if (digest_of(held.batch) != held.digest)
        rows_.violated(
            fmt::format("a batch that is held has changed by call {}", record_.call_number()));
    }
  }
  const WorkerMetrics metrics = scene_.nodes().worker(worker).metrics();
  scene_.effects().note_worker(metrics);
  if (metrics.frames_out_overflow > 0) record_.count("frames in overflow");
  if (metrics.rows_dropped > 0) record_.count("rows dropped");
  if (metrics.frames_spilled > 0) record_.count("frames spilled");
  if (stage != nullptr)
    scene_.effects().note_shuffle(stage->query->index, stage->shuffle.metrics());
  if (record_.call_number() % kCallsPerMemoryLook == 0) {
    for (uint32_t node = 0; node < plan_.nodes; ++node)
      scene_.effects().note_memory(node, scene_.nodes().session(node).metrics());
  }
}

std::span<const std::byte> Calls::make_row(uint64_t number, size_t bytes) {
  row_.resize(bytes);
  write_row(number, row_);
  return row_;
}

void Calls::sent(const OpenStage& stage, uint32_t receiver, uint64_t number, size_t bytes,
                 bool claimed) {
  rows_.sent(stage.way_to(receiver), number, bytes, claimed);
  if (bytes + (stage.plan->row_bytes == 0 ? sizeof(wire::RowLength) : 0) >
      plan_.settings.row_limit_of_frame())
    record_.count("rows above a frame");
}

void Calls::count_rows() {
  record_.count("rows sent", rows_.sent_count());
  record_.count("rows received", rows_.received_count());
}

// --- queries

void Calls::begin_query(QueryRun& query) {
  record_.begin_call("node {} begins query {}", query.plan->issuer, query.index);
  query.id = scene_.nodes().session(query.plan->issuer).begin_query();
  record_.note(Kind::answer, "{}", query.id.to_string());
  if (!plan_.changing) return;
  std::vector<uint32_t> workers;
  for (uint32_t w = 0; w < plan_.worker_count(); ++w) workers.push_back(w);
  for (uint32_t node = 0; node < plan_.nodes; ++node) {
    const Status declared = scene_.nodes().session(node).declare_query(query.id, workers);
    answer(declared);
    query.failed |= !declared.ok();
  }
}

std::unique_ptr<OpenStage> Calls::open(QueryRun& query, uint32_t stage, uint32_t worker) {
  const StagePlan& plan = query.plan->stages[stage];
  record_.begin_call("worker {} opens stage {} of query {}", worker, stage, query.index);
  Result<Shuffle> opened = scene_.nodes().worker(worker).open_shuffle(
      {query.id, stage, plan.row_bytes, plan.senders, plan.receivers, plan.format});
  answer(opened.status());
  if (opened.status().category() == Category::query) query.failed = true;
  std::unique_ptr<OpenStage> made;
  if (opened.ok()) {
    made = std::make_unique<OpenStage>();
    made->query = &query;
    made->stage = stage;
    made->worker = worker;
    made->plan = &plan;
    made->shuffle = std::move(*opened);
    if (auto sender = made->shuffle.sender(); sender.ok()) made->sender = *sender;
    if (auto receiver = made->shuffle.receiver(); receiver.ok()) made->receiver = *receiver;
  }
  end_call(worker, made.get());
  return made;
}

void Calls::close(OpenStage& stage) {
  if (std::exchange(stage.closed, true)) return;
  record_.begin_call("{} close", name_of(stage));
  const bool is_over =
      (!stage.sender || stage.finished) && (!stage.receiver || stage.ended || stage.stopped);
  if (!is_over) stage.query->failed = true;
  lose_claim(stage.worker, *stage.query, stage.stage);
  stage.sender.reset();
  stage.receiver.reset();
  stage.shuffle.close();
  end_call(stage.worker, &stage);
}

void Calls::lose_claim(uint32_t worker, const QueryRun& query, uint32_t stage) {
  std::optional<OpenClaim>& open = claims_[worker];
  if (open && open->of->query == &query && open->of->stage == stage) open->is_gone = true;
}

void Calls::cancel(OpenStage& stage) {
  record_.begin_call("{} cancel", name_of(stage));
  answer(stage.shuffle.cancel("drawn"));
  stage.query->failed = true;
  end_call(stage.worker, &stage);
}

Outcome Calls::end_query(QueryRun& query, uint32_t worker, const Status& failure) {
  record_.begin_call("worker {} ends query {}: {}", worker, query.index, code_name(failure.code()));
  Worker& at = scene_.nodes().worker(worker);
  const Outcome outcome = failure.ok() ? at.end_query(query.id, Wait::none())
                                       : at.end_query(query.id, failure, Wait::none());
  answer(outcome, at.status());
  if (!failure.ok() || outcome == Outcome::failed) query.failed = true;
  for (uint32_t stage = 0; !failure.ok() && stage < query.plan->stages.size(); ++stage)
    lose_claim(worker, query, stage);
  end_call(worker);
  return outcome;
}

// --- sending

void Calls::send(OpenStage& stage, uint32_t receiver, size_t bytes, uint32_t rows, Wait wait) {
  record_.begin_call("{} send {} rows of {} bytes to {}{}", name_of(stage), rows, bytes, receiver,
                     name_of(wait));
  Outcome outcome = Outcome::done;
  uint32_t done = 0;
  for (; done < rows; ++done) {
    const uint64_t number = ++row_number_;
    outcome = stage.sender->send(receiver, make_row(number, bytes), wait);
    if (outcome != Outcome::done) break;
    sent(stage, receiver, number, bytes);
  }
  answer_of(stage, outcome, done);
  end_call(stage.worker, &stage);
}

void Calls::write(OpenStage& stage, uint32_t receiver, size_t bytes, Wait wait) {
  record_.begin_call("{} write {} bytes to {}{}", name_of(stage), bytes, receiver, name_of(wait));
  const uint64_t number = ++row_number_;
  const auto fill = [&](std::byte* to) { write_row(number, {to, bytes}); };
  const Outcome outcome = stage.sender->write(receiver, bytes, fill, wait);
  if (outcome == Outcome::done) sent(stage, receiver, number, bytes);
  answer_of(stage, outcome, 0);
  end_call(stage.worker, &stage);
}

template <size_t kBytes>
Sent Calls::send_as(OpenStage& stage, Typed how, uint32_t receiver, uint32_t count, Wait wait) {
  using Row = std::array<std::byte, kBytes>;
  const Result<RowSender<Row>> made = stage.shuffle.sender<Row>();
  if (!made.ok()) return {0, Outcome::failed};
  const RowSender<Row> sender = *made;
  const uint64_t first = row_number_ + 1;
  row_number_ += count;
  std::vector<Row> rows(count);
  for (uint32_t i = 0; i < count; ++i) write_row(first + i, rows[i]);
  const auto key_of = [](const Row& row) {
    uint64_t key;
    std::memcpy(&key, row.data(), sizeof key);
    return key;
  };
  const auto note = [&](size_t done) {
    for (size_t i = 0; i < done; ++i)
      sent(stage, partition(FinalizerHash()(first + i), sender.receiver_count()), first + i,
           kBytes);
  };
  Sent answered;
  switch (how) {
    case Typed::send:
      while (answered.rows < count && answered.outcome == Outcome::done) {
        answered.outcome = sender.send(receiver, rows[answered.rows], wait);
        if (answered.outcome != Outcome::done) break;
        sent(stage, receiver, first + answered.rows++, kBytes);
      }
      break;
    case Typed::send_all:
      answered = sender.send_all(std::span<const Row>(rows), FinalizerHash(), key_of, wait);
      note(answered.rows);
      break;
    case Typed::write_all:
      answered = sender.write_all(
          count, FinalizerHash(), [&](size_t i) { return first + i; },
          [&](size_t i, std::byte* to) { std::memcpy(to, rows[i].data(), kBytes); }, wait);
      note(answered.rows);
      break;
    case Typed::broadcast_all:
      answered = sender.broadcast_all(std::span<const Row>(rows), wait);
      for (size_t i = 0; i < answered.rows; ++i) {
        for (uint32_t r = 0; r < sender.receiver_count(); ++r) sent(stage, r, first + i, kBytes);
      }
      break;
  }
  return answered;
}

void Calls::send_typed(OpenStage& stage, Typed how, uint32_t receiver, uint32_t rows, Wait wait) {
  static constexpr const char* kHow[] = {"send", "send_all", "write_all", "broadcast_all"};
  record_.begin_call("{} {} of {} typed rows to {}{}", name_of(stage), kHow[static_cast<int>(how)],
                     rows, receiver, name_of(wait));
  Sent answered;
  switch (stage.plan->row_bytes) {
    case 8:
      answered = send_as<8>(stage, how, receiver, rows, wait);
      break;
    case 24:
      answered = send_as<24>(stage, how, receiver, rows, wait);
      break;
    default:
      answered = send_as<100>(stage, how, receiver, rows, wait);
  }
  answer_of(stage, answered.outcome, answered.rows);
  end_call(stage.worker, &stage);
}

void Calls::multicast(OpenStage& stage, std::span<const uint32_t> receivers, size_t bytes,
                      Wait wait) {
  record_.begin_call("{} multicast {} bytes to {}{}", name_of(stage), bytes, receivers,
                     name_of(wait));
  const uint64_t number = ++row_number_;
  const Outcome outcome = stage.sender->multicast(receivers, make_row(number, bytes), wait);
  if (outcome == Outcome::done) {
    for (const uint32_t receiver : receivers) sent(stage, receiver, number, bytes);
  }
  answer_of(stage, outcome, 0);
  end_call(stage.worker, &stage);
}

void Calls::broadcast(OpenStage& stage, size_t bytes, Wait wait) {
  record_.begin_call("{} broadcast {} bytes{}", name_of(stage), bytes, name_of(wait));
  const uint64_t number = ++row_number_;
  const Outcome outcome = stage.sender->broadcast(make_row(number, bytes), wait);
  if (outcome == Outcome::done) {
    for (uint32_t r = 0; r < stage.sender->receiver_count(); ++r) sent(stage, r, number, bytes);
  }
  answer_of(stage, outcome, 0);
  end_call(stage.worker, &stage);
}

void Calls::begin_claim(OpenStage& stage, uint32_t receiver, size_t bytes, Wait wait) {
  record_.begin_call("{} claim {} bytes to {}{}", name_of(stage), bytes, receiver, name_of(wait));
  OpenClaim open{&stage, receiver, ++row_number_, {}, false};
  const Outcome outcome = stage.sender->claim(receiver, bytes, open.claim, wait);
  answer_of(stage, outcome, open.claim.data().size());
  if (outcome == Outcome::done) claims_[stage.worker] = std::move(open);
  end_call(stage.worker, &stage);
}

void Calls::commit_claim(uint32_t worker, size_t bytes) {
  OpenClaim& open = *claims_[worker];
  OpenStage& stage = *open.of;
  record_.begin_call("{} commit {} of {} bytes to {}", name_of(stage), bytes,
                     open.claim.data().size(), open.receiver);
  const std::span<std::byte> data = open.claim.data();
  if (!open.is_gone) write_row(open.number, data.first(std::min(bytes, data.size())));
  if (bytes < data.size()) record_.count("claims committed shorter");
  const Status status = open.claim.commit(bytes);
  answer(status);
  if (status.ok() && !stage.closed) sent(stage, open.receiver, open.number, bytes, true);
  if (status.category() == Category::query || status.category() == Category::peer)
    stage.query->failed = true;
  if (status.code() != Code::invalid_argument) claims_[worker].reset();
  end_call(worker, &stage);
}

void Calls::abort_claim(uint32_t worker) {
  OpenStage& stage = *claims_[worker]->of;
  record_.begin_call("{} abort", name_of(stage));
  record_.count("claims given up");
  claims_[worker]->claim.abort();
  claims_[worker].reset();
  end_call(worker, &stage);
}

void Calls::flush(OpenStage& stage) {
  record_.begin_call("{} flush", name_of(stage));
  answer_of(stage, stage.sender->flush(), 0);
  end_call(stage.worker, &stage);
}

Outcome Calls::finish(OpenStage& stage, Wait wait) {
  record_.begin_call("{} finish{}", name_of(stage), name_of(wait));
  const Outcome outcome = stage.sender->finish(wait);
  stage.finished |= outcome == Outcome::done;
  answer_of(stage, outcome, 0);
  end_call(stage.worker, &stage);
  return outcome;
}

// --- receiving

void Calls::take(OpenStage& stage, Batch& batch) {
  const uint32_t sender = stage.plan->senders[batch.sender()];
  const Way way{stage.query->index, stage.stage, sender, stage.worker};
  uint64_t rows = 0;
  for (const std::span<const std::byte> row : batch.each_row()) {
    rows_.received(way, row);
    ++rows;
  }
  if (rows != batch.row_count()) rows_.violated("a batch without all its rows");
  record_.note(Kind::row, "{} rows of {}, {} bytes {:016x}", rows, sender, batch.bytes().size(),
               digest_of(batch));
}

Outcome Calls::receive(OpenStage& stage, std::optional<uint32_t> sender, bool keeps, Wait wait) {
  record_.begin_call("{} receive{}{}{}", name_of(stage),
                     sender ? fmt::format(" from {}", *sender) : "", keeps ? ", keeps" : "",
                     name_of(wait));
  Batch batch;
  const Outcome outcome =
      sender ? stage.receiver->receive_from(index_of(*stage.plan, *sender), batch, wait)
             : stage.receiver->receive(batch, wait);
  answer_of(stage, outcome, 0);
  if (outcome == Outcome::end_of_stream && !stage.stopped) {
    for (const uint32_t each : stage.plan->senders) {
      if (!sender || *sender == each)
        rows_.ended({stage.query->index, stage.stage, each, stage.worker});
    }
    stage.ended |= !sender;
  }
  if (outcome == Outcome::done) {
    take(stage, batch);
    if (keeps) {
      const uint64_t digest = digest_of(batch);
      held_[stage.worker].push_back({&stage, std::move(batch), digest});
    }
  }
  batch.release();
  end_call(stage.worker, &stage);
  return outcome;
}

void Calls::release(uint32_t worker, size_t index) {
  record_.begin_call("worker {} releases batch {}", worker, index);
  held_[worker][index].batch.release();
  held_[worker].erase(held_[worker].begin() + static_cast<ptrdiff_t>(index));
  end_call(worker);
}

void Calls::detach(uint32_t worker, size_t index) {
  record_.begin_call("worker {} detaches batch {}", worker, index);
  answer(held_[worker][index].batch.detach());
  end_call(worker);
}

void Calls::stop(OpenStage& stage) {
  record_.begin_call("{} stop", name_of(stage));
  const Outcome outcome = stage.receiver->stop();
  if (outcome == Outcome::done) stage.stopped = true;
  answer_of(stage, outcome, 0);
  end_call(stage.worker, &stage);
}

void Calls::look(uint32_t worker) {
  record_.begin_call("worker {} looks", worker);
  Worker& at = scene_.nodes().worker(worker);
  answer(at.wait_until([] { return false; }, Wait::none()), at.status());
  end_call(worker);
}

void Calls::call_nothing(uint32_t worker) {
  record_.begin_call("worker {} calls a sender of no shuffle", worker);
  const ShuffleSender none;
  const std::span<const std::byte> row = make_row(0, 8);
  RowClaim claim;
  for (const Outcome each :
       {none.send(0, row, Wait::none()), none.broadcast(row, Wait::none()),
        none.multicast({}, row, Wait::none()), none.claim(0, 8, claim, Wait::none()), none.flush(),
        none.finish(Wait::none())})
    answer(each, none.status());
  answer(claim.commit());
  const RowSender<std::array<std::byte, 8>> typed;
  const auto fill = [](size_t, std::byte*) {};
  answer(typed
             .write_all(
                 1, FinalizerHash(), [](size_t) { return uint64_t{1}; }, fill)
             .outcome,
         typed.status());
  end_call(worker);
}

}  // namespace faro::send_path
