// What the threads of an engine do at one poller of a peer: dial, talk over its channels, and wait.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lab/simulation/channels/channel_ledger.h"
#include "lab/simulation/channels/channel_plan.h"
#include "lab/simulation/channels/conversation.h"
#include "lab/simulation/channels/peers.h"

namespace faro::simulation {

/// The dialling side has done with a conversation. The last one lets all pollers look whether they may end.
void end_dial(Peers& peers, ChannelLedger& ledger, uint32_t conversation);

/// Threads: its fiber, and that of its task.
class PollerProgram {
 public:
  /// `begin`: when moments of the plan count from.
  PollerProgram(Peers& peers, const ChannelPlan& plan, ChannelLedger& ledger, uint32_t peer,
                uint32_t poller, base::Nanoseconds begin);

  /// Until no channel is left anywhere that this poller has to serve, or its peer ends. In a fiber.
  void run();
  /// Another thread, which sends in the poller's place while that sleeps. In a fiber; ends with run().
  void run_task();

 private:
  using Channels = std::map<uint32_t, std::unique_ptr<Conversation>>;  // by the channel's index

  bool has_to_end();
  void dial();
  base::Nanoseconds next_dial() const;
  bool poll();
  void take(const ChannelEvent& event);
  bool advance();
  void wait();
  void let_go(bool all);
  void check(const std::string& wrong);

  Peers& peers_;
  const ChannelPlan& plan_;
  ChannelLedger& ledger_;
  const uint32_t peer_;
  const uint32_t index_;
  const base::Nanoseconds begin_;
  endpoint::EndpointCore& core_;
  endpoint::PollerCore& poller_;
  Chance chance_;
  Channels channels_;
  std::vector<std::unique_ptr<Conversation>> over_;  // whose channels have closed; they hold frames
  bool has_ended_ = false;
};

}  // namespace faro::simulation
