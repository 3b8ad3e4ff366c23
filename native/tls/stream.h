// Stream: TLS 1.3 over a connected socket, in both directions.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "faro/status.h"
#include "tls/peer_policy.h"

struct ssl_st;
struct x509_store_ctx_st;

namespace faro::tls {

/// What a socket does, encrypted. The handshake is part of the first sends and receives of both
/// sides; nothing is sent or received before the certificates have been checked.
/// Threads: any; a call waits for another one on the same stream, which does not wait itself.
/// Blocks: never. Owns: not the socket, which must be non-blocking and outlive it.
class Stream {
 public:
  /// What one record holds at most.
  static constexpr size_t kRecordBytes = 16384;
  /// What a connection takes of memory while nothing is on its way, that is, all but the buffers that libssl has for a record
  /// meanwhile. Most of it is libssl's, and some the peer's certificate, which it keeps: 22 KiB with one of an elliptic curve,
  /// 26 KiB with one of RSA 4096, as OpenSSL 3.0 has it. Tests compare it with the OpenSSL at hand.
  static constexpr size_t kIdleBytes = size_t{25} << 10;

  struct Free {
    void operator()(ssl_st* session) const noexcept;
  };
  /// For Credentials, which makes streams.
  Stream(std::unique_ptr<ssl_st, Free> session, std::shared_ptr<const PeerPolicy> policy);

  /// For libssl: whether the policy of a stream admits the certificate that its peer shows. 1: it does; 0: not.
  static int verify(x509_store_ctx_st* check, void* unused) noexcept;

  /// Sends as sendmsg(2) does, and returns the number of bytes taken, at most a record; or -1 and
  /// errno. EAGAIN: the same bytes have to be offered again, perhaps with more behind them. EPIPE:
  /// the peer has ended the connection. EPROTO: failure() says why.
  ssize_t send(std::span<const iovec> pieces) noexcept;
  /// Receives as recvmsg(2) does, and returns the number of bytes, less than there is space only if
  /// no more have arrived; 0 at the end of the connection; or -1 and errno, as send.
  ssize_t receive(std::span<const iovec> pieces) noexcept;
  /// Bytes that have left the socket and wait to be received: the socket does not become readable
  /// for them.
  size_t pending() const noexcept;
  /// The last send can only continue once something has been received: the handshake is in progress.
  bool send_waits_for_input() const noexcept;

  /// Why the stream has ended: authentication_failed if either side refused a certificate, or the version of TLS; to the
  /// accepting side also if TLS failed otherwise, or the dialling side left before it had shown a certificate. To the
  /// dialling side such a failure is connect_failed: it may succeed the next time. peer_lost.
  Status failure() const;
  /// Whether the peer's certificate is for this name or numeric address, if the policy asks for that. No certificate is for an
  /// empty host.
  /// Errors: authentication_failed.
  Status check_peer(const std::string& host) const;

 private:
  ssize_t send_record(const void* data, size_t bytes);
  ssize_t send_gathered(std::span<const iovec> pieces);
  ssize_t moved(int result, size_t bytes);
  void note_failure();

  mutable std::mutex mutex_;
  const std::unique_ptr<ssl_st, Free> session_;
  const std::shared_ptr<const PeerPolicy> policy_;
  std::string refusal_;  // of the peer's certificate, by the policy
  bool send_waits_for_input_ = false;
  int send_error_ = 0;        // for good
  bool established_ = false;  // something was sent or received
  bool ended_ = false;
  Status failure_;
};

}  // namespace faro::tls
