// Link: all that ties this node to one peer, once the handshake has admitted it: the control
// connection, the setup of the data link, and then the data link itself.
//
//   apart ──admit──> admitted ──begin──> setting_up ──both READY──> up ──BYE──> left
//     ^                 │                    │                       │
//     └────detach───────┘                    └──────────fail─────────┴──────────> lost
//
// Up to `admitted` nothing is allocated, and a broken connection only means to try again. From
// `setting_up` on the link has memory, which it keeps until it is destroyed; it never comes back
// from lost or left: a peer that starts again gets another link.
//
// A side whose session is open already says so, and who is missing in it, by MEMBERS: when it admits
// the peer, when the link is up, and whenever it changes.
//
//   dialling side              accepting side
//            <------ LINK {transport, token}        when all links of the accepting side are
//            admitted
//      SETUP <-----> SETUP                          what the transport needs, either side
//      READY  <----> READY                          when a side has all it needs
//
// The dialling side begins when it has LINK and all its own links are admitted; what arrives before
// waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "faro/status.h"
#include "session/liveness.h"
#include "session/network.h"
#include "transport/transport.h"
#include "wire/control.h"

namespace faro::session {

enum class LinkState { apart, admitted, setting_up, up, left, lost };

/// Threads: network thread, except for connected(), and data() of a link that was connected.
/// Blocks: never. Owns: connection, setup and data link. Kept by shared_ptr.
class Link final : private ControlConnection::Handler,
                   private transport::LinkEvents,
                   public std::enable_shared_from_this<Link> {
 public:
  /// Told on the network thread.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// An admitted link is apart again; `final`: the peer says that trying again is of no use.
    virtual void on_detached(Link& link, const Status& cause, bool final) = 0;
    virtual void on_up(Link& link) = 0;
    /// A link that was being set up, or was up, is lost. `cause` does not name the peer.
    virtual void on_lost(Link& link, const Status& cause) = 0;
    virtual void on_left(Link& link) = 0;
    virtual void on_heartbeat(Link& link) = 0;
    virtual void on_members(Link& link) = 0;
    virtual void on_application(Link& link, std::span<const std::byte> payload) = 0;
  };

  /// `context` has everything but stream_token, initiator, peer_address, doorbells, events and
  /// send.
  Link(Owner& owner, transport::LinkContext context);
  ~Link() override;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  uint32_t node() const { return context_.peer_node; }
  const std::string& name() const { return context_.peer_name; }
  void rename(std::string name) { context_.peer_name = std::move(name); }
  /// Before begin or choose.
  void set_doorbells(transport::DoorbellMemory doorbells) { context_.doorbells = doorbells; }
  LinkState state() const { return state_; }
  const wire::Hello& peer() const { return peer_; }
  const ring::Layout& outgoing() const { return context_.outgoing; }
  const ring::Layout& incoming() const { return context_.incoming; }
  transport::Reactor& reactor() const { return *context_.reactor; }
  bool initiator() const { return context_.initiator; }
  /// Threads: any.
  bool connected() const { return connected_.load(std::memory_order_acquire); }
  /// It is or was connected(). Threads: any.
  bool came_up() const { return came_up_.load(std::memory_order_acquire); }
  /// Null until up. Threads: any, if it came_up().
  transport::DataLink* data() const { return data_.get(); }
  std::string_view transport_name() const {
    return choice_ ? std::string_view(choice_->transport) : "";
  }

  /// apart → admitted. `address`: where the peer listens.
  void admit(std::unique_ptr<ControlConnection> connection, const wire::Hello& peer, bool initiator,
             std::string address, base::Nanoseconds now);
  /// Accepting side, admitted: tells the peer the choice and begins.
  void choose(transport::Transport& transport, const transport::StreamToken& token);
  /// Dialling side: what the peer chose, once it has.
  const std::optional<wire::LinkChoice>& choice() const { return choice_; }
  /// admitted → setting_up.
  void begin(transport::Transport& transport);
  /// Looks whether the setup has come further. Call in every round while setting_up.
  void advance();
  /// A data connection with this link's token arrived.
  bool takes(const transport::StreamToken& token) const;
  void on_stream(transport::DataStream stream);

  void send_members(const std::vector<bool>& missing);
  /// What a peer whose session is open told last; none: as far as it has said, it is not.
  const std::optional<wire::Members>& members() const { return members_; }
  /// The peer's session was open before this link was up: it had lost this node, or never had it.
  bool peer_was_open() const { return peer_was_open_; }

  void send_application(std::span<const std::byte> payload);
  void heartbeat();
  /// Whether the control connection is there.
  bool attached() const { return connection_ != nullptr; }
  bool leaving() const { return leaving_; }
  /// The peer may dial a data connection now.
  bool expects_stream() const {
    return state_ == LinkState::setting_up && !context_.initiator && connection_ != nullptr &&
           !suspended_until_;
  }
  std::string peer_address() const {
    return connection_ ? connection_->peer_address() : std::string("nowhere");
  }
  const Liveness::Peer& liveness() const { return liveness_; }

  /// Ends the link: tells the peer (FAIL, or REFUSE before up), then the owner.
  void fail(const Status& cause);
  /// Ends it before it is up, telling the peer why, without telling the owner.
  void refuse(const Status& cause, bool retry);
  /// Says BYE if up; the connection goes when the peer has closed too. Tells nobody.
  void leave();
  /// Closing is over: the connection goes, whatever the peer says, and the data link stops.
  void end();
  /// After a failure of the transport, or of its setup: time for the control connection to tell more.
  std::optional<base::Nanoseconds> suspended_until() const { return suspended_until_; }
  /// What failed, while it is suspended.
  const Status& suspended_cause() const { return suspended_cause_; }
  void judge_suspended(base::Nanoseconds now);

 private:
  void on_message(std::span<const std::byte> message) override;
  void on_closed(const Status& cause) override;
  void on_link_failed(const Status& cause) override;

  void on_transport_failure(const Status& cause);
  void handle(std::span<const std::byte> message);
  void on_ending(std::span<const std::byte> message);
  void on_setup(std::span<const std::byte> message);
  void on_ready(std::span<const std::byte> message);
  void on_choice(std::span<const std::byte> message);
  void on_members(std::span<const std::byte> message);
  void on_bye(std::span<const std::byte> message);
  void suspend(const Status& cause);
  void violation(std::string_view what);
  void come_up();
  void lose(const Status& cause);
  void detach(const Status& cause, bool final);
  void stop_data();

  Owner& owner_;
  transport::LinkContext context_;
  std::unique_ptr<ControlConnection> connection_;
  wire::Hello peer_;
  LinkState state_ = LinkState::apart;
  bool leaving_ = false;
  Liveness::Peer liveness_;

  std::optional<wire::Members> members_;
  bool peer_was_open_ = false;
  std::optional<wire::LinkChoice> choice_;
  std::vector<wire::ControlMessage> early_;  // SETUP and READY that came before begin
  std::unique_ptr<transport::LinkSetup> setup_;
  bool told_ready_ = false;
  bool peer_ready_ = false;
  std::unique_ptr<transport::DataLink> data_;  // set once, when up
  std::atomic<bool> connected_{false};  // network thread: release, after data_; others: acquire
  std::atomic<bool> came_up_{false};

  std::optional<base::Nanoseconds> suspended_until_;
  Status suspended_cause_;
};

}  // namespace faro::session
