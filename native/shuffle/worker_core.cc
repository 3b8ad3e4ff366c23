#include "shuffle/worker_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "base/planted.h"
#include "shuffle/node_core.h"
#include "shuffle/shuffle_core.h"
#include "transport/mirrored_ring.h"

namespace faro::detail {
namespace {

using counters::WaitKind;
using transport::count;

// Without progress for so long, a worker that only ever polls flushes. Longer than a turn of an
// engine's loop over several shuffles takes, or every turn would cut its frames short; short against
// what anyone notices.
constexpr base::Nanoseconds kFlushPatience = 300'000;

// A call that waits flushes after that many yields: mostly one is enough for others to make room or
// bring rows, and every flush cuts the open frames of all lanes short, to half their size on average.
constexpr uint32_t kYieldsBeforeFlush = 2;

// Without progress for so long, a worker asks for senders that have not opened their stage: long against what it
// takes to open a plan's shuffles everywhere, so that mostly nobody is asked.
constexpr base::Nanoseconds kAskPatience = 100'000'000;

// The drain delay doubles within one wait up to that many times drain.delay_us: without an end to it the
// time that a plan needs whose rows must be spilled would double with each ring's worth of them.
// With the defaults a lane then moves on by 2 MiB a second.
constexpr base::Nanoseconds kPatienceGrowth = 16;

// A worker with nothing to do looks at the sockets again after so long (a system call each time).
constexpr base::Nanoseconds kNetworkPollInterval = 4'000;

// One address per thread: its identity as an owner.
const void* this_thread() noexcept {
  thread_local const char token = 0;
  return &token;
}

Outcome failed(Status status, Status* cause) {
  if (cause != nullptr) *cause = std::move(status);
  return Outcome::failed;
}

/// Says in a flag that something is inside, while it is.
class Inside {
 public:
  explicit Inside(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
  ~Inside() { flag_ = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool& flag_;
  const bool before_;
};

// Why a query fails of which a worker's part has failed.
Status part_failed(uint32_t worker, const Status& failure) {
  const bool is_of_query = failure.category() == Category::query;
  return Status(is_of_query ? failure.code() : Code::query_failed,
                fmt::format("worker {} failed: {}", worker,
                            is_of_query ? std::string(failure.message()) : failure.to_string()));
}

}  // namespace

WorkerCore::WorkerCore(NodeCore& node, uint32_t local_index, std::unique_ptr<Waiter> waiter)
    : node_(node),
      number_(node.membership().nodes()[node.membership().node()].first_worker + local_index),
      local_index_(local_index),
      ready_(node.membership().ready_set(local_index)),
      counter_file_(node.membership().counters()),
      doorbell_(&node.membership().doorbell(local_index)),
      waiter_(std::move(waiter)),
      counters_(counter_file_.worker(local_index)),
      slots_(node.settings().shuffle_limit) {
  make_lanes();
  dirty_.reserve(out_lanes_.size());
  backlog_.reserve(in_lanes_.size() * 2);
  release_unsent_.reserve(in_lanes_.size());
  shuffles_.reserve(slots_.size());
  (void)take_up_links();  // nothing is in use yet
}

// Without their rings, which are those of links.
void WorkerCore::make_lanes() {
  session::Membership& membership = node_.membership();
  const auto rings_per_lane = static_cast<uint32_t>(node_.settings().rings_per_lane);
  links_.resize(membership.nodes().size());
  out_lanes_.resize(size_t{membership.worker_count()} * rings_per_lane);
  in_lanes_.resize(out_lanes_.size());
  for (const session::Node& peer : membership.nodes()) {
    const ring::Layout in = membership.incoming_layout(peer.number);
    const uint32_t first_ready = membership.first_ready(peer.number, local_index_);
    for (uint32_t remote = 0; remote < peer.worker_count; ++remote) {
      for (uint32_t k = 0; k < rings_per_lane; ++k) {
        const uint32_t worker = peer.first_worker + remote;
        OutLane& to = out_lanes_[size_t{worker} * rings_per_lane + k];
        to.receiver = worker;
        to.counters = &counter_file_.outgoing(local_index_, worker, k);
        to.to_self = worker == number_;
        InLane& from = in_lanes_[size_t{worker} * rings_per_lane + k];
        from.sender = worker;
        from.sender_node = peer.number;
        from.ring_bytes = in.ring_bytes;
        const uint32_t number =
            first_ready + in.index_at_receiver(in.ring(remote, local_index_, k));
        if (number >= in_lane_by_ready_.size()) in_lane_by_ready_.resize(number + 1);
        in_lane_by_ready_[number] = &from;
      }
    }
  }
}

WorkerCore::~WorkerCore() {
  for (OutLane& lane : out_lanes_) {
    while (!lane.queue_empty()) lane.dequeue();
  }
  for (const auto& inbox : inboxes_) discard(*inbox);
  shuffles_.clear();
}

base::Nanoseconds WorkerCore::now() const noexcept { return node_.membership().clock().now_ns(); }

// --- ownership and alerts

Status WorkerCore::enter() {
  const void* const me = this_thread();
  if (owner_.load(std::memory_order_relaxed) != me) {
    const void* nobody = nullptr;
    // Acquire: sees everything the thread did that handed the worker over (its release in
    // hand_over).
    if (!owner_.compare_exchange_strong(nobody, me, std::memory_order_acquire)) {
      return Status(
          Code::wrong_state,
          fmt::format("worker {} belongs to another thread; that one has to hand_over() first",
                      number_));
    }
  }
  count(counters_.operations);
  wanted_.kind = WaitKind::none;
  operated_query_ = nullptr;
  operated_status_ = nullptr;
  // S2 of ring/doorbell.h. What an alert is about, closing included, was stored before it: alerts
  // come first.
  if (alerts_.load(std::memory_order_seq_cst) != alerts_seen_) handle_alerts();
  if (node_.closed()) return node_.closed_status();
  return Status::Ok();
}

void WorkerCore::adopt() noexcept { owner_.store(this_thread(), std::memory_order_relaxed); }

void WorkerCore::alert() noexcept {
  alerts_.fetch_add(1, std::memory_order_seq_cst);  // R1 of ring/doorbell.h
  ring::ring_doorbell(doorbell_.line());
}

void WorkerCore::wake() noexcept {
  wakes_.fetch_add(1, std::memory_order_seq_cst);  // R1 of ring/doorbell.h
  ring::ring_doorbell(doorbell_.line());
}

void WorkerCore::handle_alerts() {
  const uint64_t alerts = alerts_.load(std::memory_order_acquire);
  const bool is_all = take_up_links();
  for (const auto& core : shuffles_) {
    if (core->query()->failed()) {
      core->query_failed();
    } else if (core->is_sender()) {
      core->receivers_stopped(node_.queries().stops(*core->query(), core->spec().stage));
    }
  }
  // If something is kept, or there was no memory for something, the next operation looks again.
  alerts_seen_ = is_all ? alerts : alerts - 1;
  sweep();
}

// --- waiting

bool WorkerCore::before_would_wait() {
  const base::Nanoseconds time = now();
  if (network_had_data_ || time - network_polled_at_ >= kNetworkPollInterval) {
    network_polled_at_ = time;
    network_had_data_ = node_.membership().poll_network();
  }
  bool changed = gather();
  if (queued_lanes_ > 0) pump_all();
  if (stalled_since_ == 0) {
    stalled_since_ = time;
    patience_ = node_.settings().drain_delay_us * 1000;
    aside_after_ = time + patience_;
    return changed;
  }
  if (time - stalled_since_ >= kAskPatience) ask_for_senders(time);
  if (!may_wait_ && time - stalled_since_ >= kFlushPatience) {
    flush_all();
    show_wait(false);
  }
  if (time >= aside_after_) {
    if (move_aside_where_needed()) {
      changed = true;
      patience_ = std::min(2 * patience_, kPatienceGrowth * node_.settings().drain_delay_us * 1000);
    }
    aside_after_ = time + patience_;
  }
  return changed;
}

// What has reached its threshold, and all read positions.
void WorkerCore::start_transfers() {
  tell_releases();
  node_.membership().flush_network();
}

void WorkerCore::flush_all() noexcept {
  try {
    post_dirty();
    start_transfers();
  } catch (const std::bad_alloc&) {
    (void)lack_memory();  // whoever waits sees it at its next attempt
  }
}

base::Nanoseconds WorkerCore::begin_wait(Timeout timeout) {
  const base::Nanoseconds begin = now();
  count(counters_.waits);
  waiting_.store(true, std::memory_order_relaxed);
  deadline_ = timeout == kNoTimeout
                  ? base::kForever
                  : base::deadline_after(
                        begin, static_cast<uint64_t>(std::max<int64_t>(0, timeout.count())));
  yields_left_ = static_cast<uint32_t>(node_.settings().wait_yields);
  return begin;
}

WorkerCore::WaitStep WorkerCore::next_wait_step() {
  const bool is_expired = deadline_ != base::kForever && now() >= deadline_;
  if (yields_left_ > 0 && !is_expired) {
    if (--yields_left_ + kYieldsBeforeFlush < node_.settings().wait_yields) {
      flush_all();
    } else {
      start_transfers();
    }
    waiter_->yield();
    return WaitStep::yield;
  }
  flush_all();  // others may be waiting for just that
  if (is_expired) return WaitStep::expired;
  arm();
  return WaitStep::sleep;
}

void WorkerCore::arm() noexcept {
  node_.membership().worker_sleeps();
  doorbell_.arm();
  // S2 of ring/doorbell.h: what was written before a wake() is seen by the attempt that follows.
  (void)wakes_.load(std::memory_order_seq_cst);
}

// When a worker that waits has to ask for senders; kForever: it has asked, or all have opened.
base::Nanoseconds WorkerCore::ask_due(base::Nanoseconds time) const noexcept {
  const bool asks = std::any_of(inboxes_.begin(), inboxes_.end(), [](const auto& inbox) {
    return inbox->open && !inbox->discarding && inbox->ask_at == 0;
  });
  return asks ? (stalled_since_ != 0 ? stalled_since_ : time) + kAskPatience : base::kForever;
}

// They may have ended without opening it, and nobody else would notice. What is remembered of a question may be
// forgotten, so it is asked again.
void WorkerCore::ask_for_senders(base::Nanoseconds time) {
  for (const auto& inbox : inboxes_) {
    if (!inbox->open || inbox->discarding || time < inbox->ask_at) continue;
    const std::vector<uint32_t> senders = inbox->unopened_senders();
    inbox->ask_at = senders.empty() ? base::kForever
                                    : time + node_.settings().unopened_timeout_ms * 1'000'000 / 2;
    if (!senders.empty()) {
      node_.queries().await(*inbox->query(), number_, inbox->stage(), senders, inbox->lists);
    }
  }
}

// Since `arm` the attempt has looked at alerts (enter), rings (gather) and its condition: whatever
// came later rings the doorbell, and the sleep is over at once. Returns how long it may be.
base::Nanoseconds WorkerCore::prepare_sleep() {
  // The look since `arm` may have queued, committed or released something.
  flush_all();
  if (base::planted(base::Plant::lost_notification)) ready_.take([](uint32_t) {});
  const base::Nanoseconds time = now();
  base::Nanoseconds at_most = node_.settings().wait_sleep_ms * 1'000'000;
  if (deadline_ != base::kForever)
    at_most = std::min(at_most, deadline_ > time ? deadline_ - time : 0);
  // Frames that nobody polls must be spilled in time.
  for (const InLane& lane : in_lanes_) {
    if (!lane.blocks_sender()) continue;
    const base::Nanoseconds due = aside_after_;
    at_most = std::min(at_most, due > time ? due - time : 1);
    break;
  }
  if (const base::Nanoseconds due = ask_due(time); due != base::kForever)
    at_most = std::min(at_most, due > time ? due - time : 1);
  count(counters_.sleeps);
  show_wait(true);
  return at_most;
}

void WorkerCore::sleep() { waiter_->sleep(doorbell_, prepare_sleep()); }

void WorkerCore::woken() noexcept { node_.membership().worker_wakes(); }

void WorkerCore::end_wait(base::Nanoseconds begin) {
  doorbell_.disarm();
  if (wait_shown_) hide_wait();
  count(counters_.blocked_ns, now() - begin);
  waiting_.store(false, std::memory_order_release);
}

// --- what others see of it

Outcome WorkerCore::wants_rows(const ShuffleCore& core, uint64_t sender) noexcept {
  wanted_ = {WaitKind::rows, 0, core.query()->id, core.spec().stage, sender};
  wanted_inbox_ = core.inbox();
  return Outcome::would_wait;
}

Outcome WorkerCore::wants_room(const ShuffleCore& core, uint32_t receiver) noexcept {
  const OutLane& lane = lane_to(core.spec().receivers[receiver], core.spec().stage);
  wanted_ = {WaitKind::room, 0, core.query()->id, core.spec().stage, lane.receiver};
  count(lane.counters->no_room);
  return Outcome::would_wait;
}

Outcome WorkerCore::wants(WaitKind kind, const QueryId& query) noexcept {
  wanted_ = {kind, 0, query};
  return Outcome::would_wait;
}

Outcome WorkerCore::wants_queues_sent(const shuffle::Query& query) noexcept {
  for (const OutLane& lane : out_lanes_) {
    for (const QueuedFrame* frame = lane.queue.get(); frame != nullptr; frame = frame->next.get()) {
      if (frame->core->query().get() == &query) return wants_room(*frame->core, frame->receiver);
    }
  }
  return Outcome::would_wait;
}

// Not on the way of any row: the worker has nothing to do, or is about to sleep.
void WorkerCore::show_wait(bool in_call) noexcept {
  wanted_.since_ns = stalled_since_ != 0 ? stalled_since_ : now();  // 0: just now a queue moved on
  wanted_.in_call = in_call ? 1 : 0;
  if (wanted_.kind == WaitKind::rows) {
    const std::span<counters::Counter> words = counter_file_.awaited(local_index_);
    wanted_.awaited_count = 0;
    for (size_t w = 0; w < words.size(); ++w) {
      uint64_t bits = 0;
      for (uint32_t bit = 0; bit < 64 && w * 64 + bit < node_.worker_count(); ++bit) {
        const auto sender = static_cast<uint32_t>(w * 64 + bit);
        const bool awaited = wanted_.peer == counters::kAnyPeer || wanted_.peer == sender;
        if (awaited && wanted_inbox_->is_sender(sender) && !wanted_inbox_->stream(sender).finished)
          bits |= uint64_t{1} << bit;
      }
      words[w].store(bits, std::memory_order_relaxed);
      wanted_.awaited_count += static_cast<uint64_t>(std::popcount(bits));
    }
  }
  counter_file_.wait(local_index_).store(wanted_);
  wait_shown_ = true;
}

void WorkerCore::hide_wait() noexcept {
  counter_file_.wait(local_index_).store({});
  wait_shown_ = false;
}

Status WorkerCore::check_may_wait() const {
  const bool is_mine = owner_.load(std::memory_order_relaxed) == this_thread();
  if (!is_mine || !in_condition_) return Status::Ok();  // another thread's call fails by enter()
  return Status(Code::wrong_state,
                fmt::format("worker {} is called from a condition that it waits for, in "
                            "which nothing may wait: use what only tries",
                            number_));
}

Outcome WorkerCore::look_at(const std::function<bool()>& condition, Status* cause) {
  if (Status status = enter(); !status.ok()) return failed(std::move(status), cause);
  const Inside inside(in_condition_);
  return condition() ? Outcome::done : wants(WaitKind::condition);
}

Outcome WorkerCore::try_until(const std::function<bool()>& condition, Status* cause) {
  return run<For::condition>([&] { return look_at(condition, cause); });
}

Outcome WorkerCore::wait_until(const std::function<bool()>& condition, Timeout timeout,
                               Status* cause) {
  if (Status status = check_may_wait(); !status.ok()) return failed(std::move(status), cause);
  return wait<For::condition>([&] { return look_at(condition, cause); }, timeout);
}

Outcome WorkerCore::arm_unless(const std::function<bool()>& condition, base::Nanoseconds& sleep_ns,
                               bool for_call, Status* cause) {
  if (Status status = check_may_wait(); !status.ok()) return failed(std::move(status), cause);
  auto attempt = [&] { return look_at(condition, cause); };
  may_wait_ = for_call;
  Outcome outcome = run<For::condition>(attempt);
  if (outcome == Outcome::would_wait) {
    count(counters_.waits);
    flush_all();
    arm();
    outcome = run<For::condition>(attempt);
    if (outcome == Outcome::would_wait) {
      deadline_ = base::kForever;
      sleep_ns = prepare_sleep();
    } else {
      doorbell_.disarm();
      woken();
    }
  }
  may_wait_ = false;
  return outcome;
}

Outcome WorkerCore::end_query(const QueryId& id, const Status& failure, Status* cause, bool wait,
                              Timeout timeout) {
  auto answer = [&](const Status& status) { return failed(status.of_query(id), cause); };
  if (Status status = enter(); !status.ok()) return answer(status);
  if (wait) {
    if (Status status = check_may_wait(); !status.ok()) return answer(status);
  }
  for (const auto& core : shuffles_) {
    if (!core->handle_closed() && core->query()->id == id) {
      return answer(
          Status(Code::wrong_state,
                 fmt::format("query {} cannot end at worker {}: its shuffle of stage {} is open",
                             id.to_string(), number_, core->spec().stage)));
    }
  }
  // Ended before, by a try_ that had to wait? The node may have forgotten the query since.
  const auto known =
      std::find_if(ending_.begin(), ending_.end(), [&](const auto& q) { return q->id == id; });
  bool told = known != ending_.end();
  std::shared_ptr<shuffle::Query> query;
  if (told) {
    query = *known;
  } else {
    Result<std::shared_ptr<shuffle::Query>> used = node_.queries().use(id);
    if (!used.ok()) return answer(used.status());
    query = *used;
  }
  if (!failure.ok()) node_.queries().fail(*query, part_failed(number_, failure));
  auto attempt = [&] {
    if (Status status = enter(); !status.ok()) return answer(status);
    operates_on(*query, nullptr);
    if (!told) {
      // What this worker still has to send of the query goes first: the others wait for it.
      pump_all();
      flush();
      const bool sending = std::any_of(shuffles_.begin(), shuffles_.end(), [&](const auto& core) {
        return core->query() == query && core->has_queued();
      });
      if (sending && !query->failed()) return wants_queues_sent(*query);
      ending_.reserve(ending_.size() + 1);
      node_.queries().end(*query, number_);
      ending_.push_back(query);
      told = true;
    }
    // What has failed cannot be done any more, whatever keeps others from ending.
    if (!query->outcome_known() && !query->failed()) return wants(WaitKind::outcome, id);
    std::erase(ending_, query);
    sweep();
    const Status& outcome = query->outcome_known() ? query->outcome() : query->cause();
    if (outcome.ok()) return Outcome::done;
    return answer(outcome);
  };
  return wait ? this->wait(attempt, timeout) : run(attempt);
}

// --- overflow

Outcome WorkerCore::overflow_exhausted(const std::shared_ptr<shuffle::Query>& query, uint64_t bytes,
                                       const Status& cause) {
  const std::string& name = node_.membership().nodes()[node_.membership().node()].name;
  if (node_.overflow().is_above_query_limit(query->usage, bytes)) {
    node_.queries().fail(
        *query, Status(Code::overflow_exhausted, fmt::format("{} on {}", cause.message(), name)));
    return Outcome::failed;
  }
  std::shared_ptr<shuffle::Query> victim = node_.queries().biggest_overflow_user();
  const uint64_t own = query->usage.bytes.load(std::memory_order_relaxed) + bytes;
  if (victim == nullptr || victim->usage.bytes.load(std::memory_order_relaxed) < own)
    victim = query;
  node_.queries().fail(
      *victim, Status(Code::overflow_exhausted,
                      fmt::format("{}; this query uses most of it on {}: {} bytes", cause.message(),
                                  name, victim->usage.bytes.load(std::memory_order_relaxed))));
  // The caller may be in the middle of a list that handling the alert would change: it is handled
  // at the next enter.
  return victim == query ? Outcome::failed : wants(WaitKind::overflow, query->id);
}

// Always the query itself, if it is about one: the call may have sent a row already, and must not answer
// that it would wait.
Outcome WorkerCore::lack_memory() noexcept {
  if (operated_query_ != nullptr) {
    node_.queries().fail_for_memory(*operated_query_);
    if (operated_status_ == nullptr) return Outcome::would_wait;
    *operated_status_ = node_.queries().no_memory();
    return Outcome::failed;
  }
  if (const std::shared_ptr<shuffle::Query> biggest = node_.queries().biggest_overflow_user())
    node_.queries().fail_for_memory(*biggest);
  return Outcome::would_wait;
}

// --- shuffles

Result<uint16_t> WorkerCore::take_slot() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i] || base::planted(base::Plant::slot_reused_too_early)) {
      slots_[i] = true;
      return static_cast<uint16_t>(i);
    }
  }
  return Status(Code::limit_exceeded, fmt::format("worker {} has shuffle.limit = {} shuffles open",
                                                  number_, slots_.size()));
}

Result<Shuffle> WorkerCore::open_shuffle(const ShuffleSpec& wanted) {
  try {
    return make_shuffle(wanted);
  } catch (const std::bad_alloc&) {
    if (const std::shared_ptr<shuffle::Query> query = node_.queries().find(wanted.query))
      node_.queries().fail_for_memory(*query);
    return node_.queries().no_memory();
  }
}

Result<Shuffle> WorkerCore::make_shuffle(const ShuffleSpec& wanted) {
  FARO_RETURN_IF_ERROR(enter());
  ShuffleSpec spec = wanted;
  if (spec.stage > ShuffleSpec::kStageLimit) {
    return Status(Code::invalid_argument,
                  fmt::format("stage {} is outside 0 … {}", static_cast<int32_t>(spec.stage),
                              ShuffleSpec::kStageLimit));
  }
  const uint32_t worker_count = node_.worker_count();
  for (std::vector<uint32_t>* workers : {&spec.senders, &spec.receivers}) {
    if (workers->empty()) {
      workers->resize(worker_count);
      std::iota(workers->begin(), workers->end(), 0u);
    }
    std::vector<bool> seen(worker_count);
    for (uint32_t worker : *workers) {
      if (worker >= worker_count || seen[worker]) {
        return Status(Code::invalid_argument,
                      fmt::format("stage {}: worker {} {}", spec.stage, worker,
                                  worker >= worker_count
                                      ? fmt::format("does not exist (0 … {})", worker_count - 1)
                                      : "is named twice"));
      }
      seen[worker] = true;
    }
  }
  if (spec.row_bytes > node_.settings().row_limit_bytes) {
    return Status(Code::invalid_argument,
                  fmt::format("stage {}: row_bytes = {} is above row.limit_bytes = {}", spec.stage,
                              spec.row_bytes, node_.settings().row_limit_bytes));
  }
  Result<std::shared_ptr<shuffle::Query>> used = node_.queries().use(spec.query);
  if (!used.ok()) return used.status();
  const std::shared_ptr<shuffle::Query> query = *used;
  if (query->failed()) return query->cause();
  sweep();
  for (const auto& core : shuffles_) {
    if (core->query() == query && core->spec().stage == spec.stage) {
      return Status(Code::invalid_argument,
                    fmt::format("stage {} of query {} was opened at worker {} already", spec.stage,
                                spec.query.to_string(), number_));
    }
  }
  auto is_in = [this](const std::vector<uint32_t>& workers) {
    return std::find(workers.begin(), workers.end(), number_) != workers.end();
  };
  Inbox* inbox = nullptr;
  const bool sends = is_in(spec.senders);
  if (is_in(spec.receivers)) {
    inbox = find_inbox(spec.query, spec.stage);
    if (inbox != nullptr && inbox->discarding) {
      return Status(Code::invalid_argument,
                    fmt::format("stage {} of query {} was opened and closed at worker {} already",
                                spec.stage, spec.query.to_string(), number_));
    }
  }
  if (Status status = check_links(spec); !status.ok()) return status;
  if (shuffles_.size() >= slots_.size()) {
    return Status(
        Code::limit_exceeded,
        fmt::format("worker {} has shuffle.limit = {} shuffles open", number_, slots_.size()));
  }
  shuffle::StageLists lists = shuffle::StageLists::of(spec);
  shuffle::RowFormat format = shuffle::RowFormat::of(std::exchange(spec.format, {}));
  if (inbox != nullptr) FARO_RETURN_IF_ERROR(check_early_senders(*inbox, spec, lists, format));
  FARO_RETURN_IF_ERROR(node_.queries().open_stage(*query, number_, spec, lists));
  auto core = std::make_unique<ShuffleCore>(*this, query, std::move(spec), std::move(lists),
                                            std::move(format));
  ShuffleCore* const made = core.get();
  if (sends) {
    made->make_sender();
    made->receivers_stopped(node_.queries().stops(*query, made->spec().stage));
  }
  if (is_in(made->spec().receivers)) {
    if (inbox == nullptr) {
      inbox = add_inbox(query, made->spec().stage, node_.membership().node());
    } else {
      node_.queries().remove_unopened(*query, number_, made->spec().stage);
    }
    inbox->lists = made->lists();
    inbox->format = made->format();
  }
  // From here on nothing can fail that would have to be undone.
  if (sends) {
    Result<uint16_t> slot = take_slot();
    if (!slot.ok()) return slot.status();
    made->use_slot(*slot);
  }
  if (inbox != nullptr) made->make_receiver(inbox);
  shuffles_.push_back(std::move(core));
  count(counters_.open_shuffles);
  return Shuffle(made);
}

void WorkerCore::closed(ShuffleCore& core) noexcept {
  counters_.open_shuffles.store(counters_.open_shuffles.load(std::memory_order_relaxed) - 1,
                                std::memory_order_relaxed);
  if (Inbox* const inbox = core.inbox()) {
    inbox->open = false;
    inbox->senders = nullptr;
    if (!inbox->discarding) discard(*inbox);
  }
  sweep();
}

void WorkerCore::sweep() noexcept {
  std::erase_if(shuffles_, [this](const std::unique_ptr<ShuffleCore>& core) {
    if (!core->disposable()) return false;
    if (core->is_sender()) slots_[core->slot()] = false;
    return true;
  });
  // What came for a shuffle that is not open here any more, or never was, and will not be.
  for (const auto& inbox : inboxes_) {
    const shuffle::Query& query = *inbox->query();
    const bool is_over = query.failed() || query.outcome_known();
    if (!inbox->open && !inbox->discarding && is_over) discard(*inbox);
  }
  // A discarding inbox is kept while its query lives: it tells late senders that the stage was
  // closed here.
  std::erase_if(inboxes_, [](const std::unique_ptr<Inbox>& inbox) {
    return inbox->discarding && !inbox->open && inbox->query()->outcome_known();
  });
}

}  // namespace faro::detail
