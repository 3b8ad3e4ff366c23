#include "session/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/unique_fd.h"

namespace faro::session {
namespace {

using Loaded = Result<std::shared_ptr<const Secret>>;

constexpr const char* kVariable = "FARO_SECRET";

Status invalid(std::string_view source, std::string_view why) {
  return Status(Code::config_invalid, fmt::format("{}: {}", source, why));
}

std::span<const std::byte> without_white_end(std::span<const std::byte> bytes) {
  constexpr std::string_view kWhite = " \t\r\n";
  while (!bytes.empty() && kWhite.find(static_cast<char>(bytes.back())) != kWhite.npos) {
    bytes = bytes.first(bytes.size() - 1);
  }
  return bytes;
}

// Who else can read a secret makes it none; who can exchange it decides who joins.
Status check_file(int fd, std::string_view source) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return invalid(source, std::strerror(errno));
  if (!S_ISREG(file.st_mode)) return invalid(source, "it is no plain file");
  if (file.st_uid != geteuid() && file.st_uid != 0) {
    return invalid(source, fmt::format("it belongs to uid {}, not to this process (uid {}) or root",
                                       file.st_uid, geteuid()));
  }
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return invalid(source, fmt::format("others than its owner may use it (mode {:04o}): chmod 600",
                                       file.st_mode & 07777));
  }
  return Status::Ok();
}

Loaded load_file(const std::string& path) {
  const std::string source = fmt::format("security.secret_file = {}", path);
  // A pipe must not hold up open: it is refused.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return invalid(source, std::strerror(errno));
  FARO_RETURN_IF_ERROR(check_file(fd.get(), source));
  std::array<std::byte, Secret::kMostBytes + 1> bytes;
  const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
  const int error = errno;
  Loaded made = got < 0 ? Loaded(invalid(source, std::strerror(error)))
                        : Secret::make(std::span(bytes).first(static_cast<size_t>(got)), source);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return made;
}

}  // namespace

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

Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

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

bool equal(const Secret::Mac& a, const Secret::Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Loaded load_secret(const base::Settings& settings) {
  const char* const text = std::getenv(kVariable);
  if (text == nullptr) {
    if (settings.secret_file.empty()) return std::shared_ptr<const Secret>();
    return load_file(settings.secret_file);
  }
  if (!settings.secret_file.empty()) {
    return invalid(kVariable, fmt::format("security.secret_file = {} is set as well: only one can "
                                          "be the secret",
                                          settings.secret_file));
  }
  return Secret::make(std::as_bytes(std::span(text, std::strlen(text))), kVariable);
}

}  // namespace faro::session
