#include "shuffle/local_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/planted.h"

namespace faro::shuffle {
namespace {

using counters::count;

// Why a query fails of which a worker's part has failed.
Status part_failed(uint32_t worker, const Status& failure) {
  const bool is_of_query = failure.category() == Category::query;
  return Status(is_of_query ? failure.code() : Code::query_failed,
                fmt::format("worker {} failed: {}", worker,
                            is_of_query ? std::string(failure.message()) : failure.to_string()));
}

// None where this worker sends nothing.
Result<GroupBlocks> allocate_blocks(const WorkerContext& worker, const ShuffleSpec& spec,
                                    const LogicalReceivers& receivers, Query& query) {
  if (std::ranges::find(spec.senders, worker.number) == spec.senders.end()) return GroupBlocks();
  const uint32_t bytes = GroupBlocks::block_bytes(worker.settings.ring_bytes);
  return GroupBlocks::allocate(spec, receivers.groups(spec), receivers.count(), worker.overflow,
                               query.usage, bytes);
}

}  // namespace

LocalWorker::LocalWorker(const WorkerContext& context, NodeEnd* node_end,
                         ring::ReadyWatch& ready_watch, std::unique_ptr<ring::Waiter> waiter)
    : context_(context),
      operation_(context_),
      ownership_(context_, operation_, context_.membership.doorbell(local_index()),
                 [this] { return handle_alerts(); }),
      receive_side_(context_, node_end, operation_),
      lanes_(context_, operation_, receive_side_),
      wait_loop_(ownership_, receive_side_, lanes_, context_.membership.doorbell(local_index()),
                 std::move(waiter)),
      readiness_(ready_watch, wait_loop_.doorbell_line(), [this] { wait_loop_.woken_in_place(); }),
      link_lanes_(context_, lanes_, receive_side_),
      at_rest_(ownership_, link_lanes_, shuffles_),
      slots_(context_.settings.shuffle_limit) {
  shuffles_.reserve(slots_.size());
  (void)link_lanes_.rebind(false);  // nothing is in use yet
}

// Queued frames count in their queries, which shuffles keep.
LocalWorker::~LocalWorker() { lanes_.drop_queues(); }

Outcome LocalWorker::fail(Status status) noexcept {
  status_ = std::move(status);
  return Outcome::failed;
}

// Alerts are looked at by the next call, too, as long as something is left to tell.
bool LocalWorker::handle_alerts() {
  tell_abandoned();
  const bool is_all = link_lanes_.rebind(!shuffles_.empty()) && abandoned_.empty();
  for (const auto& shuffle : shuffles_) {
    if (shuffle->query()->failed()) {
      shuffle->drop_rows();
    } else if (StageSender* const sender = shuffle->sender()) {
      sender->receivers_stopped(context_.queries.stops(*shuffle->query(), shuffle->spec().stage));
    }
  }
  if (NodeShare* const share = receive_side_.at_node()) share->end().sweep_if_due();
  sweep();
  return is_all;
}

Result<const uint64_t*> LocalWorker::each_ring(const EachRing& each) {
  const Call call(*this);
  FARO_RETURN_IF_ERROR(ownership_.enter());
  for (const auto& [node, rings] : receive_side_.rings()) {
    for (const Lane& lane : lanes_.to_node(node)) each(lane.receiver(), true, lane.memory());
    for (const InRing& ring : rings) each(ring.sender, false, ring.transport->memory());
  }
  return &link_lanes_.generation();
}

// What keeps a closed shuffle may have left its queues.
void LocalWorker::call_ended() noexcept {
  if (has_closed_) sweep();
  at_rest_.call_ended();
}

// --- queries that it leaves before their end

void LocalWorker::abandon(const std::shared_ptr<Query>& query, const Status& cause) {
  if (std::ranges::find(abandoned_, query) == abandoned_.end()) abandoned_.push_back(query);
  context_.queries.abandon(*query, number(), cause, context_.now());
  ownership_.look_again();
}

void LocalWorker::tell_abandoned() noexcept {
  std::erase_if(abandoned_, [this](const std::shared_ptr<Query>& query) {
    if (spares_ == Spares::all || (spares_ == Spares::one && query->id == spared_)) return false;
    try {
      context_.queries.tell_abandoned(*query, number());
    } catch (const std::bad_alloc&) {
      context_.queries.fail_for_memory(*query);
    }
    return true;
  });
}

Status LocalWorker::enter(Spares spares, const QueryId& spared) {
  spares_ = spares;
  spared_ = spared;
  Status status = ownership_.enter();
  spares_ = Spares::none;
  return status;
}

// --- waiting for a condition

// A call that only looks says by its condition what it is about.
Outcome LocalWorker::look(const std::function<bool()>& condition, Spares spares) {
  if (Status status = enter(spares); !status.ok()) return fail(std::move(status));
  const bool tells = !abandoned_.empty();
  const Outcome outcome = ownership_.look_at(condition);
  if (tells) tell_abandoned();
  return outcome;
}

Outcome LocalWorker::wait_until(const std::function<bool()>& condition, Wait wait) {
  const Call call(*this);
  Spares spares = Spares::all;
  const auto attempt = [&] { return look(condition, std::exchange(spares, Spares::none)); };
  if (wait.is_none()) return wait_loop_.run<WaitLoop::For::condition>(attempt);
  if (Status status = ownership_.check_may_wait(wait); !status.ok()) return fail(std::move(status));
  return wait_loop_.wait<WaitLoop::For::condition>(attempt, wait);
}

Outcome LocalWorker::arm(const std::function<bool()>& progress, Progress what) {
  const Call call(*this);
  Status status = enter(Spares::all);
  if (status.ok()) status = ownership_.check_may_wait(Wait::forever());
  if (status.ok()) status = readiness_.reset();
  if (!status.ok()) return fail(std::move(status));
  Spares spares = Spares::all;
  const auto attempt = [&] { return look(progress, std::exchange(spares, Spares::none)); };
  base::Nanoseconds sleep_ns = 0;
  const Outcome outcome = wait_loop_.arm_unless(attempt, sleep_ns, what == Progress::call);
  if (outcome == Outcome::would_wait) status = readiness_.watch(sleep_ns);
  return status.ok() ? outcome : fail(std::move(status));
}

// --- sending and receiving together

Status LocalWorker::check_exchange(Exchange& exchange, Wait wait) {
  FARO_RETURN_IF_ERROR(enter(Spares::all));
  if (in_exchange_) {
    return base::error(Code::wrong_state,
                       "worker {}: exchange is called by a function of exchange; name all shuffles "
                       "in one call",
                       number());
  }
  if (!wait.is_none()) FARO_RETURN_IF_ERROR(ownership_.check_may_wait(wait));
  return exchange.check(number());
}

Outcome LocalWorker::exchange(std::span<ExchangePart> parts, Wait wait) {
  const Call call(*this);
  Exchange exchange(parts, lanes_);
  if (Status status = check_exchange(exchange, wait); !status.ok()) return fail(std::move(status));
  in_exchange_ = true;
  const Outcome outcome = run_exchange(exchange, wait);
  in_exchange_ = false;
  const Outcome answer = answer_exchange(exchange, outcome);
  exchange.rethrow();
  return answer;
}

// A turn is a condition: nothing in it may wait, and what it would have waited for is looked at once for all its calls.
Outcome LocalWorker::run_exchange(Exchange& exchange, Wait wait) {
  const std::function<bool()> turn = [&] { return exchange.turn(); };
  const auto attempt = [&] { return look(turn, Spares::none); };
  if (wait.is_none()) return wait_loop_.run<WaitLoop::For::condition>(attempt);
  const bool is_limited = !wait.is_forever();
  const base::Nanoseconds end =
      is_limited ? base::deadline_after(context_.now(), static_cast<uint64_t>(wait.limit().count()))
                 : base::kForever;
  for (;;) {
    const Outcome outcome = wait_loop_.wait<WaitLoop::For::condition>(attempt, wait);
    if (outcome != Outcome::done || exchange.is_over()) return outcome;
    if (!is_limited) continue;
    const base::Nanoseconds now = context_.now();
    if (now >= end) return Outcome::deadline;
    wait = Wait::at_most(std::chrono::nanoseconds(end - now));
  }
}

Outcome LocalWorker::answer_exchange(Exchange& exchange, Outcome outcome) {
  if (exchange.has_failed()) {
    if (const std::shared_ptr<Query>& query = exchange.failed_query())
      context_.queries.fail(*query, part_failed(number(), exchange.why()));
    return fail(exchange.why());
  }
  if (outcome != Outcome::done) return outcome;
  return exchange.is_done()    ? Outcome::end_of_stream
         : exchange.has_kept() ? Outcome::holding
                               : Outcome::done;
}

// --- the end of a query

Status LocalWorker::check_closed(const QueryId& id) const {
  for (const auto& shuffle : shuffles_) {
    if (shuffle->is_closed() || shuffle->query()->id != id) continue;
    return base::error(Code::wrong_state,
                       "query {} cannot end at worker {}: its shuffle of stage {} is open",
                       id.to_string(), number(), shuffle->spec().stage);
  }
  return Status::Ok();
}

// What is open of the query is closed as a consequence.
void LocalWorker::fail_part(Query& query, const Status& failure) {
  context_.queries.fail(query, part_failed(number(), failure));
  const auto is_open = [&](const auto& shuffle) {
    return !shuffle->is_closed() && shuffle->query().get() == &query;
  };
  while (query.failed()) {
    const auto open = std::ranges::find_if(shuffles_, is_open);
    if (open == shuffles_.end()) break;
    (*open)->end();  // may destroy it
  }
}

// This worker may have ended its part in an earlier call, which did not wait for the outcome. The node may have forgotten the
// query since.
Result<std::shared_ptr<Query>> LocalWorker::query_to_end(const QueryId& id) {
  const auto known =
      std::find_if(ending_.begin(), ending_.end(), [&](const auto& q) { return q->id == id; });
  if (known != ending_.end()) return *known;
  return context_.queries.use(id);
}

bool LocalWorker::is_sending(const Query& query) const {
  return std::ranges::any_of(shuffles_, [&](const auto& shuffle) {
    return shuffle->query().get() == &query && shuffle->sender() != nullptr &&
           shuffle->sender()->has_queued();
  });
}

Outcome LocalWorker::end_query(const QueryId& id, const Status& failure, Wait wait) {
  const Call call(*this);
  const auto answer = [&](const Status& status) { return fail(status.of_query(id)); };
  if (Status status = enter(Spares::one, id); !status.ok()) return answer(status);
  if (!wait.is_none()) {
    if (Status status = ownership_.check_may_wait(wait); !status.ok()) return answer(status);
  }
  const Result<std::shared_ptr<Query>> query = query_to_end(id);
  if (query.ok() && !failure.ok()) fail_part(**query, failure);
  tell_abandoned();
  if (Status status = check_closed(id); !status.ok()) return answer(status);
  if (!query.ok()) return answer(query.status());
  const auto attempt = [&] { return attempt_end(*query); };
  return wait.is_none() ? wait_loop_.run(attempt) : wait_loop_.wait(attempt, wait);
}

Outcome LocalWorker::attempt_end(const std::shared_ptr<Query>& query) {
  const auto answer = [&](const Status& status) { return fail(status.of_query(query->id)); };
  if (Status status = ownership_.enter(); !status.ok()) return answer(status);
  operation_.is_about(*query, nullptr);
  if (std::ranges::find(ending_, query) == ending_.end()) {
    // What this worker still has to send of the query goes first: the others wait for it.
    wait_loop_.send_queued();
    lanes_.flush();
    if (is_sending(*query) && !query->failed()) return lanes_.blocked_on_queues(*query);
    ending_.reserve(ending_.size() + 1);
    context_.queries.end(*query, number());
    ending_.push_back(query);
  }
  // What has failed cannot be done any more, whatever keeps others from ending.
  if (!query->outcome_known() && !query->failed())
    return operation_.blocked_on().outcome_of(query->id);
  std::erase(ending_, query);
  sweep();
  const Status& outcome = query->outcome_known() ? query->outcome() : query->cause();
  return outcome.ok() ? Outcome::done : answer(outcome);
}

// --- shuffles

// There is one: make_shuffle has checked the limit.
uint16_t LocalWorker::take_slot() {
  uint16_t slot = 0;
  while (slots_[slot] && !base::planted(base::Plant::slot_reused_too_early)) ++slot;
  slots_[slot] = true;
  return slot;
}

Result<Shuffle> LocalWorker::open_shuffle(const ShuffleSpec& spec) {
  const Call call(*this);
  try {
    return make_shuffle(spec);
  } catch (const std::bad_alloc&) {
    if (const std::shared_ptr<Query> query = context_.queries.find(spec.query))
      context_.queries.fail_for_memory(*query);
    return context_.queries.no_memory();
  }
}

// Names all workers where none is named, unless these have to be declared.
Status LocalWorker::complete(ShuffleSpec& spec) const {
  if (spec.stage > ShuffleSpec::kStageLimit) {
    return base::error(Code::invalid_argument, "stage {} is outside 0 … {}",
                       static_cast<int32_t>(spec.stage), ShuffleSpec::kStageLimit);
  }
  const uint32_t worker_count = context_.membership.worker_count();
  for (std::vector<uint32_t>* workers : {&spec.senders, &spec.receivers}) {
    if (workers->empty()) *workers = context_.queries.default_workers();
    std::vector<bool> seen(worker_count);
    for (const uint32_t worker : *workers) {
      if (worker >= worker_count || seen[worker]) {
        return base::error(Code::invalid_argument, "stage {}: worker {} {}", spec.stage, worker,
                           worker >= worker_count
                               ? fmt::format("does not exist (0 … {})", worker_count - 1)
                               : "is named twice");
      }
      seen[worker] = true;
    }
  }
  if (spec.delivery > Delivery::replicate) {
    return base::error(Code::invalid_argument,
                       "stage {}: delivery = {} is none of worker, node, replicate", spec.stage,
                       static_cast<uint32_t>(spec.delivery));
  }
  if (spec.delivery != Delivery::worker && !context_.settings.lanes_end_at_nodes()) {
    return base::error(Code::invalid_argument,
                       "stage {}: delivery = {} goes over lanes that end at nodes, but lane.ends = "
                       "{}; set it to node, or to both, on all nodes",
                       spec.stage, to_string(spec.delivery), context_.settings.lane_ends);
  }
  if (spec.row_bytes > context_.settings.row_limit_bytes) {
    return base::error(Code::invalid_argument,
                       "stage {}: row_bytes = {} is above row.limit_bytes = {}", spec.stage,
                       spec.row_bytes, context_.settings.row_limit_bytes);
  }
  return Status::Ok();
}

// A worker opens a stage once.
Status LocalWorker::check_unopened(const ShuffleSpec& spec, const Query& query) {
  for (const auto& shuffle : shuffles_) {
    if (shuffle->query().get() == &query && shuffle->spec().stage == spec.stage) {
      return base::error(Code::invalid_argument,
                         "stage {} of query {} was opened at worker {} already", spec.stage,
                         spec.query.to_string(), number());
    }
  }
  const Inbox* const inbox = receive_side_.inboxes().find(spec.query, spec.stage);
  if (inbox != nullptr && inbox->discarding) {
    return base::error(Code::invalid_argument,
                       "stage {} of query {} was opened and closed at worker {} already",
                       spec.stage, spec.query.to_string(), number());
  }
  return Status::Ok();
}

Result<Shuffle> LocalWorker::make_shuffle(ShuffleSpec spec) {
  FARO_RETURN_IF_ERROR(ownership_.enter());
  FARO_RETURN_IF_ERROR(complete(spec));
  FARO_ASSIGN_OR_RETURN(const std::shared_ptr<Query> query, context_.queries.use(spec.query));
  if (query->failed()) return query->cause();
  for (std::vector<uint32_t>* workers : {&spec.senders, &spec.receivers}) {
    if (workers->empty()) *workers = query->declared_workers();
  }
  sweep();
  LogicalReceivers receivers = LogicalReceivers::of(
      spec, [&](uint32_t worker) { return context_.queries.node_of_worker(worker); });
  FARO_RETURN_IF_ERROR(GroupBlocks::check(spec, receivers.count()));
  FARO_RETURN_IF_ERROR(check_unopened(spec, *query));
  FARO_RETURN_IF_ERROR(link_lanes_.check(spec));
  if (shuffles_.size() >= slots_.size()) {
    return base::error(Code::limit_exceeded, "worker {} has shuffle.limit = {} shuffles open",
                       number(), slots_.size());
  }
  const bool sends = std::ranges::find(spec.senders, number()) != spec.senders.end();
  const bool receives = std::ranges::find(spec.receivers, number()) != spec.receivers.end();
  Result<GroupBlocks> blocks = allocate_blocks(context_, spec, receivers, *query);
  if (!blocks.ok()) {
    if (blocks.status().code() != Code::overflow_exhausted) return blocks.status();
    context_.queries.fail(*query, Status(blocks.status()).of_stage(spec.stage));
    return query->cause();
  }
  Inboxes& inboxes = receive_side_.inboxes();
  Inbox* inbox = receives ? inboxes.find(spec.query, spec.stage) : nullptr;
  StageLists lists = StageLists::of(spec);
  RowFormat format = RowFormat::of(std::exchange(spec.format, {}));
  if (inbox != nullptr)
    FARO_RETURN_IF_ERROR(receive_side_.agreement().on_own_open(*inbox, spec, lists, format));
  FARO_RETURN_IF_ERROR(context_.queries.open_stage(*query, number(), spec, lists));
  const uint32_t stage = spec.stage;
  const bool has_heard = inbox != nullptr;
  if (receives && !has_heard) inbox = &inboxes.add(query, stage, context_.membership.node());
  const auto counts = std::make_shared<ShuffleCounts>(spec, number(), sends ? receivers.count() : 0,
                                                      receives ? inbox->received() : nullptr);
  if (receives && spec.delivery != Delivery::worker)
    (void)query->node_stages.of(stage, context_.own_node().worker_count);
  query->shuffles.add(counts);
  auto shuffle = std::make_unique<OpenShuffle>(*this, ownership_, query, std::move(spec),
                                               std::move(lists), std::move(receivers), counts);
  if (receives) {
    if (has_heard) context_.queries.remove_unopened(*query, number(), stage);
    inbox->lists = shuffle->lists();
    inbox->format = format;
  }
  if (sends) {
    const uint16_t slot = take_slot();
    try {
      shuffle->become_sender(wait_loop_, lanes_, std::move(format), slot, std::move(*blocks));
    } catch (const std::bad_alloc&) {
      slots_[slot] = false;
      throw;
    }
  }
  // From here on nothing can fail that would have to be undone.
  if (receives) shuffle->become_receiver(wait_loop_, receive_side_, *inbox);
  OpenShuffle* const made = shuffle.get();
  shuffles_.push_back(std::move(shuffle));
  count(context_.counters.open_shuffles);
  return Shuffle(made, counts);
}

void LocalWorker::closed() noexcept {
  counters::set(context_.counters.open_shuffles,
                context_.counters.open_shuffles.load(std::memory_order_relaxed) - 1);
  sweep();
}

void LocalWorker::sweep() noexcept {
  size_t kept = 0;
  has_closed_ = false;
  for (std::unique_ptr<OpenShuffle>& each : shuffles_) {
    std::unique_ptr<OpenShuffle> shuffle = std::move(each);
    if (!shuffle->is_over()) {
      has_closed_ |= shuffle->is_closed();
      shuffles_[kept++] = std::move(shuffle);
      continue;
    }
    if (const StageSender* const sender = shuffle->sender()) slots_[sender->slot()] = false;
    if (shuffle->has_handle()) shuffle.release()->leave_to_handle();
  }
  shuffles_.resize(kept);
  receive_side_.inboxes().sweep();
}

// --- metrics

WorkerMetrics LocalWorker::metrics() const {
  WorkerMetrics m;
  m.worker = number();
#define FARO_WORKER_COUNTER(id, name, kind, help) \
  m.name = context_.counters.name.load(std::memory_order_relaxed);
#include "counters/counters.def"
  return m;
}

}  // namespace faro::shuffle
