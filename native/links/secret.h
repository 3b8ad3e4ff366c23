// Secret: the secret that all nodes of a cluster share.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "faro/status.h"

namespace faro::links {

/// Signs with a secret and never shows it. Threads: any. Owns: the only copy of the bytes, which
/// are overwritten at the end.
class Secret {
 public:
  /// An attacker can record a proof and try guesses on it offline. 32 hexadecimal digits (128 bits) are too many
  /// for that.
  static constexpr size_t kLeastBytes = 32;
  static constexpr size_t kMostBytes = 4096;
  /// HMAC-SHA-256.
  using Mac = std::array<std::byte, 32>;

  /// Takes `bytes` without white space at their end, where editors leave a line break. `source` says where they
  /// come from. Errors: config_invalid for too few or too many bytes; the message never shows any.
  static Result<std::shared_ptr<const Secret>> make(std::span<const std::byte> bytes,
                                                    std::string_view source);
  ~Secret();
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  /// Errors: system_error, if libcrypto cannot.
  Result<Mac> sign(std::span<const std::byte> message) const;
  /// Whether these bytes are the secret. Takes the same time no matter where the two differ; false if libcrypto cannot.
  bool is(std::span<const std::byte> shown) const;

 private:
  explicit Secret(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}

  std::vector<std::byte> bytes_;
};

/// Takes the same time no matter where the two differ.
bool equal(const Secret::Mac& a, const Secret::Mac& b);

/// The secret in a file that `setting` names. Blocks: for the file. Errors: config_invalid, naming setting and file: it is
/// missing, not a plain file, belongs to or can be read by others, or holds no usable secret.
Result<std::shared_ptr<const Secret>> load_secret_file(const std::string& path,
                                                       std::string_view setting);

/// The secret of the file that security.secret_file names, or that was given in its place, or of the environment variable
/// FARO_SECRET; null if there is neither. Threads: no other thread may change the environment meanwhile.
/// Blocks: for the file. Errors: config_invalid, naming the source: both are set, the file is
/// missing, not a plain file, belongs to or can be read by others, or holds no usable secret.
Result<std::shared_ptr<const Secret>> load_secret(const base::Settings& settings);

}  // namespace faro::links
