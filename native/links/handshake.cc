#include "links/handshake.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "faro/hash.h"

namespace faro::links {
namespace {

using wire::ControlKind;

}  // namespace

Handshake::Handshake(Owner& owner, const Identity& ours,
                     std::unique_ptr<ControlConnection> connection, std::optional<uint32_t> dialled,
                     const std::optional<wire::LinkName>& mends)
    : owner_(owner),
      ours_(ours),
      connection_(std::move(connection)),
      peer_address_(connection_->peer_address()),
      dialled_(dialled),
      mends_(mends) {}

void Handshake::start() {
  if (dialled_) {
    sent_hello_ = own_hello();
    connection_->send(sent_hello_);
  }
  connection_->set_handler(this);
}

wire::ControlMessage Handshake::own_hello() const {
  wire::Hello hello = dialled_ ? ours_.hello_to(*dialled_) : ours_.answer_to(peer_.head);
  hello.mends = mends_;
  return wire::encode(hello);
}

void Handshake::refuse(const Refusal& refusal) {
  if (state_ == State::done) return;
  state_ = State::done;
  connection_->send(wire::encode_refuse(
      {refusal.status.code(), refusal.retry, std::string(refusal.status.message())}));
  connection_.reset();
}

// An unauthenticated peer must not be able to end the open of a node that has a secret or certificates, whether
// it dials or listens. What it says is passed on as unverified.
Refusal Handshake::as_believed(Refusal refusal) const {
  if (proven()) return refusal;
  refusal.ends_open = false;
  if (!dialled_) return refusal;
  refusal.verified = false;
  refusal.status = base::error(
      refusal.status.code(),
      "{} (unverified: the process at {} has not proved that it belongs to the cluster)",
      refusal.status.message(), peer_address_);
  return refusal;
}

void Handshake::end(const Refusal& refusal) {
  const Refusal believed = as_believed(refusal);  // needs the connection
  refuse(refusal);
  owner_.on_refused(*this, believed);
}

// Whether the peer has proved everything that this node requires. Without a secret and TLS it requires nothing.
void Handshake::break_off(std::string_view what) {
  end({Status(Code::protocol_error, std::string(what)), true, false});
}

bool Handshake::proven() const {
  const bool knows_secret =
      ours_.secret == nullptr || (authentication_ != nullptr && authentication_->content());
  return knows_secret && check_certificate().ok();
}

std::string Handshake::peer_name() const { return ours_.name_of(peer_, peer_address_); }

void Handshake::on_closed(const Status& cause) {
  state_ = State::done;
  if (cause.code() == Code::authentication_failed) {  // TLS
    const Status status = base::error(cause.code(), "TLS between {} and {}: {}", ours_.name,
                                      peer_address_, cause.message());
    return owner_.on_refused(*this, {status, false, false, false});
  }
  owner_.on_refused(*this,
                    {Status(Code::connect_failed, std::string(cause.message())), true, false});
}

void Handshake::on_message(std::span<const std::byte> message) {
  const ControlKind kind = wire::kind_of(message);
  if (kind == ControlKind::refuse) {
    const auto refused = wire::decode_ending(message);
    state_ = State::done;
    if (!refused.ok()) return owner_.on_refused(*this, {refused.status(), true, false});
    // The reason names both sides and concerns both. But a peer that dialled us and gives up may have a problem
    // of its own: we have already told it about any difference that we found.
    const bool ends_open = dialled_.has_value() && !refused.value().retry;
    return owner_.on_refused(*this,
                             as_believed({Status(refused.value().code, refused.value().reason),
                                          refused.value().retry, ends_open}));
  }
  if (state_ == State::expects_hello && kind == ControlKind::hello) return on_hello(message);
  if (state_ == State::expects_auth && kind == ControlKind::auth) return on_auth(message);
  if (wire::may_skip(kind)) return;
  end({base::error(Code::protocol_error, "{} sent {} in the handshake where it is not allowed",
                   peer_address_, wire::name_of(kind)),
       true, false});
}

void Handshake::on_hello(std::span<const std::byte> message) {
  const auto head = wire::decode_hello_head(message);
  if (!head.ok()) return end({head.status(), true, false});
  peer_.head = head.value();
  if (const auto refusal = ours_.compare_heads(peer_.head, peer_address_)) return end(*refusal);
  auto hello = wire::decode_hello(message);
  if (!hello.ok()) return end_undecoded(hello.status());
  peer_ = std::move(hello.value());
  if (const auto refusal = ours_.compare_clusters(peer_, peer_address_, dialled_)) {
    return end(*refusal);
  }
  wire::ControlMessage answer = dialled_ ? std::move(sent_hello_) : own_hello();
  const Status begun = begin_authentication(answer, message);
  if (!begun.ok()) return end({begun, true, false});
  if (authentication_->content() && !agree()) return;
  state_ = State::expects_auth;
  if (!dialled_) return connection_->send(answer);
  std::vector<std::byte> first;
  const Status status = authentication_->advance({}, first);
  if (!status.ok()) return end_authentication(status);
  send_auth(std::move(first), authentication_->said_all());
}

// A HELLO that requires more than this version knows will not be another one next time.
void Handshake::end_undecoded(const Status& status) {
  if (status.code() == Code::protocol_error) return end({status, true, false});
  end({base::error(status.code(), "{} refuses {}: {}", ours_.name, peer_name(), status.message()),
       false, dialled_.has_value()});
}

Status Handshake::begin_authentication(wire::ControlMessage ours,
                                       std::span<const std::byte> theirs) {
  if (ours_.secret == nullptr) {
    authentication_ = std::make_unique<NoAuthentication>();
    return Status::Ok();
  }
  Challenge challenge;
  if (!owner_.draw_random(challenge)) {
    return Status(Code::system_error, "the system has no random numbers (getrandom)");
  }
  Introduction introduction{std::move(ours), {theirs.begin(), theirs.end()}};
  if (!dialled_) std::swap(introduction.dialling_hello, introduction.accepting_hello);
  authentication_ = std::make_unique<SecretAuthentication>(
      ours_.secret, dialled_ ? Role::dialling : Role::accepting, challenge,
      std::move(introduction));
  return Status::Ok();
}

// Compares what only matters between nodes of one cluster. Returns false, and refuses the peer, if they disagree.
bool Handshake::agree() {
  agreed_ = true;
  std::optional<Refusal> refusal = ours_.compare(peer_, peer_address_, dialled_);
  const Status certificate = check_certificate();
  if (!refusal && !certificate.ok()) refusal = Refusal{certificate, false, false};
  if (!refusal && !dialled_) refusal = owner_.judge(peer_, peer_address_);
  if (refusal) end(*refusal);
  return !refusal;
}

// The certificate must be that of the node whose number the peer claims. For a peer that was dialled TLS itself
// has checked that.
Status Handshake::check_certificate() const {
  if (dialled_) return Status::Ok();
  // If no host fits, no certificate can; compare() has refused such a peer.
  const Status checked = connection_->check_peer(ours_.host_of(peer_));
  if (checked.ok()) return Status::Ok();
  return base::error(checked.code(), "{}: {}", peer_name(), checked.message());
}

void Handshake::send_auth(std::vector<std::byte> payload, bool last) {
  said_last_ = last;
  connection_->send(wire::encode({authentication_->method(), said_last_, std::move(payload)}));
}

Refusal Handshake::other_method(wire::AuthMethod theirs) const {
  const auto status = [&](std::string text) {
    return Status(Code::authentication_failed, std::move(text));
  };
  constexpr std::string_view kWith = "has a secret (security.secret_file or FARO_SECRET)";
  if (theirs == wire::AuthMethod::none) {
    return {status(fmt::format("{} {}, {} has none", ours_.name, kWith, peer_name())), false, true};
  }
  if (theirs == wire::AuthMethod::secret) {
    return {status(fmt::format("{} {}, {} has none", peer_name(), kWith, ours_.name)), false, true};
  }
  return {status(fmt::format("{} wants authentication method {}, which {} does not know",
                             peer_name(), static_cast<int>(theirs), ours_.name)),
          false, false};
}

void Handshake::on_auth(std::span<const std::byte> message) {
  const auto auth = wire::decode_auth(message);
  if (!auth.ok()) return end({auth.status(), true, false});
  if (auth.value().method != authentication_->method())
    return end(other_method(auth.value().method));
  if (peer_said_last_) return break_off("AUTH after the last one");
  peer_said_last_ = auth.value().last;
  std::vector<std::byte> answer;
  if (said_last_ && authentication_->content()) {
    // Now only the accepting side has to agree.
    if (!auth.value().payload.empty() || !peer_said_last_)
      return break_off("an AUTH after the proof that is not the one that agrees");
  } else {
    const Status status = authentication_->advance(auth.value().payload, answer);
    if (!status.ok()) return end_authentication(status);
  }
  if (!authentication_->content() && peer_said_last_)
    return break_off("AUTH ended without a proof");
  if (authentication_->content() && !agreed_) {
    if (dialled_ && peer_said_last_) return break_off("AUTH ended without agreement");
    // Otherwise anyone could have sent the messages after it.
    if (!dialled_ && !peer_said_last_) return break_off("AUTH with a proof is not the last");
    // The proof goes first, so that the peer believes what the accepting side then says against it.
    if (!dialled_) send_auth(std::exchange(answer, {}), false);
    if (!agree()) return;
  }
  if (!said_last_) send_auth(std::move(answer), authentication_->said_all());
  if (!peer_said_last_ || !said_last_) return;
  state_ = State::done;
  owner_.on_admitted(*this, std::move(connection_), peer_);
}

// Names both sides, but does not reveal what was wrong with a proof.
void Handshake::end_authentication(const Status& status) {
  end({base::error(status.code(), "{} and {}: {}", ours_.name, peer_name(), status.message()),
       status.code() != Code::authentication_failed, status.code() == Code::authentication_failed});
}

}  // namespace faro::links
