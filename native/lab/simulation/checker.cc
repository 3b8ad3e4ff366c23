#include "lab/simulation/checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/workload/row_generator.h"
#include "node/session_access.h"

namespace faro::simulation {

bool names_node(const Status& cause, uint32_t node) {
  const std::string name = fmt::format("node {}", node);
  const std::string_view text = cause.message();
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
  }
  return false;
}

Checker::Checker(const RunPlan& plan, const Ledger& ledger, const std::vector<Fault>& happened)
    : plan_(plan), ledger_(ledger), happened_(happened), sound_(plan.node_count(), true) {
  for (const Fault& fault : happened_) {
    switch (fault.kind) {
      case FaultKind::half_open:
      case FaultKind::apart:
      case FaultKind::narrow:
      case FaultKind::hostile:
        sound_[fault.peer] = false;
        [[fallthrough]];
      case FaultKind::long_stall:
      case FaultKind::death:
      case FaultKind::death_return:
      case FaultKind::lies:
        sound_[fault.node] = false;
        break;
      default:
        break;
    }
  }
}

bool Checker::all_within_reach() const {
  const bool any_survivor = std::find(sound_.begin(), sound_.end(), true) != sound_.end();
  return any_survivor && std::none_of(happened_.begin(), happened_.end(), [](const Fault& fault) {
           return fault.kind == FaultKind::half_open || fault.kind == FaultKind::apart ||
                  fault.kind == FaultKind::narrow || fault.kind == FaultKind::hostile ||
                  fault.kind == FaultKind::long_stall;
         });
}

// It asks for rows of whom it has not named as a sender, is refused, and closes its shuffles.
bool Checker::closed_by_who_opened_otherwise(const Fault& fault, const Status& cause) const {
  const auto& parts = ledger_.queries[fault.query].bad_parts;
  return std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
    return part.second == BadPart::kOpensOtherwise &&
           cause.message().starts_with(fmt::format("worker {} closed its ", part.first));
  });
}

// INV-3 to INV-6 of native/DESIGN.md: which errors a fault may bring to a query, and what they have to name.
bool Checker::is_excused(const QueryPlan& query, const Status& cause) const {
  const Code code = cause.code();
  const bool disks_are_small = plan_.disk_bytes != UINT64_MAX;
  if (code == Code::overflow_exhausted && disks_are_small) return true;
  return std::any_of(happened_.begin(), happened_.end(), [&](const Fault& fault) {
    switch (fault.kind) {
      case FaultKind::cancel:
        return (code == Code::query_cancelled || (code == Code::query_failed && fault.way == 2)) &&
               &plan_.queries[fault.query] == &query;
      case FaultKind::disk_full:
        return code == Code::overflow_exhausted && plan_.concerns(query, fault.node);
      case FaultKind::death:
      case FaultKind::death_return:
        return code == Code::peer_lost && plan_.concerns(query, fault.node) &&
               names_node(cause, fault.node);
      case FaultKind::half_open:
      case FaultKind::apart:
      case FaultKind::narrow:
        return code == Code::peer_lost && plan_.concerns(query, fault.node) &&
               plan_.concerns(query, fault.peer) &&
               (names_node(cause, fault.node) || names_node(cause, fault.peer));
      case FaultKind::long_stall:  // the node finds itself cut off from all others
        return code == Code::peer_lost && plan_.concerns(query, fault.node);
      case FaultKind::bad_part:
        return &plan_.queries[fault.query] == &query &&
               (code == Code::query_unopened || code == Code::stage_mismatch ||
                (code == Code::query_failed && fault.way == BadPart::kFails) ||
                (code == Code::query_cancelled && closed_by_who_opened_otherwise(fault, cause)));
      case FaultKind::hostile:  // may say anything about the queries of both
        return plan_.concerns(query, fault.node) || plan_.concerns(query, fault.peer);
      case FaultKind::lies:  // about its own queries; those of the others it cannot disturb
        return plan_.concerns(query, fault.node);
      default:
        return false;
    }
  });
}

bool Checker::lies(uint32_t node) const {
  return std::any_of(happened_.begin(), happened_.end(), [node](const Fault& fault) {
    return fault.kind == FaultKind::lies && fault.node == node;
  });
}

// Real queries that a hostile node may never end, which are remembered until it is lost; what it only made up
// is not among them.
uint64_t Checker::never_ended_by_others(node::NodeCore& core) const {
  uint64_t count = 0;
  for (size_t q = 0; q < plan_.queries.size(); ++q) {
    const QueryPlan& query = plan_.queries[q];
    const bool hostile = std::any_of(happened_.begin(), happened_.end(), [&](const Fault& fault) {
      return (fault.kind == FaultKind::lies && plan_.concerns(query, fault.node)) ||
             (fault.kind == FaultKind::hostile &&
              (plan_.concerns(query, fault.node) || plan_.concerns(query, fault.peer)));
    });
    count += hostile && core.queries().find(ledger_.queries[q].id) != nullptr;
  }
  return count;
}

// A worker that has said why its part has failed, although the others were told only that it has
// closed a shuffle.
std::optional<uint32_t> Checker::told_of_a_close_only(const Ledger::QueryRecord& record,
                                                      const Ending& ending) {
  for (const uint32_t worker : record.said_why) {
    if (ending.cause.message().starts_with(fmt::format("worker {} closed its ", worker)))
      return worker;
  }
  return std::nullopt;
}

// What any worker of a node may take somebody has taken, if the query is done and one of them has not stopped.
std::string Checker::check_handed_out(uint32_t index) const {
  const Ledger::QueryRecord& record = ledger_.queries[index];
  const auto is_done = [](const auto& ending) { return ending.second.outcome == Outcome::done; };
  if (!std::ranges::all_of(record.endings, is_done)) return "";
  for (const StagePlan& stage : plan_.queries[index].stages) {
    for (uint32_t receiver = 0; receiver < stage.nodes.size(); ++receiver) {
      if (std::string wrong = check_handed_out(index, stage, receiver); !wrong.empty())
        return wrong;
    }
  }
  return "";
}

std::string Checker::check_handed_out(uint32_t index, const StagePlan& stage,
                                      uint32_t receiver) const {
  const Ledger::QueryRecord& record = ledger_.queries[index];
  const std::vector<uint32_t>& workers = stage.nodes[receiver];
  const auto has_stopped = [&](uint32_t worker) {
    return record.stopped.contains({stage.stage, worker});
  };
  if (std::ranges::all_of(workers, has_stopped)) return "";
  const uint32_t node = plan_.node_of(workers.front());
  const workload::RowGenerator rows(plan_.seed, stage, plan_.worker_count());
  for (const uint32_t sender : stage.senders) {
    const auto made = record.rows_made.find({stage.stage, sender});
    const bool is_known = made != record.rows_made.end() && sound_[plan_.node_of(sender)];
    if (!is_known || !sound_[node]) continue;
    const auto taken = record.handed_out.find({stage.stage, node, sender});
    uint64_t missing = 0;
    for (uint64_t row = 0; row < made->second; ++row) {
      const bool is_there = taken != record.handed_out.end() && taken->second.contains(row);
      if (!is_there && rows.is_for(receiver, sender, row)) ++missing;
    }
    if (missing > 0)
      return fmt::format(
          "query {} stage {}: of {} rows that worker {} made, {} were handed out "
          "to nobody of node {}",
          index, stage.stage, made->second, sender, missing, node);
  }
  return "";
}

std::string Checker::check_query(uint32_t index) const {
  const QueryPlan& query = plan_.queries[index];
  const Ledger::QueryRecord& record = ledger_.queries[index];
  const Ending* first = nullptr;
  uint32_t first_worker = 0;
  for (const uint32_t worker : query.workers) {
    const uint32_t node = plan_.node_of(worker);
    const auto found = record.endings.find(worker);
    if (found == record.endings.end()) {
      return fmt::format("query {} has no outcome at worker {}", index, worker);
    }
    const Ending& ending = found->second;
    if (!sound_[node]) continue;  // it knows what it can know
    if (ending.outcome == Outcome::failed && !is_excused(query, ending.cause)) {
      return fmt::format("query {} failed at worker {} without a reason: {}", index, worker,
                         ending.cause.to_string());
    }
    if (const auto who = told_of_a_close_only(record, ending)) {
      return fmt::format(
          "query {} has failed at worker {} by what worker {} has closed, and not "
          "by why it has: {}",
          index, worker, *who, ending.cause.to_string());
    }
    if (ending.outcome == Outcome::done && record.must_fail && !lies(query.issuer)) {
      return fmt::format("query {} is done at worker {}, but its rows cannot be complete", index,
                         worker);
    }
    if (ending.outcome == Outcome::done && !ending.failure.ok()) {
      return fmt::format("query {} is done at worker {}, but had failed there: {}", index, worker,
                         ending.failure.to_string());
    }
    if (!sound_[query.issuer]) continue;  // nobody decides for all
    if (first != nullptr && first->outcome != ending.outcome) {
      return fmt::format("query {} ended as {} ({}) at worker {}, as {} ({}) at worker {}", index,
                         outcome_name(first->outcome), first->cause.to_string(), first_worker,
                         outcome_name(ending.outcome), ending.cause.to_string(), worker);
    }
    first = &ending;
    first_worker = worker;
  }
  return check_handed_out(index);
}

std::string Checker::check_later_query(uint32_t index) const {
  for (const auto& [worker, ending] : ledger_.queries[index].endings) {
    if (ending.outcome == Outcome::done) continue;
    const bool no_room = ending.cause.code() == Code::overflow_exhausted;
    if (no_room && is_excused(plan_.queries[index], ending.cause)) continue;
    return fmt::format("a query that began after all faults failed at worker {}: {}", worker,
                       ending.cause.to_string());
  }
  const size_t expected = plan_.queries[index].workers.size();
  if (ledger_.queries[index].endings.size() == expected) return "";
  return fmt::format("a query that began after all faults ended at {} of {} workers",
                     ledger_.queries[index].endings.size(), expected);
}

std::string Checker::check_links(uint32_t node, Session& session,
                                 const std::vector<bool>& returned) const {
  node::NodeCore& core = SessionAccess::core(session);
  if (const uint32_t count = core.membership().retired_link_count(); count > 0)
    return fmt::format("node {} keeps {} links to nodes that are gone", node, count);
  for (uint32_t peer = 0; peer < returned.size(); ++peer) {
    if (returned[peer] && !core.membership().peers().is_present(peer))
      return fmt::format("node {} does not know that node {} has returned", node, peer);
  }
  return "";
}

std::string Checker::check_idle(uint32_t node, Session& session, const SimDisk& disk) const {
  node::NodeCore& core = SessionAccess::core(session);
  const auto left = [node](const char* what, uint64_t count) {
    return fmt::format("node {} has nothing to do, but keeps {} {}", node, count, what);
  };
  if (const uint64_t bytes = core.overflow().memory_bytes(); bytes > 0)
    return left("bytes of overflow memory", bytes);
  if (disk.used_bytes > 0) return left("bytes of the overflow file", disk.used_bytes);
  for (uint32_t w = 0; w < core.local_worker_count(); ++w) {
    const uint64_t open = core.worker(w).metrics().open_shuffles;
    if (open > 0) return left("open shuffles", open);
    if (const uint64_t held = core.worker(w).metrics().held_frames; held > 0)
      return left("held batches", held);
  }
  // What a misbehaving node has begun itself is its own business.
  const uint64_t running = lies(node) ? 0 : core.queries().running_count();
  if (running > never_ended_by_others(core)) return left("queries", running);
  const uint64_t most_memory = core.overflow().limits().most_memory_bytes();
  if (core.overflow().memory_peak_bytes() > most_memory) {
    return fmt::format("node {} had {} bytes in overflow memory, with a budget of {}", node,
                       core.overflow().memory_peak_bytes(), most_memory);
  }
  if (disk.peak_bytes > disk.limit_bytes) {
    return fmt::format("node {} had {} bytes in its overflow file, with a limit of {}", node,
                       disk.peak_bytes, disk.limit_bytes);
  }
  return "";
}

}  // namespace faro::simulation
