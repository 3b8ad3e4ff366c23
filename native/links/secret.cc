#include "links/secret.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/private_file.h"

namespace faro::links {
namespace {

using Loaded = Result<std::shared_ptr<const Secret>>;

constexpr const char* kVariable = "FARO_SECRET";

Status invalid(std::string_view source, std::string_view why) {
  return base::error(Code::config_invalid, "{}: {}", source, why);
}

std::span<const std::byte> without_white_end(std::span<const std::byte> bytes) {
  constexpr std::string_view kWhite = " \t\r\n";
  while (!bytes.empty() && kWhite.find(static_cast<char>(bytes.back())) != kWhite.npos) {
    bytes = bytes.first(bytes.size() - 1);
  }
  return bytes;
}

constexpr std::string_view kSetting = "security.secret_file";

}  // namespace

Loaded load_secret_file(const std::string& path, std::string_view setting) {
  FARO_ASSIGN_OR_RETURN(auto bytes, base::read_private_file(path, setting, Secret::kMostBytes));
  Loaded made = Secret::make(bytes, fmt::format("{} = {}", setting, path));
  base::overwrite(bytes);
  return made;
}

Loaded Secret::make(std::span<const std::byte> bytes, std::string_view source) {
  bytes = without_white_end(bytes);
  if (bytes.empty()) return invalid(source, "the secret is empty");
  if (bytes.size() < kLeastBytes) {
    return invalid(source, fmt::format("the secret has {} bytes, it needs {} (openssl rand -hex 32 "
                                       "makes a good one)",
                                       bytes.size(), kLeastBytes));
  }
  if (bytes.size() > kMostBytes) {
    return invalid(source, fmt::format("the secret has more than {} bytes", kMostBytes));
  }
  return std::shared_ptr<const Secret>(new Secret(bytes));
}

Secret::~Secret() { base::overwrite(bytes_); }

Result<Secret::Mac> Secret::sign(std::span<const std::byte> message) const {
  Mac mac;
  unsigned length = 0;
  const auto* made = HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
                          reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                          reinterpret_cast<unsigned char*>(mac.data()), &length);
  if (made == nullptr || length != mac.size()) {
    return Status(Code::system_error, "libcrypto cannot make an HMAC-SHA-256");
  }
  return mac;
}

// Digests are compared, so that nothing depends on lengths either.
bool Secret::is(std::span<const std::byte> shown) const {
  const Result<Mac> expected = sign(bytes_);
  const Result<Mac> got = sign(shown);
  return expected.ok() && got.ok() && equal(*expected, *got);
}

bool equal(const Secret::Mac& a, const Secret::Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Loaded load_secret(const base::Settings& settings) {
  const char* const text = std::getenv(kVariable);
  if (text == nullptr) {
    if (const base::Bytes given = settings.given_for(kSetting))
      return Secret::make(*given, fmt::format("{}, given as bytes", kSetting));
    if (settings.secret_file.empty()) return std::shared_ptr<const Secret>();
    return load_secret_file(settings.secret_file, kSetting);
  }
  if (!settings.secret_file.empty()) {
    return invalid(kVariable, fmt::format("security.secret_file = {} is set as well: only one can "
                                          "be the secret",
                                          settings.secret_file));
  }
  return Secret::make(std::as_bytes(std::span(text, std::strlen(text))), kVariable);
}

}  // namespace faro::links
