#include "links/secret_authentication.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/return_if_error.h"
#include "wire/bytes.h"

namespace faro::links {
namespace {

Role other(Role role) { return role == Role::dialling ? Role::accepting : Role::dialling; }

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

Status malformed() {
  return Status(Code::protocol_error, "AUTH without the challenge or proof that is due");
}

}  // namespace

std::vector<std::byte> proof_input(Role prover, const Challenge& dialling,
                                   const Challenge& accepting, const Introduction& introduction) {
  std::vector<std::byte> input;
  wire::ByteWriter writer(input);
  writer.bytes(std::as_bytes(std::span(wire::kPreambleMagic)));
  writer.number(wire::kProtocolVersion);
  writer.number(static_cast<uint16_t>(prover));
  writer.bytes(dialling);
  writer.bytes(accepting);
  for (const auto* hello : {&introduction.dialling_hello, &introduction.accepting_hello}) {
    writer.number(static_cast<uint32_t>(hello->size()));
    writer.bytes(*hello);
  }
  return input;
}

SecretAuthentication::SecretAuthentication(std::shared_ptr<const Secret> secret, Role role,
                                           const Challenge& challenge, Introduction introduction)
    : secret_(std::move(secret)),
      role_(role),
      challenge_(challenge),
      introduction_(std::move(introduction)) {}

Status SecretAuthentication::advance(std::span<const std::byte> received,
                                     std::vector<std::byte>& answer) {
  const int turn = turn_++;
  if (role_ == Role::dialling) {
    switch (turn) {
      case 0:
        if (!received.empty()) return malformed();
        append(answer, challenge_);
        return Status::Ok();
      case 1:
        FARO_RETURN_IF_ERROR(take_challenge(received));
        return prove(answer);
      case 2:
        return check_proof(received);
      default:
        return malformed();
    }
  }
  switch (turn) {
    case 0:
      FARO_RETURN_IF_ERROR(take_challenge(received));
      append(answer, challenge_);
      return Status::Ok();
    case 1:
      FARO_RETURN_IF_ERROR(check_proof(received));
      return prove(answer);
    default:
      return malformed();
  }
}

Status SecretAuthentication::take_challenge(std::span<const std::byte> received) {
  if (received.size() != peer_challenge_.size()) return malformed();
  std::copy(received.begin(), received.end(), peer_challenge_.begin());
  return Status::Ok();
}

Status SecretAuthentication::check_proof(std::span<const std::byte> received) {
  Secret::Mac shown;
  if (received.size() != shown.size()) return malformed();
  std::copy(received.begin(), received.end(), shown.begin());
  FARO_ASSIGN_OR_RETURN(const auto right, proof_of(other(role_)));
  if (!equal(right, shown)) {
    return Status(Code::authentication_failed,
                  "they have different secrets (security.secret_file or FARO_SECRET), or someone "
                  "between them has altered the handshake");
  }
  content_ = true;
  return Status::Ok();
}

Status SecretAuthentication::prove(std::vector<std::byte>& answer) {
  FARO_ASSIGN_OR_RETURN(const auto proof, proof_of(role_));
  append(answer, proof);
  said_all_ = true;
  return Status::Ok();
}

Result<Secret::Mac> SecretAuthentication::proof_of(Role prover) const {
  const bool dials = role_ == Role::dialling;
  return secret_->sign(proof_input(prover, dials ? challenge_ : peer_challenge_,
                                   dials ? peer_challenge_ : challenge_, introduction_));
}

}  // namespace faro::links
