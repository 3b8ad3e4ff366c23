#include "shuffle/query/participant.h"

#include <utility>

#include "base/error.h"
#include "shuffle/query/query_messages.h"

namespace faro::shuffle {

Participant::Participant(const QueryId& query, const ClusterView& cluster)
    : query_(query),
      cluster_(cluster),
      workers_(cluster.first_own_worker(), cluster.own_worker_count()),
      stages_(query, cluster.own_name(), workers_) {}

void Participant::declare(const std::vector<uint32_t>& workers) {
  workers_.declare(workers);
  declared_ = true;
}

bool Participant::may_add(const Stop& stop) const {
  return stops_.size() < kStopLimit && stops_.count(stop) == 0;
}

std::vector<uint32_t> Participant::stops(uint32_t stage) const {
  std::vector<uint32_t> receivers;
  for (auto s = stops_.lower_bound({stage, 0}); s != stops_.end() && s->stage == stage; ++s)
    receivers.push_back(s->receiver);
  return receivers;
}

void Participant::remove_unopened(uint32_t worker, uint32_t stage) {
  std::erase_if(unopened_, [&](const UnopenedRows& rows) {
    return rows.worker == worker && rows.stage == stage;
  });
}

void Participant::remove_unopened(uint32_t worker, uint32_t stage, uint32_t sender) noexcept {
  unopened_.erase(UnopenedRows{worker, stage, sender, 0});
}

void Participant::remove_due(base::Nanoseconds now, base::Nanoseconds timeout) {
  std::erase_if(unopened_, [&](const UnopenedRows& rows) { return rows.is_due(now, timeout); });
}

Status Participant::judge_unopened(uint32_t worker, const QueryNodes& nodes) const {
  for (const UnopenedRows& rows : unopened_) {
    if (rows.worker != worker || !nodes.contains(cluster_.node_of_worker(rows.sender))) continue;
    return base::error(Code::query_unopened,
                       "worker {} of {} ended its part of query {} without opening stage {}, in "
                       "which worker {} sends to it",
                       worker, cluster_.own_name(), query_.to_string(), rows.stage, rows.sender)
        .of_stage(rows.stage);
  }
  return Status::Ok();
}

void Participant::ask_to_fail(const Status& cause, base::Nanoseconds now, Outbound& out) {
  if (asked_) return;
  out.send(query_.issuer, failure_of(query_, cluster_.own(), cause));
  asked_ = Question{now, cause};
}

std::optional<Status> Participant::give_up_asking(base::Nanoseconds now,
                                                  base::Nanoseconds timeout) {
  if (!asked_ || now - asked_->at < timeout) return std::nullopt;
  gave_up_asking_ = true;
  return std::exchange(asked_, std::nullopt)->cause;
}

void Participant::forget_former_life(uint32_t node) {
  std::erase_if(stops_, [&](const Stop& stop) { return cluster_.has_worker(node, stop.receiver); });
  std::erase_if(unopened_,
                [&](const UnopenedRows& rows) { return cluster_.has_worker(node, rows.sender); });
  stages_.forget_what_awaits(node);
}

}  // namespace faro::shuffle
