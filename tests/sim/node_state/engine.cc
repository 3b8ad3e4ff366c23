#include "sim/node_state/engine.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "faro/nodes.h"
#include "sim/programs/rings.h"

namespace faro::node_state {
namespace {

// Shorter than any time limit, and not a divisor of one.
constexpr base::Nanoseconds kStep = 70 * kMillisecond;

}  // namespace

Engine::Engine(const Plan& plan, Record& record)
    : plan_(plan),
      shown_(plan, record),
      world_(plan.delivery, shown_, &shown_),
      last_(plan.numbers) {}

Process* Engine::acting(uint32_t number) {
  Process* const process = last_[number];
  const bool acts = process != nullptr && process->is_open() && !process->is_still();
  return acts ? process : nullptr;
}

bool Engine::is_any_waiting() const {
  return std::ranges::any_of(processes_, [](const auto& each) { return each->is_waiting(); });
}

// --- a call

void Engine::end() {
  for (Process* const process : last_) {
    if (process != nullptr) process->note_state();
  }
  shown_.end();
}

void Engine::end(const Process& process, const std::string& what, const Status& answer) {
  shown_.note(process.number(), Kind::answer, what, answer);
  end();
}

void Engine::end(const Process& process, Outcome answer, const Status& why) {
  count(std::string("answer ") + outcome_name(answer));
  end(process, outcome_name(answer), answer == Outcome::failed ? why : Status());
}

// --- the life of processes

void Engine::open(uint32_t number, std::span<const std::string> addresses, bool waits) {
  const uint32_t life = last_[number] == nullptr ? 1 : last_[number]->life() + 1;
  const auto key = static_cast<uint32_t>(processes_.size());
  processes_.push_back(std::make_unique<Process>(plan_, world_, shown_, rules_, key, number, life));
  last_[number] = processes_.back().get();
  begin("process {} begins to open, waits for {}: {}", last_[number]->name(),
        waits ? "all" : "none", addresses);
  count(life == 1 ? "openings" : "openings again");
  last_[number]->open(addresses, waits);
  end();
}

void Engine::close(Process& process, bool holds) {
  begin("process {} begins to close", process.name());
  count("closings");
  process.close(holds);
  end();
}

void Engine::kill(Process& process, bool loses) {
  begin("process {} dies{}", process.name(), loses ? "" : ", but has said everything");
  count("deaths");
  process.kill(loses);
  end();
}

void Engine::stand_still(Process& process, bool still) {
  begin("process {} {}", process.name(), still ? "stands still" : "goes on");
  count("processes that stand still");
  process.stand_still(still);
  end();
}

// --- nodes

void Engine::add(Process& on, uint32_t node, const std::string& address) {
  begin("{} adds node {} at {}", on.name(), node, address);
  end(on, "add:", Nodes(on.session()).add({node, address}));
}

void Engine::drain(Process& on, uint32_t node) {
  begin("{} drains node {}", on.name(), node);
  const Status begun = Nodes(on.session()).drain(node);
  if (begun.ok()) on.told().draining(node);
  end(on, "drain:", begun);
}

void Engine::remove(Process& on, uint32_t node) {
  begin("{} removes node {}", on.name(), node);
  const Status begun = Nodes(on.session()).remove(node);
  if (begun.ok()) on.told().removing(node);
  end(on, "remove:", begun);
}

void Engine::await(Process& on, uint32_t node) {
  begin("{} asks for node {}", on.name(), node);
  end(on, "await:", on.session().await_node(node, Wait::none()));
}

// --- the world

void Engine::settle_once() {
  world_.deliver_all();
  world_.pump();
}

void Engine::settle() {
  begin("all run");
  settle_once();
  end();
}

void Engine::run(Process& process) {
  begin("process {} runs", process.name());
  world_.run(process.key());
  end();
}

void Engine::pass(base::Nanoseconds time) {
  begin("{} ms pass", time / kMillisecond);
  for (base::Nanoseconds left = time; left > 0;) {
    const base::Nanoseconds step = std::min(left, kStep);
    world_.pass(step);
    settle_once();
    left -= step;
  }
  end();
}

void Engine::jump(base::Nanoseconds time) {
  begin("{} ms pass, and nobody runs", time / kMillisecond);
  world_.pass(time);
  end();
}

void Engine::cut_control(uint32_t a, uint32_t b) {
  if (last_[a] == nullptr || last_[b] == nullptr) return;
  if (!last_[a]->is_there() || !last_[b]->is_there()) return;
  begin("the control connections of {} and {} are cut", a, b);
  count("control connections cut");
  last_[a]->network().cut(last_[b]->network());
  end();
}

void Engine::cut_data(uint32_t a, uint32_t b) {
  begin("the data connections of {} and {} are cut", a, b);
  count("data connections cut");
  for (const auto& port : world_.ports()) {
    if (port->node() == a && port->peer_node() == b) port->cut();
  }
  end();
}

void Engine::darken(uint32_t from, uint32_t to) {
  begin("nothing gets from {} to {}", from, to);
  count("paths dark");
  world_.darken(from, to, true);
  end();
}

void Engine::lighten_all() {
  begin("every path is light");
  for (uint32_t a = 0; a < plan_.numbers; ++a) {
    for (uint32_t b = 0; b < plan_.numbers; ++b) world_.darken(a, b, false);
  }
  end();
}

// With a fixed list all are linked that have not lost each other.
void Engine::check_rest() {
  for (uint32_t a = 0; a < plan_.numbers; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      const Process* const one = acting(a);
      const Process* const other = acting(b);
      if (one == nullptr || other == nullptr) continue;
      const bool is_linked = one->is_linked(b);
      if (is_linked != other->is_linked(a))
        rules_.violated(fmt::format("{} and {} do not agree that they are linked", a, b));
      const bool is_lost = one->has_lost(b) || other->has_lost(a);
      if (!plan_.changing && !is_linked && !is_lost)
        rules_.violated(fmt::format("{} and {} are not linked, and nobody was lost", a, b));
    }
  }
}

}  // namespace faro::node_state
