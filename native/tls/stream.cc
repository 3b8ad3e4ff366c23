#include "tls/stream.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "tls/openssl.h"

namespace faro::tls {
namespace {

// What the peer says of our certificate or of our TLS comes as an alert. Other alerts say that something is broken.
bool is_refusal(unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  switch (ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET) {
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:  // a signature is wrong, as of another authority of the same name
    case SSL_AD_PROTOCOL_VERSION:
    case SSL_AD_INSUFFICIENT_SECURITY:
      return true;
    default:
      return false;
  }
}

Status refused(std::string text) { return {Code::authentication_failed, std::move(text)}; }

}  // namespace

Stream::Stream(std::unique_ptr<ssl_st, Free> session, std::shared_ptr<const PeerPolicy> policy)
    : session_(std::move(session)), policy_(std::move(policy)) {
  SSL_set_app_data(session_.get(), this);
}

int Stream::verify(X509_STORE_CTX* check, void* /*unused*/) noexcept {
  const auto* const session = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const stream = static_cast<Stream*>(SSL_get_app_data(session));
  // By the authority, and by the host if the policy asks for that.
  if (!stream->policy_->names_certificates()) return X509_verify_cert(check) == 1 ? 1 : 0;
  const X509* const shown = X509_STORE_CTX_get0_cert(check);
  try {
    if (stream->policy_->names(shown)) {
      X509_STORE_CTX_set_error(check, X509_V_OK);
      return 1;
    }
    stream->refusal_ = stream->policy_->why_refused(shown);
  } catch (const std::bad_alloc&) {
  }
  X509_STORE_CTX_set_error(check, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

void Stream::Free::operator()(ssl_st* session) const noexcept { SSL_free(session); }

ssize_t Stream::send(std::span<const iovec> pieces) noexcept {
  const std::lock_guard lock(mutex_);
  if (send_error_ != 0) {
    errno = send_error_;
    return -1;
  }
  const iovec& first = pieces.front();
  if (pieces.size() == 1 || first.iov_len >= kRecordBytes)
    return send_record(first.iov_base, std::min(first.iov_len, kRecordBytes));
  return send_gathered(pieces);
}

// One record for many small pieces. On the stack: a connection that is idle keeps no memory for it.
ssize_t Stream::send_gathered(std::span<const iovec> pieces) {
  std::array<std::byte, kRecordBytes> record;
  size_t gathered = 0;
  for (const iovec& piece : pieces) {
    const size_t bytes = std::min(piece.iov_len, record.size() - gathered);
    std::memcpy(record.data() + gathered, piece.iov_base, bytes);
    gathered += bytes;
    if (gathered == record.size()) break;
  }
  return send_record(record.data(), gathered);
}

ssize_t Stream::send_record(const void* data, size_t bytes) {
  size_t taken = 0;
  errno = 0;
  ERR_clear_error();
  const int result = SSL_write_ex(session_.get(), data, bytes, &taken);
  send_waits_for_input_ =
      result <= 0 && SSL_get_error(session_.get(), result) == SSL_ERROR_WANT_READ;
  const ssize_t sent = moved(result, taken);
  if (sent > 0) return sent;
  if (sent == 0) errno = EPIPE;  // the end was received before: nothing will ever be taken
  // libssl would want the very bytes that have failed.
  if (errno != EAGAIN) send_error_ = errno;
  return -1;
}

ssize_t Stream::receive(std::span<const iovec> pieces) noexcept {
  const std::lock_guard lock(mutex_);
  size_t received = 0;
  for (const iovec& piece : pieces) {
    size_t filled = 0;
    while (filled < piece.iov_len) {
      size_t got = 0;
      errno = 0;
      ERR_clear_error();
      const int result =
          SSL_read_ex(session_.get(), static_cast<std::byte*>(piece.iov_base) + filled,
                      piece.iov_len - filled, &got);
      const ssize_t bytes = moved(result, got);
      // An end or a failure is reported again the next time.
      if (bytes <= 0) return received != 0 ? static_cast<ssize_t>(received) : bytes;
      filled += got;
      received += got;
    }
  }
  return static_cast<ssize_t>(received);
}

// What a call of libssl means to the caller of a socket.
ssize_t Stream::moved(int result, size_t bytes) {
  if (result > 0) {
    established_ = true;
    return static_cast<ssize_t>(bytes);
  }
  if (failure_.ok() && !ended_) {
    switch (SSL_get_error(session_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        errno = EAGAIN;
        return -1;
      case SSL_ERROR_WANT_WRITE:
        if (errno == 0 || errno == EINTR) errno = EAGAIN;  // else what socket_bio.cc has found
        return -1;
      case SSL_ERROR_ZERO_RETURN:
        ended_ = true;
        break;
      default:
        note_failure();
    }
  }
  if (ended_) return 0;
  errno = EPROTO;
  return -1;
}

void Stream::note_failure() {
  const int error = errno;
  const unsigned long last = ERR_peek_last_error();  // that of libssl; others led to it
  const bool closed =
      last == 0 ? error == 0 : ERR_GET_REASON(last) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  const bool gone = closed || last == 0;
  const bool is_server = SSL_is_server(session_.get()) == 1;
  if (closed && established_) {
    // A regular end is announced above TLS (BYE, FINISH).
    ended_ = true;
  } else if (gone && !established_ && is_server) {
    // The peer has made this side sign without showing a certificate.
    failure_ = refused("the peer left in the TLS handshake, before it had shown a certificate");
  } else if (closed) {
    failure_ = {Code::connect_failed,
                "closed by the peer in the TLS handshake (it may have security.tls = off)"};
  } else if (last == 0) {
    failure_ = {established_ ? Code::peer_lost : Code::connect_failed, std::strerror(error)};
  } else if (ERR_GET_REASON(last) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    const long why = SSL_get_verify_result(session_.get());
    failure_ =
        refused(fmt::format("the peer's certificate is refused: {}",
                            refusal_.empty() ? X509_verify_cert_error_string(why) : refusal_));
  } else if (ERR_GET_REASON(last) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    failure_ = refused("the peer has no certificate");
  } else if (is_refusal(last)) {
    failure_ = refused(fmt::format("the peer refuses this node's certificate or TLS: {}",
                                   ERR_reason_error_string(last)));
  } else {
    const char* const reason = ERR_reason_error_string(last);
    failure_ = {is_server ? Code::authentication_failed : Code::connect_failed,
                fmt::format("TLS failed: {}", reason == nullptr ? "unknown" : reason)};
  }
  ERR_clear_error();
}

size_t Stream::pending() const noexcept {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(SSL_pending(session_.get()));
}

bool Stream::send_waits_for_input() const noexcept {
  const std::lock_guard lock(mutex_);
  return send_waits_for_input_;
}

Status Stream::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Status Stream::check_peer(const std::string& host) const {
  if (!policy_->is_by_host()) return {};
  const std::lock_guard lock(mutex_);
  X509* const certificate = SSL_get0_peer_certificate(session_.get());
  if (certificate != nullptr && !host.empty() &&
      (X509_check_ip_asc(certificate, host.c_str(), 0) == 1 ||
       X509_check_host(certificate, host.data(), host.size(), kHostFlags, nullptr) == 1)) {
    return {};
  }
  return refused(host.empty()
                     ? "its certificate is for no node of that number"
                     : fmt::format("its certificate is not for {} (subjectAltName)", host));
}

}  // namespace faro::tls
