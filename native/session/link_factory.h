// LinkFactory: makes the links of this node, and gives each its transport and its share of the session's
// resources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/settings.h"
#include "faro/status.h"
#include "session/link.h"
#include "session/link_table.h"
#include "session/network.h"
#include "session/resources.h"
#include "session/topology.h"
#include "session/transports.h"

namespace faro::session {

/// Threads: network thread. Blocks: never.
class LinkFactory {
 public:
  /// All outlive it; `owner` is that of the links.
  LinkFactory(Link::Owner& owner, const base::Settings& settings, const Topology& topology,
              Network& network, const Transports& transports, Resources& resources);

  /// A link with an admitted peer. `initiator`: this side has dialled. `address`: where the peer
  /// listens.
  std::unique_ptr<Link> make(uint32_t peer, bool initiator, std::string address,
                             std::unique_ptr<ControlConnection> connection,
                             const wire::Hello& hello) const;
  /// What all admitted links take together. Errors: transport_unavailable.
  Result<Resources::LinkNeed> need(const LinkTable& links) const;
  /// Whether this side knows what it needs to set this link up: it is admitted, and the transport was
  /// chosen, if that is the peer's to do.
  static bool can_set_up(const Link& link);
  /// Sets it up. `checks_room`: its need was not part of what was allocated for. Errors: why there is no
  /// link with this peer: transport_unavailable, resource_limit, system_error.
  Status set_up(Link& link, bool checks_room) const;

 private:
  Result<transport::Transport*> transport_of(const Link& link) const;

  Link::Owner& owner_;
  const base::Settings& settings_;
  const Topology& topology_;
  Network& network_;
  const Transports& transports_;
  Resources& resources_;
};

}  // namespace faro::session
