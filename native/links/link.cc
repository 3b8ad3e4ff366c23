#include "links/link.h"

#include <fmt/format.h>

#include <bit>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace faro::links {
namespace {

using wire::ControlKind;

// How long a link whose data connection has failed waits for an explanation on the control connection: a BYE, a FAIL,
// or the end of that connection.
constexpr base::Nanoseconds kSuspense = 200'000'000;

// The rings of a channel are the lesser of what both sides allow. False if the peer has chosen others.
bool adopt_rings(transport::LinkContext& context, const wire::LinkChoice& choice,
                 wire::Purpose purpose) {
  const std::optional<wire::ChannelRings>& rings = choice.rings;
  if (purpose != wire::Purpose::channel) return !rings;
  if (!rings) return false;
  const auto adopt = [](ring::Layout& layout, uint32_t bytes) {
    const bool fits = std::has_single_bit(bytes) && bytes >= wire::ChannelRings::kLeastBytes &&
                      bytes <= layout.ring_bytes;
    if (fits) layout.ring_bytes = bytes;
    return fits;
  };
  const bool dials = context.initiator;
  return adopt(context.outgoing, dials ? rings->to_acceptor_bytes : rings->to_dialler_bytes) &&
         adopt(context.incoming, dials ? rings->to_dialler_bytes : rings->to_acceptor_bytes);
}

// A connection has broken; anything else ends the link.
bool is_break(const Status& cause) {
  return cause.code() == Code::peer_lost || cause.code() == Code::connect_failed;
}

// Tells the peer why its link ends. If there is no memory for the message it only sees the end of
// the connection.
void say_ending(const Link& link, ResumableControl& control, const Status& cause, bool retry) {
  if (!control.attached() || link.state().is(LinkState::leaving)) return;
  try {
    const wire::Ending ending{cause.code(), retry, std::string(cause.message())};
    control.send(link.data() != nullptr ? wire::encode_fail(ending) : wire::encode_refuse(ending));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

Status protocol_violation(std::string_view what) {
  return base::error(Code::protocol_error, "it broke the protocol: {}", what);
}

Link::Link(Owner& owner, transport::LinkContext context,
           std::unique_ptr<ControlConnection> connection, const wire::Hello& peer)
    : owner_(owner),
      context_(std::move(context)),
      peer_(peer),
      control_(std::move(connection),
               context_.mending.limit != 0 && (peer_.head.features & wire::kMends) != 0),
      history_(context_.reactor->clock().now_ns()),
      setup_(context_.initiator) {
  context_.events = this;
  context_.agreed.signs = (peer_.head.features & wire::kSigns) != 0;
  context_.agreed.turns = (peer_.head.features & wire::kTurns) != 0;
  context_.send = [this](std::span<const std::byte> payload) {
    if (state_.is(LinkState::setting_up) || state_.is(LinkState::mending))
      control_.send(wire::encode_payload(ControlKind::setup, payload));
  };
}

Link::~Link() {
  if (made_ != nullptr) made_->stop();
}

void Link::start() {
  const Doing doing(*this);
  control_.set_handler(*this);
}

std::string_view transport_name(const Link& link) {
  return link.choice() ? std::string_view(link.choice()->transport) : "";
}

// ------------------------------------------------------------------------------------------- setup

void Link::choose(transport::Transport& transport, const transport::StreamToken& token,
                  transport::DoorbellMemory doorbells,
                  const std::optional<wire::ChannelRings>& rings) {
  const Doing doing(*this);
  const uint64_t needed = transport.capabilities().mends;
  const bool may_mend = control_.keeps() && needed != 0 && (peer_.head.features & needed) == needed;
  const uint64_t number = may_mend ? context_.mending.number : 0;
  setup_.choose({std::string(transport.capabilities().name), token, rings, number});
  send(wire::encode(*choice()));
  begin(transport, doorbells);
}

void Link::begin(transport::Transport& transport, transport::DoorbellMemory doorbells) {
  const Doing doing(*this);
  if (!adopt_rings(context_, *choice(), peer_.purpose))
    return fail(protocol_violation("a LINK with rings that were not asked for"));
  context_.doorbells = doorbells;
  transport_ = &transport;
  state_.advance(LinkState::setting_up);
  history_.note_setup(context_.reactor->clock().now_ns());
  const Status started = setup_.begin(transport, context_);
  if (!started.ok()) return suspend(started);
  for (const wire::ControlMessage& message : setup_.take_early()) {
    if (!state_.is(LinkState::setting_up)) return;
    on_setup(message);
  }
  advance();
}

void Link::advance() {
  const Doing doing(*this);
  const bool mends = state_.is(LinkState::mending);
  if (!mends && !state_.is(LinkState::setting_up)) return;
  if (mends && !setup_.begun()) {
    if (!setup_.may_mend() || !control_.attached()) return;
    const Status begun = setup_.mend(*transport_, context_, *made_);
    if (!begun.ok()) return suspend(begun);
  }
  const Result<bool> became_ready = setup_.advance();
  if (!became_ready.ok()) return suspend(became_ready.status());
  if (*became_ready) {
    history_.note_told_ready();
    send(wire::encode_plain(ControlKind::ready));
  }
  if (setup_.complete()) come_up();
}

void Link::come_up() {
  if (state_.is(LinkState::mending)) {
    const Status mended = setup_.finish();
    if (!mended.ok()) return suspend(mended);
    state_.advance(LinkState::up);
    history_.note_data(context_.reactor->clock().now_ns());
    return base::log(LogLevel::info, "the link to {} is in order again", name());
  }
  const bool is_mended = state_.is(LinkState::setup_mending);
  if (!is_mended) {
    auto data = setup_.take();
    if (!data.ok()) return suspend(data.status());
    made_ = std::move(*data);
  }
  owner_.on_made(*this, *made_);
  data_.store(made_.get(), std::memory_order_release);
  state_.advance(is_mended ? LinkState::mending : LinkState::up);
  history_.note_data(context_.reactor->clock().now_ns());
  base::log(LogLevel::debug, "{}: linked by {}", name(), choice()->transport);
  owner_.on_up(*this);
}

bool Link::expects_stream() const {
  const bool begun =
      state_.is(LinkState::setting_up) || (state_.is(LinkState::mending) && setup_.begun());
  return begun && !context_.initiator;
}

void Link::on_stream(transport::DataStream stream) {
  const Doing doing(*this);
  const Status taken = setup_.on_stream(std::move(stream));
  if (!taken.ok()) return suspend(taken);
  advance();
}

// ----------------------------------------------------------------------------------------- mending

bool Link::can_mend() const {
  const bool is_set_up = state_.is(LinkState::setting_up) || state_.is(LinkState::setup_suspended);
  const bool may_be_up = state_.is(LinkState::setup_mending) || (is_set_up && setup_.has_told());
  return control_.keeps() && (state_.connected() || may_be_up) && choice()->number != 0 &&
         transport_->capabilities().mends != 0;
}

void Link::on_broken(const Status& cause) {
  if (state_.awaits_connection()) history_.note_failed_mending(cause);
  // A peer that has noticed as well, or was asked to close, does not say why the data connection has failed.
  const bool is_known = state_.is(LinkState::suspended);
  break_off(is_known ? Status(state_.suspension()->cause) : cause);
}

// Both connections are given up, whichever has broken.
void Link::break_off(const Status& cause) {
  control_.detach();
  if (made_ == nullptr) {
    auto data = setup_.take();
    if (!data.ok()) return lose(cause);
    made_ = std::move(*data);
  }
  setup_.restart();
  if (state_.awaits_connection()) return;
  history_.note_break(cause);
  base::log(LogLevel::info, "the link to {} has broken and is mended: {}", name(), cause.message());
  const base::Nanoseconds now = context_.reactor->clock().now_ns();
  state_.mend(now, base::deadline_after(now, context_.mending.limit), cause);
}

void Link::resume(std::unique_ptr<ControlConnection> connection,
                  const transport::StreamToken& token) {
  const Doing doing(*this);
  break_off(Status(Code::peer_lost, "the peer has found its connection broken"));
  if (state_.is(LinkState::setup_mending)) come_up();  // to the peer it is
  if (state_.has_ended()) return;
  history_.note_control(context_.reactor->clock().now_ns());
  if (context_.initiator)
    context_.peer_address = connection->peer_address();  // by which it is reached now
  control_.resume(std::move(connection), *this);
  if (context_.initiator) return;  // it begins at LINK
  // The old data connection is given up before the peer is told another token.
  setup_.choose_again(transport_->mend(context_, *made_), token);
  send(wire::encode(*choice()));
  advance();
}

void Link::on_waited() {
  const Status cause = state_.suspension()->cause;
  if (!state_.awaits_connection()) return can_mend() ? break_off(cause) : fail(cause);
  fail(history_.not_mended(cause, context_.mending.limit, setup_.begun()));
}

// ---------------------------------------------------------------------------------------- messages

void Link::send(const wire::ControlMessage& message) {
  const Doing doing(*this);
  if (state_.has_ended() || state_.is(LinkState::leaving) || control_.send(message)) return;
  fail(base::error(Code::peer_lost, "the peer does not take control messages: {} bytes are queued",
                   control_.kept_bytes()));
}

void Link::on_message(std::span<const std::byte> message) {
  if (state_.has_ended()) return;
  const Doing doing(*this);
  history_.note_control(context_.reactor->clock().now_ns());
  switch (control_.on_message(message)) {
    case ResumableControl::Verdict::broken:
      return fail(protocol_violation(fmt::format("a malformed {}, or one out of place",
                                                 wire::name_of(wire::kind_of(message)))));
    case ResumableControl::Verdict::taken:
      return;
    case ResumableControl::Verdict::passes:
      return handle(message);
  }
}

void Link::handle(std::span<const std::byte> message) {
  const ControlKind kind = wire::kind_of(message);
  if (state_.is(LinkState::leaving)) {
    if (kind == ControlKind::bye) end_as(LinkState::left);
    return;
  }
  const bool is_ending = kind == ControlKind::refuse || kind == ControlKind::fail;
  if (state_.is(LinkState::setup_suspended) && !is_ending) return;
  switch (kind) {
    case ControlKind::heartbeat:
      if (!wire::check_plain(message).ok())
        return fail(protocol_violation("a malformed HEARTBEAT"));
      return owner_.on_heartbeat(*this);
    case ControlKind::refuse:
    case ControlKind::fail: {
      const auto ending = wire::decode_ending(message);
      if (!ending.ok()) return fail(protocol_violation("a malformed REFUSE or FAIL"));
      const auto* const broken = state_.awaits_connection() ? state_.suspension() : nullptr;
      return lose(base::error(ending.value().code, "{}{}it gave up: {}",
                              broken == nullptr ? "" : broken->cause.message(),
                              broken == nullptr ? "" : "; ", ending.value().reason),
                  !ending.value().retry);
    }
    case ControlKind::members:
      return owner_.on_members(*this, message);
    case ControlKind::link:
    case ControlKind::setup:
    case ControlKind::ready:
      return on_setup(message);
    case ControlKind::broken:
      if (!can_mend()) return fail(protocol_violation("a BROKEN out of place"));
      return on_broken(Status(Code::peer_lost, "the data connection has broken on its side"));
    case ControlKind::bye:
      if (!state_.connected() || !wire::check_plain(message).ok())
        return fail(protocol_violation("a BYE out of place"));
      state_.part();
      return conclude(Status::Ok(), false);
    case ControlKind::application:
      break;
    default:
      if (wire::may_skip(kind)) return;
      return fail(
          protocol_violation(fmt::format("{} on an established connection", wire::name_of(kind))));
  }
  const auto payload = wire::decode_payload(message);
  if (!state_.connected() || !payload.ok())
    return fail(protocol_violation("an APPLICATION message out of place"));
  owner_.on_application(*this, payload.value());
}

void Link::on_setup(std::span<const std::byte> message) {
  const auto verdict = state_.is(LinkState::admitted) || state_.is(LinkState::setting_up) ||
                               state_.is(LinkState::mending)
                           ? setup_.on_message(message)
                           : SetupExchange::Verdict::out_of_place;
  const std::string_view what = wire::name_of(wire::kind_of(message));
  switch (verdict) {
    case SetupExchange::Verdict::malformed:
      return fail(protocol_violation(fmt::format("a malformed {}", what)));
    case SetupExchange::Verdict::out_of_place:
      return fail(protocol_violation(fmt::format("a {} out of place", what)));
    case SetupExchange::Verdict::failed:
      return suspend(setup_.status());
    case SetupExchange::Verdict::taken:
      return advance();
  }
}

// ------------------------------------------------------------------------------------------ ending

void Link::on_closed(const Status& cause) {
  const Doing doing(*this);
  if (state_.is(LinkState::leaving)) return end_as(LinkState::left);
  control_.detach();
  if (can_mend() && is_break(cause)) return on_broken(cause);
  lose(cause);
}

void Link::on_link_failed(const Status& cause) {
  // Threads: any. A worker may still use the rings of a lost link, and find them broken.
  try {
    context_.reactor->defer([weak = weak_from_this(), cause] {
      const auto link = weak.lock();
      if (link == nullptr || !link->state_.connected()) return;
      // One more break is nothing new to a link that is suspended or mended; what is told only once is.
      if (is_break(cause) && !link->state_.is(LinkState::up)) return;
      link->suspend(cause);
    });
  } catch (const std::bad_alloc&) {
    state_.lose_from_any_thread();  // the network thread completes that with the next heartbeats
  }
}

// A peer that gives up says why over the control connection and closes its other connections. Either may be seen first.
void Link::suspend(const Status& cause) {
  const Doing doing(*this);
  if (!is_break(cause)) return fail(cause);
  if (state_.is(LinkState::mending)) return on_broken(cause);
  state_.suspend(context_.reactor->clock().now_ns() + kSuspense, cause);
  if (state_.connected() && can_mend()) send(wire::encode_plain(ControlKind::broken));  // it closes
}

void Link::fail(const Status& cause) {
  if (state_.has_ended()) return;
  const Doing doing(*this);
  say_ending(*this, control_, cause, false);
  lose(cause);
}

void Link::refuse(const Status& cause, bool retry) {
  say_ending(*this, control_, cause, retry && !state_.connected());
  end_as(LinkState::lost);
}

void Link::leave() {
  const Doing doing(*this);
  if (state_.has_ended()) return;
  // Behind a BYE nothing is read, and what was kept for a link that is mended comes later.
  const bool can_say_all = control_.attached() && !state_.is(LinkState::mending);
  if (!state_.connected() || !can_say_all) return end_as(LinkState::lost);
  send(wire::encode_plain(ControlKind::bye));
  state_.advance(LinkState::leaving);
}

void Link::lose(const Status& cause, bool final) {
  if (state_.has_ended()) return;
  state_.lose();
  conclude(cause, final);
}

void Link::finish_ending(const Status& cause) {
  const Doing doing(*this);
  if (!state_.has_ended()) return;
  say_ending(*this, control_, cause, false);
  conclude(cause, false);
}

// Ends the link and tells its owner, in that order. If the owner throws it is told again in the next round.
void Link::conclude(const Status& cause, bool final) {
  const LinkState::Phase ending = state_.phase();
  if (ending != LinkState::detaching && ending != LinkState::losing && ending != LinkState::parting)
    return;
  if (made_ != nullptr) made_->stop();
  control_.detach();
  if (ending == LinkState::detaching) {
    owner_.on_detached(*this, cause, final);
  } else if (ending == LinkState::losing) {
    owner_.on_lost(*this, cause);
  } else {
    owner_.on_left(*this);
  }
  state_.end(ending == LinkState::parting ? LinkState::left : LinkState::lost);
}

void Link::end_as(LinkState::Phase phase) {
  state_.end(phase);
  if (made_ != nullptr) made_->stop();
  control_.detach();
}

}  // namespace faro::links
