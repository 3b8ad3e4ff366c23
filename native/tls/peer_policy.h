// PeerPolicy: whom a certificate admits that the authority has signed (security.peers).
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
  using Fingerprint = std::array<unsigned char, 32>;  // SHA-256 of the whole certificate

  /// By host.
  PeerPolicy() = default;
  /// host, authority, or fingerprints. Errors: config_invalid, naming what is none.
  static Result<PeerPolicy> parse(const std::string& text);

  /// Whether a certificate has to be for the host at which its node listens.
  bool is_by_host() const { return is_by_host_; }
  /// Whether this certificate is one of those that are named, if any are.
  bool admits(const x509_st* certificate) const;
  /// Why it is not: what was shown, and what is asked.
  std::string why_refused(const x509_st* certificate) const;

 private:
  bool is_by_host_ = true;
  std::set<Fingerprint> fingerprints_;  // empty: all
};

}  // namespace faro::tls
