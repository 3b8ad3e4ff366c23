#include "sim/node_state/program.h"

#include <algorithm>
#include <utility>

namespace faro::node_state {
namespace {

// How long the end of queries and processes may take, once nothing is in their way.
constexpr int kRoundLimit = 300;
constexpr base::Nanoseconds kRound = 200 * kMillisecond;
constexpr int kPatience = 100;
// A session that opens is told later.
constexpr uint32_t kTries = 12;

}  // namespace

Program::Program(const Plan& plan, Record& record)
    : plan_(plan),
      chance_(workload::mix(plan.seed, 0x50524f47)),
      engine_(plan, record),
      queries_(plan, engine_),
      addresses_(plan.numbers),
      drained_(plan.numbers) {}

void Program::run() {
  begin();
  for (uint32_t call = 0; call < plan_.calls && violation().empty(); ++call) act();
  finish();
}

void Program::begin() {
  for (uint32_t n = 0; n < plan_.founders; ++n) addresses_[n] = Process::address_of(n, 0);
  const std::vector<std::string> list = addresses_;
  for (uint32_t i = 0, first = draw_number(); i < plan_.numbers; ++i) {
    const uint32_t n = (first + i) % plan_.numbers;
    if (list[n].empty() || (plan_.changing && chance_.one_in(8))) continue;
    engine_.open(n, list, plan_.waits);
    if (chance_.one_in(3)) engine_.pass(draw_ms(1, 300));
  }
  if (chance_.one_in(2)) engine_.pass(draw_ms(100, 800));
}

void Program::act() {
  const Mood& mood = plan_.mood;
  const bool has_orders = !orders_.empty();
  const bool has_parts = !queries_.parts().empty();
  const uint32_t weights[] = {has_orders ? mood.order : 0,
                              mood.query,
                              has_parts ? mood.part : 0,
                              mood.run,
                              mood.life,
                              mood.change,
                              mood.trouble,
                              mood.mistake};
  switch (programs::draw_weighted(chance_, weights)) {
    case 0:
      carry_out();
      break;
    case 1:
      begin_query();
      break;
    case 2:
      go_on();
      break;
    case 3:
      let_run();
      break;
    case 4:
      live();
      break;
    case 5:
      change();
      break;
    case 6:
      make_trouble();
      break;
    default:
      make_mistake();
  }
  if (chance_.one_in(2)) engine_.settle();
}

// --- what sessions are told

void Program::carry_out() {
  if (orders_.empty()) return;
  const size_t index = chance_.below(std::min<size_t>(orders_.size(), 4));
  const auto order = orders_.begin() + static_cast<ptrdiff_t>(index);
  if (carry_out(*order) || ++order->tries == kTries) orders_.erase(order);
}

// To a process that has gone nothing is told.
bool Program::carry_out(Order& order) {
  Process* const on = engine_.acting(order.on);
  if (on == nullptr) {
    const Process* const process = engine_.process(order.on);
    return process == nullptr || !process->is_there();
  }
  switch (order.what) {
    case Order::add:
      engine_.add(*on, order.node, order.address);
      break;
    case Order::drain:
      engine_.drain(*on, order.node);
      break;
    case Order::remove:
      engine_.remove(*on, order.node);
      break;
    case Order::declare:
      queries_.declare(*on, *order.query);
      break;
  }
  return true;
}

void Program::tell_all(Order::What what, uint32_t node, bool with_itself) {
  for (uint32_t i = 0, first = draw_number(); i < plan_.numbers; ++i) {
    const uint32_t on = (first + i) % plan_.numbers;
    if (addresses_[on].empty() || (on == node && !with_itself)) continue;
    orders_.push_back({what, on, node, addresses_[node]});
  }
}

// --- processes

Process* Program::draw_acting() {
  for (uint32_t i = 0, first = draw_number(); i < plan_.numbers; ++i) {
    if (Process* const process = engine_.acting((first + i) % plan_.numbers)) return process;
  }
  return nullptr;
}

void Program::open(uint32_t number) {
  std::vector<std::string> list = addresses_;
  if (plan_.changing && chance_.one_in(4)) {
    list.assign(plan_.numbers, "");
    list[number] = addresses_[number];
  }
  engine_.open(number, list, chance_.one_in(2));
}

void Program::close(Process& process, bool holds) {
  queries_.drop(process, holds);
  engine_.close(process, holds);
}

void Program::kill(Process& process, bool loses) {
  queries_.drop(process, false);
  engine_.kill(process, loses);
}

void Program::live() {
  const uint32_t number = draw_number();
  if (addresses_[number].empty()) return;
  Process* const process = engine_.process(number);
  if (process == nullptr || !process->is_there()) return open(number);
  if (chance_.one_in(2)) return kill(*process, !chance_.one_in(3));
  if (engine_.acting(number) != nullptr) close(*process, chance_.one_in(3));
}

void Program::join(uint32_t number) {
  addresses_[number] = Process::address_of(number, chance_.one_in(2) ? ++variants_ : 0);
  drained_[number] = false;
  if (chance_.one_in(3)) {
    tell_all(Order::add, number, false);
    open(number);
  } else {
    open(number);
    tell_all(Order::add, number, false);
  }
  // It may have opened with itself alone.
  for (uint32_t n = 0; n < plan_.numbers; ++n) {
    if (n != number && !addresses_[n].empty() && chance_.one_in(2))
      orders_.push_back({Order::add, number, n, addresses_[n]});
  }
}

void Program::change() {
  const uint32_t number = draw_number();
  Process* const process = engine_.process(number);
  const bool is_there = process != nullptr && process->is_there();
  if (addresses_[number].empty()) {
    const bool is_free = std::ranges::none_of(orders_, [&](const Order& order) {
      return order.query == nullptr && order.node == number;
    });
    if (!is_there && (is_free || chance_.one_in(4))) join(number);
    return;
  }
  if (!drained_[number] && !chance_.one_in(4)) {
    drained_[number] = true;
    return tell_all(Order::drain, number, !chance_.one_in(4));
  }
  if (is_there && engine_.acting(number) != nullptr && !chance_.one_in(4))
    close(*process, false);
  else if (is_there && chance_.one_in(2))
    kill(*process, true);
  tell_all(Order::remove, number, false);
  if (!is_there || !process->is_open()) addresses_[number].clear();
}

// --- queries

std::vector<uint32_t> Program::draw_workers() {
  std::vector<uint32_t> workers;
  for (uint32_t n = 0; n < plan_.numbers; ++n) {
    const bool is_likely = engine_.acting(n) != nullptr && !drained_[n];
    if (is_likely ? chance_.one_in(3) : !chance_.one_in(12)) continue;
    for (uint32_t w = 0; w < plan_.workers_per_node; ++w) {
      if (w == 0 || !chance_.one_in(3)) workers.push_back(n * plan_.workers_per_node + w);
    }
  }
  return workers;
}

void Program::begin_query() {
  Process* const issuer = draw_acting();
  if (issuer == nullptr) return;
  if (!plan_.changing && chance_.one_in(3)) {
    std::vector<uint32_t> all;
    for (uint32_t w = 0; w < plan_.worker_count(); ++w) all.push_back(w);
    (void)queries_.begin(*issuer, std::move(all), false);
    return;
  }
  std::vector<uint32_t> workers = draw_workers();
  if (workers.empty()) workers.push_back(issuer->number() * plan_.workers_per_node);
  QueryRun& query = queries_.begin(*issuer, std::move(workers), true);
  for (const uint32_t node : query.nodes) {
    if (!chance_.one_in(30)) orders_.push_back({Order::declare, node, node, "", &query});
  }
}

void Program::go_on() {
  const std::vector<Part*> parts = queries_.parts();
  if (parts.empty()) return;
  Part& part = *parts[chance_.below(parts.size())];
  if (chance_.one_in(8)) return queries_.release(part);
  if (!queries_.is_acting(part)) return;
  if (chance_.one_in(40)) return queries_.fail(part);
  if (chance_.one_in(40)) return queries_.cancel(*part.process, *part.query);
  for (uint64_t step = chance_.between(1, 4); step > 0 && part.step != Part::over; --step) {
    queries_.go_on(part, chance_.one_in(4));
    if (chance_.one_in(2)) engine_.settle();
  }
}

// --- the world

void Program::let_run() {
  switch (chance_.below(10)) {
    case 0:
    case 1:
      return engine_.settle();
    case 2:
    case 3:
      if (Process* const process = draw_acting()) engine_.run(*process);
      return;
    case 4:
    case 5:
      return engine_.pass(draw_ms(1, 60));
    case 6:
    case 7:
      return engine_.pass(draw_ms(50, 600));
    case 8:
      return engine_.pass(draw_ms(500, 3000));
    default:
      if (chance_.one_in(3)) engine_.jump(draw_ms(50, 1500));
  }
}

// Two that are linked, if there are such.
std::pair<uint32_t, uint32_t> Program::draw_pair() {
  const uint32_t a = draw_number();
  uint32_t b = (a + 1) % plan_.numbers;
  const Process* const process = engine_.acting(a);
  for (uint32_t i = 0, first = draw_number(); process != nullptr && i < plan_.numbers; ++i) {
    const uint32_t each = (first + i) % plan_.numbers;
    if (each != a && process->is_linked(each)) b = each;
  }
  return {a, b};
}

void Program::make_trouble() {
  const auto [a, b] = draw_pair();
  switch (chance_.below(7)) {
    case 0:
    case 1:
      return engine_.cut_control(a, b);
    case 2:
      return engine_.cut_data(a, b);
    case 3:
      engine_.darken(a, b);
      if (chance_.one_in(2)) engine_.darken(b, a);
      return;
    case 4:
    case 5:
      return engine_.lighten_all();
    default:
      if (Process* const process = engine_.process(a); process != nullptr && process->is_there())
        engine_.stand_still(*process, !process->is_still());
  }
}

void Program::ask_for_node() {
  if (Process* const process = draw_acting())
    engine_.await(*process, static_cast<uint32_t>(chance_.below(plan_.numbers + 1)));
}

void Program::make_mistake() {
  Process* const process = draw_acting();
  if (process == nullptr) return;
  const auto node = static_cast<uint32_t>(chance_.below(plan_.numbers + 1));
  const auto& queries = queries_.all();
  QueryRun* const query = queries.empty() ? nullptr : queries[chance_.below(queries.size())].get();
  switch (chance_.below(8)) {
    case 0:
      return engine_.add(*process, node, chance_.one_in(2) ? "nowhere" : "node9:0");
    case 1:
      return engine_.drain(*process, node);
    case 2:
      if (chance_.one_in(3)) engine_.remove(*process, node);
      return;
    case 3:
      if (query != nullptr) queries_.declare(*process, *query);
      return;
    case 4:
      if (query != nullptr && chance_.one_in(3)) queries_.cancel(*process, *query);
      return;
    default:
      return ask_for_node();
  }
}

// --- the end

void Program::finish() {
  engine_.lighten_all();
  for (uint32_t n = 0; n < plan_.numbers; ++n) {
    Process* const process = engine_.process(n);
    if (process != nullptr && process->is_still()) engine_.stand_still(*process, false);
  }
  engine_.pass(kRound);
  for (Order& order : orders_) (void)carry_out(order);
  end_queries();
  engine_.pass(3 * kLivenessMs * kMillisecond);
  engine_.check_rest();
  end_processes();
}

void Program::end_queries() {
  for (int round = 0; violation().empty(); ++round) {
    if (round == kRoundLimit) engine_.rules().violated("a query that does not end");
    const std::vector<Part*> parts = queries_.parts();
    if (parts.empty()) break;
    for (Part* const part : parts) {
      if (round > 2) queries_.release(*part);
      if (round == kPatience && part->step != Part::over) give_up(*part);
      if (queries_.is_acting(*part)) queries_.go_on(*part, false);
    }
    engine_.pass(round < 10 ? draw_ms(1, 20) : kRound);
  }
}

// Who was not told of a query, or not of all its nodes before it was declared, may keep the others waiting,
// until somebody cancels it.
void Program::give_up(const Part& part) {
  const QueryRun& query = *part.query;
  if (query.is_declared && query.declared_on == query.nodes)
    return engine_.rules().violated("a query that all have declared and that does not end: " +
                                    query.name);
  engine_.count("queries that had to be cancelled");
  queries_.cancel(*part.process, query);
}

void Program::end_processes() {
  for (uint32_t i = 0, first = draw_number(); i < plan_.numbers; ++i) {
    if (Process* const process = engine_.acting((first + i) % plan_.numbers))
      close(*process, false);
    if (chance_.one_in(3)) engine_.pass(draw_ms(1, 400));
  }
  for (int round = 0; engine_.is_any_waiting(); ++round) {
    if (round == kRoundLimit) return engine_.rules().violated("a process that does not end");
    engine_.pass(kRound);
  }
}

RunResult run_program(uint64_t seed, LeftOut left_out, bool keeps_text) {
  return programs::run_to_end<Program>(draw_plan(seed), left_out, keeps_text);
}

}  // namespace faro::node_state
