#include "links/dialler.h"

#include <algorithm>
#include <utility>

namespace faro::links {
namespace {

constexpr base::Nanoseconds kFirstPause = 1 * base::kMillisecond;
constexpr base::Nanoseconds kLongestPause = 250 * base::kMillisecond;
// The limit for an attempt that hangs (a peer that listens but does not answer yet, a network that drops packets).
constexpr base::Nanoseconds kAttemptTime = 10'000 * base::kMillisecond;
// Where a hundred processes of a host begin at once, what they share is processors: a process that
// gave up and dialled again would add to it.
constexpr base::Nanoseconds kTlsAttemptTime = 3 * kAttemptTime;

}  // namespace

Dialler::Dialler(Owner& owner, Network& network, const Identity& identity, uint32_t peer,
                 std::string address, const std::optional<wire::LinkName>& mends)
    : owner_(owner),
      network_(network),
      identity_(identity),
      peer_(peer),
      address_(std::move(address)),
      mends_(mends) {}

base::Nanoseconds Dialler::longer(base::Nanoseconds pause) {
  return pause == 0 ? kFirstPause : std::min(2 * pause, kLongestPause);
}

void Dialler::advance(base::Nanoseconds now) {
  if (now < next_) return;
  if (!under_way_) return dial();
  // Its time is over: if an answer still comes, its number shows that it belongs to an earlier attempt.
  handshake_.reset();
  const Status late(Code::connect_failed, "it does not answer");
  retry(late);
  owner_.on_dial_failed(*this, late);
}

void Dialler::dial() {
  const uint64_t attempt = ++attempts_;
  under_way_ = attempt;
  next_ = base::kForever;
  const std::weak_ptr<Dialler*> weak = self_;
  network_.connect_in_turn(
      address_, mends_.has_value(),
      [weak, attempt] {
        const auto self = weak.lock();
        return self != nullptr && (*self)->begin(attempt);
      },
      [weak, attempt](Result<std::unique_ptr<ControlConnection>> connection) {
        if (const auto self = weak.lock()) (*self)->on_connected(attempt, std::move(connection));
      });
}

// The time of an attempt begins with its turn.
bool Dialler::begin(uint64_t attempt) {
  if (under_way_ != attempt) return false;
  const bool with_tls = network_.credentials() != nullptr;
  next_ = network_.reactor().clock().now_ns() + (with_tls ? kTlsAttemptTime : kAttemptTime);
  return true;
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
  pause_ = longer(pause_);
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
