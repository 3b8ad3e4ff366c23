#include "lab/simulation/churn/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "faro/nodes.h"

namespace faro::simulation {
namespace {

// Anything that a session was told and that does not wait for queries is done by then.
constexpr base::Nanoseconds kSoon = 20'000 * base::kMillisecond;

}  // namespace

void Members::story(const std::string& line) { ledger_.tell(world_.now(), line); }

void Members::go_on(const std::string& what, std::function<void()> body) {
  ++going_on_;
  world_.spawn(what, [this, body = std::move(body)] {
    body();
    --going_on_;
  });
}

std::vector<uint32_t> Members::ready() const {
  std::vector<uint32_t> numbers;
  for (const auto& [number, member] : members_) {
    if (member.is_ready && !member.is_drained) numbers.push_back(number);
  }
  return numbers;
}

bool Members::know_each_other(const Process& process, const std::vector<uint32_t>& others) const {
  const auto knows = [](const Process& one, const Process& other) {
    const auto told = one.told.find(other.number());
    return told != one.told.end() && told->second == other.id() && !one.is_missing(other.number());
  };
  return std::all_of(others.begin(), others.end(), [&](uint32_t number) {
    const Process& other = *members_.at(number).process;
    return knows(process, other) && knows(other, process);
  });
}

std::vector<uint32_t> Members::ready_together() const {
  std::vector<uint32_t> together;
  for (const uint32_t number : ready()) {
    if (know_each_other(*members_.at(number).process, together)) together.push_back(number);
  }
  return together;
}

void Members::await_missing() {
  const base::Nanoseconds deadline = world_.now() + kSoon;
  for (bool any = true; any; world_.sleep(base::kMillisecond)) {
    any = false;
    for (const uint32_t one : ready()) {
      Process& process = *members_.at(one).process;
      for (const uint32_t other : ready()) {
        if (process.is_missing(other) && !process.session().await_node(other, Wait::none()).ok())
          any = true;
      }
    }
    if (any && world_.now() > deadline)
      return world_.violation("who has come back is not linked with all");
  }
}

std::vector<uint32_t> Members::free_numbers() const {
  std::vector<uint32_t> numbers;
  for (uint32_t number = 0; number < plan_.number_limit(); ++number) {
    const bool is_taken =
        members_.contains(number) ||
        std::any_of(processes_.begin(), processes_.end(), [number](const Process& process) {
          return !process.is_gone() &&
                 (process.number() == number || process.knows.contains(number) ||
                  process.told.contains(number));
        });
    if (!is_taken) numbers.push_back(number);
  }
  return numbers;
}

bool Members::is_settled() const {
  return going_on_ == 0 && std::all_of(processes_.begin(), processes_.end(),
                                       [](const Process& process) { return process.is_idle(); });
}

void Members::finish_all() {
  for (Process& process : processes_) {
    process.fate().ends = true;
    process.finish();
  }
}

// ------------------------------------------------------------------------------------------- orders

void Members::tell(Process& process, Process& other) {
  process.knows[other.number()] = other.id();
  process.order("adds " + other.name(), [this, &process, &other] {
    const Status added = Nodes(process.session()).add({other.number(), other.address()});
    process.told[other.number()] = other.id();
    if (!added.ok()) {
      world_.violation(
          fmt::format("{} cannot add {}: {}", process.name(), other.name(), added.to_string()));
    }
  });
  if (const auto member = members_.find(other.number());
      member != members_.end() && member->second.is_drained)
    order_drain(process, other);
}

void Members::order_drain(Process& process, Process& other) {
  process.order("drains " + other.name(), [this, &process, &other] {
    const uint32_t number = other.number();
    process.drains[number] = other.id();
    process.note_unasked();
    const Status drained = Nodes(process.session()).drain(number);
    if (!drained.ok()) {
      world_.violation(
          fmt::format("{} cannot drain {}: {}", process.name(), other.name(), drained.to_string()));
    }
  });
}

void Members::order_remove(Process& process, Process& other) {
  const uint32_t number = other.number();
  process.knows.erase(number);
  process.told.try_emplace(number, other.id());  // until it is done nobody else gets the number
  process.order("removes " + other.name(), [this, &process, &other, number] {
    const ToldEvents& events = process.events();
    const auto removed = events.removed.find(number);
    const uint32_t before = removed == events.removed.end() ? 0 : removed->second;
    const Status status = Nodes(process.session()).remove(number);
    const auto is_done = [&] {
      const auto now = events.removed.find(number);
      return process.is_dead() || (now != events.removed.end() && now->second > before);
    };
    if (!status.ok()) {
      return world_.violation(
          fmt::format("{} cannot remove {}: {}", process.name(), other.name(), status.to_string()));
    }
    if (!world_.wait_until(is_done, world_.now() + kSoon, "node_removed"))
      world_.violation(fmt::format("{} has not removed {}", process.name(), other.name()));
    process.told.erase(number);
    process.drains.erase(number);
  });
}

void Members::remove_everywhere(Process& gone) {
  internet_.fabric().faults().spare(gone.number());
  for (Process& process : processes_) {
    const auto known = process.knows.find(gone.number());
    if (known != process.knows.end() && known->second == gone.id() && !process.is_gone())
      order_remove(process, gone);
  }
}

// ------------------------------------------------------------------------------------------ joining

Process& Members::make(uint32_t number, std::string address) {
  const auto id = static_cast<uint32_t>(processes_.size());
  ledger_.fates.emplace_back();
  return processes_.emplace_back(internet_, plan_, ledger_, id, number, std::move(address));
}

// A member that others know from now on.
Process& Members::enter(uint32_t number, std::string address) {
  Process& process = make(number, std::move(address));
  members_[number] = {.process = &process};
  return process;
}

Members::List Members::draw_list(StartList style, const std::vector<uint32_t>& numbers,
                                 uint32_t own) {
  List list;
  for (const uint32_t number : numbers) {
    const bool is_in = style == StartList::all || (style == StartList::some && chance_.one_in(2));
    if (number != own && is_in) list[number] = members_.at(number).process->address();
  }
  return list;
}

void Members::list_at_open(Process& process, uint32_t number) {
  process.knows[number] = process.told[number] = members_.at(number).process->id();
}

// From its fiber. Whoever waits for others while they go may wait in vain: then it is removed. Returns whether it has opened.
bool Members::open(Process& process, const List& list, bool waits) {
  if (waits) {
    for (const auto& [number, other] : process.told) process.fate().opens_with.insert(other);
  }
  const Status opened = process.open(list, waits);
  if (opened.ok()) {
    process.fate().opens_with.clear();
    return true;
  }
  if (!ledger_.opens_in_vain(process.fate()))
    world_.violation(fmt::format("{} cannot open: {}", process.name(), opened.to_string()));
  count("waited in vain");
  story(fmt::format("{} has not opened", process.name()));
  process.fate().lost_at = world_.now();
  process.finish();
  remove_everywhere(process);
  return false;
}

void Members::found() {
  std::vector<uint32_t> numbers(plan_.founders);
  for (uint32_t number = 0; number < plan_.founders; ++number) {
    numbers[number] = number;
    enter(number, fmt::format("host{}:7000", processes_.size())).fate().is_narrow =
        plan_.narrow != 0;
  }
  for (const uint32_t own : numbers) {
    Process& process = *members_.at(own).process;
    const List list = draw_list(plan_.start_list, numbers, own);
    for (const auto& [number, address] : list) list_at_open(process, number);
    for (const uint32_t number : numbers) {
      if (number != own && !list.contains(number)) tell(process, *members_.at(number).process);
    }
    const base::Nanoseconds after = chance_.below(uint64_t{1} << chance_.between(10, 28));
    go_on("start of " + process.name(), [this, own, list, after, &process] {
      world_.sleep(after);
      if (open(process, list, plan_.waits))
        members_.at(own).is_ready = true;
      else
        members_.erase(own);
    });
  }
  count(plan_.waits ? "founders that wait" : "founders that wait for nobody");
  story(fmt::format("{} found the session", plan_.founders));
}

void Members::join(uint32_t number) {
  const std::vector<uint32_t> there = ready();
  Process& process = enter(number, fmt::format("host{}:7000", processes_.size()));
  const auto style = static_cast<StartList>(chance_.below(kStartLists));
  const bool waits = plan_.narrow == 0 && chance_.one_in(2);
  const List list = draw_list(style, there, number);
  for (const auto& [other, member] : members_) {
    if (other == number) continue;
    tell(*member.process, process);
    if (list.contains(other)) {
      list_at_open(process, other);
    } else {
      tell(process, *member.process);
    }
  }
  const base::Nanoseconds after =
      chance_.one_in(2) ? 0 : chance_.below(uint64_t{1} << chance_.between(10, 27));
  const bool is_used_again =
      std::count_if(processes_.begin(), processes_.end(),
                    [&](const Process& each) { return each.number() == number; }) > 1;
  count("joined");
  if (is_used_again) count("number used again");
  count(list.empty()                         ? "list of itself"
        : list.size() + 1 == members_.size() ? "list of all"
                                             : "list of some");
  story(fmt::format("{} joins, with a list of {} others{}", process.name(), list.size(),
                    waits ? ", for which it waits" : ""));
  go_on("start of " + process.name(), [this, number, list, waits, after, &process] {
    world_.sleep(after);
    if (open(process, list, waits))
      members_.at(number).is_ready = true;
    else
      members_.erase(number);
  });
}

// ------------------------------------------------------------------------------------------ draining

bool Members::is_drained_everywhere(Process& drained) {
  const uint32_t number = drained.number();
  if (!drained.is_drained(number)) return false;
  return std::all_of(processes_.begin(), processes_.end(), [&](const Process& process) {
    const auto known = process.knows.find(number);
    return known == process.knows.end() || known->second != drained.id() || process.is_gone() ||
           process.is_dead() || process.fate().is_lost() || process.fate().leaves() ||
           process.is_drained(number);
  });
}

void Members::drain(uint32_t number) {
  Process& drained = *members_.at(number).process;
  members_.at(number).is_drained = true;
  for (Process& process : processes_) {
    const auto known = process.knows.find(number);
    const bool is_told = known != process.knows.end() && known->second == drained.id();
    if (&process == &drained || (is_told && !process.is_gone())) order_drain(process, drained);
  }
  const bool is_removed_first = chance_.one_in(2);
  story(fmt::format("{} is drained", drained.name()));
  go_on("drain of " + drained.name(), [this, number, is_removed_first, &drained] {
    world_.wait_until([&] { return drained.fate().is_lost() || is_drained_everywhere(drained); },
                      base::kForever, "node_drained");
    if (drained.fate().is_lost()) return;
    drained.fate().leaves_at = world_.now();
    count("drained");
    members_.erase(number);
    if (is_removed_first) remove_everywhere(drained);
    drained.finish();
    if (is_removed_first) return;
    world_.wait_until([&] { return drained.is_gone(); }, base::kForever, "a drained node's end");
    remove_everywhere(drained);
  });
}

// -------------------------------------------------------------------------------------------- losses

void Members::lose(Process& process) {
  process.fate().lost_at = world_.now();
  members_.erase(process.number());
}

void Members::remove(uint32_t number) {
  Process& removed = *members_.at(number).process;
  count(members_.at(number).is_drained ? "removed while it was drained" : "removed while it lived");
  story(fmt::format("{} is removed", removed.name()));
  lose(removed);
  remove_everywhere(removed);
  const base::Nanoseconds after = chance_.below(uint64_t{1} << chance_.between(10, 27));
  go_on("end of " + removed.name(), [this, after, &removed] {
    world_.sleep(after);
    removed.finish();
  });
}

// What it had not ended can be complete nowhere.
void Members::die(uint32_t number) {
  Process& process = *members_.at(number).process;
  for (size_t q = 0; q < ledger_.of.size(); ++q) {
    const auto of = ledger_.of[q].processes.find(number);
    if (of == ledger_.of[q].processes.end() || of->second != process.id()) continue;
    Ledger::QueryRecord& record = ledger_.queries.queries[q];
    for (const uint32_t worker : plan_.run.queries[q].workers) {
      if (plan_.run.node_of(worker) == number) record.must_fail |= !record.ending.contains(worker);
    }
  }
  lose(process);
  process.kill();
}

void Members::kill(uint32_t number) {
  Process& killed = *members_.at(number).process;
  count("killed");
  story(fmt::format("{} is killed", killed.name()));
  die(number);
  if (chance_.one_in(2)) return remove_everywhere(killed);
  const base::Nanoseconds after = chance_.below(3 * plan_.run.liveness);
  go_on("the news of " + killed.name(), [this, after, &killed] {
    world_.sleep(after);
    remove_everywhere(killed);
  });
}

void Members::come_back(uint32_t number) {
  Process& killed = *members_.at(number).process;
  count("came back");
  comes_back_ = true;
  story(fmt::format("{} is killed, and comes back", killed.name()));
  // A node that was linked has to lose the former process before it can know the new one.
  std::map<uint32_t, std::pair<uint32_t, bool>>
      before;  // by process: losses until now, and whether it was linked
  for (Process& process : processes_) {
    const auto known = process.knows.find(number);
    if (known == process.knows.end() || known->second != killed.id() || !process.is_open())
      continue;
    const auto lost = process.events().lost.find(number);
    before[process.id()] = {lost == process.events().lost.end() ? 0 : lost->second,
                            process.is_linked(number)};
  }
  die(number);
  killed.fate().comes_back = true;
  // Others cannot tell the new process from one that starts late: the engine can.
  for (const auto& [id, losses] : before) {
    if (!losses.second) cancel_queries_of(killed, processes_[id]);
  }
  Process& returned = make(number, killed.address());
  const bool waits = chance_.one_in(2);
  const base::Nanoseconds after = chance_.below(uint64_t{1} << chance_.between(10, 30));
  go_on("return of " + returned.name(), [this, number, waits, after, before, &killed, &returned] {
    world_.sleep(after);
    const List list = draw_list(StartList::all, ready(), number);
    for (const auto& [other, address] : list) list_at_open(returned, other);
    std::vector<uint32_t> opening;  // processes, when it was killed: they may be linked with either
    for (Process& process : processes_) {
      const auto known = process.knows.find(number);
      if (known == process.knows.end() || known->second != killed.id()) continue;
      known->second = returned.id();
      if (!before.contains(process.id())) opening.push_back(process.id());
    }
    for (const auto& [other, member] : members_) {
      if (!member.process->knows.contains(number)) tell(*member.process, returned);
      if (!list.contains(other)) tell(returned, *member.process);
    }
    if (!open(returned, list, waits)) {
      comes_back_ = false;
      return;
    }
    for (const auto& [id, losses] : before)
      await_return(processes_[id], returned, losses.first, losses.second);
    for (const uint32_t id : opening) await_return(processes_[id], returned, 0, false);
    for (const auto& [other, member] : members_) {
      if (!member.process->knows.contains(number)) tell(*member.process, returned);
      if (!returned.knows.contains(other)) tell(returned, *member.process);
    }
    members_[number] = {.process = &returned, .is_ready = true};
    comes_back_ = false;
  });
}

void Members::cancel_queries_of(Process& killed, Process& at) {
  for (size_t q = 0; q < ledger_.of.size(); ++q) {
    QueryOfProcesses& of = ledger_.of[q];
    const auto its = of.processes.find(killed.number());
    const auto own = of.processes.find(at.number());
    if (!of.has_begun || its == of.processes.end() || its->second != killed.id() ||
        own == of.processes.end() || own->second != at.id())
      continue;
    of.cancelled_at = std::min(of.cancelled_at, world_.now());
    (void)at.session().cancel_query(ledger_.queries.queries[q].id, "a node that it needs has died");
  }
}

void Members::await_return(Process& process, Process& returned, uint32_t lost_before,
                           bool was_linked) {
  const uint32_t number = returned.number();
  base::Nanoseconds deadline = world_.now() + kSoon;
  for (;; world_.sleep(base::kMillisecond)) {
    const auto member = members_.find(process.number());
    if (member == members_.end() || member->second.process != &process || member->second.is_drained)
      return;
    if (!member->second.is_ready) {
      deadline = world_.now() + kSoon;
      continue;
    }
    const auto lost = process.events().lost.find(number);
    const uint32_t losses = lost == process.events().lost.end() ? 0 : lost->second;
    const bool knows_of_loss = !was_linked || losses > lost_before;
    // One that was linked on its way to its end is linked here, but not there.
    if (knows_of_loss && process.session().await_node(number, Wait::none()).ok() &&
        returned.is_linked(process.number()))
      break;
    if (world_.now() > deadline) {
      return world_.violation(fmt::format("{} is not linked with {}, which has come back",
                                          process.name(), returned.name()));
    }
  }
  process.told[number] = returned.id();
}

}  // namespace faro::simulation
