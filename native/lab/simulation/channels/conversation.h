// Conversation: one side of a channel: sends its frames, checks those of the other side, and ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "endpoint/poller_core.h"
#include "lab/simulation/channels/channel_ledger.h"
#include "lab/simulation/channels/channel_plan.h"

namespace faro::simulation {

/// What a peer says when it dials: which conversation it is; nothing else looks the same.
std::vector<std::byte> greeting_of(uint64_t seed, uint32_t index);
/// `limit` if it is no such greeting, or of no conversation below that.
uint32_t index_of(uint64_t seed, std::span<const std::byte> greeting, uint32_t limit);

/// Threads: its poller's, or whoever has entered in its place.
class Conversation {
 public:
  /// `side`: 0 dials, 1 accepts. All outlive it.
  Conversation(const ConversationPlan& plan, uint64_t seed, uint32_t side, ChannelLedger& ledger,
               endpoint::PollerCore& poller, ChannelId channel);

  ChannelId channel() const { return channel_; }
  const ConversationPlan& plan() const { return plan_; }
  /// Returns what rule was broken, if one was.
  std::string take(const ChannelEvent& event, base::Nanoseconds now);
  /// Sends and releases what it can, and ends the channel when it is time. Returns whether it did anything.
  bool advance();
  /// Sends only. For a thread that has entered. Returns whether it did anything.
  bool send();
  /// It keeps frames, which only time makes it release.
  bool holds() const { return !held_.empty(); }
  bool has_sent_all() { return record().committed >= own().frames; }
  bool is_over() const { return is_over_; }
  /// Releases what it still holds; what rule was broken.
  std::string let_go();

 private:
  struct Held {
    uint32_t token;
    uint32_t sequence;
    std::span<const std::byte> data;
  };

  const SidePlan& own() const { return plan_.sides[side_]; }
  SideRecord& record() { return ledger_.conversations[plan_.index].sides[side_]; }
  SideRecord& others() { return ledger_.conversations[plan_.index].sides[1 - side_]; }
  uint32_t frame_bytes(uint32_t of_side, uint32_t sequence) const;
  bool is_frame(std::span<const std::byte> data, uint32_t sequence) const;
  std::string broken(const std::string& what) const;
  std::string release_one();
  bool end_if_due();

  const ConversationPlan& plan_;
  const uint64_t seed_;
  const uint32_t side_;
  ChannelLedger& ledger_;
  endpoint::PollerCore& poller_;
  const ChannelId channel_;
  const bool is_checked_;
  Chance chance_;
  std::vector<Held> held_;
  uint32_t least_frame_bytes_ = 0;
  bool waits_for_room_ = false;
  bool has_ended_ = false;  // this side has closed it
  bool is_over_ = false;
};

}  // namespace faro::simulation
