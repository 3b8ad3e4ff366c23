// TemporarySecret: a secret of a cluster that lives as long as one measurement.
#pragma once

#include <string>
#include <utility>

#include "faro/config.h"
#include "faro/status.h"

namespace faro::command {

/// A new one, for Config::set_bytes. Errors: system_error.
Result<std::string> random_secret();

/// Owns: a file with a random secret, for this user only. Movable. Threads: one.
class TemporarySecret {
 public:
  /// Errors: system_error.
  static Result<TemporarySecret> make();
  TemporarySecret(TemporarySecret&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporarySecret& operator=(TemporarySecret&&) = delete;
  ~TemporarySecret();

  /// For security.secret_file.
  const std::string& path() const { return path_; }

 private:
  explicit TemporarySecret(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Whether the environment or `config` gives a session a secret already.
bool has_secret(const Config& config);

}  // namespace faro::command
