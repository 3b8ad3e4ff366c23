// Config: all settings of a session, by name, with where each value came from.
#pragma once

#include "faro/detail/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faro/status.h"

#pragma GCC visibility push(default)

namespace faro {

namespace base {
struct Settings;
}

/// Unit of a numeric setting.
enum class Unit { number, bytes, milliseconds, microseconds };

/// One row of the table of settings.
struct SettingInfo {
  std::string_view name;           ///< for example "ring.bytes"
  std::string_view environment;    ///< for example "FARO_RING_BYTES"
  bool numeric;                    ///< else text
  std::string_view default_value;  ///< as text
  Unit unit;
  uint64_t least;
  uint64_t most;
  bool cluster_wide;  ///< all nodes must agree; compared in the handshake
  std::string_view help;
};

/// The settings of one node. A value object: set what differs from the defaults, then open a
/// session with it, which takes a copy and validates it as a whole (`resolve`).
///
/// Numbers are written as decimal digits with an optional KiB, MiB or GiB (bytes only). As long as
/// transfer.threshold_bytes is not set it is at most half of ring.bytes, whatever that is. Later
/// calls win over earlier ones: load the file first, then the environment, then `set`.
///
/// Threads: one at a time.
/// Errors: config_invalid, naming key, value and limit. A failed call changes nothing.
class Config {
 public:
  Config();

  /// The table of all settings, in the order of settings.def.
  static const std::vector<SettingInfo>& table();

  /// Sets one setting from text. `source` says where it came from, for `faro config`.
  Status set(std::string_view name, std::string_view value, std::string_view source = "set");
  Status set(std::string_view name, uint64_t value, std::string_view source = "set");
  Status set(std::string_view name, const char* value) {
    return set(name, std::string_view(value));
  }
  Status set(std::string_view name, int value);

  /// Gives what a file would hold instead of the file's path: for security.secret_file,
  /// security.certificate, security.key and security.authority. A copy is kept, by every copy of
  /// this Config and by the sessions and endpoints that were opened with it; it is overwritten when
  /// the last of them is gone. It is shown nowhere: get() answers "(given as bytes)". A later set()
  /// of the same name takes its place. Errors: config_invalid (another setting; no bytes).
  Status set_bytes(std::string_view name, std::span<const std::byte> bytes);

  /// Takes every FARO_… variable of the table from the environment. Nothing else does: without
  /// this call a session sees none of them but FARO_SECRET. Another variable that begins with a
  /// section of the settings (FARO_SECURITY_…) is an error: most likely it is misspelt. Names
  /// that container runtimes make for a Service called faro or faro-… are passed over
  /// (FARO_SERVICE_HOST, FARO_RING_PORT_7000_TCP_ADDR, …), all others, too, with a warning.
  Status load_environment();

  /// Reads a TOML file; tables and dotted keys spell the names: [ring] bytes = "64 KiB".
  Status load_file(const std::string& path);

  /// The value as text, empty for an unknown name.
  std::string get(std::string_view name) const;
  /// The value of a numeric setting, 0 for an unknown name.
  uint64_t get_number(std::string_view name) const;
  /// Says where a value came from: "default", "default (half of ring.bytes)", "environment", a
  /// file's path, or what `set` was told.
  std::string source(std::string_view name) const;

  /// Checks values against each other (power of two, threshold against ring, node against nodes).
  Status validate() const;

 private:
  struct Value {
    std::string text;
    uint64_t number = 0;
    std::string source;
    std::shared_ptr<const std::vector<std::byte>> bytes;  // in place of a file
  };
  friend struct base::Settings;
  void follow();

  std::vector<Value> values_;  // parallel to table()
};

}  // namespace faro

#pragma GCC visibility pop
