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
  part_ = setup_.get();
  return part_->start();
}

void SetupExchange::restart() {
  part_ = nullptr;
  mending_.reset();
  early_.clear();
  ready_ = Ready::neither;
  awaits_choice_ = true;
}

void SetupExchange::choose_again(std::unique_ptr<transport::LinkMending> mending,
                                 const transport::StreamToken& token) {
  mending_ = std::move(mending);
  choice_->token = token;
  awaits_choice_ = false;
}

Status SetupExchange::mend(transport::Transport& transport, transport::LinkContext& context,
                           transport::DataLink& link) {
  if (mending_ == nullptr) mending_ = transport.mend(context, link);
  context.stream_token = choice_->token;
  part_ = mending_.get();
  return part_->start();
}

std::vector<wire::ControlMessage> SetupExchange::take_early() { return std::exchange(early_, {}); }

bool SetupExchange::keep(std::span<const std::byte> message) {
  if (awaits_choice_ || early_.size() >= kEarlyLimit) return false;
  early_.emplace_back(message.begin(), message.end());
  return true;
}

SetupExchange::Verdict SetupExchange::on_message(std::span<const std::byte> message) {
  if (wire::kind_of(message) == ControlKind::link) return on_choice(message);
  const bool says_ready = wire::kind_of(message) == ControlKind::ready;
  const auto payload = wire::decode_payload(message);
  if (says_ready ? !wire::check_plain(message).ok() : !payload.ok()) return Verdict::malformed;
  if (part_ == nullptr) return keep(message) ? Verdict::taken : Verdict::out_of_place;
  if (peer_is_ready()) return Verdict::out_of_place;
  if (says_ready) {
    ready_ = ready_ == Ready::ours ? Ready::both : Ready::theirs;
    return Verdict::taken;
  }
  failure_ = part_->on_message(payload.value());
  return failure_.ok() ? Verdict::taken : Verdict::failed;
}

SetupExchange::Verdict SetupExchange::on_choice(std::span<const std::byte> message) {
  auto choice = wire::decode_link_choice(message);
  if (!choice.ok()) return Verdict::malformed;
  if (!dialling_ || !awaits_choice_) return Verdict::out_of_place;
  const bool differs =
      choice_ && (choice->transport != choice_->transport || choice->number != choice_->number);
  if (differs) return Verdict::out_of_place;
  choice_ = std::move(*choice);
  awaits_choice_ = false;
  return Verdict::taken;
}

Status SetupExchange::on_stream(transport::DataStream stream) {
  return part_->on_stream(std::move(stream));
}

Result<bool> SetupExchange::advance() {
  const Status status = part_->status();
  if (!status.ok()) return status;
  if (has_told() || !part_->ready()) return false;
  ready_ = peer_is_ready() ? Ready::both : Ready::ours;
  return true;
}

Result<std::unique_ptr<transport::DataLink>> SetupExchange::take() {
  std::unique_ptr<transport::DataLink> data = setup_->take();
  if (data == nullptr) {
    const Status status = setup_->status();
    return status.ok() ? Status(Code::internal_error, "the transport made no link") : status;
  }
  part_ = nullptr;
  setup_.reset();
  return data;
}

Status SetupExchange::finish() {
  part_ = nullptr;
  return std::exchange(mending_, nullptr)->finish();
}

}  // namespace faro::links
