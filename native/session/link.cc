#include "session/link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"

namespace faro::session {
namespace {

using wire::ControlKind;

// SETUP and READY that the accepting side sends before the dialling side begins; a transport needs
// a few.
constexpr size_t kEarlyLimit = 64;

// When a data connection breaks, the control connection usually knows better why: a BYE, a FAIL or
// its own end is on its way. So much time it gets.
constexpr base::Nanoseconds kSuspense = 200'000'000;

}  // namespace

Link::Link(Owner& owner, transport::LinkContext context)
    : owner_(owner), context_(std::move(context)) {
  context_.events = this;
  context_.send = [this](std::span<const std::byte> payload) {
    if (connection_ == nullptr || state_ != LinkState::setting_up) return;
    connection_->send(wire::encode_payload(ControlKind::setup, payload));
  };
}

Link::~Link() { stop_data(); }

void Link::admit(std::unique_ptr<ControlConnection> connection, const wire::Hello& peer,
                 bool initiator, std::string address, base::Nanoseconds now) {
  connection_ = std::move(connection);
  peer_ = peer;
  context_.initiator = initiator;
  context_.peer_address = std::move(address);
  choice_.reset();
  members_.reset();
  peer_was_open_ = false;
  early_.clear();
  liveness_.heard = now;
  state_ = LinkState::admitted;
  connection_->set_handler(this);
}

void Link::choose(transport::Transport& transport, const transport::StreamToken& token) {
  choice_ = wire::LinkChoice{std::string(transport.capabilities().name), token};
  connection_->send(wire::encode(*choice_));
  begin(transport);
}

void Link::begin(transport::Transport& transport) {
  context_.stream_token = choice_->token;
  state_ = LinkState::setting_up;
  told_ready_ = peer_ready_ = false;
  setup_ = transport.begin(context_);
  const Status started = setup_->start();
  if (!started.ok()) return suspend(started);
  const std::vector<wire::ControlMessage> early = std::exchange(early_, {});
  for (const wire::ControlMessage& message : early) {
    if (state_ != LinkState::setting_up) return;
    handle(message);
  }
  advance();
}

void Link::advance() {
  if (state_ != LinkState::setting_up || connection_ == nullptr || suspended_until_) return;
  const Status status = setup_->status();
  if (!status.ok()) return suspend(status);
  if (!told_ready_ && setup_->ready()) {
    told_ready_ = true;
    connection_->send(wire::encode_plain(ControlKind::ready));
  }
  if (told_ready_ && peer_ready_) come_up();
}

void Link::come_up() {
  data_ = setup_->take();
  if (data_ == nullptr) {
    const Status status = setup_->status();
    return suspend(status.ok() ? Status(Code::internal_error, "the transport made no link")
                               : status);
  }
  setup_.reset();
  state_ = LinkState::up;
  connected_.store(true, std::memory_order_release);
  came_up_.store(true, std::memory_order_release);
  base::log(LogLevel::debug, "{}: linked by {}", name(), choice_->transport);
  owner_.on_up(*this);
}

bool Link::takes(const transport::StreamToken& token) const {
  if (!expects_stream() || !choice_) return false;
  // Every byte is looked at, so that the time does not tell how many were right.
  unsigned different = 0;
  for (size_t i = 0; i < token.size(); ++i)
    different |= static_cast<unsigned>(token[i] ^ choice_->token[i]);
  return different == 0;
}

void Link::on_stream(transport::DataStream stream) {
  const Status taken = setup_->on_stream(std::move(stream));
  if (!taken.ok()) return suspend(taken);
  advance();
}

void Link::send_members(const std::vector<bool>& missing) {
  if (connection_ == nullptr || leaving_) return;
  connection_->send(wire::encode(wire::Members{state_ == LinkState::up, missing}));
}

void Link::send_application(std::span<const std::byte> payload) {
  if (connection_ == nullptr || state_ != LinkState::up || leaving_) return;
  connection_->send(wire::encode_payload(ControlKind::application, payload));
}

void Link::heartbeat() {
  if (connection_ == nullptr || leaving_) return;
  connection_->send(wire::encode_plain(ControlKind::heartbeat));
}

void Link::on_message(std::span<const std::byte> message) {
  liveness_.heard = context_.reactor->clock().now_ns();
  handle(message);
}

void Link::handle(std::span<const std::byte> message) {
  const ControlKind kind = wire::kind_of(message);
  if (leaving_) {
    if (kind == ControlKind::bye) connection_.reset();
    return;
  }
  const bool is_ending = kind == ControlKind::refuse || kind == ControlKind::fail;
  if (state_ == LinkState::setting_up && suspended_until_ && !is_ending) return;
  switch (kind) {
    case ControlKind::heartbeat:
      if (!wire::check_plain(message).ok()) return violation("a malformed HEARTBEAT");
      return owner_.on_heartbeat(*this);
    case ControlKind::refuse:
    case ControlKind::fail:
      return on_ending(message);
    case ControlKind::link:
      return on_choice(message);
    case ControlKind::members:
      return on_members(message);
    case ControlKind::setup:
      return on_setup(message);
    case ControlKind::ready:
      return on_ready(message);
    case ControlKind::bye:
      return on_bye(message);
    case ControlKind::application:
      break;
    default:
      return violation(fmt::format("{} on an established connection", wire::name_of(kind)));
  }
  const auto payload = wire::decode_payload(message);
  if (state_ != LinkState::up || !payload.ok())
    return violation("an APPLICATION message out of place");
  owner_.on_application(*this, payload.value());
}

void Link::on_choice(std::span<const std::byte> message) {
  auto choice = wire::decode_link_choice(message);
  if (!choice.ok() || state_ != LinkState::admitted || !context_.initiator || choice_) {
    return violation("a LINK out of place");
  }
  choice_ = std::move(choice.value());  // the owner begins when its other links are admitted too
}

void Link::on_members(std::span<const std::byte> message) {
  auto members = wire::decode_members(message, peer_.node_count);
  if (!members.ok()) return violation("a malformed MEMBERS");
  members_ = std::move(members.value());
  peer_was_open_ |= state_ != LinkState::up;
  owner_.on_members(*this);
}

void Link::on_setup(std::span<const std::byte> message) {
  const auto payload = wire::decode_payload(message);
  if (!payload.ok()) return violation("a malformed SETUP");
  if (state_ == LinkState::admitted && choice_ && early_.size() < kEarlyLimit) {
    early_.emplace_back(message.begin(), message.end());
    return;
  }
  if (state_ != LinkState::setting_up || peer_ready_) return violation("a SETUP out of place");
  const Status taken = setup_->on_message(payload.value());
  if (!taken.ok()) return suspend(taken);
  advance();
}

void Link::on_ready(std::span<const std::byte> message) {
  if (!wire::check_plain(message).ok()) return violation("a malformed READY");
  if (state_ == LinkState::admitted && choice_ && early_.size() < kEarlyLimit) {
    early_.emplace_back(message.begin(), message.end());
    return;
  }
  if (state_ != LinkState::setting_up || peer_ready_) return violation("a READY out of place");
  peer_ready_ = true;
  advance();
}

void Link::on_ending(std::span<const std::byte> message) {
  const auto ending = wire::decode_ending(message);
  if (!ending.ok()) return violation("a malformed REFUSE or FAIL");
  const Status cause(ending.value().code, fmt::format("it gave up: {}", ending.value().reason));
  if (state_ == LinkState::admitted) return detach(cause, !ending.value().retry);
  lose(cause);
}

void Link::on_bye(std::span<const std::byte> message) {
  if (state_ != LinkState::up || !wire::check_plain(message).ok())
    return violation("a BYE out of place");
  state_ = LinkState::left;
  suspended_until_.reset();
  connected_.store(false, std::memory_order_release);
  stop_data();
  connection_.reset();
  owner_.on_left(*this);
}

void Link::on_closed(const Status& cause) {
  connection_.reset();
  if (leaving_) return;
  if (state_ == LinkState::admitted) return detach(cause, false);
  lose(cause);
}

void Link::on_link_failed(const Status& cause) {
  // Any thread. A worker may still use the rings of a link that was lost, and find them broken.
  context_.reactor->defer([weak = weak_from_this(), cause] {
    if (const auto link = weak.lock()) link->on_transport_failure(cause);
  });
}

void Link::on_transport_failure(const Status& cause) {
  if (state_ != LinkState::up || leaving_ || suspended_until_) return;
  suspend(cause);
}

// A peer that gives up says why over the control connection, and closes what else there is: either may be seen first.
void Link::suspend(const Status& cause) {
  const bool may_be_told_more =
      cause.code() == Code::peer_lost || cause.code() == Code::connect_failed;
  if (!may_be_told_more) return fail(cause);
  suspended_cause_ = cause;
  suspended_until_ = context_.reactor->clock().now_ns() + kSuspense;
}

void Link::judge_suspended(base::Nanoseconds now) {
  if (suspended_until_ && now >= *suspended_until_) fail(suspended_cause_);
}

void Link::violation(std::string_view what) {
  fail(Status(Code::protocol_error, fmt::format("it broke the protocol: {}", what)));
}

void Link::fail(const Status& cause) {
  if (connection_ != nullptr) {
    const wire::Ending ending{cause.code(), false, std::string(cause.message())};
    connection_->send(state_ == LinkState::up ? wire::encode_fail(ending)
                                              : wire::encode_refuse(ending));
  }
  if (state_ == LinkState::admitted) return detach(cause, false);
  lose(cause);
}

void Link::refuse(const Status& cause, bool retry) {
  if (connection_ != nullptr && state_ != LinkState::up) {
    connection_->send(wire::encode_refuse({cause.code(), retry, std::string(cause.message())}));
  } else if (connection_ != nullptr) {
    connection_->send(wire::encode_fail({cause.code(), false, std::string(cause.message())}));
  }
  suspended_until_.reset();
  connected_.store(false, std::memory_order_release);
  stop_data();
  connection_.reset();
  if (state_ != LinkState::left)
    state_ = state_ == LinkState::admitted ? LinkState::apart : LinkState::lost;
}

void Link::leave() {
  connected_.store(false, std::memory_order_release);
  suspended_until_.reset();
  if (state_ == LinkState::up && connection_ != nullptr) {
    leaving_ = true;
    connection_->send(wire::encode_plain(ControlKind::bye));
  } else {
    connection_.reset();
  }
}

void Link::end() {
  connection_.reset();
  stop_data();
}

void Link::detach(const Status& cause, bool final) {
  state_ = LinkState::apart;
  choice_.reset();
  early_.clear();
  connection_.reset();
  owner_.on_detached(*this, cause, final);
}

void Link::lose(const Status& cause) {
  if (state_ == LinkState::lost || state_ == LinkState::left) return;
  state_ = LinkState::lost;
  suspended_until_.reset();
  connected_.store(false, std::memory_order_release);
  stop_data();
  connection_.reset();
  owner_.on_lost(*this, cause);
}

void Link::stop_data() {
  if (data_ != nullptr) data_->stop();
}

}  // namespace faro::session
