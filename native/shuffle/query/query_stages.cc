#include "shuffle/query/query_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "faro/hash.h"

namespace faro::shuffle {

Status QueryStages::open(uint32_t worker, uint32_t number, const StageLists& lists,
                         const std::vector<uint32_t>& members) {
  auto known = stages_.find(number);
  if (known == stages_.end()) {
    const std::vector<bool> none(workers_.count());
    known = stages_.emplace(number, Stage{lists, worker, none}).first;
  }
  Stage& stage = known->second;
  if (stage.lists.digest != lists.digest) {
    return base::error(Code::stage_mismatch,
                       "stage {} of query {}: worker {} opened it with {}, worker {} with {}",
                       number, query_.to_string(), stage.opened_first, stage.lists.text, worker,
                       lists.text)
        .of_stage(number);
  }
  stage.opened[worker - workers_.first()] = true;
  if (std::binary_search(members.begin(), members.end(), worker)) {
    const uint64_t share = FinalizerHash()(lists.digest + number) | 1;
    balance_ += share;
    if (worker == members.front()) balance_ -= share * members.size();
  }
  return Status::Ok();
}

std::optional<Status> QueryStages::judge(const Awaited& awaited, const Awaiting& awaiting) const {
  const std::string who = fmt::format("worker {} of {}", awaited.sender, node_name_);
  const auto stage = stages_.find(awaited.stage);
  if (stage != stages_.end() && stage->second.opened[awaited.sender - workers_.first()]) {
    if (stage->second.lists.digest == awaiting.lists) return Status::Ok();
    return base::error(Code::stage_mismatch, "query {}: {} opened stage {} with {}, but {}",
                       query_.to_string(), who, awaited.stage, stage->second.lists.text,
                       awaiting.text)
        .of_stage(awaited.stage);
  }
  if (workers_.is_pending(awaited.sender)) return std::nullopt;
  const bool takes_part = workers_.contains(awaited.sender);
  return base::error(Code::query_unopened, "{} {} query {}{}, but {}", who,
                     takes_part ? "ended its part of" : "takes no part in", query_.to_string(),
                     takes_part ? fmt::format(" without opening stage {}", awaited.stage) : "",
                     awaiting.text)
      .of_stage(awaited.stage);
}

Status QueryStages::judge_all_that_await(uint32_t worker) {
  Status failure;
  for (auto at = awaited_.lower_bound({worker, 0, 0});
       at != awaited_.end() && at->first.sender == worker;) {
    const std::optional<Status> verdict = judge(at->first, at->second);
    if (verdict && failure.ok()) failure = *verdict;
    at = verdict ? awaited_.erase(at) : std::next(at);
  }
  return failure;
}

bool QueryStages::may_remember(const Awaited& awaited) const {
  return awaited_.count(awaited) == 0 && awaited_.size() < kAwaitedLimit;
}

void QueryStages::remember(const Awaited& awaited, Awaiting awaiting) {
  awaited_.emplace(awaited, std::move(awaiting));
}

void QueryStages::forget_what_awaits(uint32_t node) {
  std::erase_if(awaited_, [&](const auto& awaited) { return awaited.first.node == node; });
}

}  // namespace faro::shuffle
