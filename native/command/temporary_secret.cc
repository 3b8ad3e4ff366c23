#include "command/temporary_secret.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/return_if_error.h"
#include "base/unique_fd.h"

namespace faro::command {
namespace {

Status failed(std::string_view what) {
  return {Code::system_error, fmt::format("{}: {}", what, std::strerror(errno))};
}

}  // namespace

Result<std::string> random_secret() {
  std::array<uint8_t, 32> random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return failed("getrandom");
  std::string text;
  for (const uint8_t byte : random) text += fmt::format("{:02x}", byte);
  return text;
}

Result<TemporarySecret> TemporarySecret::make() {
  FARO_ASSIGN_OR_RETURN(const std::string text, random_secret());
  std::string path = "/tmp/faro-secret-XXXXXX";
  const base::UniqueFd fd(mkstemp(path.data()));  // mode 600
  if (!fd.valid()) return failed(path);
  TemporarySecret secret(std::move(path));
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return failed(secret.path());
  return secret;
}

TemporarySecret::~TemporarySecret() {
  if (!path_.empty()) unlink(path_.c_str());
}

bool has_secret(const Config& config) {
  return std::getenv("FARO_SECRET") != nullptr || !config.get("security.secret_file").empty();
}

}  // namespace faro::command
