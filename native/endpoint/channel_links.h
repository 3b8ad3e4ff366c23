// ChannelLinks: the links of an endpoint, one per channel. They come and go: peers are dialled and accepted, admitted, set
// up within the memory there is, mended, drained, closed and lost, each without the others.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "endpoint/channel_identity.h"
#include "endpoint/channel_ids.h"
#include "endpoint/channel_link_factory.h"
#include "endpoint/endpoint_counts.h"
#include "endpoint/idle_watch.h"
#include "endpoint/poller_core.h"
#include "faro/endpoint.h"
#include "links/admission.h"
#include "links/dialler.h"
#include "links/link_mender.h"
#include "links/link_monitor.h"
#include "links/link_table.h"
#include "links/network.h"
#include "links/network_thread.h"

namespace faro::endpoint {

/// Threads: the network thread; open: the opening thread, before there is one.
class ChannelLinks final : public links::Rounds,
                           private links::Admission::Host,
                           private links::Dialler::Owner,
                           private links::Link::Owner {
 public:
  /// All outlive it. `pollers`: at least one, when it is opened.
  ChannelLinks(const base::Settings& settings, const EndpointSpec& spec, links::Network& network,
               ChannelIds& ids, EndpointCounts& counts,
               const std::vector<std::unique_ptr<PollerCore>>& pollers);
  /// Links refer to this object, so they are destroyed first.
  ~ChannelLinks() override { links_.clear(); }

  /// Accepts peers from now on. Errors: as Endpoint::open.
  Status open();

  void connect(ChannelId id, PollerCore& poller, std::string address, ChannelSpec spec);
  void close(ChannelId id, Closing closing);
  void end_taken(ChannelId id);
  void fail(ChannelId id, const Status& cause);
  void forget(ChannelId id);

  /// What links take now.
  uint64_t memory_taken_bytes() const { return factory_.memory_taken_bytes(); }

  // links::Rounds
  bool round(base::Nanoseconds until) override;
  void begin_closing() override;
  /// Again when a poller has let links go, after the thread has ended: destroys them. One at a time. Throws: std::bad_alloc.
  void finish_closing() override;
  bool closed() const override { return phase_ == Phase::closed; }
  base::Nanoseconds closing_deadline() const override { return closing_deadline_; }

 private:
  enum class Phase { open, closing, closed };

  /// A channel that was dialled or admitted, until it has ended here and the poller has forgotten it.
  struct Entry {
    ChannelId id{};
    PollerCore* poller = nullptr;                 // null: there is no channel
    std::string address;                          // that was dialled
    std::unique_ptr<links::Dialler> dialler;      // until it is admitted
    std::vector<std::byte> greeting;              // of the dialling side
    base::Nanoseconds deadline = base::kForever;  // for opening, or for draining
    Status last_failure{};                        // of dialling
    Status broke{};         // its setup, since when the peer has been dialled again
    bool took_end = false;  // the poller has taken the peer's END
    bool peer_took_end = false;
    IdleWatch::Seen seen{};  // of its frames
    bool is_told = false;    // the poller knows that it has ended, or never knew of it
    bool is_forgotten = false;
    bool is_attended = false;  // is in attended_
  };

  Entry* find(ChannelId id);
  Entry& entry_of(const links::Link& link) { return entries_[link.place()]; }
  void add_link(Entry& entry, const ChannelSpec& wanted,
                std::unique_ptr<links::ControlConnection> connection, const wire::Hello& hello);
  void look_at_times();
  void look_at(Entry& entry, base::Nanoseconds now);
  void attend(Entry& entry) noexcept;
  bool is_at_rest(const Entry& entry) const;
  void look_for_idle(base::Nanoseconds now);
  base::Nanoseconds next_deadline() const;
  void end(Entry& entry, const Status& cause);
  void end_later(const Entry& entry, const Status& cause);
  void leave_if_drained(Entry& entry);
  void reap(Entry& entry);

  // Admission::Host
  std::optional<links::Refusal> judge(const wire::Hello& hello, const std::string& from) override;
  void on_admitted(std::unique_ptr<links::ControlConnection> connection,
                   const wire::Hello& peer) override;
  void on_refused(const std::string&, const links::Refusal&) override {}
  // Dialler::Owner
  void on_dialled(links::Dialler& dialler, std::unique_ptr<links::ControlConnection> connection,
                  const wire::Hello& peer) override;
  void on_dial_failed(links::Dialler& dialler, const Status& cause) override;
  void on_dial_refused(links::Dialler& dialler, const links::Refusal& refusal) override;
  // Link::Owner
  void on_detached(links::Link& link, const Status& cause, bool final) override;
  void on_up(links::Link& link) override;
  void on_lost(links::Link& link, const Status& cause) override;
  void on_left(links::Link& link) override;
  void on_heartbeat(links::Link& link) override;
  void on_members(links::Link& link, std::span<const std::byte> message) override;
  void on_application(links::Link& link, std::span<const std::byte> payload) override;

  const base::Settings& settings_;
  const EndpointSpec& spec_;
  links::Network& network_;
  ChannelIds& ids_;
  EndpointCounts& counts_;
  const std::vector<std::unique_ptr<PollerCore>>& pollers_;
  ChannelIdentity identity_;
  links::LinkTable links_;
  ChannelLinkFactory factory_;
  links::LinkMonitor monitor_;
  links::Admission admission_;
  links::LinkMender mender_;
  std::vector<Entry> entries_;    // by the index of the channel
  std::vector<Entry*> attended_;  // all that are not at rest: they are looked at in every round
  Phase phase_ = Phase::open;
  base::Nanoseconds closing_deadline_ = base::kForever;
  IdleWatch idle_;
};

}  // namespace faro::endpoint
