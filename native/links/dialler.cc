#include "links/dialler.h"

#include <algorithm>
#include <utility>

namespace faro::links {
namespace {

constexpr base::Nanoseconds kNanosecondsPerMs = 1'000'000;

// Nodes start at about the same time, so the first retries come quickly. If a node is missing for long, a few attempts
// per second are enough.
constexpr base::Nanoseconds kFirstPause = 1 * kNanosecondsPerMs;
constexpr base::Nanoseconds kLongestPause = 250 * kNanosecondsPerMs;
// The limit for an attempt that hangs (a peer that listens but does not answer yet, a network that drops packets).
constexpr base::Nanoseconds kAttemptTime = 10'000 * kNanosecondsPerMs;

}  // namespace

Dialler::Dialler(Owner& owner, Network& network, const Identity& identity, uint32_t peer,
                 std::string address, const std::optional<wire::LinkName>& mends)
    : owner_(owner),
      network_(network),
      identity_(identity),
      peer_(peer),
      address_(std::move(address)),
      mends_(mends) {}

void Dialler::advance(base::Nanoseconds now) {
  if (now < next_) return;
  if (!under_way_) return dial(now);
  // Its time is over: if an answer still comes, its number shows that it belongs to an earlier attempt.
  handshake_.reset();
  const Status late(Code::connect_failed, "it does not answer");
  retry(late);
  owner_.on_dial_failed(*this, late);
}

void Dialler::dial(base::Nanoseconds now) {
  next_ = now + kAttemptTime;
  network_.connect(address_, [weak = std::weak_ptr<Dialler*>(self_), attempt = ++attempts_](
                                 Result<std::unique_ptr<ControlConnection>> connection) {
    if (const auto self = weak.lock()) (*self)->on_connected(attempt, std::move(connection));
  });
  under_way_ = attempts_;
}

void Dialler::on_connected(uint64_t attempt,
                           Result<std::unique_ptr<ControlConnection>> connection) {
  if (under_way_ != attempt) return;
  if (!connection.ok()) {
    retry(connection.status());
    return owner_.on_dial_failed(*this, connection.status());
  }
  handshake_ = std::make_unique<Handshake>(static_cast<Handshake::Owner&>(*this), identity_,
                                           std::move(connection.value()), peer_, mends_);
  handshake_->start();
}

void Dialler::retry(const Status& cause) {
  last_failure_ = cause;
  under_way_.reset();
  pause_ = pause_ == 0 ? kFirstPause : std::min(2 * pause_, kLongestPause);
  next_ = network_.reactor().clock().now_ns() + pause_;
}

void Dialler::stop(const Refusal& why) {
  if (handshake_ != nullptr) handshake_->refuse(why);
  under_way_.reset();
  next_ = base::kForever;
}

void Dialler::on_admitted(Handshake&, std::unique_ptr<ControlConnection> connection,
                          const wire::Hello& peer) {
  const std::unique_ptr<Handshake> done = std::move(handshake_);  // keeps `peer`
  under_way_.reset();
  if (!mends_) pause_ = 0;  // where that breaks, too, not at once again
  next_ = 0;
  owner_.on_dialled(*this, std::move(connection), peer);
}

void Dialler::on_refused(Handshake&, const Refusal& refusal) {
  const std::unique_ptr<Handshake> done = std::move(handshake_);
  under_way_.reset();
  next_ = base::kForever;
  owner_.on_dial_refused(*this, refusal);
}

}  // namespace faro::links
