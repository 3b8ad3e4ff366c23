// EndpointCore: an endpoint's parts, tied together: the network with its thread, the links, the pollers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/over_fork.h"
#include "base/settings.h"
#include "endpoint/channel_ids.h"
#include "endpoint/channel_links.h"
#include "endpoint/channel_network.h"
#include "endpoint/endpoint_counts.h"
#include "endpoint/poller_core.h"
#include "faro/endpoint.h"
#include "links/network.h"
#include "links/network_thread.h"
#include "ring/ready_watch.h"

namespace faro::endpoint {

/// Threads: any, except where said.
class EndpointCore final : private ChannelNetwork {
 public:
  using MakeWaiter = std::function<std::unique_ptr<ring::Waiter>()>;

  /// What faro::Endpoint::open does, over any network. Errors: as there.
  static Result<std::unique_ptr<EndpointCore>> open(const base::Settings& settings,
                                                    EndpointSpec spec,
                                                    std::unique_ptr<links::Network> network,
                                                    const MakeWaiter& make_waiter);
  ~EndpointCore() override;

  const std::string& address() const { return network_->local_address(); }
  uint32_t poller_count() const { return static_cast<uint32_t>(pollers_.size()); }
  PollerCore& poller(uint32_t index) { return *pollers_[index]; }
  /// Whether this is a forked child: then all of it is the parent's, and must not be destroyed.
  bool forked() const noexcept { return made_in_.forked(); }
  /// Does what faro::Endpoint::close says.
  void close() noexcept {
    if (forked()) return;
    thread_.close();
    if (!links_.closed()) return;  // from a callback: the destructor does the rest
    give_links_back();
    ready_watch_.stop();
    counts_.close();
  }
  /// What faro::Endpoint::metrics answers. Throws: std::bad_alloc.
  Result<EndpointMetrics> metrics() const { return counts_.metrics(); }
  /// Channels that have not been forgotten.
  uint32_t channel_count() const { return ids_.count(); }
  /// What links take now. Threads: the network thread's, or while there is none.
  uint64_t memory_taken_bytes() const { return links_.memory_taken_bytes(); }
  /// One round of the network thread, where the network wants none.
  bool do_work() { return thread_.do_work(); }

 private:
  EndpointCore(const base::Settings& settings, EndpointSpec spec,
               std::unique_ptr<links::Network> network);
  Status start(const MakeWaiter& make_waiter);
  void give_links_back() noexcept;

  // ChannelNetwork
  Result<ChannelId> connect(PollerCore& poller, std::string_view address,
                            const ChannelSpec& spec) override;
  void close(ChannelId channel, Closing closing) override;
  void end_taken(ChannelId channel) override;
  void fail(ChannelId channel, const Status& cause) override;
  void forget(ChannelId channel) override;

  // Destroyed last to first: links use all that stands before them. What pollers hold of links they let go before.
  const base::Birthplace made_in_{};
  const base::Settings settings_;
  const EndpointSpec spec_;
  const std::unique_ptr<links::Network> network_;
  ChannelIds ids_;
  ring::ReadyWatch ready_watch_;
  EndpointCounts counts_;
  std::vector<std::unique_ptr<PollerCore>> pollers_;
  ChannelLinks links_;
  links::NetworkThread thread_;

  // When the network thread has ended, pollers destroy the links that they let go.
  std::mutex ended_mutex_;
  std::atomic<bool> has_ended_{
      false};  // seq_cst: a link was let go before it was read, or goes after it was set
};

}  // namespace faro::endpoint
