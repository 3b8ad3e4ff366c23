// Credentials: what a node shows of itself in TLS, and whom it believes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "faro/status.h"
#include "tls/peer_policy.h"
#include "tls/stream.h"
#include "tls/turns.h"

struct ssl_ctx_st;

namespace faro::tls {

/// A certificate, its key, and the authority that must have signed the peers' certificates, unless security.peers names
/// these. TLS 1.3 only. Both sides show a certificate. Sessions are not resumed, so each connection checks both certificates anew. For
/// each stream the files are checked for changes and read again if they have changed. If they are unusable,
/// that is logged, and the last usable ones stay in effect.
/// Threads: any. Blocks: for the files, which are small and belong on a local disk.
class Credentials {
 public:
  /// Loads what security.certificate, security.key and security.authority, files or bytes
  /// (Config::set_bytes), and security.peers say; null if security.tls = off.
  /// Errors: config_invalid, naming setting and file: not set, missing, not PEM; a key that others
  /// may read, is encrypted or belongs to another certificate; a certificate that is expired, not
  /// valid yet or not of the authority; no such policy. Where security.peers names certificates the
  /// authority need not be set, and this certificate need not be of it.
  static Result<std::shared_ptr<Credentials>> load(const base::Settings& settings);

  /// For a connection that this side dialled. If the policy is by host, the peer's certificate must be for `host`, a name or
  /// numeric address. Null if there is no memory.
  std::shared_ptr<Stream> dial(int fd, const std::string& host);
  /// For a connection that was accepted. Call Stream::check_peer once you know which peer it should be.
  std::shared_ptr<Stream> accept(int fd);
  /// For a connection that was accepted, of a peer that need not show a certificate, and proves
  /// otherwise who it is.
  std::shared_ptr<Stream> accept_anyone(int fd);

  /// The turns of the connections that this side dials. Threads: the network thread.
  Turns& turns() { return turns_; }
  /// Until the certificate ends that is shown now.
  int64_t seconds_left();

 private:
  /// PEM: a file, or bytes.
  struct Source {
    std::string_view setting;
    std::string file;
    base::Bytes bytes;  // null: the file counts

    bool is_given() const { return !file.empty() || bytes != nullptr; }
  };
  struct Sources {
    Source certificate;
    Source key;
    Source authority;
  };
  using Context = std::shared_ptr<ssl_ctx_st>;

  Credentials(Sources sources, std::shared_ptr<const PeerPolicy> policy, std::string state,
              Context context)
      : sources_(std::move(sources)),
        policy_(std::move(policy)),
        state_(std::move(state)),
        context_(std::move(context)) {}

  static std::string state_of(const Sources& sources);
  static Result<Context> read(const Sources& sources, const PeerPolicy& policy);
  static Status read_public(const Source& source, std::vector<std::byte>& text);
  static Status use_certificate(ssl_ctx_st* context, const Source& source);
  static Status use_key(ssl_ctx_st* context, const Source& source);
  static Status use_authority(ssl_ctx_st* context, const Source& source);
  Context current();
  std::shared_ptr<Stream> make_stream(int fd, const std::string* dialled_host,
                                      bool asks_for_certificate = true);

  const Sources sources_;
  const std::shared_ptr<const PeerPolicy> policy_;
  std::mutex mutex_;
  std::string state_;  // of the files when they were read last
  Context context_;
  Turns turns_;
};

}  // namespace faro::tls
