#include "part.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace outside {

using faro::Batch;
using faro::Outcome;

namespace {

uint64_t digest_of(const Batch& batch) {
  return faro::hash_bytes(batch.bytes().data(), batch.bytes().size());
}

}  // namespace

Part::Part(Scene& scene, uint32_t index, const faro::QueryId& id) : scene_(scene), id_(id) {
  end_.query = index;
  for (const StagePlan& stage : plan().stages) {
    const bool stops = plan().stops && scene.chance.one_in(3);
    stages_.emplace_back(scene, stage, stops ? scene.chance.below(100) : UINT64_MAX);
  }
}

void Part::run() {
  open();
  for (size_t s = 0; s < stages_.size() && runs(); ++s) {
    while (runs() && stages_[s].has_rows()) (void)send(s, scene_.chance.between(1, 64), true);
    while (runs() && !stages_[s].finished()) (void)settle(stages_[s].finish(true), stages_[s]);
    while (runs() && !stages_[s].ended()) (void)receive(s, true);
  }
  if (runs()) begin_to_end();
  while (phase_ == Phase::ends) (void)end_query(true);
}

bool Part::turn() {
  switch (phase_) {
    case Phase::opens:
      open();
      return true;
    case Phase::runs:
      return turn_stages();
    case Phase::ends:
      return end_query(false);
    case Phase::over:
      return false;
  }
  return false;
}

bool Part::turn_stages() {
  bool moved = false;
  for (size_t s = 0; s < stages_.size() && runs(); ++s) {
    Stage& stage = stages_[s];
    if (stage.has_rows()) moved |= send(s, scene_.chance.between(1, 64), false);
    if (runs() && !stage.finished() && !stage.has_rows())
      moved |= settle(stage.finish(false), stage);
    if (runs() && !stage.ended()) moved |= receive(s, false);
  }
  if (runs() && std::all_of(stages_.begin(), stages_.end(),
                            [](const Stage& s) { return s.finished() && s.ended(); })) {
    begin_to_end();
    return true;
  }
  return moved;
}

std::string Part::where() const {
  std::string text = "query " + std::to_string(end_.query);
  if (phase_ == Phase::ends) return text + " ends";
  for (const Stage& stage : stages_) {
    if (stage.finished() && stage.ended()) continue;
    text += ", stage " + std::to_string(stage.number()) + " has made " +
            std::to_string(stage.made()) + (stage.finished() ? ", receives" : "");
  }
  return text + ", holds " + std::to_string(held_.size());
}

// --- its phases

void Part::open() {
  phase_ = Phase::runs;
  std::vector<size_t> order(stages_.size());
  for (size_t s = 0; s < order.size(); ++s) order[s] = s;
  if (scene_.chance.one_in(2)) std::reverse(order.begin(), order.end());
  for (const size_t s : order) {
    if (const faro::Status opened = stages_[s].open(id_); !opened.ok()) {
      if (opened.category() == faro::Category::operation)
        scene_.broken("open_shuffle: " + opened.to_string());
      return begin_to_end();
    }
  }
}

bool Part::send(size_t number, uint64_t rows, bool wait) {
  make_trouble();
  if (!runs()) return true;
  Stage& stage = stages_[number];
  const uint64_t before = stage.made();
  const Outcome outcome = stage.send_some(rows, wait);
  return settle(outcome, stage) || stage.made() != before;
}

bool Part::receive(size_t number, bool wait) {
  make_trouble();
  if (!runs()) return true;
  Stage& stage = stages_[number];
  Batch batch;
  const Outcome outcome = stage.receive(wait, batch);
  if (outcome != Outcome::done) return settle(outcome, stage);
  // Rows make rows of the next stage, while the batch is still held.
  if (number + 1 < stages_.size() && stages_[number + 1].has_rows())
    (void)send(number + 1, scene_.chance.between(1, 8), wait);
  if (runs() && scene_.chance.one_in(scene_.plan.scarce ? 2 : 6)) keep(std::move(batch));
  return true;
}

bool Part::settle(Outcome outcome, Stage& stage) {
  switch (outcome) {
    case Outcome::done:
    case Outcome::stopped:
    case Outcome::end_of_stream:
      return true;
    case Outcome::would_wait:
    case Outcome::deadline:
      return false;
    case Outcome::holding:
      if (held_.empty()) return false;  // what is held is of another query
      let_go_of_one();
      return true;
    case Outcome::failed:
      break;
  }
  if (stage.shuffle().status().ok()) scene_.broken("an operation failed without a cause");
  begin_to_end();
  return true;
}

void Part::keep(Batch batch) {
  if (scene_.chance.one_in(2) && !batch.detach().ok()) return;  // no room for a copy
  digests_.push_back(digest_of(batch));
  held_.push_back(std::move(batch));
  if (held_.size() > 4) let_go_of_one();
}

void Part::let_go_of_one() {
  const auto at = static_cast<ptrdiff_t>(scene_.chance.below(held_.size()));
  if (digest_of(held_[static_cast<size_t>(at)]) != digests_[static_cast<size_t>(at)])
    scene_.broken("a batch changed while it was held");
  held_.erase(held_.begin() + at);
  digests_.erase(digests_.begin() + at);
}

void Part::make_trouble() {
  if (plan().trouble == Trouble::none || plan().trouble_worker != scene_.me) return;
  if (steps_++ != plan().trouble_after) return;
  const auto open =
      std::find_if(stages_.begin(), stages_.end(), [](Stage& s) { return s.shuffle().is_open(); });
  if (open == stages_.end()) return;
  const std::string reason = reason_of_trouble(end_.query);
  const bool closes_early = plan().trouble == Trouble::closes_early;
  end_.troubled = !closes_early || std::any_of(stages_.begin(), stages_.end(), [](const Stage& s) {
    return !s.finished() || !(s.ended() || s.stopped());
  });
  if (plan().trouble == Trouble::cancels_shuffle) return (void)open->shuffle().cancel(reason);
  if (plan().trouble == Trouble::cancels_query)
    return (void)scene_.session.cancel_query(id_, reason);
  if (plan().trouble == Trouble::fails) failure_ = faro::Status(faro::Code::query_failed, reason);
  begin_to_end();
}

void Part::begin_to_end() {
  while (!held_.empty()) let_go_of_one();
  for (Stage& stage : stages_) stage.shuffle().close();
  phase_ = Phase::ends;
}

bool Part::end_query(bool wait) {
  const Outcome outcome = scene_.worker.end_query(id_, failure_, scene_.how(wait));
  if (outcome == Outcome::failed) end_.cause = scene_.worker.status();
  if (outcome == Outcome::deadline || outcome == Outcome::would_wait || outcome == Outcome::holding)
    return false;
  end_.done = outcome == Outcome::done;
  phase_ = Phase::over;
  return true;
}

}  // namespace outside
