#include "operators/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/return_if_error.h"
#include "faro/hash.h"
#include "shuffle/shuffle_access.h"
#include "shuffle/worker_access.h"

namespace faro::operators {
namespace {

// Between two looks at what else there is to do: as many frames as a ring mostly has.
constexpr uint32_t kBatchesAtOnce = 16;

}  // namespace

// --- stages

Stage::~Stage() {
  if (intake_ != nullptr) intake_->remove(*this);
}

Status Stage::open(Worker& worker, shuffle::Intake& intake, const ShuffleSpec& spec) {
  FARO_ASSIGN_OR_RETURN(shuffle_, worker.open_shuffle(spec));
  if (receiver() == nullptr) return Status::Ok();
  FARO_ASSIGN_OR_RETURN(receiver_, shuffle_.receiver());
  intake.add(*this);
  intake_ = &intake;
  has_ended_ = false;
  return Status::Ok();
}

shuffle::StageReceiver* Stage::receiver() noexcept {
  return shuffle_.is_open() ? ShuffleAccess::core(shuffle_).receiver() : nullptr;
}

void Stage::mark(bool is_taken) noexcept {
  if (shuffle::StageReceiver* const of = receiver()) of->take_in_exchange(is_taken);
}

bool Stage::take_in() noexcept {
  if (has_ended_ || !shuffle_.is_open()) return false;
  try {
    return take_batches();
  } catch (const std::bad_alloc&) {
    (void)part_.fail(Status(Code::overflow_exhausted, "no memory left for rows of an operator"));
  } catch (const std::exception& thrown) {
    (void)part_.fail(base::error(Code::query_failed, "{}", thrown.what()));
  }
  has_ended_ = true;
  return true;
}

// An operator that has failed drops what comes.
bool Stage::take_batches() {
  Batch batch;
  for (uint32_t taken = 0; taken < kBatchesAtOnce; ++taken) {
    const Outcome outcome = receiver_.receive(batch, Wait::none());
    if (outcome == Outcome::done && take_(batch)) continue;
    if (outcome == Outcome::would_wait || outcome == Outcome::holding) return taken > 0;
    if (outcome == Outcome::failed) {
      (void)part_.refuse(receiver_.status());
      if (part_.is_alive()) return false;  // a call of another thread was refused
    }
    has_ended_ = true;
    return true;
  }
  return true;
}

Outcome Stage::stop() {
  if (intake_ == nullptr) return Outcome::done;
  const Outcome outcome = receiver_.stop();
  if (outcome == Outcome::failed) return part_.refuse(receiver_.status());
  has_ended_ = true;
  return outcome;
}

// --- the share of the memory

bool Share::reserve(uint64_t bytes) noexcept {
  if (!memory_.reserve(bytes)) return false;
  reserve_ = charged_ = bytes;
  return true;
}

bool Share::take(uint64_t bytes, uint64_t room) noexcept {
  const uint64_t needed = used_ + bytes;
  if (needed + room > charged_) {
    const uint64_t more = needed + room - charged_;
    const uint64_t step = std::max(more, kStep);
    if (memory_.take(step)) {
      charged_ += step;
    } else if (memory_.take(more)) {
      charged_ += more;
    } else {
      return false;
    }
  }
  used_ = needed;
  room_ = std::max(room_, room);
  peak_ = std::max(peak_, used_);
  return true;
}

void Share::give(uint64_t bytes) noexcept {
  used_ -= bytes;
  const uint64_t kept = std::max(reserve_, used_);
  if (charged_ <= kept + room_ + kStep) return;
  memory_.give(charged_ - kept - room_);
  charged_ = kept + room_;
}

// --- the operator

// In a forked child nothing is counted: the counters are its parent's.
Part::~Part() {
  if (local_.context().node.forked()) return;
  counters::OperatorValues last = published_;
  last.table_states = last.held_bytes = last.peak_bytes = 0;
  operators_.count(nullptr, static_cast<uint64_t>(kind_), last, published_);
  counters::OperatorSlots::free(record_);
}

Status Part::open(uint64_t reserve_bytes, std::vector<detail::OperatorPart::Stage> stages) {
  FARO_RETURN_IF_ERROR(memory().check());
  const uint64_t reserve = std::max(reserve_bytes, detail::OperatorPart::kLeastReserve);
  if (!share_.reserve(reserve)) {
    return base::error(Code::limit_exceeded,
                       "{}: it needs {} bytes of operator.memory_bytes = {}, of which operators of "
                       "this node have {}",
                       name(), reserve, memory().limit_bytes(), memory().used_bytes());
  }
  const shuffle::WorkerContext& context = local_.context();
  const QueryId& query = stages.front().spec.query;
  const uint64_t incarnation = context.membership.peers().incarnation(context.membership.node());
  for (const uint64_t part : {incarnation, query.counter, uint64_t{query.issuer},
                              uint64_t{stages.front().spec.stage}, uint64_t{context.number}})
    number_ = FinalizerHash{}(number_ + part + 0x9e3779b97f4a7c15ULL);
  for (detail::OperatorPart::Stage& each : stages) {
    stages_.push_back(std::make_unique<Stage>(*this, std::move(each.take)));
    FARO_RETURN_IF_ERROR(stages_.back()->open(worker_, *local_.context().intake, each.spec));
  }
  query_ = ShuffleAccess::core(stages_.front()->shuffle()).query();
  record_ =
      operators_.take({query, stages.front().spec.stage, static_cast<uint64_t>(kind_), now_ns()});
  publish();
  return Status::Ok();
}

const char* Part::name() const noexcept {
  return kind_ == OperatorKind::join ? "a join" : "an aggregation";
}

void Part::publish() noexcept {
  if (local_.context().node.forked()) return;
  OperatorCounts told;
  if (tell_) tell_(told);
  told.partitions_spilled = partitions_spilled_;
  told.spilled_bytes = spilled_bytes_;
  told.held_bytes = share_.used_bytes();
  told.peak_bytes = share_.peak_bytes();
  counters::OperatorValues now;
#define FARO_OPERATOR_COUNTER(id, name, kind, help) now.name = told.name;
#include "counters/counters.def"
  operators_.count(record_, static_cast<uint64_t>(kind_), now, published_);
}

bool Part::take_in() noexcept {
  bool any = false;
  for (const std::unique_ptr<Stage>& stage : stages_) any |= stage->take_in();
  return any;
}

Outcome Part::try_once(const std::function<Outcome()>& attempt) {
  const Outcome outcome = attempt();
  if (outcome != Outcome::would_wait || !local_.context().intake->take_in()) return outcome;
  return attempt();
}

// wait_until wants to know whether anything was done, and looks once more then. Within a condition or a turn of the engine's own
// nothing may wait, and wait_until refuses.
Outcome Part::wait(const std::function<Outcome()>& attempt, Wait wait) {
  if (wait.is_none()) return try_once(attempt);
  using Clock = std::chrono::nanoseconds;
  const bool is_limited = !wait.is_forever();
  const uint64_t begin = is_limited ? now_ns() : 0;
  const Wait given = wait;
  Outcome outcome = Outcome::would_wait;
  const auto look = [&] {
    const bool any = local_.context().intake->take_in();
    outcome = attempt();
    return any || outcome != Outcome::would_wait;
  };
  const std::function<bool()> turn = std::cref(look);  // which takes no memory
  for (;;) {
    const Outcome waited = worker_.wait_until(turn, wait);
    if (waited == Outcome::failed) return refuse(worker_.status());
    if (waited != Outcome::done || outcome != Outcome::would_wait)
      return waited == Outcome::done ? outcome : waited;
    if (!is_limited) continue;
    const auto passed = Clock(static_cast<int64_t>(now_ns() - begin));
    if (passed >= given.limit()) return Outcome::deadline;
    wait = Wait::at_most(given.limit() - passed);
  }
}

bool Part::is_alive() {
  if (!status_.ok() && status_.category() != Category::operation) return false;
  const shuffle::WorkerContext& context = local_.context();
  if (query_->failed()) {
    status_ = query_->cause();
  } else if (context.node.closed()) {
    status_ = context.node.closed_status();
  } else {
    return true;
  }
  return false;
}

Outcome Part::fail(const Status& cause) noexcept {
  try {
    Stage& first = *stages_.front();
    if (first.shuffle().is_open()) ShuffleAccess::core(first.shuffle()).fail_query(cause);
    return refuse(query_->failed() ? query_->cause() : cause);
  } catch (const std::bad_alloc&) {
    local_.context().queries.fail_for_memory(*query_);
    return refuse(local_.context().queries.no_memory());
  }
}

void Part::leave(const char* name) noexcept {
  Stage& first = *stages_.front();
  if (!first.shuffle().is_open()) return;
  try {
    ShuffleAccess::core(first.shuffle())
        .leave(fmt::format("{} of stage {} before its end, without stop", name,
                           first.shuffle().spec().stage));
  } catch (const std::bad_alloc&) {
    local_.context().queries.fail_for_memory(*query_);
  }
}

Outcome Part::refuse(Status why) noexcept {
  status_ = std::move(why);
  return Outcome::failed;
}

// --- memory

uint64_t Part::fair_bytes() const noexcept {
  const shuffle::WorkerContext& context = local_.context();
  return context.operator_memory.limit_bytes() / context.own_node().worker_count;
}

Outcome Part::fail_for_memory(const std::string& what) {
  return fail(base::error(Code::overflow_exhausted,
                          "{} has no memory for {}: operator.memory_bytes = {}, of which operators "
                          "of this node have {}",
                          name(), what, memory().limit_bytes(), memory().used_bytes()));
}

bool Part::spill_largest() {
  detail::PartitionStore* largest = nullptr;
  uint64_t most = 0;
  for (detail::PartitionStore* const store : stores_) {
    const uint64_t bytes = store->memory_bytes(store->largest());
    if (bytes > most) largest = store, most = bytes;
  }
  if (largest == nullptr) return false;
  ++partitions_spilled_;
  return largest->spill(largest->largest());
}

bool Part::spill(std::span<const std::byte> rows, std::vector<shuffle::Stored>& spilled) {
  spilled.reserve(spilled.size() + 1);
  shuffle::Stored made;
  const Status status =
      memory().spill(query_->usage, rows, spilled.empty() ? nullptr : &spilled.back(), made);
  if (!status.ok()) {
    (void)fail(status);
    return false;
  }
  if (made.place != shuffle::Stored::Place::none) spilled.push_back(made);
  spilled_bytes_ += rows.size();
  return true;
}

bool Part::read(const shuffle::Stored& stored, std::span<std::byte> to) {
  const Status status = memory().read(stored, to);
  if (!status.ok()) (void)fail(status);
  return status.ok();
}

}  // namespace faro::operators

namespace faro::detail {

OperatorPart::OperatorPart(std::unique_ptr<operators::Part> part) : part_(std::move(part)) {}
OperatorPart::~OperatorPart() = default;

Result<std::unique_ptr<OperatorPart>> OperatorPart::make(Worker& worker, OperatorKind kind,
                                                         uint64_t reserve_bytes,
                                                         std::vector<Stage> stages) {
  FARO_RETURN_IF_ERROR(WorkerAccess::check_exists(worker));
  auto part = std::make_unique<operators::Part>(worker, *WorkerAccess::core(worker), kind);
  FARO_RETURN_IF_ERROR(part->open(reserve_bytes, std::move(stages)));
  return std::unique_ptr<OperatorPart>(new OperatorPart(std::move(part)));
}

Shuffle& OperatorPart::shuffle(size_t stage) noexcept { return part_->stage(stage).shuffle(); }
bool OperatorPart::has_ended(size_t stage) const noexcept {
  return part_->stage(stage).has_ended();
}
Outcome OperatorPart::stop(size_t stage) { return part_->stage(stage).stop(); }
uint64_t OperatorPart::number() const noexcept { return part_->number(); }
bool OperatorPart::can_replicate(Worker& worker) {
  return WorkerAccess::check_exists(worker).ok() &&
         WorkerAccess::core(worker)->context().settings.lanes_end_at_nodes();
}
uint64_t OperatorPart::now_ns() const noexcept { return part_->now_ns(); }
void OperatorPart::begin_call() noexcept { part_->begin_call(); }
void OperatorPart::end_call() noexcept { part_->end_call(); }
void OperatorPart::tells(Tell tell) { part_->tells(std::move(tell)); }
void OperatorPart::publish() noexcept { part_->publish(); }
bool OperatorPart::take_in() noexcept { return part_->take_in(); }
Outcome OperatorPart::wait(const std::function<Outcome()>& attempt, Wait wait) {
  return part_->wait(attempt, wait);
}
bool OperatorPart::is_alive() { return part_->is_alive(); }
Outcome OperatorPart::fail(const Status& cause) noexcept { return part_->fail(cause); }
void OperatorPart::leave(const char* name) noexcept { part_->leave(name); }
Outcome OperatorPart::refuse(Status why) noexcept { return part_->refuse(std::move(why)); }
const Status& OperatorPart::status() const noexcept { return part_->status(); }
uint64_t OperatorPart::fair_bytes() const noexcept { return part_->fair_bytes(); }
bool OperatorPart::try_take(uint64_t bytes, uint64_t room) noexcept {
  return part_->share().take(bytes, room);
}
bool OperatorPart::take(uint64_t bytes, uint64_t room) {
  try {
    while (!part_->share().take(bytes, room)) {
      if (!part_->spill_largest()) return false;
    }
    return true;
  } catch (const std::bad_alloc&) {
    (void)part_->fail(
        Status(Code::overflow_exhausted, "no memory left to spill rows of an operator"));
    return false;
  }
}
Outcome OperatorPart::fail_for_memory(const std::string& what) {
  return part_->is_alive() ? part_->fail_for_memory(what) : Outcome::failed;
}
void OperatorPart::give(uint64_t bytes) noexcept { part_->share().give(bytes); }
uint64_t OperatorPart::used_bytes() const noexcept { return part_->share().used_bytes(); }
uint64_t OperatorPart::peak_bytes() const noexcept { return part_->share().peak_bytes(); }
uint64_t OperatorPart::spilled_bytes() const noexcept { return part_->spilled_bytes(); }

}  // namespace faro::detail
