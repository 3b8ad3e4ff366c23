// PeerPolicy: whom a certificate admits (security.peers).
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <string>

#include "faro/status.h"

struct x509_st;

namespace faro::tls {

/// Threads: any; it does not change.
class PeerPolicy {
 public:
  // Fingerprints of the whole certificate.
  using Sha256 = std::array<unsigned char, 32>;
  using Sha1 = std::array<unsigned char, 20>;

  /// By host.
  PeerPolicy() = default;
  /// host, authority, or fingerprints, which are told apart by their lengths. Errors: config_invalid, naming what is none.
  static Result<PeerPolicy> parse(const std::string& text);

  /// Whether a certificate has to be for the host at which its node listens.
  bool is_by_host() const { return is_by_host_; }
  /// Whether certificates are named by their fingerprints. These are admitted, whoever has signed them and until whenever
  /// they are valid, and no others; else the authority has to have signed a certificate.
  bool names_certificates() const { return !sha256_.empty() || !sha1_.empty(); }
  /// Whether this certificate is one of those that are named.
  bool names(const x509_st* certificate) const;
  /// Why it is not: what was shown, and what is asked.
  std::string why_refused(const x509_st* certificate) const;

 private:
  bool is_by_host_ = true;
  std::set<Sha256> sha256_;
  std::set<Sha1> sha1_;
};

}  // namespace faro::tls
