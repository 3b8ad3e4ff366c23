// Credentials: what a node shows of itself in TLS, and whom it believes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/settings.h"
#include "faro/status.h"
#include "tls/stream.h"

struct ssl_ctx_st;

namespace faro::tls {

/// A certificate, its key, and the authority that must have signed the peers' certificates. TLS 1.3 only. Both
/// sides show a certificate. Sessions are not resumed, so each connection checks both certificates anew. For
/// each stream the files are checked for changes and read again if they have changed. If they are unusable,
/// that is logged, and the last usable ones stay in effect.
/// Threads: any. Blocks: for the files, which are small and belong on a local disk.
class Credentials {
 public:
  /// Of security.certificate, security.key and security.authority; null if security.tls = off.
  /// Errors: config_invalid, naming setting and file: not set, missing, not PEM; a key that others
  /// may read, is encrypted or belongs to another certificate; a certificate that is expired, not
  /// valid yet or not of the authority.
  static Result<std::shared_ptr<Credentials>> load(const base::Settings& settings);

  /// For a connection that this side dialled. The peer's certificate must be for `host`, a name or numeric
  /// address. Null if there is no memory.
  std::shared_ptr<Stream> dial(int fd, const std::string& host);
  /// For a connection that was accepted. Call Stream::check_peer once you know which peer it should be.
  std::shared_ptr<Stream> accept(int fd);

  /// Until the certificate ends that is shown now.
  int64_t seconds_left();

 private:
  struct Files {
    std::string certificate;
    std::string key;
    std::string authority;
  };
  using Context = std::shared_ptr<ssl_ctx_st>;

  Credentials(Files files, std::string state, Context context)
      : files_(std::move(files)), state_(std::move(state)), context_(std::move(context)) {}

  static std::string state_of(const Files& files);
  static Result<Context> read(const Files& files);
  Context current();
  std::shared_ptr<Stream> make_stream(int fd, const std::string* dialled_host);

  const Files files_;
  std::mutex mutex_;
  std::string state_;  // of the files when they were read last
  Context context_;
};

}  // namespace faro::tls
