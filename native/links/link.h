// Link: everything that ties this node to one peer once the handshake has admitted it: the control connection, the
// setup of the data link, and then the data link itself.
//
// link_state.h has its states. While it is only admitted nothing is allocated, and a broken connection only means that
// the peer is dialled again. From the beginning of its setup the link has memory, which it keeps until it is destroyed.
// A link that has ended is never used again: a peer that connects again gets a new one.
//
// The accepting side chooses the transport when all its links are admitted. The dialling side begins its
// setup when it knows that choice and all its own links are admitted (setup_exchange.h).
//
// A link that was up, or may have been to the peer, and whose connection breaks is mended if both sides offer that, its
// transport can, and there is time (README.md, "Mending"):
//
//   a connection breaks ──► mending: without connections ──► resume: a control connection, by LinkMender or Admission
//            ▲                                                    │ RESUME; LINK, SETUP, READY
//            └──────────── broken again ◄─────────────────────────┴──► up: data goes on where it stopped
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "faro/status.h"
#include "links/link_history.h"
#include "links/link_state.h"
#include "links/memory_budget.h"
#include "links/network.h"
#include "links/resumable_control.h"
#include "links/setup_exchange.h"
#include "transport/transport.h"
#include "wire/control.h"

namespace faro::links {

/// The status with which a link fails whose peer broke the protocol by `what`.
Status protocol_violation(std::string_view what);

class Link;

/// That of a link; empty until one was chosen.
std::string_view transport_name(const Link& link);

/// Threads: network thread, except for data() and what LinkState excepts.
/// Blocks: never. Owns: connection, setup and data link. Kept by shared_ptr; not copied.
class Link final : private ControlConnection::Handler,
                   private transport::LinkEvents,
                   public std::enable_shared_from_this<Link> {
 public:
  /// Told on the network thread.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// A link that was only admitted has ended. `final`: the peer says that it is no use to try again.
    /// `cause` does not name the peer.
    virtual void on_detached(Link& link, const Status& cause, bool final) = 0;
    /// Its data link, which other threads cannot have yet: data() is null.
    virtual void on_made(Link&, transport::DataLink&) {}
    virtual void on_up(Link& link) = 0;
    /// A link that was being set up, or was up, is lost. `cause` does not name the peer.
    virtual void on_lost(Link& link, const Status& cause) = 0;
    virtual void on_left(Link& link) = 0;
    virtual void on_heartbeat(Link& link) = 0;
    /// MEMBERS, which is not decoded yet.
    virtual void on_members(Link& link, std::span<const std::byte> message) = 0;
    virtual void on_application(Link& link, std::span<const std::byte> payload) = 0;
  };
  /// A guard around something that a link has to do. If an exception interrupts it, the link is lost, and finish_ending
  /// completes that in the next round.
  class Doing {
   public:
    explicit Doing(Link& link) noexcept : link_(link) {}
    ~Doing() {
      if (std::uncaught_exceptions() > before_) link_.state_.lose_interrupted();
    }
    Doing(const Doing&) = delete;
    Doing& operator=(const Doing&) = delete;

   private:
    Link& link_;
    const int before_ = std::uncaught_exceptions();
  };

  /// Admitted. `context` has everything but stream_token, doorbells, events and send.
  Link(Owner& owner, transport::LinkContext context, std::unique_ptr<ControlConnection> connection,
       const wire::Hello& peer);
  ~Link() override;

  /// Handles the peer's messages from now on; may call the owner.
  void start();

  const transport::LinkContext& context() const { return context_; }
  /// Its place in the table.
  uint32_t place() const { return context_.peer_node; }
  const std::string& name() const { return context_.peer_name; }
  const wire::Hello& peer() const { return peer_; }
  const LinkState& state() const { return state_; }
  /// Null until the link is up. Then it stays, even when the link is lost. Threads: any.
  transport::DataLink* data() const { return data_.load(std::memory_order_acquire); }

  /// Accepting side, admitted: tells the peer the choice and begins. `rings`: of a channel, no larger than the peer asked
  /// for; they become those of context().
  void choose(transport::Transport& transport, const transport::StreamToken& token,
              transport::DoorbellMemory doorbells,
              const std::optional<wire::ChannelRings>& rings = std::nullopt);
  /// The transport that was chosen; on the dialling side, once the peer has named it.
  const std::optional<wire::LinkChoice>& choice() const { return setup_.choice(); }
  /// Keeps this as long as the link has its memory.
  void keep(std::shared_ptr<MemoryBudget::Share> share) { share_ = std::move(share); }
  /// admitted → setting_up.
  void begin(transport::Transport& transport, transport::DoorbellMemory doorbells);
  /// Checks whether the setup has made progress. Call it in every round while setting_up.
  void advance();
  /// The peer may dial a data connection now.
  bool expects_stream() const;
  /// Whether a data connection with this token belongs to this link.
  bool takes(const transport::StreamToken& token) const {
    return expects_stream() && setup_.takes(token);
  }
  void on_stream(transport::DataStream stream);

  /// Whether it is up, or may be to the peer, and gets other connections if its own break. Then choice() has its number.
  bool can_mend() const;
  /// The peer can be reached again, or has found the link broken. `token`: accepting side: of the data connection.
  void resume(std::unique_ptr<ControlConnection> connection, const transport::StreamToken& token);
  /// It was suspended, or mending, for as long as it may be.
  void on_waited();

  /// Sends a control message, unless the link has ended or a side has left. While it is mended, what has to arrive is
  /// kept for the peer.
  void send(const wire::ControlMessage& message);
  /// Whether there is a control connection; what was sent and has not come yet, and where from.
  const ResumableControl& control() const { return control_; }
  /// When the peer was heard; why it has broken and was not mended.
  const LinkHistory& history() const { return history_; }
  LinkHistory& history() { return history_; }

  /// The data connection, or its setup, has failed, or nothing has come over it for too long while
  /// the peer lives: the link waits for an explanation, or gets another connection. A cause that is
  /// no break ends it.
  void suspend(const Status& cause);
  /// Ends the link: tells the peer (FAIL, or REFUSE before up), then the owner.
  void fail(const Status& cause);
  /// Ends it, telling the peer why, without telling the owner.
  void refuse(const Status& cause, bool retry);
  /// Says BYE if the link is up; the connection ends when the peer has closed, too. Does not call the owner.
  void leave();
  /// The time for closing is over: ends the connection, whatever the peer says, and stops the data link.
  void end() { end_as(LinkState::left); }
  /// Completes an ending that an exception has interrupted or caused, with `cause`. Call it in every round.
  void finish_ending(const Status& cause);

  std::unique_ptr<Link> next_retired;  ///< RetiredLinks' alone

 private:
  friend class LinkTable;  // has the state watched; closes the connections in the end

  void on_message(std::span<const std::byte> message) override;
  void on_closed(const Status& cause) override;
  void on_link_failed(const Status& cause) override;

  void handle(std::span<const std::byte> message);
  void on_setup(std::span<const std::byte> message);
  void come_up();
  void on_broken(const Status& cause);
  void break_off(const Status& cause);
  void lose(const Status& cause, bool final = false);
  void conclude(const Status& cause, bool final);
  void end_as(LinkState::Phase phase);

  Owner& owner_;
  transport::LinkContext context_;
  const wire::Hello peer_;
  ResumableControl control_;
  LinkState state_;
  LinkHistory history_;
  std::shared_ptr<MemoryBudget::Share> share_;  // given back after the memory
  SetupExchange setup_;
  transport::Transport* transport_ = nullptr;  // from its setup on
  std::unique_ptr<transport::DataLink> made_;
  std::atomic<transport::DataLink*> data_{nullptr};  // made_, once the link is up
};

}  // namespace faro::links
