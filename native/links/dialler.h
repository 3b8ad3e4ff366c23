// Dialler: dials one peer until the handshake has admitted it. After each failure it dials again, at growing intervals.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "faro/status.h"
#include "links/handshake.h"
#include "links/network.h"

namespace faro::links {

/// Threads: network thread. Blocks: never. Owns: the attempt under way.
class Dialler final : private Handshake::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// The peer is admitted. The attempt is over; the owner sets the connection's handler before it
    /// returns, or tells the dialler to retry.
    virtual void on_dialled(Dialler& dialler, std::unique_ptr<ControlConnection> connection,
                            const wire::Hello& peer) = 0;
    /// An attempt failed before there was a peer. The dialler retries.
    virtual void on_dial_failed(Dialler& dialler, const Status& cause) = 0;
    /// The handshake ended in a refusal, of either side. The dialler has stopped until it is told to
    /// retry.
    virtual void on_dial_refused(Dialler& dialler, const Refusal& refusal) = 0;
  };

  /// The first three outlive it. `mends`: the link that is to be mended; none: there is to be one.
  Dialler(Owner& owner, Network& network, const Identity& identity, uint32_t peer,
          std::string address, const std::optional<wire::LinkName>& mends = std::nullopt);

  /// The pause after the next failure in a row; `pause`: that before, 0 at first. Nodes start at about the same time, so the first
  /// retries come quickly. If a node is missing for long, a few attempts per second are enough.
  static base::Nanoseconds longer(base::Nanoseconds pause);

  uint32_t peer() const { return peer_; }
  /// Why the last attempt failed, or the last link ended; Ok: there was none.
  const Status& last_failure() const { return last_failure_; }

  /// Call it at next_deadline(), as long as the peer has no link. Dials, or gives up an attempt that takes too
  /// long.
  void advance(base::Nanoseconds now);
  base::Nanoseconds next_deadline() const { return next_; }
  /// Dials again after a pause, which grows from one failure to the next.
  void retry(const Status& cause);
  /// Ends an attempt under way, if there is one, and tells the peer why. Nothing more is dialled until
  /// retry.
  void stop(const Refusal& why);

 private:
  void dial();
  bool begin(uint64_t attempt);
  void on_connected(uint64_t attempt, Result<std::unique_ptr<ControlConnection>> connection);
  // Handshake::Owner
  bool draw_random(std::span<std::byte> bytes) override { return network_.draw_random(bytes); }
  std::optional<Refusal> judge(const wire::Hello&, const std::string&) override { return {}; }
  void on_admitted(Handshake& handshake, std::unique_ptr<ControlConnection> connection,
                   const wire::Hello& peer) override;
  void on_refused(Handshake& handshake, const Refusal& refusal) override;

  Owner& owner_;
  Network& network_;
  const Identity& identity_;
  const uint32_t peer_;
  const std::string address_;
  const std::optional<wire::LinkName> mends_;
  std::optional<uint64_t> under_way_;  // the number of the attempt
  uint64_t attempts_ = 0;              // tells late answers to earlier attempts from this one's
  // An answer holds it weakly: one that comes when the dialler is gone finds nobody.
  const std::shared_ptr<Dialler*> self_ = std::make_shared<Dialler*>(this);
  std::unique_ptr<Handshake> handshake_;
  base::Nanoseconds next_ =
      0;  // when to dial, or to give the attempt up; never while its turn has not come
  base::Nanoseconds pause_ = 0;  // before the next attempt
  Status last_failure_;
};

}  // namespace faro::links
