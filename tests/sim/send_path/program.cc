#include "sim/send_path/program.h"

#include <algorithm>
#include <iterator>

#include "sim/programs/draw.h"

namespace faro::send_path {
namespace {

// Rounds in which a query has to come to its end, once everything arrives and all rows are taken.
constexpr int kRoundLimit = 3000;
constexpr base::Nanoseconds kRound = 5'000'000;

}  // namespace

Program::Program(const Plan& plan, Record& record)
    : plan_(plan),
      chance_(workload::mix(plan.seed, 0x43414c4c)),
      scene_(plan, record),
      calls_(plan, record, scene_) {}

Program::~Program() {
  for (uint32_t worker = 0; worker < plan_.worker_count(); ++worker) give_back(worker);
  stages_.clear();
  calls_.count_rows();
}

void Program::run() {
  if (!violation().empty()) return;
  begin_queries();
  for (uint32_t call = 0; call < plan_.calls && violation().empty(); ++call) act();
  if (!plan_.ends_in_order) return;
  for (size_t q = 0; q < queries_.size(); ++q) end_in_order(*queries_[q]);
  if (plan_.nodes > 1 && chance_.one_in(3)) end_a_node();
}

// Nothing is open: where nodes change, the others forget their rings to it.
void Program::end_a_node() {
  scene_.close_node(static_cast<uint32_t>(chance_.below(plan_.nodes)));
  scene_.pump();
  for (uint32_t worker = 0; worker < plan_.worker_count(); ++worker) calls_.look(worker);
}

// --- queries

void Program::begin_queries() {
  const size_t count = std::min<size_t>(plan_.at_once, plan_.queries.size());
  while (queries_.size() < count) begin_query();
}

void Program::begin_query() {
  auto query = std::make_unique<QueryRun>();
  query->index = static_cast<uint32_t>(queries_.size());
  query->plan = &plan_.queries[query->index];
  queries_.push_back(std::move(query));
  QueryRun& begun = *queries_.back();
  calls_.begin_query(begun);
  for (uint32_t stage = 0; stage < begun.plan->stages.size(); ++stage) {
    for (uint32_t worker = 0; worker < plan_.worker_count(); ++worker) {
      const auto& senders = begun.plan->stages[stage].senders;
      const bool sends = std::ranges::find(senders, worker) != senders.end();
      if (sends || !begun.plan->opens_late) (void)open(begun, stage, worker);
    }
  }
  if (!chance_.one_in(4)) scene_.pump();
}

bool Program::open(QueryRun& query, uint32_t stage, uint32_t worker) {
  const StagePlan& plan = query.plan->stages[stage];
  const auto names = [&](const std::vector<uint32_t>& workers) {
    return std::ranges::find(workers, worker) != workers.end();
  };
  if (!names(plan.senders) && !names(plan.receivers)) return true;
  const auto is_it = [&](const auto& each) {
    return each->query == &query && each->stage == stage && each->worker == worker;
  };
  if (std::ranges::any_of(stages_, is_it)) return true;
  auto opened = calls_.open(query, stage, worker);
  if (opened == nullptr) return false;
  stages_.push_back(std::move(opened));
  return true;
}

void Program::open_some() {
  QueryRun& query = *queries_[chance_.below(queries_.size())];
  if (query.over || query.failed) return;
  (void)open(query, static_cast<uint32_t>(chance_.below(query.plan->stages.size())),
             static_cast<uint32_t>(chance_.below(plan_.worker_count())));
}

void Program::give_back(uint32_t worker) {
  if (calls_.claim(worker)) calls_.abort_claim(worker);
  while (!calls_.held(worker).empty()) calls_.release(worker, 0);
}

void Program::end_in_order(QueryRun& query) {
  if (query.over) return;
  for (uint32_t node = 0; node < plan_.nodes * plan_.nodes; ++node) scene_.hold(node, false);
  for (uint32_t stage = 0; stage < query.plan->stages.size(); ++stage) {
    for (uint32_t worker = 0; worker < plan_.worker_count() && !query.failed; ++worker) {
      if (open(query, stage, worker)) continue;
      // With shuffle.limit reached it never sends its rows.
      (void)calls_.end_query(query, worker, Status(Code::query_failed, "not opened"));
    }
  }
  // Some give back what they hold only when others have waited for it.
  const int gives_back = chance_.one_in(3) ? 8 : 0;
  int round = 0;
  for (bool is_over = false; !is_over && violation().empty(); ++round) {
    if (round == kRoundLimit) calls_.rows().violated("a query that does not end");
    for (uint32_t worker = 0; round == gives_back && worker < plan_.worker_count(); ++worker)
      give_back(worker);
    is_over = go_on_ending(query) && round >= gives_back;
    scene_.deliver_all();
    scene_.pump();
    scene_.pass(kRound);
  }
  for (const auto& stage : stages_) {
    if (stage->query == &query) calls_.close(*stage);
  }
  end_parts(query);
  query.over = true;
}

// Whether all its stages are at their ends.
bool Program::go_on_ending(QueryRun& query) {
  bool is_over = true;
  for (const auto& each : stages_) {
    OpenStage& stage = *each;
    if (stage.query != &query || stage.closed || query.failed) continue;
    for (int i = 0; i < 8 && stage.receiver && !stage.ended && !stage.stopped; ++i) {
      if (calls_.receive(stage, std::nullopt, false, Wait::none()) != Outcome::done) break;
    }
    if (query.failed) continue;
    if (stage.sender && !stage.finished) (void)calls_.finish(stage, Wait::none());
    is_over &=
        (!stage.sender || stage.finished) && (!stage.receiver || stage.ended || stage.stopped);
  }
  // Rows of others are in the way.
  for (uint32_t worker = 0; worker < plan_.worker_count(); ++worker) calls_.look(worker);
  return is_over || query.failed;
}

void Program::end_parts(QueryRun& query) {
  std::vector<bool> ended(plan_.worker_count());
  for (int round = 0; violation().empty(); ++round) {
    if (round == kRoundLimit) calls_.rows().violated("a query whose end is not told");
    bool all = true;
    for (uint32_t worker = 0; worker < plan_.worker_count(); ++worker) {
      if (ended[worker]) continue;
      const Outcome outcome = calls_.end_query(query, worker, Status::Ok());
      ended[worker] = outcome == Outcome::done || outcome == Outcome::failed;
      all &= ended[worker];
    }
    if (all) break;
    scene_.deliver_all();
    scene_.pump();
    scene_.pass(kRound);
  }
}

// --- what is drawn

OpenStage* Program::draw_stage(uint32_t worker, bool sends) {
  std::vector<OpenStage*> fitting;
  for (const auto& each : stages_) {
    const bool fits = sends ? each->sender.has_value() : each->receiver.has_value();
    if (each->worker == worker && fits && is_open(*each)) fitting.push_back(each.get());
  }
  return fitting.empty() ? nullptr : fitting[chance_.below(fitting.size())];
}

uint32_t Program::draw_receiver(const OpenStage& stage) {
  return static_cast<uint32_t>(chance_.below(stage.plan->receivers.size()));
}

size_t Program::draw_length(const OpenStage& stage) {
  if (stage.plan->row_bytes != 0) return stage.plan->row_bytes;
  const uint64_t frame = plan_.settings.row_limit_of_frame();
  switch (chance_.below(12)) {
    case 0:
      return 0;
    case 1:
    case 2:
      return chance_.between(frame / 4, frame);
    case 3:
    case 4:
      return frame - 8 + chance_.below(12);  // around the largest in a frame
    case 5:
      return chance_.between(frame + 1, 3 * frame);
    case 6:
      return chance_.between(plan_.settings.ring_bytes / 2, 2 * plan_.settings.ring_bytes);
    default:
      return chance_.below(100);
  }
}

std::vector<uint32_t> Program::draw_receivers(const OpenStage& stage) {
  std::vector<uint32_t> receivers;
  for (uint32_t r = 0; r < stage.plan->receivers.size(); ++r) {
    if (!chance_.one_in(3)) receivers.push_back(r);
  }
  for (size_t i = receivers.size(); i > 1; --i)
    std::swap(receivers[i - 1], receivers[chance_.below(i)]);
  return receivers;
}

Wait Program::draw_wait() {
  return chance_.one_in(10) ? Wait::at_most(std::chrono::milliseconds(chance_.between(1, 3)))
                            : Wait::none();
}

void Program::act() {
  const auto worker = static_cast<uint32_t>(chance_.below(plan_.worker_count()));
  const Mood& mood = plan_.mood;
  const uint32_t weights[] = {mood.send, mood.many, mood.claim, mood.several, mood.receive,
                              mood.keep, mood.end,  mood.world, mood.trouble};
  const size_t what = programs::draw_weighted(chance_, weights);
  OpenStage* const sender = draw_stage(worker, true);
  OpenStage* const receiver = draw_stage(worker, false);
  OpenStage* const either =
      sender != nullptr && (receiver == nullptr || chance_.one_in(2)) ? sender : receiver;
  switch (what) {
    case 0:
      if (sender != nullptr) send(*sender);
      break;
    case 1:
      if (sender != nullptr) send_many(*sender);
      break;
    case 2:
      claim(worker);
      break;
    case 3:
      if (sender != nullptr) send_several(*sender);
      break;
    case 4:
      if (receiver != nullptr) receive(*receiver);
      break;
    case 5:
      keep(worker);
      break;
    case 6:
      if (either != nullptr) end(*either);
      break;
    case 7:
      move_world();
      break;
    default:
      if (either != nullptr) trouble(*either);
  }
  if (!chance_.one_in(4)) scene_.pump();
}

void Program::send(OpenStage& stage) {
  const uint32_t receiver = draw_receiver(stage);
  const size_t bytes = draw_length(stage);
  const Wait wait = draw_wait();
  if (chance_.one_in(3)) return calls_.write(stage, receiver, bytes, wait);
  calls_.send(stage, receiver, bytes, 1, wait);
}

void Program::send_many(OpenStage& stage) {
  const uint32_t width = stage.plan->row_bytes;
  auto rows = static_cast<uint32_t>(chance_.between(2, chance_.one_in(4) ? 300 : 40));
  if ((width == 8 || width == 24 || width == 100) && !chance_.one_in(4)) {
    const auto how = static_cast<Calls::Typed>(chance_.below(4));
    return calls_.send_typed(stage, how, draw_receiver(stage), rows, draw_wait());
  }
  const size_t bytes = draw_length(stage);
  // While batches are held there is no end to what overflow takes.
  rows = std::min(rows, static_cast<uint32_t>(16 * plan_.settings.ring_bytes / (bytes + 1)) + 2);
  calls_.send(stage, draw_receiver(stage), bytes, rows, Wait::none());
}

void Program::send_several(OpenStage& stage) {
  const size_t bytes = draw_length(stage);
  const Wait wait = draw_wait();
  if (chance_.one_in(2)) return calls_.broadcast(stage, bytes, wait);
  calls_.multicast(stage, draw_receivers(stage), bytes, wait);
}

void Program::claim(uint32_t worker) {
  const auto& open = calls_.claim(worker);
  if (!open || chance_.one_in(6)) {
    // A second one is refused.
    OpenStage* const stage = draw_stage(worker, true);
    if (stage != nullptr)
      calls_.begin_claim(*stage, draw_receiver(*stage), draw_length(*stage), draw_wait());
    return;
  }
  if (chance_.one_in(5)) return calls_.abort_claim(worker);
  const size_t claimed = open->claim.data().size();
  if (chance_.one_in(8)) return calls_.commit_claim(worker, claimed + 1);
  const bool is_refused = open->of->plan->row_bytes != 0 && chance_.one_in(8);
  if (is_refused) return calls_.commit_claim(worker, claimed - 1);
  if (open->of->plan->row_bytes != 0 || chance_.one_in(2))
    return calls_.commit_claim(worker, claimed);
  const size_t most = chance_.one_in(2) ? std::min<size_t>(claimed, 64) : claimed;
  calls_.commit_claim(worker, chance_.between(0, most));
}

void Program::receive(OpenStage& stage) {
  std::optional<uint32_t> sender;
  if (chance_.one_in(4)) sender = stage.plan->senders[chance_.below(stage.plan->senders.size())];
  (void)calls_.receive(stage, sender, chance_.one_in(3), draw_wait());
}

void Program::keep(uint32_t worker) {
  std::vector<HeldBatch>& held = calls_.held(worker);
  OpenStage* const stage = draw_stage(worker, false);
  if (held.size() < 3 && stage != nullptr && !chance_.one_in(4)) {
    (void)calls_.receive(*stage, std::nullopt, true, Wait::none());
  } else if (!held.empty()) {
    const size_t index = chance_.below(held.size());
    chance_.one_in(3) ? calls_.detach(worker, index) : calls_.release(worker, index);
  } else {
    calls_.look(worker);
  }
}

void Program::end(OpenStage& stage) {
  if (!stage.sender) return calls_.look(stage.worker);
  if (!chance_.one_in(5)) return calls_.flush(stage);
  (void)calls_.finish(stage, draw_wait());
}

void Program::move_world() {
  const auto port = static_cast<uint32_t>(chance_.below(16));
  const auto ring = static_cast<uint32_t>(chance_.below(16));
  switch (chance_.below(6)) {
    case 0:
      return scene_.pass(chance_.between(1, chance_.one_in(4) ? 2'000'000 : 400'000));
    case 1:
      return scene_.deliver(port, ring, 0, true);
    case 2:
    case 3:
      return scene_.deliver(port, ring, static_cast<uint32_t>(chance_.between(1, 4)), false);
    case 4:
      return scene_.pump();
    default:
      return scene_.deliver_all();
  }
}

void Program::trouble(OpenStage& stage) {
  switch (chance_.below(12)) {
    case 0:
    case 1:
    case 2:
      if (stage.receiver) calls_.stop(stage);
      break;
    case 3:
      scene_.hold(static_cast<uint32_t>(chance_.below(16)), !chance_.one_in(2));
      break;
    case 4:
    case 5:
      lose_something();
      break;
    case 6:
      if (chance_.one_in(3)) calls_.cancel(stage);
      break;
    case 7:
      if (chance_.one_in(4)) calls_.close(stage);
      break;
    case 8:
      if (queries_.size() < plan_.queries.size()) {
        if (chance_.one_in(2)) end_in_order(*queries_[chance_.below(queries_.size())]);
        begin_query();
      } else {
        open_some();
      }
      break;
    case 9:
      if (chance_.one_in(6)) {
        const Status failure(Code::query_failed, "drawn");
        (void)calls_.end_query(*stage.query, stage.worker, failure);
      } else {
        open_some();
      }
      break;
    default:
      mistake(stage);
  }
}

void Program::lose_something() {
  const bool is_node = !has_lost_ && plan_.nodes > 1 && chance_.one_in(5);
  if (!is_node) {
    scene_.cut(static_cast<uint32_t>(chance_.below(16)), !chance_.one_in(3));
    return;
  }
  has_lost_ = true;
  const auto node = static_cast<uint32_t>(chance_.below(plan_.nodes));
  chance_.one_in(2) ? scene_.kill(node) : scene_.close_node(node);
}

void Program::mistake(OpenStage& stage) {
  if (!stage.sender) return calls_.look(stage.worker);
  const auto none = static_cast<uint32_t>(stage.plan->receivers.size());
  const size_t bytes = draw_length(stage);
  switch (chance_.below(7)) {
    case 6:
      return calls_.call_nothing(stage.worker);
    case 0:
      return calls_.send(stage, none, bytes, 1, Wait::none());
    case 1:
      return calls_.send(stage, 0, bytes + 1 + (chance_.one_in(2) ? plan_.settings.row_limit : 0),
                         1, Wait::none());
    case 2: {
      const uint32_t twice[] = {0, 0};
      return calls_.multicast(stage, twice, bytes, Wait::none());
    }
    case 3: {
      const uint32_t nowhere[] = {0, none};
      return calls_.multicast(stage, nowhere, bytes, Wait::none());
    }
    case 4:
      return calls_.begin_claim(stage, none, bytes, Wait::none());
    default:
      return calls_.begin_claim(stage, 0, bytes + 1, Wait::none());
  }
}

}  // namespace faro::send_path
