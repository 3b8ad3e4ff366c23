// Diallers: how this node reaches the peers that it has to dial. Each is dialled while it has no link.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "links/dialler.h"
#include "links/link_table.h"

namespace faro::links {

/// Threads: network thread. Blocks: never.
class Diallers {
 public:
  /// All outlive it.
  Diallers(Dialler::Owner& owner, Network& network, const Identity& identity,
           const LinkTable& links)
      : owner_(owner), network_(network), identity_(identity), links_(links) {}

  /// This node dials the peer at `address`; at most once per peer.
  void add(uint32_t peer, std::string address);
  /// Ends it. The peer may be added again.
  void remove(uint32_t peer);
  /// For every peer without a link: dials, or gives up an attempt that takes too long.
  void advance(base::Nanoseconds now);
  /// When advance has something to do.
  base::Nanoseconds next_deadline() const;
  /// The peer has no link, because of `cause`. If this node dials it, it is dialled again after a pause.
  void retry(uint32_t peer, const Status& cause);
  /// Ends all attempts and tells the peers why. No peer is dialled again until retry.
  void stop(const Refusal& why);

 private:
  template <typename Visit>
  void for_each_unlinked(Visit&& visit) const;

  Dialler::Owner& owner_;
  Network& network_;
  const Identity& identity_;
  const LinkTable& links_;
  std::vector<std::unique_ptr<Dialler>> diallers_;
};

}  // namespace faro::links
