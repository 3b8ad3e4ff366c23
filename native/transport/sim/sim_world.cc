#include "transport/sim/sim_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace faro::sim {
namespace {

double milliseconds(Nanoseconds ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

// In texts time counts from the beginning of the world.
double World::at_ms(Nanoseconds when) {
  return milliseconds(when - std::min(when, SimClock::kStart));
}

struct World::Thread {
  std::string name;
  uint32_t weight = 1;
  Group group = kNoGroup;
  std::unique_ptr<Fiber> fiber;
  Nanoseconds runnable_at = 0;
  // While it waits:
  bool waiting = false;
  const std::atomic<uint32_t>* word = nullptr;
  const std::function<bool()>* ready = nullptr;
  Nanoseconds deadline = base::kForever;
  const char* waits_for = "";
  Nanoseconds since = 0;
  std::string note;

  bool has_what_it_waits_for() const {
    // Relaxed: one thread runs everything.
    return word != nullptr ? word->load(std::memory_order_relaxed) == 0 : (*ready)();
  }
};

World::World(uint64_t seed, const Knobs& knobs)
    : seed_(seed), knobs_(knobs), random_(seed), event_weight_(0), last_progress_(clock_.now_) {
  event_weight_ = draw_weight();
}

World::~World() = default;

// How often someone is chosen differs a lot within a run, so that there are runs in which one
// worker or the network is far ahead of the others all the time.
uint32_t World::draw_weight() {
  constexpr uint32_t kWeights[] = {1, 1, 4, 16};
  return kWeights[random_.below(std::size(kWeights))];
}

World::FiberId World::spawn(std::string name, std::function<void()> body, Group group) {
  auto thread = std::make_unique<Thread>();
  const auto number = static_cast<uint32_t>(threads_.size());
  thread->name = std::move(name);
  thread->weight = draw_weight();
  thread->group = group;
  thread->runnable_at = not_before(group, now() + knobs_.wake_up.draw(random_));
  thread->fiber = std::make_unique<Fiber>([this, number, body = std::move(body)] {
    try {
      body();
    } catch (const std::exception& e) {
      violation(fmt::format("{} threw {}", threads_[number]->name, e.what()));
    } catch (...) {
      violation(fmt::format("{} threw", threads_[number]->name));
    }
  });
  threads_.push_back(std::move(thread));
  live_.push_back(number);
  note_progress();
  return number;
}

World::AgentId World::add_agent(std::string name, std::function<bool()> do_work, Group group) {
  agents_.push_back({std::move(name), std::move(do_work), draw_weight(), not_before(group, now()),
                     knobs_.agent_idle_least, group});
  return static_cast<AgentId>(agents_.size() - 1);
}

void World::remove_agent(AgentId agent) { agents_[agent].removed = true; }

void World::wake_agent(AgentId agent) {
  Agent& a = agents_[agent];
  if (a.woken) return;
  a.woken = true;
  agent_due(agent, now() + knobs_.wake_up.draw(random_));
}

void World::agent_due(AgentId agent, Nanoseconds when) {
  Agent& a = agents_[agent];
  a.due = std::min(a.due, not_before(a.group, when));
}

Nanoseconds World::not_before(Group group, Nanoseconds when) const {
  return group < stalled_until_.size() ? std::max(when, stalled_until_[group]) : when;
}

void World::stall(Group group, Nanoseconds until) {
  if (group >= stalled_until_.size()) stalled_until_.resize(group + 1);
  stalled_until_[group] = std::max(stalled_until_[group], until);
  for (const uint32_t number : live_) {
    Thread& thread = *threads_[number];
    if (thread.group == group) thread.runnable_at = not_before(group, thread.runnable_at);
  }
  for (Agent& agent : agents_) {
    if (agent.group == group) agent.due = not_before(group, agent.due);
  }
}

void World::schedule(Nanoseconds when, const char* what, std::function<void()> event) {
  events_.push_back({std::max(when, now()), event_count_++, what, std::move(event)});
  std::push_heap(events_.begin(), events_.end(), LaterFirst{});
}

void World::suspend_until(Nanoseconds runnable_at) {
  current_->runnable_at = runnable_at;
  current_->fiber->suspend();
}

void World::yield() noexcept {
  if (current_ != nullptr) {
    suspend_until(random_.one_in(knobs_.descheduled_one_in)
                      ? now() + knobs_.descheduled.draw(random_)
                      : now());
  } else if (stepping_) {
    violation("an agent or an event yields: network threads must not wait for workers");
  } else {
    step();
  }
}

World::Group World::running_group() const noexcept {
  if (outside_ > 0) return kNoGroup;
  return current_ != nullptr ? current_->group : agent_group_;
}

void World::maybe_yield() noexcept {
  if (current_ != nullptr && random_.one_in(knobs_.preempted_one_in)) yield();
}

void World::wait_for_zero(const std::atomic<uint32_t>& word, Nanoseconds deadline,
                          const char* what) noexcept {
  if (current_ == nullptr) {
    // Relaxed: one thread runs everything.
    drive_until([&word] { return word.load(std::memory_order_relaxed) == 0; }, deadline, what);
    return;
  }
  current_->word = &word;
  suspend_waiting(deadline, what);
  current_->word = nullptr;
}

bool World::wait_until(const std::function<bool()>& ready, Nanoseconds deadline, const char* what) {
  if (ready()) return true;
  if (current_ == nullptr) {
    drive_until(ready, deadline, what);
    return ready();
  }
  current_->ready = &ready;
  suspend_waiting(deadline, what);
  current_->ready = nullptr;
  return ready();
}

void World::suspend_waiting(Nanoseconds deadline, const char* what) {
  current_->waiting = true;
  current_->deadline = deadline;
  current_->waits_for = what;
  current_->since = now();
  suspend_until(base::kForever);
}

void World::drive_until(const std::function<bool()>& ready, Nanoseconds deadline,
                        const char* what) {
  if (stepping_) {
    violation(fmt::format("an agent or an event waits for {}", what));
    return;
  }
  while (!ready() && now() < deadline) {
    if (step()) continue;
    if (deadline == base::kForever) fail(fmt::format("deadlock: nothing can ever bring {}", what));
    // Also in a failed world deadlines pass: destructors rely on them.
    if (!failure_.ok() || next_moment() > deadline) clock_.now_ = std::max(now(), deadline);
    return;
  }
}

void World::note(std::string text) {
  if (current_ != nullptr) current_->note = std::move(text);
}

void World::violation(std::string text) { fail("violation: " + std::move(text)); }

void World::fail(std::string text) {
  if (!failure_.ok()) return;
  failure_ = Status(Code::internal_error, fmt::format("simulation, seed {}, {:.3f} ms, step {}: {}",
                                                      seed_, at_ms(now()), steps_, text));
}

// Those whose reason to wait is over become runnable, after the time that waking up takes.
void World::look_at_waiters() {
  for (const uint32_t number : live_) {
    Thread& thread = *threads_[number];
    if (!thread.waiting) continue;
    if (thread.has_what_it_waits_for()) {
      thread.waiting = false;
      thread.runnable_at = not_before(thread.group, now() + knobs_.wake_up.draw(random_));
    } else if (thread.deadline <= now()) {
      thread.waiting = false;
      thread.runnable_at = not_before(thread.group, now());
    }
  }
}

Nanoseconds World::next_moment() const {
  Nanoseconds next = events_.empty() ? base::kForever : events_.front().when;
  for (const uint32_t number : live_) {
    const Thread& thread = *threads_[number];
    next = std::min(next, thread.waiting ? thread.deadline : thread.runnable_at);
  }
  for (const Agent& agent : agents_) {
    if (!agent.removed) next = std::min(next, agent.due);
  }
  return next;
}

bool World::check_limits() {
  if (steps_ >= knobs_.step_limit) {
    fail(fmt::format("more than {} steps", knobs_.step_limit));
  } else if (now() - SimClock::kStart > knobs_.time_limit) {
    fail(fmt::format("more than {:.0f} ms of simulated time", milliseconds(knobs_.time_limit)));
  } else if (!live_.empty() && now() - last_progress_ > knobs_.stall_limit) {
    fail(fmt::format("deadlock: no progress for {:.0f} ms", milliseconds(knobs_.stall_limit)));
  }
  return failure_.ok();
}

bool World::step() {
  if (stepping_ || current_ != nullptr) {
    violation("a step inside a step");
    return false;
  }
  if (!failure_.ok()) return false;
  stepping_ = true;
  const bool ran = step_inside();
  stepping_ = false;
  return ran;
}

bool World::step_inside() {
  clock_.now_ += random_.below(knobs_.step_cost_most + 1);
  for (;;) {
    look_at_waiters();
    // Who can run, by weight.
    uint64_t total = 0;
    for (const uint32_t number : live_) {
      const Thread& thread = *threads_[number];
      if (!thread.waiting && thread.runnable_at <= now()) total += thread.weight;
    }
    std::optional<uint32_t> late_agent;
    for (uint32_t number = 0; number < agents_.size(); ++number) {
      const Agent& agent = agents_[number];
      if (agent.removed || agent.due > now()) continue;
      total += agent.weight;
      if (is_late(agent.due) && (!late_agent || agent.due < agents_[*late_agent].due))
        late_agent = number;
    }
    const bool event_due = !events_.empty() && events_.front().when <= now();
    if (event_due) total += event_weight_;

    if (total == 0) {
      const Nanoseconds next = next_moment();
      if (next == base::kForever) return false;
      clock_.now_ = std::max(now(), next);
      if (!check_limits()) return false;
      continue;
    }

    ++steps_;
    // Who has waited longest, if that is too long.
    const bool late_event = event_due && is_late(events_.front().when);
    if (late_event && (!late_agent || events_.front().when <= agents_[*late_agent].due)) {
      run_event();
      return check_limits();
    }
    if (late_agent) {
      run_agent(*late_agent);
      return check_limits();
    }
    uint64_t chosen = random_.below(total);
    if (event_due) {
      if (chosen < event_weight_) {
        run_event();
        return check_limits();
      }
      chosen -= event_weight_;
    }
    for (const uint32_t number : live_) {
      const Thread& thread = *threads_[number];
      if (thread.waiting || thread.runnable_at > now()) continue;
      if (chosen < thread.weight) {
        run_fiber(number);
        return check_limits();
      }
      chosen -= thread.weight;
    }
    for (uint32_t number = 0; number < agents_.size(); ++number) {
      const Agent& agent = agents_[number];
      if (agent.removed || agent.due > now()) continue;
      if (chosen < agent.weight) {
        run_agent(number);
        return check_limits();
      }
      chosen -= agent.weight;
    }
  }
}

void World::run_fiber(uint32_t number) {
  record(Kind::fiber, number, "");
  Thread& thread = *threads_[number];
  current_ = &thread;
  thread.fiber->resume();
  current_ = nullptr;
  if (thread.fiber->finished()) {
    live_.erase(std::find(live_.begin(), live_.end(), number));
    note_progress();
  }
}

void World::run_agent(uint32_t number) {
  record(Kind::agent, number, "");
  Agent& agent = agents_[number];
  agent.woken = false;
  agent.due = base::kForever;  // what do_work asks for, or the idle interval below, comes first
  agent_group_ = agent.group;
  const bool worked = agent.do_work();
  agent_group_ = kNoGroup;
  if (agent.removed) {
    agent.do_work = nullptr;
    return;
  }
  agent.idle = worked ? knobs_.agent_idle_least : std::min(agent.idle * 2, knobs_.agent_idle_most);
  agent_due(number, now() + random_.between(agent.idle / 2, agent.idle));
}

void World::run_event() {
  std::pop_heap(events_.begin(), events_.end(), LaterFirst{});
  Event event = std::move(events_.back());
  events_.pop_back();
  record(Kind::event, event.number, event.what);
  event.run();
}

void World::record(Kind kind, uint64_t number, const char* what) {
  if (trace_.size() == kTraceLength) trace_.pop_front();
  trace_.push_back({steps_, now(), kind, number, what});
  for (const uint64_t part : {now(), uint64_t{static_cast<uint8_t>(kind)}, number}) {
    trace_hash_ = (trace_hash_ ^ part) * 0x9E3779B97F4A7C15u;
    trace_hash_ ^= trace_hash_ >> 29;
  }
}

Status World::run() {
  last_progress_ = now();
  while (!live_.empty()) {
    if (!step()) {
      if (failure_.ok()) fail("deadlock: nothing can ever run again");
      return failure_;
    }
  }
  return failure_;
}

Status World::settle() {
  const auto woken = [](const Agent& agent) { return agent.woken && !agent.removed; };
  while (!events_.empty() || std::any_of(agents_.begin(), agents_.end(), woken)) {
    if (!step()) break;
  }
  return failure_;
}

std::string World::describe(const Thread& thread) const {
  std::string text = fmt::format("  {}: ", thread.name);
  if (thread.fiber->finished()) {
    text += "finished";
  } else if (thread.waiting) {
    text += fmt::format("waits for {} since {:.3f} ms", thread.waits_for, at_ms(thread.since));
    if (thread.deadline != base::kForever) {
      text += fmt::format(" until {:.3f} ms", at_ms(thread.deadline));
    }
  } else {
    text += fmt::format("runs (from {:.3f} ms)", at_ms(thread.runnable_at));
  }
  if (!thread.note.empty()) text += fmt::format(" ({})", thread.note);
  return text + '\n';
}

std::string World::report() const {
  std::string text = failure_.ok()
                         ? fmt::format("simulation, seed {}, {:.3f} ms, step {}: no failure\n",
                                       seed_, at_ms(now()), steps_)
                         : failure_.to_string() + '\n';
  text += fmt::format("last progress at {:.3f} ms; {} events under way; fibers:\n",
                      at_ms(last_progress_), events_.size());
  for (const auto& thread : threads_) text += describe(*thread);
  text += fmt::format("the last {} decisions:\n", trace_.size());
  for (const Decision& d : trace_) {
    text += fmt::format("  {} {:.3f} ms ", d.step, at_ms(d.now));
    switch (d.kind) {
      case Kind::fiber:
        text += threads_[d.number]->name;
        break;
      case Kind::agent:
        text += agents_[d.number].name;
        break;
      case Kind::event:
        text += d.what;
        break;
    }
    text += '\n';
  }
  return text;
}

}  // namespace faro::sim
