// Handshake: the first messages on a control connection, until both sides have identified each other and
// agree to be linked.
//
//   dialling side                               accepting side
//      HELLO  ------------------------------------->   checks it, or REFUSE
//             <-------------------------------------  HELLO
//      checks it, or REFUSE
//      AUTH   <------------------------------------>  AUTH      as many as the method needs,
//      dialling side first
//
// With a secret, only versions and clusters are compared at first, and everything else once the peer has
// proved that it knows the secret. Until then no dialling peer can end this node's open by what it says.
//
// A message of an unknown kind that may be skipped (wire/README.md, "Versions") is skipped at any time.
//
// Nothing secret (tokens, keys, segments) is sent before both sides have accepted the other's AUTH. What
// follows, LINK to READY, is link.h's. The handshake knows neither sockets nor time: its owner limits how
// long it may take.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "faro/status.h"
#include "links/authentication.h"
#include "links/identity.h"
#include "links/network.h"
#include "links/secret.h"
#include "links/secret_authentication.h"
#include "wire/control.h"

namespace faro::links {

/// Threads: network thread. Blocks: never. Owns: the connection, until it is admitted.
class Handshake final : private ControlConnection::Handler {
 public:
  /// on_admitted or on_refused is called, once at most. Either may destroy the handshake.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Fills `bytes` with unpredictable bytes. Returns false if the system has none.
    virtual bool draw_random(std::span<std::byte> bytes) = 0;
    /// Accepting side: whether the sender of this HELLO, which agrees with ours, may join now.
    virtual std::optional<Refusal> judge(const wire::Hello& hello, const std::string& from) = 0;
    /// Both sides agree. The owner sets the connection's handler before it returns.
    virtual void on_admitted(Handshake& handshake, std::unique_ptr<ControlConnection> connection,
                             const wire::Hello& peer) = 0;
    /// `refusal.status` says why, on either side. If this side refused, the other one has been told.
    virtual void on_refused(Handshake& handshake, const Refusal& refusal) = 0;
  };

  /// `dialled`: the peer that was dialled, as the layer above numbers it; none on the accepting side. `mends`: as of
  /// Dialler.
  Handshake(Owner& owner, const Identity& ours, std::unique_ptr<ControlConnection> connection,
            std::optional<uint32_t> dialled,
            const std::optional<wire::LinkName>& mends = std::nullopt);
  ~Handshake() override = default;

  /// Starts; may call the owner.
  void start();
  /// Refuses the peer and tells it why, without calling the owner.
  void refuse(const Refusal& refusal);
  const std::string& peer_address() const { return peer_address_; }

 private:
  enum class State { expects_hello, expects_auth, done };

  void on_message(std::span<const std::byte> message) override;
  void on_closed(const Status& cause) override;
  void on_hello(std::span<const std::byte> message);
  void on_auth(std::span<const std::byte> message);
  wire::ControlMessage own_hello() const;
  Status begin_authentication(wire::ControlMessage ours, std::span<const std::byte> theirs);
  void send_auth(std::vector<std::byte> payload, bool last);
  bool agree();
  Status check_certificate() const;
  bool proven() const;
  std::string peer_name() const;
  Refusal other_method(wire::AuthMethod theirs) const;
  Refusal as_believed(Refusal refusal) const;
  void end(const Refusal& refusal);
  /// Ends the handshake because the peer broke the protocol: it may try again.
  void break_off(std::string_view what);
  void end_undecoded(const Status& status);
  void end_authentication(const Status& status);

  Owner& owner_;
  const Identity& ours_;
  std::unique_ptr<ControlConnection> connection_;
  const std::string peer_address_;
  const std::optional<uint32_t> dialled_;
  const std::optional<wire::LinkName> mends_;
  State state_ = State::expects_hello;
  wire::Hello peer_;
  wire::ControlMessage sent_hello_;                 // dialling side
  std::unique_ptr<Authentication> authentication_;  // once both have said HELLO
  bool agreed_ = false;
  bool said_last_ = false;       // we have sent our last AUTH
  bool peer_said_last_ = false;  // the peer has sent its last AUTH
};

}  // namespace faro::links
