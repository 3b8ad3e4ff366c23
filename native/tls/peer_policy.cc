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

/// Null: libcrypto does not compute it here.
template <typename Fingerprint>
std::optional<Fingerprint> fingerprint_of(const X509* certificate, const EVP_MD* hash) {
  Fingerprint print;
  unsigned bytes = 0;
  if (X509_digest(certificate, hash, print.data(), &bytes) != 1 || bytes != print.size())
    return std::nullopt;
  return print;
}

template <typename Fingerprint>
bool is_among(const std::set<Fingerprint>& named, const X509* certificate, const EVP_MD* hash) {
  if (named.empty()) return false;
  const auto print = fingerprint_of<Fingerprint>(certificate, hash);
  return print && named.contains(*print);
}

template <typename Fingerprint>
std::string shown(const X509* certificate, const EVP_MD* hash) {
  const auto print = fingerprint_of<Fingerprint>(certificate, hash);
  if (!print) return "(which cannot be computed here)";
  std::string text;
  for (const unsigned char byte : *print) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return static_cast<unsigned>(lower - 'a' + 10);
  return std::nullopt;
}

/// Exactly as many pairs of hexadecimal digits as bytes; between two pairs a colon may stand, as openssl prints them.
template <typename Fingerprint>
std::optional<Fingerprint> parse_fingerprint(std::string_view text) {
  Fingerprint print;
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
    if (const auto sha256 = parse_fingerprint<Sha256>(each)) {
      policy.sha256_.insert(*sha256);
    } else if (const auto sha1 = parse_fingerprint<Sha1>(each)) {
      policy.sha1_.insert(*sha1);
    } else {
      return base::error(Code::config_invalid,
                         "security.peers = {}: '{}' is neither host nor authority, nor the "
                         "fingerprint of a certificate: SHA-256 (64 hexadecimal digits) or SHA-1 "
                         "(40 of them)",
                         text, each);
    }
    if (comma == rest.size()) return policy;
    rest.remove_prefix(comma + 1);
  }
}

bool PeerPolicy::names(const X509* certificate) const {
  return is_among(sha256_, certificate, EVP_sha256()) || is_among(sha1_, certificate, EVP_sha1());
}

std::string PeerPolicy::why_refused(const X509* certificate) const {
  std::string text = "its SHA-256 fingerprint " + shown<Sha256>(certificate, EVP_sha256());
  if (!sha1_.empty()) text += fmt::format(" (SHA-1 {})", shown<Sha1>(certificate, EVP_sha1()));
  return fmt::format("{} is none of the {} that security.peers names", text,
                     sha256_.size() + sha1_.size());
}

}  // namespace faro::tls
