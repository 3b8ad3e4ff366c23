// Link: all that ties this node to one peer, from the handshake that has admitted it: the control
// connection, the setup of the data link, and then the data link itself.
//
//   (handshake) ──> admitted ──begin──> setting_up ──both READY──> up ──leave──> leaving ──BYE──> left
//                      │                 │      ▲                 │  │              ▲
//                      │                 │      │   ┌──suspended──┘  └──────BYE─────┘
//                      │      setup_suspended   │   │
//                      └──────────┴──────fail───┴───┴────────────────────────────────> lost
//
// Up to `admitted` nothing is allocated, and a broken connection only means to try again. From
// `setting_up` on the link has memory, which it keeps until it is destroyed. It never comes back from
// left or lost: whoever connects again gets another link.
//
// Suspended: the data connection has failed, or its setup. The control connection usually knows better
// why, so it gets a moment to say so before the link is lost. Until then a link that was up still is.
//
// The accepting side tells its choice of transport when all its links are admitted. The dialling side
// begins when it has that and all its own links are admitted (setup_exchange.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "faro/status.h"
#include "links/liveness.h"
#include "links/network.h"
#include "links/setup_exchange.h"
#include "transport/transport.h"
#include "wire/control.h"

namespace faro::links {

enum class LinkState : uint8_t {
  admitted,
  setting_up,
  setup_suspended,
  up,
  suspended,  // as up, but its data connection has failed
  leaving,
  left,
  lost,
};

/// Threads: network thread, except for connected() and data().
/// Blocks: never. Owns: connection, setup and data link. Kept by shared_ptr; not copied.
class Link final : private ControlConnection::Handler,
                   private transport::LinkEvents,
                   public std::enable_shared_from_this<Link> {
 public:
  /// Told on the network thread.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// A link that was only admitted has ended; `final`: the peer says that trying again is of no
    /// use. `cause` does not name the peer.
    virtual void on_detached(Link& link, const Status& cause, bool final) = 0;
    virtual void on_up(Link& link) = 0;
    /// A link that was being set up, or was up, is lost. `cause` does not name the peer.
    virtual void on_lost(Link& link, const Status& cause) = 0;
    virtual void on_left(Link& link) = 0;
    virtual void on_heartbeat(Link& link) = 0;
    /// MEMBERS, which is not decoded yet.
    virtual void on_members(Link& link, std::span<const std::byte> message) = 0;
    virtual void on_application(Link& link, std::span<const std::byte> payload) = 0;
  };
  /// Something that a link has to do. If it ends by an exception it was not done, and the link fails in the next round
  /// (judge_unfinished). Threads: any.
  class Doing {
   public:
    explicit Doing(Link& link) noexcept : link_(link) {}
    ~Doing() {
      if (std::uncaught_exceptions() > before_)
        link_.unfinished_.store(true, std::memory_order_relaxed);
    }
    Doing(const Doing&) = delete;
    Doing& operator=(const Doing&) = delete;

   private:
    Link& link_;
    const int before_ = std::uncaught_exceptions();
  };
  struct Suspension {
    base::Nanoseconds until = 0;
    Status cause;
  };

  /// Admitted. `context` has everything but stream_token, doorbells, events and send.
  Link(Owner& owner, transport::LinkContext context, std::unique_ptr<ControlConnection> connection,
       const wire::Hello& peer);
  ~Link() override;

  /// Takes what the peer says from now on; may call the owner.
  void start();

  const transport::LinkContext& context() const { return context_; }
  /// In the table.
  uint32_t place() const { return context_.peer_node; }
  const std::string& name() const { return context_.peer_name; }
  const wire::Hello& peer() const { return peer_; }
  LinkState state() const { return state_.load(std::memory_order_relaxed); }
  /// Up or suspended: the data link is there. Threads: any.
  bool connected() const;
  /// Null until the link is up; then it stays, whatever becomes of the link. Threads: any.
  transport::DataLink* data() const { return data_.load(std::memory_order_acquire); }
  /// Empty until one was chosen.
  std::string_view transport_name() const;

  /// Accepting side, admitted: tells the peer the choice and begins.
  void choose(transport::Transport& transport, const transport::StreamToken& token,
              transport::DoorbellMemory doorbells);
  /// What was chosen; on the dialling side once the peer has told.
  const std::optional<wire::LinkChoice>& choice() const { return setup_.choice(); }
  /// admitted → setting_up.
  void begin(transport::Transport& transport, transport::DoorbellMemory doorbells);
  /// Looks whether the setup has come further. Call in every round while setting_up.
  void advance();
  /// The peer may dial a data connection now.
  bool expects_stream() const;
  /// A data connection with this token is this link's.
  bool takes(const transport::StreamToken& token) const {
    return expects_stream() && setup_.takes(token);
  }
  void on_stream(transport::DataStream stream);

  /// Queues a control message, while there is a control connection and neither side has left.
  void send(const wire::ControlMessage& message);
  /// Whether the control connection is there.
  bool attached() const { return connection_ != nullptr; }
  std::string peer_address() const;
  const Liveness::Peer& liveness() const { return liveness_; }

  /// Ends the link: tells the peer (FAIL, or REFUSE before up), then the owner.
  void fail(const Status& cause);
  /// The peer broke the protocol by `what`: fails.
  void violation(std::string_view what);
  /// Ends it, telling the peer why, without telling the owner.
  void refuse(const Status& cause, bool retry);
  /// Says BYE if up; the connection goes when the peer has closed too. Tells nobody.
  void leave();
  /// Closing is over: the connection goes, whatever the peer says, and the data link stops.
  void end() { end_as(LinkState::left); }
  /// While it is suspended.
  const std::optional<Suspension>& suspension() const { return suspension_; }
  /// Fails if the moment of its suspension is over.
  void judge_suspended(base::Nanoseconds now);
  /// Something that it had to do was not done: it ends with `cause`, or its owner is told that it has. Call in every
  /// round.
  void judge_unfinished(const Status& cause);

  std::unique_ptr<Link> next_retired;  ///< RetiredLinks' alone

 private:
  void on_message(std::span<const std::byte> message) override;
  void on_closed(const Status& cause) override;
  void on_link_failed(const Status& cause) override;

  void handle(std::span<const std::byte> message);
  void on_choice(std::span<const std::byte> message);
  void on_setup(std::span<const std::byte> message);
  void on_ending(std::span<const std::byte> message);
  void on_bye(std::span<const std::byte> message);
  void come_up();
  void suspend(const Status& cause);
  void lose(const Status& cause, bool final = false);
  void say_ending(const Status& cause, bool retry);
  void tell_owner(const Status& cause, bool final);
  void end_as(LinkState state);

  Owner& owner_;
  transport::LinkContext context_;
  std::unique_ptr<ControlConnection> connection_;
  const wire::Hello peer_;
  std::atomic<LinkState> state_{LinkState::admitted};  // network thread: release, after data_
  Liveness::Peer liveness_;
  SetupExchange setup_;
  enum class Told { nothing_yet, all, not_detached, not_lost, not_left };
  Told told_ = Told::nothing_yet;  // the owner, of its end
  std::atomic<bool> unfinished_{false};
  std::optional<Suspension> suspension_;  // in the two states of that name
  std::unique_ptr<transport::DataLink> made_;
  std::atomic<transport::DataLink*> data_{nullptr};  // made_, once the link is up
};

}  // namespace faro::links
