// ChannelLinkFactory: makes the links of channels, and gives each its transport, its rings and its share of the memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "endpoint/channel_identity.h"
#include "endpoint/poller_core.h"
#include "endpoint/ring_sizes.h"
#include "faro/endpoint.h"
#include "links/link.h"
#include "links/link_table.h"
#include "links/memory_budget.h"
#include "links/network.h"
#include "links/transports.h"

namespace faro::endpoint {

/// Threads: the network thread. Blocks: never.
class ChannelLinkFactory {
 public:
  /// All outlive it; `owner` is that of the links.
  ChannelLinkFactory(links::Link::Owner& owner, const base::Settings& settings,
                     const ChannelIdentity& identity, links::Network& network,
                     uint32_t channel_limit);

  /// `transports`: those that any of its links may have. Errors: as RingSizes::make.
  Status open(const links::Transports& transports);
  const RingSizes& rings() const { return rings_; }

  /// Makes a link with an admitted peer, for the channel of that index. `dialled`: where this side has reached the peer;
  /// empty: the peer has dialled. `wanted`: what this side asks for, or allows, none of it 0.
  std::unique_ptr<links::Link> make(uint32_t index, PollerCore& poller, const std::string& dialled,
                                    const ChannelSpec& wanted,
                                    std::unique_ptr<links::ControlConnection> connection,
                                    const wire::Hello& hello);
  /// Sets the link up: chooses transport and rings on the accepting side; on the other, goes by its choice. The channel's
  /// greeting counts with it. Errors, which say why there is no link: transport_unavailable, resource_limit, system_error.
  /// Links of `links` that have ended, and that nobody uses, are destroyed before.
  Status set_up(links::LinkTable& links, links::Link& link, PollerCore& poller,
                size_t greeting_bytes);

  /// What links take now.
  uint64_t memory_taken_bytes() const { return budget_->taken_bytes(); }

 private:
  links::Link::Owner& owner_;
  const base::Settings& settings_;
  const ChannelIdentity& identity_;
  links::Network& network_;
  const std::shared_ptr<links::MemoryBudget> budget_;
  RingSizes rings_;
  std::vector<uint32_t> ready_groups_;  // by the index of the channel: itself
};

/// Where a peer that has connected from `from` can be asked whether it lives, if it says that it listens at `said`. Empty:
/// there is no telling, for something between the two changes addresses.
std::string listening_address(const std::string& said, const std::string& from);

}  // namespace faro::endpoint
