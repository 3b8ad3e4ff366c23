#include "lab/simulation/transport/sim_world.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <utility>

namespace faro::sim {
namespace {

double milliseconds(Nanoseconds ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

World::World(uint64_t seed, const Knobs& knobs)
    : seed_(seed),
      knobs_(knobs),
      random_(seed),
      event_weight_(Conditions{random_, knobs_, stalls_, clock_.now_}.draw_weight()),
      fibers_({random_, knobs_, stalls_, clock_.now_}),
      agents_({random_, knobs_, stalls_, clock_.now_}),
      last_progress_(clock_.now_) {}

World::FiberId World::spawn(std::string name, std::function<void()> body, Group group) {
  auto guarded = [this, name, body = std::move(body)] {
    try {
      body();
    } catch (const std::exception& e) {
      violation(fmt::format("{} threw {}", name, e.what()));
    } catch (...) {
      violation(fmt::format("{} threw", name));
    }
  };
  const FiberId fiber = fibers_.spawn(name, std::move(guarded), group);
  note_progress();
  return fiber;
}

void World::stall(Group group, Nanoseconds until) {
  stalls_.stall(group, until);
  fibers_.stall(group);
  agents_.stall(group);
}

void World::schedule(Nanoseconds when, const char* what, std::function<void()> event) {
  const Outside outside(*this);
  events_.add(std::max(when, now()), what, std::move(event));
}

void World::yield() noexcept {
  if (in_fiber()) {
    fibers_.suspend_until(random_.one_in(knobs_.descheduled_one_in)
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
  return in_fiber() ? fibers_.running_group() : agents_.running_group();
}

void World::maybe_yield() noexcept {
  if (in_fiber() && random_.one_in(knobs_.preempted_one_in)) yield();
}

void World::wait_for_zero(const std::atomic<uint32_t>& word, Nanoseconds deadline,
                          const char* what) noexcept {
  if (in_fiber())
    return fibers_.wait({.word = &word, .ready = nullptr, .deadline = deadline, .what = what});
  // Relaxed: one thread runs everything.
  drive_until([&word] { return word.load(std::memory_order_relaxed) == 0; }, deadline, what);
}

bool World::wait_until(const std::function<bool()>& ready, Nanoseconds deadline, const char* what) {
  if (ready()) return true;
  if (in_fiber()) {
    fibers_.wait({.word = nullptr, .ready = &ready, .deadline = deadline, .what = what});
  } else {
    drive_until(ready, deadline, what);
  }
  return ready();
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

void World::sleep(Nanoseconds lasting) {
  if (lasting == 0) return;
  wait_until([] { return false; }, now() + lasting, "time");
  note_progress();
}

void World::note(std::string text) {
  if (in_fiber()) fibers_.note(std::move(text));
}

void World::violation(std::string text) { fail("violation: " + std::move(text)); }

void World::fail(std::string text) {
  if (!failure_.ok()) return;
  failure_ = Status(Code::internal_error, fmt::format("simulation, seed {}, {:.3f} ms, step {}: {}",
                                                      seed_, at_ms(now()), steps_, text));
}

bool World::check_limits() {
  if (steps_ >= knobs_.step_limit) {
    fail(fmt::format("more than {} steps", knobs_.step_limit));
  } else if (now() - kWorldStart > knobs_.time_limit) {
    fail(fmt::format("more than {:.0f} ms of simulated time", milliseconds(knobs_.time_limit)));
  } else if (!fibers_.all_finished() && now() - last_progress_ > knobs_.stall_limit) {
    fail(fmt::format("deadlock: no progress for {:.0f} ms", milliseconds(knobs_.stall_limit)));
  }
  return failure_.ok();
}

bool World::step() {
  if (stepping_ || in_fiber()) {
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
    fibers_.look_at_waiters();
    // Those that can run, by weight.
    const bool event_due = !events_.empty() && events_.next() <= now();
    const uint64_t event_weight = event_due ? event_weight_ : 0;
    const uint64_t total = fibers_.due_weight() + agents_.due_weight() + event_weight;
    if (total > 0) {
      run_one(event_weight, total);
      return check_limits();
    }
    const Nanoseconds next = next_moment();
    if (next == base::kForever) return false;
    clock_.now_ = std::max(now(), next);
    if (!check_limits()) return false;
  }
}

// One of those that are due: the one that has waited longest, if that is too long; else by chance.
void World::run_one(uint64_t event_weight, uint64_t total) {
  ++steps_;
  const std::optional<AgentId> late_agent = agents_.late();
  const bool late_event = event_weight > 0 && now() > events_.next() + knobs_.late_most;
  if (late_event && (!late_agent || events_.next() <= agents_.due(*late_agent))) return run_event();
  if (late_agent) return run_agent(*late_agent);
  uint64_t chosen = random_.below(total);
  if (chosen < event_weight) return run_event();
  chosen -= event_weight;
  if (const auto fiber = fibers_.pick(chosen)) {
    trace_.record(steps_, now(), Trace::Kind::fiber, *fiber, fibers_.name(*fiber));
    if (fibers_.run(*fiber)) note_progress();
  } else if (const auto agent = agents_.pick(chosen)) {
    run_agent(*agent);
  }
}

void World::run_agent(AgentId agent) {
  trace_.record(steps_, now(), Trace::Kind::agent, agent, agents_.name(agent));
  agents_.run(agent);
}

void World::run_event() {
  const EventQueue::Event event = events_.take();
  trace_.record(steps_, now(), Trace::Kind::event, event.number, event.what);
  event.run();
}

Status World::run() {
  last_progress_ = now();
  while (!fibers_.all_finished()) {
    if (!step()) {
      if (failure_.ok()) fail("deadlock: nothing can ever run again");
      return failure_;
    }
  }
  return failure_;
}

Status World::settle() {
  while (!events_.empty() || agents_.any_woken()) {
    if (!step()) break;
  }
  return failure_;
}

std::string World::report() const {
  std::string text = failure_.ok()
                         ? fmt::format("simulation, seed {}, {:.3f} ms, step {}: no failure\n",
                                       seed_, at_ms(now()), steps_)
                         : failure_.to_string() + '\n';
  text += fmt::format("last progress at {:.3f} ms; {} events under way; fibers:\n",
                      at_ms(last_progress_), events_.size());
  return text + fibers_.describe() + trace_.text();
}

}  // namespace faro::sim
