// Inboxes: those of one worker, opened or not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/inbox.h"
#include "shuffle/receive/received_frames.h"

namespace faro::shuffle {

/// Threads: the worker.
class Inboxes {
 public:
  Inboxes(const WorkerContext& worker, ReceivedFrames& frames) : worker_(worker), frames_(frames) {}
  ~Inboxes();

  Inbox* find(const QueryId& query, uint32_t stage) noexcept;
  /// `made_by`: the node whose worker sent first, or the own one.
  Inbox& add(std::shared_ptr<Query> query, uint32_t stage, uint32_t made_by);
  /// How many of the inboxes that a node's workers made the engine has not opened.
  size_t unopened_by(uint32_t node) const noexcept;

  /// Drops everything of an inbox and whatever still comes for it.
  void discard(Inbox& inbox) noexcept;
  /// The inbox is as if that sender had never sent anything.
  void forget(Inbox& inbox, uint32_t sender) noexcept;
  /// All inboxes that the engine has not opened are as if that sender had never sent anything, also
  /// where it has finished.
  void forget_unopened(uint32_t sender) noexcept;
  /// Nothing comes any more by the slot that a sender is bound to; `state`: what the slot then stands for.
  void unbind(Inbox::SenderQueue& queue, Binding::State state) noexcept;
  /// Whether one of them is such that `is`.
  template <typename Is>
  bool any(const Is& is) const {
    return std::ranges::any_of(inboxes_, [&](const auto& inbox) { return is(*inbox); });
  }
  /// Counts a queue that ends.
  void finish(Inbox& inbox, Inbox::SenderQueue& queue);
  /// The engine has closed its shuffle.
  void close(Inbox& inbox) noexcept;
  /// Lets go of what nobody will ask for any more.
  void sweep() noexcept;

  /// When a worker that has done nothing since `stalled_since` is to ask where senders are that have not opened their
  /// stage: they may have ended without, and nobody else would notice. kForever: there is nobody to ask for.
  base::Nanoseconds ask_at(base::Nanoseconds stalled_since) const noexcept;
  /// Asks their nodes. What is remembered of a question may be forgotten, so it is asked again.
  void ask(base::Nanoseconds now);

 private:
  void discard(Inbox& inbox, Inbox::SenderQueue& queue) noexcept;

  const WorkerContext& worker_;
  ReceivedFrames& frames_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
};

}  // namespace faro::shuffle
