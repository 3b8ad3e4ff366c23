// LinkFactory: makes the links of this node, and gives each its transport and its share of the session's
// resources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/settings.h"
#include "faro/status.h"
#include "links/link.h"
#include "links/link_table.h"
#include "links/network.h"
#include "links/transports.h"
#include "session/peers.h"
#include "session/resources.h"
#include "session/topology.h"

namespace faro::session {

/// Threads: network thread. Blocks: never.
class LinkFactory {
 public:
  /// All outlive it; `owner` is that of the links.
  LinkFactory(links::Link::Owner& owner, const base::Settings& settings, const Peers& peers,
              links::Network& network, links::Transports& transports, Resources& resources);

  /// Makes a link with an admitted peer. `initiator`: this side has dialled. `address`: where the peer
  /// listens.
  std::unique_ptr<links::Link> make(uint32_t peer, bool initiator, std::string address,
                                    std::unique_ptr<links::ControlConnection> connection,
                                    const wire::Hello& hello);
  /// The resources that all admitted links need together. Errors: transport_unavailable.
  Result<Resources::LinkNeed> need(const links::LinkTable& links) const;
  /// Whether this side can set this link up: the link is admitted and, if the peer chooses the transport, its choice is
  /// known.
  static bool can_set_up(const links::Link& link);
  /// Whether there is such a link, which the last round did not set up.
  static bool is_awaited(const links::LinkTable& links);
  /// Sets the link up. `checks_room`: check the limits again, because the link was not known when the session
  /// allocated. Errors, which say why there is no link: transport_unavailable, resource_limit, system_error.
  Status set_up(links::Link& link, bool checks_room);

 private:
  Result<transport::Transport*> transport_of(const links::Link& link) const;
  /// Says once if rows over such a link have no turns though its user may expect some.
  void note_turns(const links::Link& link, const transport::Transport& transport);

  links::Link::Owner& owner_;
  const base::Settings& settings_;
  const Peers& peers_;
  const Topology& topology_;
  links::Network& network_;
  links::Transports& transports_;
  Resources& resources_;
  uint64_t made_ = 0;  // links
  bool told_of_turns_ = false;
};

}  // namespace faro::session
