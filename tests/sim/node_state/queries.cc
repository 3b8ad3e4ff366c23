#include "sim/node_state/queries.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace faro::node_state {
namespace {

constexpr const char* kSteps[] = {"opens", "sends", "finishes", "receives", "closes", "ends"};
constexpr uint32_t kRowBytes = 8;

}  // namespace

std::vector<Part*> Queries::parts() {
  std::vector<Part*> parts;
  for (const auto& part : parts_) {
    if (part->step != Part::over || part->held.row_count() != 0) parts.push_back(part.get());
  }
  return parts;
}

QueryRun& Queries::begin(Process& issuer, std::vector<uint32_t> workers, bool is_declared) {
  queries_.push_back(std::make_unique<QueryRun>());
  QueryRun& query = *queries_.back();
  query.id = issuer.session().begin_query();
  query.name = engine_.shown().name_of(query.id);
  query.workers = std::move(workers);
  query.is_declared = is_declared;
  query.nodes.insert(issuer.number());
  for (const uint32_t worker : query.workers) query.nodes.insert(node_of(worker));
  engine_.begin("{} begins {}, {} workers {}", issuer.name(), query.name,
                is_declared ? "declared," : "of all", query.workers);
  engine_.count(is_declared ? "queries declared" : "queries of all");
  for (uint32_t node = 0; !is_declared && node < plan_.numbers; ++node) {
    Process* const process = engine_.process(node);
    if (process != nullptr && process->is_open()) add_parts(*process, query);
  }
  engine_.end();
  return query;
}

void Queries::add_parts(Process& process, QueryRun& query) {
  for (const uint32_t worker : query.workers) {
    if (node_of(worker) != process.number()) continue;
    auto part = std::make_unique<Part>();
    part->query = &query;
    part->process = &process;
    part->worker = worker;
    parts_.push_back(std::move(part));
  }
}

void Queries::declare(Process& on, QueryRun& query) {
  engine_.begin("{} declares {}", on.name(), query.name);
  const Status declared = on.session().declare_query(query.id, query.workers);
  if (declared.ok()) {
    on.told().uses(query.id);
    if (std::ranges::all_of(query.nodes, [&](uint32_t node) { return on.knows(node); }))
      query.declared_on.insert(on.number());
    add_parts(on, query);
  }
  engine_.end(on, "declare:", declared);
}

void Queries::cancel(Process& on, const QueryRun& query) {
  engine_.begin("{} cancels {}", on.name(), query.name);
  on.told().uses(query.id);
  engine_.end(on, "cancel:", on.session().cancel_query(query.id, "drawn"));
}

// --- parts

void Queries::go_on(Part& part, bool keeps) {
  engine_.begin("worker {} of {} {}: {}", part.worker, part.process->name(), kSteps[part.step],
                part.query->name);
  const auto sender = part.shuffle.sender();
  Outcome outcome = Outcome::failed;
  Status why;
  auto next = static_cast<Part::Step>(part.step + 1);
  switch (part.step) {
    case Part::opens:
      outcome = open(part, why);
      break;
    case Part::sends: {
      const std::byte row[kRowBytes] = {std::byte(part.worker)};
      if (sender.ok()) outcome = sender->broadcast(row, Wait::none());
      break;
    }
    case Part::finishes:
      if (sender.ok()) outcome = sender->finish(Wait::none());
      break;
    case Part::receives:
      outcome = take_rows(part, keeps);
      break;
    case Part::closes:
      why = part.shuffle.status();
      part.shuffle.close();
      outcome = Outcome::done;
      break;
    default: {
      Worker& worker = worker_of(part);
      outcome = worker.end_query(part.query->id, Wait::none());
      why = worker.status();
    }
  }
  if (part.step > Part::opens && part.step < Part::closes) why = part.shuffle.status();
  if (outcome == Outcome::failed && part.step < Part::closes) next = Part::closes;
  const bool stays = outcome == Outcome::would_wait || outcome == Outcome::holding;
  if (!stays) part.step = next;
  engine_.end(*part.process, outcome, why);
}

// While a batch of a link that is lost is held, it is refused for now.
Outcome Queries::open(Part& part, Status& why) {
  // None is all: those that were declared where nodes change, else those of the list.
  std::vector<uint32_t> named;
  if (part.query->is_declared && !plan_.changing) named = part.query->workers;
  Result<Shuffle> opened =
      worker_of(part).open_shuffle({part.query->id, 0, kRowBytes, named, named, ""});
  why = opened.status();
  if (opened.ok()) part.shuffle = std::move(*opened);
  return opened.ok()                       ? Outcome::done
         : why.code() == Code::wrong_state ? Outcome::would_wait
                                           : Outcome::failed;
}

Outcome Queries::take_rows(Part& part, bool keeps) {
  const auto receiver = part.shuffle.receiver();
  if (!receiver.ok()) return Outcome::failed;
  for (;;) {
    Batch batch;
    const Outcome outcome = receiver->receive(batch, Wait::none());
    if (outcome == Outcome::end_of_stream && part.rows != part.query->workers.size()) {
      engine_.rules().violated(
          fmt::format("{} rows of {} at worker {}", part.rows, part.query->name, part.worker));
    }
    if (outcome != Outcome::done) return outcome;
    part.rows += batch.row_count();
    if (keeps && part.held.row_count() == 0) part.held = std::move(batch);
  }
}

void Queries::fail(Part& part) {
  engine_.begin("worker {} of {} fails: {}", part.worker, part.process->name(), part.query->name);
  Worker& worker = worker_of(part);
  const Status failure(Code::query_failed, "drawn");
  const Outcome outcome = worker.end_query(part.query->id, failure, Wait::none());
  part.shuffle.close();
  const bool is_over = outcome == Outcome::done || outcome == Outcome::failed;
  part.step = is_over ? Part::over : Part::ends;
  engine_.end(*part.process, outcome, worker.status());
}

void Queries::release(Part& part) {
  if (part.held.row_count() == 0) return;
  engine_.begin("worker {} of {} releases its batch", part.worker, part.process->name());
  engine_.count("batches held");
  part.held.release();
  engine_.end();
}

void Queries::drop(const Process& process, bool keeps) {
  engine_.begin("workers of {} close what they have open{}", process.name(),
                keeps ? ", and hold batches" : "");
  for (const auto& part : parts_) {
    if (part->process != &process) continue;
    part->step = Part::over;
    part->shuffle.close();
    if (!keeps) part->held.release();
  }
  engine_.end();
}

}  // namespace faro::node_state
