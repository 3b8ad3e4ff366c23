// ChannelNetwork: what pollers ask of the network thread.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "faro/endpoint.h"
#include "faro/status.h"

namespace faro::endpoint {

class PollerCore;

/// Carried out by the network thread, in the order of the calls of one thread. Threads: any. Blocks: never.
class ChannelNetwork {
 public:
  virtual ~ChannelNetwork() = default;

  virtual Result<ChannelId> connect(PollerCore& poller, std::string_view address,
                                    const ChannelSpec& spec) = 0;
  /// A time limit for draining begins (Closing::drain), or the channel ends.
  virtual void close(ChannelId channel, Closing closing) = 0;
  /// The poller has taken the peer's END: nothing more comes, and nothing that came is missing.
  virtual void end_taken(ChannelId channel) = 0;
  /// The peer broke the protocol of channels.
  virtual void fail(ChannelId channel, const Status& cause) = 0;
  /// The poller has told of the end, and holds nothing of the channel any more.
  virtual void forget(ChannelId channel) = 0;
};

}  // namespace faro::endpoint
