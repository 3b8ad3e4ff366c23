#include "shuffle/receive/inboxes.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace faro::shuffle {
namespace {

// Without progress for so long, a worker asks for senders that have not opened their stage: long against what it
// takes to open a plan's shuffles everywhere, so that mostly nobody is asked.
constexpr base::Nanoseconds kAskDelay = 100'000'000;

bool waits_for_rows(const Inbox& inbox) noexcept { return inbox.open && !inbox.discarding; }

}  // namespace

Inboxes::~Inboxes() {
  for (const auto& inbox : inboxes_) discard(*inbox);
}

Inbox* Inboxes::find(const QueryId& query, uint32_t stage) noexcept {
  for (const auto& inbox : inboxes_) {
    if (inbox->stage() == stage && inbox->query()->id == query) return inbox.get();
  }
  return nullptr;
}

Inbox& Inboxes::add(std::shared_ptr<Query> query, uint32_t stage, uint32_t made_by) {
  inboxes_.push_back(
      std::make_unique<Inbox>(std::move(query), stage, made_by, worker_.membership.worker_count()));
  return *inboxes_.back();
}

size_t Inboxes::unopened_by(uint32_t node) const noexcept {
  return static_cast<size_t>(std::count_if(inboxes_.begin(), inboxes_.end(), [&](const auto& i) {
    return !i->open && !i->discarding && i->made_by == node;
  }));
}

void Inboxes::unbind(Inbox::SenderQueue& queue, Binding::State state) noexcept {
  if (!queue.bound) return;
  queue.ring->slots[queue.slot] = Binding{state, nullptr};
  queue.bound = false;
}

void Inboxes::discard(Inbox& inbox) noexcept {
  inbox.discarding = true;
  inbox.for_each_queue([&](uint32_t, Inbox::SenderQueue& queue) { discard(inbox, queue); });
}

void Inboxes::discard(Inbox& inbox, Inbox::SenderQueue& queue) noexcept {
  while (queue.first != nullptr) {
    FrameNode* const node = inbox.pop(queue);
    if (node->ring != nullptr) node->ring->unlink(node);
    frames_.release(node, false);
  }
  worker_.overflow.free(queue.assembly.stored);
  queue.assembly = {};
  unbind(queue, Binding::State::discard);
}

void Inboxes::forget(Inbox& inbox, uint32_t sender) noexcept {
  if (inbox.find(sender) == nullptr) return;
  Inbox::SenderQueue& queue = *inbox.find(sender);
  discard(inbox, queue);
  if (queue.finished) --inbox.finished_count;
  const uint32_t index = queue.index;  // whoever sends next is named alike
  queue = Inbox::SenderQueue{};
  queue.index = index;
  if (!inbox.open)
    worker_.queries.remove_unopened(*inbox.query(), worker_.number, inbox.stage(), sender);
}

void Inboxes::forget_unopened(uint32_t sender) noexcept {
  for (const auto& inbox : inboxes_) {
    const Inbox::SenderQueue* const queue = inbox->find(sender);
    const bool has_opened = queue != nullptr && (queue->bound || queue->finish_seen);
    if (has_opened && !inbox->open && !inbox->discarding) forget(*inbox, sender);
  }
}

void Inboxes::finish(Inbox& inbox, Inbox::SenderQueue& queue) {
  if (queue.assembly.is_begun()) {
    worker_.queries.fail(
        *inbox.query(),
        base::error(Code::query_failed, "stage {}: a sender finished in the middle of a row",
                    inbox.stage())
            .of_stage(inbox.stage()));
  }
  queue.finished = true;
  ++inbox.finished_count;
}

void Inboxes::close(Inbox& inbox) noexcept {
  inbox.open = false;
  inbox.senders = nullptr;
  if (!inbox.discarding) discard(inbox);
}

void Inboxes::sweep() noexcept {
  // What came for a shuffle that is not open here any more, or never was, and will not be.
  for (const auto& inbox : inboxes_) {
    const Query& query = *inbox->query();
    const bool is_over = query.failed() || query.outcome_known();
    if (!inbox->open && !inbox->discarding && is_over) discard(*inbox);
  }
  // A discarding inbox is kept while its query lives: it tells late senders that the stage was
  // closed here.
  std::erase_if(inboxes_, [](const std::unique_ptr<Inbox>& inbox) {
    return inbox->discarding && !inbox->open && inbox->query()->outcome_known();
  });
}

base::Nanoseconds Inboxes::ask_at(base::Nanoseconds stalled_since) const noexcept {
  base::Nanoseconds first = base::kForever;
  for (const auto& inbox : inboxes_) {
    if (waits_for_rows(*inbox)) first = std::min(first, inbox->ask_at);
  }
  return first == base::kForever ? first : std::max(first, stalled_since + kAskDelay);
}

void Inboxes::ask(base::Nanoseconds now) {
  for (const auto& inbox : inboxes_) {
    if (!waits_for_rows(*inbox) || now < inbox->ask_at) continue;
    const std::vector<uint32_t> senders = inbox->unopened_senders();
    inbox->ask_at = senders.empty() ? base::kForever
                                    : now + worker_.settings.unopened_timeout_ms * 1'000'000 / 2;
    if (!senders.empty()) {
      worker_.queries.await(*inbox->query(), worker_.number, inbox->stage(), senders, inbox->lists);
    }
  }
}

}  // namespace faro::shuffle
