#include "tls/peer_policy.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace faro::tls {
namespace {

std::optional<PeerPolicy::Fingerprint> fingerprint_of(const X509* certificate) {
  PeerPolicy::Fingerprint print;
  unsigned bytes = 0;
  if (X509_digest(certificate, EVP_sha256(), print.data(), &bytes) != 1) return std::nullopt;
  return print;
}

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return static_cast<unsigned>(lower - 'a' + 10);
  return std::nullopt;
}

// 64 hexadecimal digits; between two of a pair and the next a colon may stand, as openssl prints them.
std::optional<PeerPolicy::Fingerprint> parse_fingerprint(std::string_view text) {
  PeerPolicy::Fingerprint print;
  for (size_t at = 0; at < print.size(); ++at) {
    if (at > 0 && !text.empty() && text.front() == ':') text.remove_prefix(1);
    if (text.size() < 2) return std::nullopt;
    const auto high = digit(text[0]);
    const auto low = digit(text[1]);
    if (!high || !low) return std::nullopt;
    print[at] = static_cast<unsigned char>(*high << 4 | *low);
    text.remove_prefix(2);
  }
  if (!text.empty()) return std::nullopt;
  return print;
}

}  // namespace

Result<PeerPolicy> PeerPolicy::parse(const std::string& text) {
  PeerPolicy policy;
  if (text.empty() || text == "host") return policy;
  policy.is_by_host_ = false;
  if (text == "authority") return policy;
  for (std::string_view rest = text;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view each = rest.substr(0, comma);
    while (!each.empty() && each.front() == ' ') each.remove_prefix(1);
    while (!each.empty() && each.back() == ' ') each.remove_suffix(1);
    const auto print = parse_fingerprint(each);
    if (!print) {
      return base::error(Code::config_invalid,
                         "security.peers = {}: '{}' is neither host nor authority, nor the SHA-256 "
                         "fingerprint of a certificate (64 hexadecimal digits)",
                         text, each);
    }
    policy.fingerprints_.insert(*print);
    if (comma == rest.size()) return policy;
    rest.remove_prefix(comma + 1);
  }
}

bool PeerPolicy::admits(const X509* certificate) const {
  if (fingerprints_.empty()) return true;
  const auto print = fingerprint_of(certificate);
  return print && fingerprints_.contains(*print);
}

std::string PeerPolicy::why_refused(const X509* certificate) const {
  const auto print = fingerprint_of(certificate);
  std::string shown;
  for (const unsigned char byte : print.value_or(Fingerprint{}))
    shown += fmt::format("{:02x}", byte);
  return fmt::format("its SHA-256 fingerprint {} is none of the {} that security.peers names",
                     shown, fingerprints_.size());
}

}  // namespace faro::tls
