// SecretAuthentication: both sides prove that they know the cluster's secret, without sending it.
//
//   dialling side                      accepting side
//      challenge   ------------------------>
//                  <------------------------   challenge
//      proof       ------------------------>   checks it: the dialling side proves first
//      checks it   <------------------------   proof
//
// A proof is a MAC over both challenges, both HELLOs as they were sent, and the role of the side that
// proves (wire/README.md has its bytes). So a proof is useless in another connection (replay), in the
// other direction (reflection), between other nodes or incarnations, and with versions or offers other
// than those that both sides have seen (downgrade).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "links/authentication.h"
#include "links/secret.h"

namespace faro::links {

/// The numbers are part of what is signed.
enum class Role : uint16_t { dialling = 1, accepting = 2 };

/// Drawn anew for every connection.
using Challenge = std::array<std::byte, 32>;

/// What the two sides of a connection have said before they prove anything.
struct Introduction {
  std::vector<std::byte> dialling_hello;  // as sent, without the length before it
  std::vector<std::byte> accepting_hello;
};

/// What is signed to prove the knowledge of the secret.
std::vector<std::byte> proof_input(Role prover, const Challenge& dialling,
                                   const Challenge& accepting, const Introduction& introduction);

class SecretAuthentication final : public Authentication {
 public:
  /// `challenge`: this side's; unguessable, and never used before.
  SecretAuthentication(std::shared_ptr<const Secret> secret, Role role, const Challenge& challenge,
                       Introduction introduction);

  wire::AuthMethod method() const override { return wire::AuthMethod::secret; }
  /// Errors: authentication_failed for a wrong proof, which says nothing else; protocol_error for
  /// payloads that do not belong to this method; system_error.
  Status advance(std::span<const std::byte> received, std::vector<std::byte>& answer) override;
  bool said_all() const override { return said_all_; }
  bool content() const override { return content_; }

 private:
  Status take_challenge(std::span<const std::byte> received);
  Status check_proof(std::span<const std::byte> received);
  Status prove(std::vector<std::byte>& answer);
  Result<Secret::Mac> proof_of(Role prover) const;

  const std::shared_ptr<const Secret> secret_;
  const Role role_;
  const Challenge challenge_;
  const Introduction introduction_;
  Challenge peer_challenge_{};
  int turn_ = 0;
  bool said_all_ = false;
  bool content_ = false;
};

}  // namespace faro::links
