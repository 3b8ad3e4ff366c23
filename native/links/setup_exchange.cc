#include "links/setup_exchange.h"

#include <utility>

namespace faro::links {
namespace {

using wire::ControlKind;

// SETUP and READY that the accepting side sends before the dialling side begins; a transport needs
// a few.
constexpr size_t kEarlyLimit = 64;

}  // namespace

bool SetupExchange::takes(const transport::StreamToken& token) const {
  if (!choice_) return false;
  // Every byte is looked at, so that the time does not tell how many were right.
  unsigned different = 0;
  for (size_t i = 0; i < token.size(); ++i)
    different |= static_cast<unsigned>(token[i] ^ choice_->token[i]);
  return different == 0;
}

Status SetupExchange::begin(transport::Transport& transport, transport::LinkContext& context) {
  context.stream_token = choice_->token;
  setup_ = transport.begin(context);
  return setup_->start();
}

std::vector<wire::ControlMessage> SetupExchange::take_early() { return std::exchange(early_, {}); }

bool SetupExchange::keep(std::span<const std::byte> message) {
  if (!choice_ || early_.size() >= kEarlyLimit) return false;
  early_.emplace_back(message.begin(), message.end());
  return true;
}

SetupExchange::Verdict SetupExchange::on_message(std::span<const std::byte> message) {
  if (wire::kind_of(message) == ControlKind::link) return on_choice(message);
  const bool says_ready = wire::kind_of(message) == ControlKind::ready;
  const auto payload = wire::decode_payload(message);
  if (says_ready ? !wire::check_plain(message).ok() : !payload.ok()) return Verdict::malformed;
  if (setup_ == nullptr) return keep(message) ? Verdict::taken : Verdict::out_of_place;
  if (peer_is_ready()) return Verdict::out_of_place;
  if (says_ready) {
    ready_ = ready_ == Ready::ours ? Ready::both : Ready::theirs;
    return Verdict::taken;
  }
  failure_ = setup_->on_message(payload.value());
  return failure_.ok() ? Verdict::taken : Verdict::failed;
}

SetupExchange::Verdict SetupExchange::on_choice(std::span<const std::byte> message) {
  auto choice = wire::decode_link_choice(message);
  if (!choice.ok()) return Verdict::malformed;
  if (!dialling_ || choice_) return Verdict::out_of_place;
  choice_ = std::move(*choice);
  return Verdict::taken;
}

Status SetupExchange::on_stream(transport::DataStream stream) {
  return setup_->on_stream(std::move(stream));
}

Result<bool> SetupExchange::advance() {
  const Status status = setup_->status();
  if (!status.ok()) return status;
  const bool told = ready_ == Ready::ours || ready_ == Ready::both;
  if (told || !setup_->ready()) return false;
  ready_ = peer_is_ready() ? Ready::both : Ready::ours;
  return true;
}

Result<std::unique_ptr<transport::DataLink>> SetupExchange::take() {
  std::unique_ptr<transport::DataLink> data = setup_->take();
  if (data == nullptr) {
    const Status status = setup_->status();
    return status.ok() ? Status(Code::internal_error, "the transport made no link") : status;
  }
  setup_.reset();
  return data;
}

}  // namespace faro::links
