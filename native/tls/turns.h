// Turns: how many handshakes this side has under way. A handshake costs both sides about a millisecond of a processor, and the
// accepting side has a place for few that have not finished it (links/socket_acceptor.h): so a burst of connections begins a few
// at a time, to one peer or to many, and those that have begun are soon over.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace faro::tls {

/// Threads: the network thread. Blocks: never.
class Turns {
 public:
  /// With one peer: enough to keep both sides busy; less than a peer has places for connections of one address.
  static constexpr size_t kPerPeer = 8;
  /// With all of them. One that its peer does not answer, or that takes long to be reached, counts only for a time: others do not
  /// wait for a host that has gone.
  static constexpr size_t kInAll = 8;
  static constexpr base::Nanoseconds kConnectingCounts = 250'000'000;
  static constexpr base::Nanoseconds kHandshakeCounts = 2'000'000'000;
  /// An attempt that waits for a turn comes before all that wait `last`: a link that lacks its data
  /// connection only is nearly there, and one that is mended has little time.
  enum class Order { first, last };

  class Turn;

  explicit Turns(const base::Clock& clock = base::SystemClock::instance());
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// A turn at this peer. If none is free yet, `begins` is called once it has come, from another turn's end or from advance: it
  /// should do no more than defer.
  Turn take(const std::string& peer, Order order, std::function<void()> begins);
  /// Call it at next_deadline(): those that have taken long count no more.
  void advance();
  base::Nanoseconds next_deadline() const;

 private:
  struct Ask;
  struct Asks;

  const std::shared_ptr<Asks> asks_;  // a turn may outlive this object
};

/// A place among the handshakes, or the wait for one. The destructor gives it back.
class Turns::Turn {
 public:
  Turn() = default;
  Turn(Turn&&) noexcept = default;
  Turn& operator=(Turn&& other) noexcept;
  ~Turn() { end(); }

  bool has_come() const noexcept;
  /// The peer is reached, and the handshake begins.
  void connected() noexcept;
  /// The handshake is over, or is not wanted any more.
  void end() noexcept;

 private:
  friend class Turns;
  Turn(std::shared_ptr<Asks> asks, std::shared_ptr<Ask> ask)
      : asks_(std::move(asks)), ask_(std::move(ask)) {}

  std::shared_ptr<Asks> asks_;
  std::shared_ptr<Ask> ask_;  // null: there is none
};

}  // namespace faro::tls
