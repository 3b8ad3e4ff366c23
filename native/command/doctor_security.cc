// Checks whether the configured secret and certificate are usable here.
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/settings.h"
#include "command/doctor_checks.h"
#include "command/text.h"
#include "links/secret.h"
#include "tls/credentials.h"

namespace faro::command {
namespace {

constexpr int64_t kSecondsPerDay = 86'400;

Check secret_check(const base::Settings& settings) {
  const std::string name = "secret";
  const auto secret = links::load_secret(settings);
  if (!secret) {
    return fails(name, std::string(secret.status().message()),
                 "openssl rand -hex 32 >FILE; chmod 600 FILE; the same on every node");
  }
  if (*secret == nullptr) {
    return works(name, "none: security.secret_file is empty, FARO_SECRET is not set");
  }
  return works(name, settings.secret_file.empty() ? "in FARO_SECRET" : settings.secret_file);
}

Check certificate_check(const base::Settings& settings) {
  const std::string name = "certificate";
  const auto credentials = tls::Credentials::load(settings);
  if (!credentials) {
    return fails(name, std::string(credentials.status().message()),
                 "native/tls/README.md shows how certificates are made");
  }
  if (*credentials == nullptr) return works(name, "none: security.tls is off");
  const int64_t left_s = (*credentials)->seconds_left();
  Check check = works(
      name, fmt::format("{}, ends in {}", settings.certificate,
                        left_s < kSecondsPerDay
                            ? "less than a day"
                            : counted(static_cast<uint64_t>(left_s / kSecondsPerDay), "day")));
  if (left_s < kSecondsPerDay) {
    check.health = Health::warning;
    check.remedy = "replace the file: it is read again before the next connection";
  }
  return check;
}

}  // namespace

std::vector<Check> check_security(const Config& config) {
  base::Settings settings;
  settings.secret_file = config.get("security.secret_file");
  settings.tls = config.get("security.tls");
  settings.certificate = config.get("security.certificate");
  settings.peers = config.get("security.peers");
  settings.key = config.get("security.key");
  settings.authority = config.get("security.authority");
  return {secret_check(settings), certificate_check(settings)};
}

}  // namespace faro::command
