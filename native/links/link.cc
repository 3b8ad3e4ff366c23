#include "links/link.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "base/log.h"

namespace faro::links {
namespace {

using wire::ControlKind;

// When a data connection breaks, the control connection usually knows better why: a BYE, a FAIL or
// its own end is on its way. So much time it gets.
constexpr base::Nanoseconds kSuspense = 200'000'000;

bool is_up(LinkState state) { return state == LinkState::up || state == LinkState::suspended; }

bool has_ended(LinkState state) { return state == LinkState::left || state == LinkState::lost; }

}  // namespace

Link::Link(Owner& owner, transport::LinkContext context,
           std::unique_ptr<ControlConnection> connection, const wire::Hello& peer)
    : owner_(owner),
      context_(std::move(context)),
      connection_(std::move(connection)),
      peer_(peer),
      liveness_{context_.reactor->clock().now_ns()} {
  context_.events = this;
  context_.send = [this](std::span<const std::byte> payload) {
    if (state() == LinkState::setting_up)
      connection_->send(wire::encode_payload(ControlKind::setup, payload));
  };
}

Link::~Link() {
  if (made_ != nullptr) made_->stop();
}

void Link::start() {
  const Doing doing(*this);
  connection_->set_handler(this);
}

bool Link::connected() const { return is_up(state_.load(std::memory_order_acquire)); }

std::string_view Link::transport_name() const {
  return choice() ? std::string_view(choice()->transport) : "";
}

std::string Link::peer_address() const {
  return attached() ? connection_->peer_address() : std::string("nowhere");
}

// ------------------------------------------------------------------------------------------- setup

void Link::choose(transport::Transport& transport, const transport::StreamToken& token,
                  transport::DoorbellMemory doorbells) {
  const Doing doing(*this);
  setup_.choose({std::string(transport.capabilities().name), token});
  send(wire::encode(*choice()));
  begin(transport, doorbells);
}

void Link::begin(transport::Transport& transport, transport::DoorbellMemory doorbells) {
  const Doing doing(*this);
  context_.doorbells = doorbells;
  state_.store(LinkState::setting_up, std::memory_order_relaxed);
  const Status started = setup_.begin(transport, context_);
  if (!started.ok()) return suspend(started);
  for (const wire::ControlMessage& message : setup_.take_early()) {
    if (state() != LinkState::setting_up) return;
    on_setup(message);
  }
  advance();
}

void Link::advance() {
  const Doing doing(*this);
  if (state() != LinkState::setting_up) return;
  const Result<bool> became_ready = setup_.advance();
  if (!became_ready.ok()) return suspend(became_ready.status());
  if (*became_ready) send(wire::encode_plain(ControlKind::ready));
  if (setup_.complete()) come_up();
}

void Link::come_up() {
  auto data = setup_.take();
  if (!data.ok()) return suspend(data.status());
  made_ = std::move(*data);
  data_.store(made_.get(), std::memory_order_release);
  state_.store(LinkState::up, std::memory_order_release);
  base::log(LogLevel::debug, "{}: linked by {}", name(), choice()->transport);
  owner_.on_up(*this);
}

bool Link::expects_stream() const {
  return state() == LinkState::setting_up && !context_.initiator;
}

void Link::on_stream(transport::DataStream stream) {
  const Doing doing(*this);
  const Status taken = setup_.on_stream(std::move(stream));
  if (!taken.ok()) return suspend(taken);
  advance();
}

// ---------------------------------------------------------------------------------------- messages

void Link::send(const wire::ControlMessage& message) {
  const Doing doing(*this);
  if (attached() && state() != LinkState::leaving) connection_->send(message);
}

void Link::on_message(std::span<const std::byte> message) {
  if (unfinished_.load(std::memory_order_relaxed)) return;
  const Doing doing(*this);
  liveness_.heard = context_.reactor->clock().now_ns();
  handle(message);
}

void Link::handle(std::span<const std::byte> message) {
  const ControlKind kind = wire::kind_of(message);
  if (state() == LinkState::leaving) {
    if (kind == ControlKind::bye) end_as(LinkState::left);
    return;
  }
  const bool is_ending = kind == ControlKind::refuse || kind == ControlKind::fail;
  if (state() == LinkState::setup_suspended && !is_ending) return;
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
      return owner_.on_members(*this, message);
    case ControlKind::setup:
    case ControlKind::ready:
      return on_setup(message);
    case ControlKind::bye:
      return on_bye(message);
    case ControlKind::application:
      break;
    default:
      return violation(fmt::format("{} on an established connection", wire::name_of(kind)));
  }
  const auto payload = wire::decode_payload(message);
  if (!is_up(state()) || !payload.ok()) return violation("an APPLICATION message out of place");
  owner_.on_application(*this, payload.value());
}

void Link::on_choice(std::span<const std::byte> message) {
  auto choice = wire::decode_link_choice(message);
  // The owner begins when its other links are admitted, too.
  if (!choice.ok() || state() != LinkState::admitted || !context_.initiator ||
      !setup_.choose(std::move(choice.value()))) {
    violation("a LINK out of place");
  }
}

void Link::on_setup(std::span<const std::byte> message) {
  const auto verdict = state() == LinkState::admitted || state() == LinkState::setting_up
                           ? setup_.on_message(message)
                           : SetupExchange::Verdict::out_of_place;
  const std::string_view what = wire::name_of(wire::kind_of(message));
  switch (verdict) {
    case SetupExchange::Verdict::malformed:
      return violation(fmt::format("a malformed {}", what));
    case SetupExchange::Verdict::out_of_place:
      return violation(fmt::format("a {} out of place", what));
    case SetupExchange::Verdict::failed:
      return suspend(setup_.status());
    case SetupExchange::Verdict::taken:
      return advance();
  }
}

void Link::on_ending(std::span<const std::byte> message) {
  const auto ending = wire::decode_ending(message);
  if (!ending.ok()) return violation("a malformed REFUSE or FAIL");
  lose(Status(ending.value().code, fmt::format("it gave up: {}", ending.value().reason)),
       !ending.value().retry);
}

void Link::on_bye(std::span<const std::byte> message) {
  if (!is_up(state()) || !wire::check_plain(message).ok()) return violation("a BYE out of place");
  end_as(LinkState::left);
  told_ = Told::not_left;
  tell_owner(Status::Ok(), false);
}

// ------------------------------------------------------------------------------------------ ending

void Link::on_closed(const Status& cause) {
  const Doing doing(*this);
  if (state() == LinkState::leaving) return end_as(LinkState::left);
  connection_.reset();
  lose(cause);
}

void Link::on_link_failed(const Status& cause) {
  // Any thread. A worker may still use the rings of a link that was lost, and find them broken.
  try {
    context_.reactor->defer([weak = weak_from_this(), cause] {
      const auto link = weak.lock();
      if (link == nullptr || link->state() != LinkState::up) return;
      const Doing doing(*link);
      link->suspend(cause);
    });
  } catch (const std::bad_alloc&) {
    unfinished_.store(true,
                      std::memory_order_relaxed);  // the network thread sees it in its next round
  }
}

// A peer that gives up says why over the control connection, and closes what else there is: either may be seen first.
void Link::suspend(const Status& cause) {
  const bool may_be_told_more =
      cause.code() == Code::peer_lost || cause.code() == Code::connect_failed;
  if (!may_be_told_more) return fail(cause);
  suspension_ = Suspension{context_.reactor->clock().now_ns() + kSuspense, cause};
  state_.store(state() == LinkState::up ? LinkState::suspended : LinkState::setup_suspended,
               std::memory_order_release);
}

void Link::judge_suspended(base::Nanoseconds now) {
  if (suspension_ && now >= suspension_->until) fail(Status(suspension_->cause));
}

void Link::violation(std::string_view what) {
  fail(Status(Code::protocol_error, fmt::format("it broke the protocol: {}", what)));
}

void Link::fail(const Status& cause) {
  const Doing doing(*this);
  say_ending(cause, false);
  lose(cause);
}

// Where memory lacks for that, the end of the connection says it.
void Link::say_ending(const Status& cause, bool retry) {
  if (!attached() || state() == LinkState::leaving) return;
  try {
    const wire::Ending ending{cause.code(), retry, std::string(cause.message())};
    connection_->send(is_up(state()) ? wire::encode_fail(ending) : wire::encode_refuse(ending));
  } catch (const std::bad_alloc&) {
    // Then the connection ends without a word.
  }
}

void Link::refuse(const Status& cause, bool retry) {
  say_ending(cause, retry && !is_up(state()));
  if (!has_ended(state())) end_as(LinkState::lost);
}

void Link::leave() {
  const Doing doing(*this);
  if (has_ended(state())) return;
  if (!is_up(state())) return end_as(LinkState::lost);
  send(wire::encode_plain(ControlKind::bye));
  suspension_.reset();
  state_.store(LinkState::leaving, std::memory_order_release);
}

void Link::lose(const Status& cause, bool final) {
  if (has_ended(state())) return;
  told_ = state() == LinkState::admitted ? Told::not_detached : Told::not_lost;
  end_as(LinkState::lost);
  tell_owner(cause, final);
}

void Link::tell_owner(const Status& cause, bool final) {
  switch (told_) {
    case Told::nothing_yet:
    case Told::all:
      return;
    case Told::not_detached:
      owner_.on_detached(*this, cause, final);
      break;
    case Told::not_lost:
      owner_.on_lost(*this, cause);
      break;
    case Told::not_left:
      owner_.on_left(*this);
      break;
  }
  told_ = Told::all;
}

void Link::judge_unfinished(const Status& cause) {
  if (!unfinished_.exchange(false, std::memory_order_relaxed)) return;
  const Doing doing(*this);
  if (state() == LinkState::leaving) return end_as(LinkState::left);
  if (has_ended(state())) return tell_owner(cause, false);
  fail(cause);
}

void Link::end_as(LinkState state) {
  state_.store(state, std::memory_order_release);
  suspension_.reset();
  if (made_ != nullptr) made_->stop();
  connection_.reset();
}

}  // namespace faro::links
