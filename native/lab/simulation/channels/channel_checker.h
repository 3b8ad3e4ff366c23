// ChannelChecker: what has to hold of the channels of a run afterwards.
#pragma once

#include <cstdint>
#include <string>

#include "lab/simulation/channels/channel_ledger.h"
#include "lab/simulation/channels/channel_plan.h"

namespace faro::simulation {

/// Threads: any.
class ChannelChecker {
 public:
  /// Both outlive it.
  ChannelChecker(const ChannelPlan& plan, const ChannelLedger& ledger)
      : plan_(plan), ledger_(ledger) {}

  /// What does not hold; empty: everything does.
  std::string check(uint32_t conversation) const;
  /// What does not hold of a conversation between peers to which nothing happens: it has opened,
  /// and all has arrived.
  std::string check_sound(uint32_t conversation) const;

 private:
  std::string check_side(const ConversationPlan& plan, uint32_t side) const;
  std::string check_death(const ConversationPlan& plan, uint32_t side) const;
  std::string check_cause(const ConversationPlan& plan, const Status& cause) const;
  bool is_explained(const ConversationPlan& plan, const Status& cause) const;

  const ChannelPlan& plan_;
  const ChannelLedger& ledger_;
};

}  // namespace faro::simulation
