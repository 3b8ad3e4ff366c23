// What this node says of itself to everyone it meets, made from its settings once, before it opens.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "faro/status.h"
#include "session/handshake.h"
#include "session/network.h"
#include "session/topology.h"

namespace faro::session {

/// The whole identity but what it offers, hello.transports. Draws the incarnation. Errors: what load_secret says;
/// config_invalid, if others could join who need not show anything; system_error.
Result<LocalIdentity> make_identity(const base::Settings& settings, const Topology& topology,
                                    Network& network);

}  // namespace faro::session
